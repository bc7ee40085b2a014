#!/usr/bin/env bash
# The rooms with threads under ThreadSanitizer, in build-tsan/: the team of the CPU device, the dispatcher and the worker
# pool, the store, the executor's protocol, sessions, measuring. tests/long/tsan.supp says what is left out and why.
# usage: scripts/test.sh --long tsan [-R REGEX]   (words go to ctest)
set -euo pipefail
cd "$(dirname "$0")/../.."
rooms=(base device_profile device_cpu device_cuda_launch search server_store server runtime runtime_timing worker)
(($# > 0)) || set -- -R "^($(IFS='|'; echo "${rooms[*]}"))\$"
scripts/build.sh --preset tsan "${rooms[@]/%/_test}" autograph autographd autograph-worker
export TSAN_OPTIONS=second_deadlock_stack=1:suppressions=$PWD/tests/long/tsan.supp
exec tests/long/with_findings build-tsan "$@"
