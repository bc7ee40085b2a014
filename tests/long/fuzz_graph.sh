#!/usr/bin/env bash
# The decoder of canonical graph bytes under libFuzzer with sanitizers (tests/fuzz/README.md).
# usage: scripts/test.sh --long fuzz_graph [SECONDS]   (3600 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/long/with_libfuzzer fuzz_graph "$@"
