#!/usr/bin/env bash
# The service's own numbers (issue texts name the limits): a repeated request (RPC and whole command), import + export
# of BERT-base, peak memory of coordinator and jail. Medians of 9; run on a quiet machine after scripts/build.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mktemp -d)
export AUTOGRAPH_SERVER=127.0.0.1:${AUTOGRAPH_TEST_PORT:-7462}
build/autographd --listen "$AUTOGRAPH_SERVER" --data "$out/data" >"$out/log" 2>&1 &
coordinator=$!
build/autograph-worker --device sim:small >"$out/worker.log" 2>&1 &
worker=$!
trap 'kill $worker $coordinator 2>/dev/null; wait 2>/dev/null; rm -rf "$out"' EXIT
for _ in $(seq 100); do
  build/autograph workers list --json 2>/dev/null | grep -q '"SERVING"' && break
  sleep 0.2
done
median() { sort -n | awk '{v[NR]=$1} END{print v[int((NR+1)/2)]}'; }
timed() { local begin end; begin=$(date +%s%N); "$@" >/dev/null 2>&1; end=$(date +%s%N); echo $(((end - begin) / 1000)); }
for model in squeezenet nasnet_mobile; do
  build/autograph zoo $model -o "$out/$model.onnx" >/dev/null
  build/autograph optimize "$out/$model.onnx" -o "$out/o.onnx" --device sim:small --rounds 1 --expansions 2 >/dev/null 2>&1
  for _ in $(seq 9); do timed build/autograph optimize "$out/$model.onnx" -o "$out/o.onnx" --device sim:small --rounds 1 --expansions 2; done |
    median | awk -v m=$model -v b="$(stat -c %s "$out/$model.onnx")" '{printf "repeated request, whole command, %s (%.1f MB): %.1f ms\n", m, b/1e6, $1/1000}'
done
for _ in $(seq 9); do timed build/autograph jobs list -n 1; done | median | awk '{printf "smallest command with one RPC: %.1f ms\n", $1/1000}'
awk '/VmHWM/{printf "coordinator peak memory: %d MiB\n", $2/1024}' "/proc/$coordinator/status"
