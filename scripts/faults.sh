#!/usr/bin/env bash
# The fault matrix (docs/faults.md): what is done to the service and what must hold. Installs and builds what it needs.
#   scripts/faults.sh [--only F12,F30]     runs rows; --list prints them
#   scripts/faults.sh --mutate [F12,F30]   shows that each row fails when one line of its defence is changed
#   scripts/faults.sh --record ...         also writes down what passed, in docs/faults.md
set -euo pipefail
cd "$(dirname "$0")/.."
case " $* " in
  *" --list "* | *" --check "* | *" --write "* | *" --help "*) exec python3 tests/faults/faults.py "$@" ;;
esac
scripts/install.sh --python
exec .venv/bin/python tests/faults/faults.py "$@"
