#!/usr/bin/env bash
# ONNX import under libFuzzer with sanitizers (tests/fuzz/README.md).
# usage: scripts/test.sh --long fuzz_import [SECONDS]   (3600 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/long/with_libfuzzer fuzz_import "$@"
