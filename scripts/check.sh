#!/usr/bin/env bash
# What a change must pass before it is committed: format, thread-safety analysis and tidy on changed
# files, build, the house rules (arrows, sizes), unit tests. Under two minutes when warm; no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh --check

echo "== format"
git ls-files '*.cc' '*.h' | xargs -r clang-format-14 --dry-run --Werror

scripts/build.sh

base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse 'HEAD~1' 2>/dev/null || git rev-parse HEAD)
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$base" -- '*.cc'
                         git ls-files --others --exclude-standard -- '*.cc'; } | sort -u)
echo "== clang: thread safety of ${#changed[@]} changed files"
for file in "${changed[@]}"; do
  # The compile command with clang in the place of g++ and without what only g++ or the linker knows.
  command=$(python3 - "$file" <<'PY'
import json, os, shlex, sys
wanted = os.path.abspath(sys.argv[1])
for entry in json.load(open('build/compile_commands.json')):
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
  [[ -n "$command" ]] || continue
  (cd build && eval "clang++-14 -fsyntax-only -Wthread-safety -Werror=thread-safety -fopenmp-simd $command ../$file") ||
    { echo "check.sh: $file" >&2; exit 1; }
done

echo "== tests"
ctest --test-dir build --output-on-failure -j2 -LE slow
