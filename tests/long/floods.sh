#!/usr/bin/env bash
# HTTP/2 frames that ask nothing, or more than they look like (header blocks without an end, CVE-2023-33953 and CVE-2024-27316; pings, settings, empty data, compressed zeros): for each kind four connections for four seconds. The coordinator's memory stays below 250 MB, half of the honest calls are answered meanwhile, and it serves within two seconds afterwards.
# usage: scripts/test.sh --long floods [CONNECTIONS [SECONDS]]   (4 and 4 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec .venv/bin/python tests/long/floods.py "$@"
