#!/usr/bin/env bash
# Packs what is built for a server into build/autograph-server-VERSION-ARCH.tar.gz, to be unpacked in /opt: the programs with every
# library they load, systemd units, Kubernetes and compose files, the pages that explain them, and a bill of materials.
# scripts/bundle.sh packs what a machine with a GPU needs to prove a build. Usage: scripts/release.sh [OUT.tar.gz]
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
[[ -x $build/autographd ]] || { echo "release.sh: nothing is built: scripts/build.sh" >&2; exit 1; }
version=$("$build/autograph" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
out=$(realpath -m "${1:-$build/autograph-server-$version-$(uname -m).tar.gz}")
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
scripts/relocate.sh "$build" "$top/autograph" >/dev/null
mkdir -p "$top/autograph/share/doc"
cp -r deploy/systemd deploy/kubernetes deploy/compose deploy/compose.yaml "$top/autograph/share/"
cp docs/operations.md docs/security.md docs/protocol.md docs/cli.md "$top/autograph/share/doc/"
scripts/sbom.sh "$build" "$top/autograph/share/autograph.spdx.json"
# The same input gives the same bytes.
tar -C "$top" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" -cf - autograph |
  gzip -n >"$out"
echo "$out"
