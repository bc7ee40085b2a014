#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment, checks its types and runs the tests there.
# Exits 77 (ctest: skipped) when the packages that it needs cannot be had.
# Usage: client/python/tests/run.sh BUILD_FOLDER [unittest's words: test_client.ClientTest ...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$(realpath "$1")
shift
out=$build/wheel
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

command -v python3 >/dev/null || { echo "skipped: there is no python3" >&2; exit 77; }
wheel=$("$root/scripts/wheel.sh" "$build" 2>"$log/out") || fail_or_skip "the tools that build the wheel cannot be installed"
venv=$out/tests
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

export AUTOGRAPH_BUILD=$build
export AUTOGRAPH_PYTHON=${AUTOGRAPH_PYTHON:-$root/.venv/bin/python}
cd "$here"
exec "$venv/bin/python" -W error::DeprecationWarning -m unittest "${@:-discover}"
