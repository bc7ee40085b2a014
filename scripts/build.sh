#!/usr/bin/env bash
# Configures and builds everything into build/ (or the preset given first). Further words go to ninja.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=release
if [[ "${1:-}" == --preset ]]; then preset=$2; shift 2; fi
log=$(mktemp)
cmake --preset "$preset" >"$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
rm -f "$log"
cmake --build --preset "$preset" -- "$@"
