#!/usr/bin/env bash
# What a change must pass before it is committed: format, build, thread-safety analysis, clang-tidy on what changed, the
# house rules (arrows, sizes), unit tests. Under two minutes when warm; no GPU.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
scripts/install.sh --check

echo "== format"
git ls-files '*.cc' '*.h' | xargs -r clang-format-14 --dry-run --Werror

scripts/build.sh

scripts/lint_commands.sh

# Every file that takes part in locking, changed or not: in a fresh clone nothing counts as changed.
mapfile -t locking < <(git grep -lE 'mutex\.h|Mutex' -- '*.cc' '*.h' | sed 's/\.h$/.cc/' | sort -u |
                       while read -r file; do if [[ -e $file ]]; then echo "$file"; fi; done)
((${#locking[@]} > 0)) || { echo "check.sh: found no file that locks" >&2; exit 1; }
echo "== clang: thread safety of ${#locking[@]} files"
for file in "${locking[@]}"; do
  # The compile command with clang in the place of g++ and without what only g++ or the linker knows.
  command=$(python3 - "$file" <<'PY'
import json, os, shlex, sys
wanted = os.path.abspath(sys.argv[1])
for entry in json.load(open('build/lint/compile_commands.json')):
    if os.path.abspath(os.path.join(entry['directory'], entry['file'])) == wanted:
        words = [w for w in shlex.split(entry['command']) if w not in ('-c',)]
        keep, skip = [], False
        for word in words:
            if skip: skip = False; continue
            if word == '-o': skip = True; continue
            if word.startswith(('-I', '-D', '-std', '-isystem')) or (keep and keep[-1] == '-isystem'): keep.append(word)
        print(shlex.join(keep))
        break
PY
)
  [[ -n "$command" ]] || { echo "check.sh: $file is not built" >&2; exit 1; }
  (cd build && eval "clang++-14 -fsyntax-only -Wthread-safety -Werror=thread-safety -fopenmp-simd $command ../$file") ||
    { echo "check.sh: $file" >&2; exit 1; }
done

scripts/tidy.sh

echo "== tests"
ctest --test-dir build --output-on-failure -j2 -LE slow
