#!/usr/bin/env bash
# Writes build/lint/compile_commands.json: how each file compiles by itself, for tools that look at one file. build/
# compiles the files of a room in batches (AG_UNITY) and has no such commands. Nothing is compiled here; generated
# headers are those of build/.
set -euo pipefail
cd "$(dirname "$0")/.."
commands=build/lint/compile_commands.json
[[ -e build/build.ninja ]] || { echo "lint_commands.sh: build/ is not configured; run scripts/build.sh" >&2; exit 1; }
# A build configures again when a CMake file or the list of sources changed.
if [[ ! $commands -nt build/build.ninja ]]; then
  log=$(mktemp)
  cmake --preset release -B build/lint -DAG_UNITY=OFF -DAG_GENERATED="$PWD/build/gen" >"$log" 2>&1 ||
    { tail -30 "$log" >&2; exit 1; }
  rm -f "$log"
  touch "$commands"
fi
