#!/usr/bin/env bash
# The tests of every room under AddressSanitizer, leaks included, and UndefinedBehaviorSanitizer, in build-asan/.
# The room `tests` runs whole services against deadlines of release builds; it runs when asked for: -R '^tests$'.
# Left to a skip in the code: the sandbox's limit on address space, of which AddressSanitizer reserves terabytes.
# usage: scripts/test.sh --long asan [-R REGEX]   (words go to ctest)
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/build.sh --preset asan
export ASAN_OPTIONS=detect_leaks=1:check_initialization_order=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
(($# == 0)) || exec tests/long/with_findings build-asan "$@"
failed=0
tests/long/with_findings build-asan -E '^(tests|device_cuda)$' || failed=1
# cuDNN and cuBLASLt keep memory until the process ends, most of it in libraries that are closed by then.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 tests/long/with_findings build-asan -R '^device_cuda$' || failed=1
exit $failed
