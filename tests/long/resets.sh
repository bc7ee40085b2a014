#!/usr/bin/env bash
# Calls that are begun and reset as fast as a client can (CVE-2023-44487), on each of ten methods, then by eight clients at once: the coordinator's memory stays below 1.5 GB and it serves.
# usage: scripts/test.sh --long resets [RESETS [SECONDS]]   (240000 and 20 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec .venv/bin/python tests/long/resets.py "$@"
