#!/usr/bin/env bash
# 200 mutants, seeded changes of one line, 40 in each of five rooms: at least 90 % of those that
# tests/mutants/equivalent.txt does not list must fail a test of their room. Arguments are those of
# tests/mutants/mutants.py, such as --seed 2 or --room plan.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/mutants/mutants.py "$@"
