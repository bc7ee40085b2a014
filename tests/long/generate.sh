#!/usr/bin/env bash
# The generator at depth 3 with its default list: time, memory, every rule proved again with another
# seed, and which rules of TASO's file follow.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
python3 - build/autograph rules generate --max-ops 3 -o "$out/found.rules" <<'PY'
import resource, subprocess, sys, time

start = time.monotonic()
subprocess.run(sys.argv[1:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
seconds = time.monotonic() - start
print(f"{seconds:.0f} s, peak {peak:.2f} GiB")
sys.exit(seconds > 600 or peak > 8)
PY
build/autograph rules verify "$out/found.rules" --seed 9 | awk '{n[$1]++} END {for (w in n) print n[w], w}'
if [[ -e ${AUTOGRAPH_TASO_FILE:-../shared/data/taso/graph_subst.pb} ]]; then
  build/autograph rules coverage "${AUTOGRAPH_TASO_FILE:-../shared/data/taso/graph_subst.pb}" \
    --rules "$out/found.rules" | tail -1 || true  # Exit code 1: some are unknown.
fi
