#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy, two at a time; fails when one reports something. Needs a build/ that
# has its generated headers.
#   scripts/tidy.sh              what changed in the working tree and in the last commit, 12 files at most
#   scripts/tidy.sh --all        every *.cc of the tree (half an hour; scripts/test.sh --long tidy)
#   scripts/tidy.sh FILE.cc...   these
set -euo pipefail
cd "$(dirname "$0")/.."
files_max=12  # 7 s of work each, 11 s with gRPC: at most a minute on two cores.

# examples/ is no part of the build: runtime/install_test.sh compiles it, with warnings as errors.

# Changed *.cc files that still exist; a header stands for its .cc, else for the first file that includes it.
changed() {
  local since=HEAD
  if git rev-parse -q --verify HEAD~1 >/dev/null; then since=HEAD~1; fi
  { git diff --name-only --diff-filter=d "$since" -- '*.cc' '*.h' ':!examples'
    git ls-files --others --exclude-standard -- '*.cc' '*.h' ':!examples'; } |
    while read -r file; do
      if [[ $file == *.h ]]; then
        if [[ -e ${file%.h}.cc ]]; then file=${file%.h}.cc
        else file=$(git grep -lF "#include \"$file\"" -- '*.cc' | head -1 || true); fi
      fi
      if [[ -n $file ]]; then echo "$file"; fi
    done | sort -u
}

case "${1:-}" in
  --all) mapfile -t files < <(git ls-files '*.cc' ':!examples') ;;
  "")
    mapfile -t files < <(changed)
    if ((${#files[@]} > files_max)); then
      echo "${#files[@]} files changed: only the first $files_max are looked at; scripts/test.sh --long tidy has all"
      files=("${files[@]:0:files_max}")
    fi ;;
  *) files=("$@") ;;
esac

echo "== clang-tidy: ${#files[@]} files"
((${#files[@]} > 0)) || exit 0
scripts/lint_commands.sh
# Findings go to standard output; standard error counts what it left out in the libraries' headers.
printf '%s\0' "${files[@]}" |
  xargs -0 -n1 -P2 sh -c 'clang-tidy-14 -p build/lint --quiet "$0" 2>/dev/null || { echo "tidy.sh: $0" >&2; exit 1; }'
