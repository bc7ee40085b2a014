#!/usr/bin/env bash
# The bundle starts where nothing is installed: unpacked in the root folder of a minimal Debian 12 (or in the root folders named,
# e.g. an unpacked image of Ubuntu 24.04), run from another folder through a symbolic link. Needs root and debootstrap.
# Usage: tests/long/bundle.sh [ROOT...]
set -euo pipefail
cd "$(dirname "$0")/../.."
((EUID == 0)) || { echo "bundle.sh: only root can change the root folder" >&2; exit 1; }
scripts/install.sh --bundle

out=$PWD/out/bundle
mkdir -p "$out"
scripts/bundle.sh "$out/bundle.tar.gz"
if (($# == 0)); then
  set -- "$out/debian12"
  if [[ ! -e $1/ready ]]; then
    command -v debootstrap >/dev/null || { echo "bundle.sh: no debootstrap: apt-get install debootstrap" >&2; exit 1; }
    debootstrap --variant=minbase bookworm "$1" >"$out/debootstrap.log" || { tail -5 "$out/debootstrap.log" >&2; exit 1; }
    touch "$1/ready"
  fi
fi

for root in "$@"; do
  rm -rf "$root/opt/bundle"
  mkdir -p "$root/opt/bundle"
  tar -C "$root/opt/bundle" --strip-components=1 -xf "$out/bundle.tar.gz"
  cat >"$root/opt/check.sh" <<'CHECK'
set -e
. /etc/os-release
for library in libprotobuf libgrpc libdnnl; do
  if ldconfig -p | grep -q "$library"; then echo "bundle.sh: $PRETTY_NAME has $library: this shows nothing" >&2; exit 1; fi
done
work=$(mktemp -d)
cd "$work"
ln -s /opt/bundle/bin/autograph ag
./ag --version
./ag zoo tiny_cnn -o in.onnx
./ag optimize in.onnx -o out.onnx --device cpu --rounds 1 --budget 20s --ort off --data data >result 2>log || { cat log; exit 1; }
./ag verify in.onnx --against out.onnx
/opt/bundle/bin/autographd --version
/opt/bundle/bin/autograph-worker --version
/opt/bundle/test/device_conformance_test --gtest_filter='*cpu_fp32_conv*' --gtest_brief=1 >conformance
grep 'PASSED' conformance
if grep -q ' 0 tests' conformance; then echo "bundle.sh: no conformance test has that name" >&2; exit 1; fi
rm -rf "$work"
echo "bundle.sh: $PRETTY_NAME: starts, optimizes, agrees"
CHECK
  # The new /proc is gone with the processes that saw it.
  unshare --mount --pid --fork --mount-proc="$root/proc" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    chroot "$root" /bin/bash /opt/check.sh
done
