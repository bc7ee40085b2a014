#!/usr/bin/env bash
# The coordinator killed before and after each of its syncs to the disk, then at random points under load, and started anew:
# nothing that was acknowledged is lost or doubled, no job fails by it.
# usage: scripts/test.sh --long kill_points [KILLS [SEED]]   (200 and 1 unless given)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec .venv/bin/python tests/long/kill_points.py "$@"
