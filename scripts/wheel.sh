#!/usr/bin/env bash
# Builds the Python package's wheel into build/wheel/ and prints its path. With libautograph.so inside when it is built; the
# wheel is then for this kind of machine (py3-none-linux_*), else for all (py3-none-any).
# Usage: scripts/wheel.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build}")
out=$build/wheel
mkdir -p "$out"

# The tools' environment is made anew when what it is to hold changes.
tools=("setuptools>=65,<81" wheel "grpcio-tools>=1.62,<1.63" "mypy>=1.8" types-protobuf numpy)
if [[ "$(cat "$out/tools/ready" 2>/dev/null)" != "${tools[*]}" ]]; then
  rm -rf "$out/tools"
  python3 -m venv "$out/tools" >&2
  "$out/tools/bin/pip" install -q --disable-pip-version-check "${tools[@]}" >&2
  echo "${tools[*]}" >"$out/tools/ready"
fi

# Built from a copy: setuptools writes beside its sources.
rm -rf "$out/src" "$out"/*.whl
cp -r client/python "$out/src"
rm -rf "$out/src/build"  # Of somebody's `pip install client/python`.
cp -r proto "$out/src/proto"
if [[ -e "$build/libautograph.so" ]]; then
  export AUTOGRAPH_LIBRARY_FILE=$out/src/libautograph.so
  strip --strip-debug -o "$AUTOGRAPH_LIBRARY_FILE" "$build/libautograph.so"
fi
log=$out/wheel.log
(cd "$out/src" && "$out/tools/bin/pip" wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
  -w "$out" .) >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
ls "$out"/*.whl
