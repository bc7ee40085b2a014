#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment, checks its types and runs the tests there.
# Exits 77 (ctest: skipped) when the packages that it needs cannot be had.
# Usage: client/python/tests/run.sh BUILD_FOLDER [--prepare | unittest's words: test_client.ClientTest ...]
#   --prepare   all but the tests; the next run takes what it made, if nothing is newer
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$(realpath "$1")
shift
out=$build/wheel
venv=$out/tests
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

# Without the packages of others nothing can be said of ours; anything else that goes wrong is a failure. A package that
# certainly exists tells the two apart.
fail_or_skip() {
  cat "$log/out" >&2
  if python3 -m pip download -q --no-deps --no-cache-dir --disable-pip-version-check -d "$log" iniconfig >/dev/null 2>&1; then
    exit 1
  fi
  echo "skipped: $1, and no package index can be reached" >&2
  exit 77
}

prepare() {
  local wheel
  wheel=$("$root/scripts/wheel.sh" "$build" 2>"$log/out") || fail_or_skip "the tools that build the wheel cannot be installed"
  rm -rf "$venv"
  python3 -m venv --without-pip "$venv"
  "$out/tools/bin/pip" --python "$venv/bin/python" install -q --disable-pip-version-check "$wheel" >"$log/out" 2>&1 ||
    fail_or_skip "the packages that the wheel needs cannot be installed"

  # The types: of the package as it is in the wheel (with what is generated), of the examples and of the tests.
  rm -rf "$out/unpacked"
  python3 -m zipfile -e "$wheel" "$out/unpacked"
  (cd "$out/unpacked" && "$out/tools/bin/mypy" --config-file "$root/client/python/pyproject.toml" \
    --cache-dir "$out/mypy" --no-error-summary -p autograph &&
    MYPYPATH=$here "$out/tools/bin/mypy" --config-file "$root/client/python/pyproject.toml" \
      --cache-dir "$out/mypy" --no-error-summary "$here"/test_*.py "$root"/examples/python/*.py)
}

command -v python3 >/dev/null || { echo "skipped: there is no python3" >&2; exit 77; }
if [[ "${1:-}" == --prepare ]]; then
  rm -f "$out/prepared"
  prepare
  touch "$out/prepared"
  exit
fi
[[ -e $out/prepared && -z $(find "$root/client/python" "$root/proto" "$build"/autograph* "$build"/libautograph.so* \
  -newer "$out/prepared") ]] || prepare
rm -f "$out/prepared"  # An interrupted run leaves a folder that nobody should trust.
export AUTOGRAPH_BUILD=$build
export AUTOGRAPH_PYTHON=${AUTOGRAPH_PYTHON:-$root/.venv/bin/python}
cd "$here"
exec "$venv/bin/python" -W error::DeprecationWarning -m unittest "${@:-discover}"
