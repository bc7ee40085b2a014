#!/usr/bin/env bash
# Configures and builds everything into build/ (or the preset given first). Further words go to ninja.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
preset=release
if [[ "${1:-}" == --preset ]]; then preset=$2; shift 2; fi
log=$(mktemp)
cmake --preset "$preset" >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
rm -f "$log"
cmake --build --preset "$preset" -- "$@"
