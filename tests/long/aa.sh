#!/usr/bin/env bash
# One plan against itself 200 times on this machine's CPU: at most 1 % of the verdicts may be FASTER or SLOWER.
set -euo pipefail
build/aa_verdicts 200 squeezenet cpu
