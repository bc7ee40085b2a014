#!/usr/bin/env bash
# The fault matrix: every covered row of docs/faults.md, about nine minutes. Arguments are those of scripts/faults.sh, such as
# --mutate: that each row fails when one line of its defence is changed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec scripts/faults.sh "$@"
