#!/usr/bin/env bash
# A client, a worker and a store of an older commit with the coordinator of this one.
# usage: scripts/test.sh --long upgrades [COMMIT]   (2c41abd, since when no line of the protocol has changed, unless given)
# Builds the old programs in build-upgrades/, which takes as long as a first build.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=${1:-2c41abd}
old=build-upgrades/$(git rev-parse --short "$commit")
if [[ ! -e $old/build/autograph ]]; then
  mkdir -p "$old"
  git archive "$commit" | tar -x -C "$old"
  "$old/scripts/build.sh" autograph autographd autograph-worker
fi
exec .venv/bin/python tests/long/upgrades.py "$old/build" build
