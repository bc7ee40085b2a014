#!/usr/bin/env bash
# Samples a second at the best batch, beside ONNX Runtime and OpenVINO on this machine's CPU, in one command: makes the peers'
# environment, builds what is missing, optimizes each model for each batch, measures (bench/peers/images.py says how).
# Usage: bench/peers/images.sh [--budget 60s] [--threads 2] [--batches 1,2,4,8,16,32] [flags of images.py] MODEL.onnx...
# MODEL leaves its batch open. Outputs, reports and images.json go to out/images/.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build out=$root/out/images
budget=60s threads=2 batches=1,2,4,8,16,32 flags=() models=()
while (($#)); do
  case $1 in
    --budget) budget=${2:?"--budget: how long?"}; shift ;;
    --threads) threads=${2:?"--threads: how many?"}; shift ;;
    --batches) batches=${2:?"--batches: which?"}; shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;;
    --*) flags+=("$1" "${2:?"$1: its value?"}"); shift ;;
    *) models+=("$1") ;;
  esac
  shift
done
((${#models[@]})) || { echo "images.sh: which models? Files that leave their batch open" >&2; exit 2; }

source "$root/bench/peers/prepare.sh"

pairs=()
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx) outputs=
  for batch in ${batches//,/ }; do
    output=$out/$name.b$batch.onnx how=(--batch "$batch")
    ((batch < 2)) || how+=(--objective throughput)
    echo "images.sh: $name, batch $batch: optimizing, at most $budget" >&2
    "$build/autograph" optimize "$model" -o "$output" --force --device "cpu:$threads" --ort off "${how[@]}" \
      --budget "$budget" --json >"$out/$name.b$batch.json"
    outputs+=${outputs:+,}$batch:$output
  done
  pairs+=("$model=$outputs")
done
"$AUTOGRAPH_PYTHON" "$root/bench/peers/images.py" --threads "$threads" --json "$out/images.json" ${flags[@]+"${flags[@]}"} "${pairs[@]}"
