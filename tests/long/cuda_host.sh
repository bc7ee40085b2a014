#!/usr/bin/env bash
# The conformance suite on the CUDA device without a GPU: every generated kernel compiled by the
# host's compiler and run by a driver that orders work at random.
set -euo pipefail
cd "$(dirname "$0")/../.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT
AUTOGRAPH_TEST_GENERATED=1 build/device_conformance_test --gtest_brief=1 --gtest_filter='*cuda_generated*' | tee "$said"
if grep -q ' 0 tests' "$said"; then echo "cuda_host.sh: no test has that name" >&2; exit 1; fi
