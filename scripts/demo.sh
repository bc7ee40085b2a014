#!/usr/bin/env bash
# From nothing to a faster model: installs what is missing, builds, starts a coordinator and a worker on loopback,
# writes Inception-v3 from the zoo, optimizes it over gRPC, asks again to show the cache, stops what it started.
# Usage: scripts/demo.sh [MODEL_OF_THE_ZOO]
set -euo pipefail
cd "$(dirname "$0")/.."
model=${1:-inception_v3}

scripts/install.sh
scripts/build.sh autographd autograph-worker autograph

out=$PWD/out/demo
mkdir -p "$out"
port=${AUTOGRAPH_DEMO_PORT:-7459}
export AUTOGRAPH_SERVER=127.0.0.1:$port
pids=()
stop() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap stop EXIT

build/autographd --listen "$AUTOGRAPH_SERVER" --data "$out/data" >"$out/autographd.log" 2>&1 &
pids+=($!)
build/autograph-worker --device cpu >"$out/worker.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$out/autographd.log" >&2; exit 1; }
  if build/autograph workers list --json 2>/dev/null | grep -q '"SERVING"'; then break; fi
  sleep 0.2
done

echo "== 1. A model: $model"
build/autograph zoo "$model" -o "$out/$model.onnx"
echo; echo "== 2. Optimize it on this machine's CPU"
build/autograph optimize "$out/$model.onnx" -o "$out/$model.optimized.onnx"
echo; echo "== 3. Ask again: the answer is remembered"
time build/autograph optimize "$out/$model.onnx" -o "$out/$model.optimized.onnx"
echo; echo "== 4. Compare input and output once more, here"
build/autograph verify "$out/$model.onnx" --against "$out/$model.optimized.onnx"
echo; echo "Files: $out/$model.onnx (input), $out/$model.optimized.onnx (output), logs and store beside them."
