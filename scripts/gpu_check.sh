#!/usr/bin/env bash
# Proves and measures on a machine that has a GPU and nothing of ours but the bundle (scripts/bundle.sh).
# Usage: gpu_check.sh OUT [--resume STATE] [--bundle FILE] [--device cuda:0|cpu] [more: gpu_check.sh OUT --help]
# The bundle is FILE, or the one autograph-*.tar.gz beside this script, or the unpacked one that this script lies in. It needs
# python3 (3.8 or newer; AUTOGRAPH_PYTHON names another one); peers are measured where that has torch. AG_DEVICE: the default of --device.
# Runs in steps of at most 4 minutes; OUT gets state.json, results.json, tables.md, groups.md, device.recording, log.txt. A call that
# was cut off goes on with --resume OUT/state.json, on a fresh machine as well. Without a GPU every step of it is skipped with the reason.
# Exit codes: 0 every step done or skipped, 1 one failed, 2 wrong command line, 75 steps are left (--seconds was spent).
set -euo pipefail
here=$(cd "$(dirname "$(realpath "$0")")" && pwd)
bundle="" words=()
while (($#)); do
  case $1 in
    --bundle) bundle=${2:?"--bundle: which file?"}; shift 2 ;;
    *) words+=("$1"); shift ;;
  esac
done
((${#words[@]})) || { sed -n '2,9s/^# //p' "$0" >&2; exit 2; }
python=${AUTOGRAPH_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "gpu_check.sh: no $python here" >&2; exit 2; }

if [[ -z $bundle && -x $here/bin/autograph ]]; then
  top=$here
else
  if [[ -z $bundle ]]; then
    shopt -s nullglob
    found=("$here"/autograph-*.tar.gz "$here"/../build/autograph-*.tar.gz)
    ((${#found[@]})) || { echo "gpu_check.sh: no autograph-*.tar.gz beside it; name one: --bundle FILE" >&2; exit 2; }
    bundle=${found[0]}
  fi
  [[ -f $bundle ]] || { echo "gpu_check.sh: $bundle: no such file" >&2; exit 2; }
  # Unpacked once; a folder is whole once it has its name.
  top=$(dirname "$(mktemp -u)")/autograph-$(id -u)-$(sha256sum "$bundle" | cut -c1-12)
  if [[ ! -d $top ]]; then
    fresh=$(mktemp -d "$top.XXXXXX")
    tar -C "$fresh" --strip-components=1 -xzf "$bundle"
    mv -T "$fresh" "$top" 2>/dev/null || rm -rf "$fresh"
  fi
fi
exec "$python" "$top/gpu_check/main.py" --bundle "$top" "${words[@]}"
