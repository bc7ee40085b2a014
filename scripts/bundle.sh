#!/usr/bin/env bash
# Packs what is built into one relocatable archive: build/autograph-VERSION-ARCH.tar.gz. It starts on Debian 12 and
# Ubuntu 24.04 with nothing installed, from any folder. Usage: scripts/bundle.sh [OUT.tar.gz]
#   bin/     the programs            lib/    libautograph.so, the CUDA module, every library that is not glibc's own
#   test/    the conformance suite   python/, peers/  the Python package's sources and bench/peers
#   gpu_check.sh, gpu_check/         share/licenses/  of the libraries of others
# glibc is the target's: 2.36 (Debian 12) or newer. CUDA's libraries are the target's too (scripts/relocate.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
bytes_max=$((48 << 20))

[[ -x $build/autograph ]] || { echo "bundle.sh: nothing is built: scripts/build.sh" >&2; exit 1; }
version=$("$build/autograph" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
name=autograph-$version-$(uname -m)
out=$(realpath -m "${1:-$build/$name.tar.gz}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/$name
mkdir -p "$top"/{python,peers,gpu_check}
scripts/relocate.sh "$build" "$top" --tests >/dev/null
cp -r client/python/autograph "$top/python/"
cp bench/peers/*.py "$top/peers/"
cp bench/gpu_check/*.py "$top/gpu_check/"
cp scripts/gpu_check.sh LICENSE "$top/"
find "$top" -name __pycache__ -prune -exec rm -rf {} +

# The same tree gives the same bytes.
mkdir -p "$(dirname "$out")"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | gzip -9n >"$out.new"
bytes=$(stat -c %s "$out.new")
if ((bytes > bytes_max)); then
  echo "bundle.sh: $bytes bytes; at most $bytes_max may be" >&2
  rm "$out.new"
  exit 1
fi
mv "$out.new" "$out"
echo "$out: $bytes bytes"
