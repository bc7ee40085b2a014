#!/usr/bin/env bash
# Installs what is missing, builds, runs all tests.
#   scripts/test.sh               everything that ends in minutes
#   scripts/test.sh --long NAME   one soak (scripts/test.sh --long list); further words go to it
#   scripts/test.sh -R REGEX      only tests whose name matches (passed on to ctest)
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."

if [[ "${1:-}" == --long ]]; then
  name=${2:?"usage: scripts/test.sh --long NAME"}
  if [[ "$name" == list ]]; then
    for soak in tests/long/*.sh; do [[ -e "$soak" ]] && basename "$soak" .sh; done
    exit 0
  fi
  [[ -x tests/long/$name.sh ]] || { echo "test.sh: no soak named '$name'; try --long list" >&2; exit 2; }
  scripts/install.sh --python
  scripts/build.sh
  exec "tests/long/$name.sh" "${@:3}"
fi

scripts/install.sh --python
scripts/build.sh
export AUTOGRAPH_PYTHON=$PWD/.venv/bin/python
code=0
ctest --test-dir build --output-on-failure -j2 "$@" || code=$?
if [[ $code != 0 ]]; then  # A long output is cut where it is kept: the failures again, last.
  echo "test.sh: what failed, once more:"
  grep -E -A8 ': Failure$|^\[  FAILED|Timeout|Traceback' build/Testing/Temporary/LastTest.log | tail -80
fi
exit "$code"
