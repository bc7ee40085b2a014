#!/usr/bin/env bash
# The generator at depth 3 with its default list: graphs a second, time, memory, every rule proved
# again with two other seeds, and which true rules of TASO's file what it found implies. Fails when
# it takes more than 10 minutes on 2 cores (counted as 1200 s of processor time, so that a busy
# machine does not matter) or 8 GiB, when a rule is refused, or when one of TASO's is missing.
# With a file, the rules are written there and stay; with one that exists, they are not generated
# again but checked.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
found=${1:-$out/found.rules}
failed=0

if [[ ! -e $found ]]; then
  python3 - build/autograph-lab generate --max-ops 3 -o "$found" <<'PY' || failed=1
import resource
import subprocess
import sys
import time

start = time.monotonic()
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss / 2**20
processor = used.ru_utime + used.ru_stime
print(f"{time.monotonic() - start:.0f} s, {processor:.0f} s of processor time, peak {peak:.2f} GiB")
sys.exit(code != 0 or processor > 1200 or peak > 8)
PY
fi

for seed in 9 77; do
  build/autograph rules verify "$found" --seed "$seed" --no-cache >"$out/verified" || failed=1
  echo "seed $seed: $(tail -1 "$out/verified")"
done

taso=${AUTOGRAPH_TASO_FILE:-../shared/data/taso/graph_subst.pb}
if [[ -e $taso ]]; then
  # Exit code 1 where some are unknown: which of them count is decided below.
  build/autograph-lab coverage "$taso" --json >"$out/built_in" || true
  build/autograph-lab coverage "$taso" --rules "$found" --json >"$out/generated" || true
  python3 - "$found" "$out/built_in" "$out/generated" <<'PY' || failed=1
import json
import re
import sys

TRUE = ("implied", "repaired")
# TASO's operators that are several of ours, or carry an axis in their name.
SEVERAL = {"conv_relu": {"conv", "relu"}}


def operators(text: str) -> set[str]:
    """The operators of our table that a rule of TASO's, as text, is made of."""
    names = (re.sub(r"\d+$", "", name) for name in re.findall(r"([a-z_]+\d*)\(", text))
    return set().union(*(SEVERAL.get(name, {name}) for name in names))


with open(sys.argv[1]) as file:
    listed = re.search(r"^# Operators: (.*)\.$", file.read(), re.MULTILINE)
ours = set(listed.group(1).split())
built_in, generated = (
    {rule["rule"]: rule for rule in json.load(open(path))["rules"]} for path in sys.argv[2:4]
)
# The file's rules have numbers, the substitutions in TASO's code have names. True is what the
# built-in rules imply or repair: the others are noise.
expected = [
    name
    for name, rule in built_in.items()
    if name.isdigit() and rule["verdict"] in TRUE and operators(rule["text"]) <= ours
]
missing = [name for name in expected if generated[name]["verdict"] not in TRUE]
print(f"rediscovered {len(expected) - len(missing)} of {len(expected)}")
for name in missing:
    print(f"missing {name}: {built_in[name]['text']}: {generated[name]['reason']}")
sys.exit(bool(missing) or not expected)
PY
fi
exit "$failed"
