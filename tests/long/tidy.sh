#!/usr/bin/env bash
# clang-tidy over every *.cc of the tree; scripts/check.sh looks at what changed only. About half an hour on two cores.
set -euo pipefail
scripts/install.sh --check
scripts/tidy.sh --all
