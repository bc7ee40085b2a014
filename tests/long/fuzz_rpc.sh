#!/usr/bin/env bash
# Every rpc of a server under libFuzzer with sanitizers (tests/fuzz/README.md).
# usage: scripts/test.sh --long fuzz_rpc [SECONDS]   (1800 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/long/with_libfuzzer fuzz_rpc "${1:-1800}"
