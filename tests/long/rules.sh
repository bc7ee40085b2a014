#!/usr/bin/env bash
# The fuzzer of the rule set: 100,000 random rewrites of random graphs (or $1), each compared
# exactly. Another $AG_FUZZ_SEED draws other graphs.
set -euo pipefail
cd "$(dirname "$0")/../.."
export AG_FUZZ_REWRITES=${1:-100000} AG_FUZZ_SEED=${AG_FUZZ_SEED:-1}
build/rules_verify_test --gtest_filter='Fuzz.RewritesOfRandomGraphsChangeNothing'
