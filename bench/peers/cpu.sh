#!/usr/bin/env bash
# Our runtime beside ONNX Runtime and OpenVINO on this machine's CPU, in one command: makes the peers' environment, builds what
# is missing, writes the models, optimizes each, measures, prints one table (bench/peers/cpu.py says how to read it).
# Usage: bench/peers/cpu.sh [--budget 120s] [--threads 2] [--half] [--bf16] [flags of cpu.py] [MODEL...]
# --half: each model with f16 in the place of f32 (bench/peers/to_half.py).
# --bf16: each model optimized with --precision bf16, beside OpenVINO's default (bf16). --tolerance 0.1: of those plans.
# MODEL: one of the zoo or a path; the eight large ones of the zoo without any. Models, outputs, reports and peers.json go to
# out/peers/; what the searches measured is remembered there.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build out=$root/out/peers
budget=120s threads=2 half= suffix= precision=() flags=() models=()
while (($#)); do
  case $1 in
    --budget) budget=${2:?"--budget: how long?"}; shift ;;
    --threads) threads=${2:?"--threads: how many?"}; shift ;;
    --retuned) flags+=("$1") ;;
    --half) half=1 ;;
    --bf16) precision+=(--precision bf16) suffix=.bf16 flags+=("$1") ;;
    --tolerance) precision+=(--tolerance "${2:?"--tolerance: which?"}"); shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;;
    --*) flags+=("$1" "${2:?"$1: its value?"}"); shift ;;
    *) models+=("$1") ;;
  esac
  shift
done
((${#models[@]})) || models=(squeezenet nasnet_mobile resnet50 inception_v3 resnext50 bert rnntc_sru nasnet_a)

source "$root/bench/peers/prepare.sh"

pairs=()
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx) input=$model
  if [[ ! -e $model ]]; then
    input=$out/$name.onnx
    [[ -e $input ]] || "$build/autograph" zoo "$model" -o "$input"
  fi
  if [[ $half ]]; then
    "$AUTOGRAPH_PYTHON" "$root/bench/peers/to_half.py" "$input" "$out/${name}_f16.onnx"
    name=${name}_f16
    input=$out/$name.onnx
  fi
  # An answer that is known comes from the store at once.
  echo "cpu.sh: $name: optimizing, at most $budget" >&2
  name=$name$suffix
  "$build/autograph" optimize "$input" -o "$out/$name.optimized.onnx" --device "cpu:$threads" ${precision[@]+"${precision[@]}"} \
    --budget "$budget" --json >"$out/$name.json"
  pairs+=("$input=$out/$name.optimized.onnx")
done
"$AUTOGRAPH_PYTHON" "$root/bench/peers/cpu.py" --threads "$threads" --tuned-plans "$out/tuned" --json "$out/peers.json" \
  ${flags[@]+"${flags[@]}"} "${pairs[@]}"
