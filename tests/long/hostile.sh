#!/usr/bin/env bash
# Hostile clients, workers and models beside honest load: honest calls stay below 50 ms (p99), the coordinator below 200 MB.
# usage: scripts/test.sh --long hostile [SECONDS [STREAMS]]   (600 and 1000 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec .venv/bin/python tests/long/hostile.py "$@"
