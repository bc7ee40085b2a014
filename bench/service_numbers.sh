#!/usr/bin/env bash
# The service's own numbers (docs/ROADMAP.md names the limits): a repeated request (the call alone and the whole command),
# import + export of BERT-base, peak memory of the coordinator and of the children that import and export. Medians; run on a
# quiet machine after scripts/build.sh.
#   bench/service_numbers.sh [MODEL...]     (models of the zoo for the repeated request; default: those up to 50 MB and one above)
set -euo pipefail
cd "$(dirname "$0")/.."
models=("$@")
((${#models[@]})) || models=(squeezenet rnntc_sru nasnet_mobile resnet50)
out=$(mktemp -d)
server=127.0.0.1:${AUTOGRAPH_TEST_PORT:-7462}
build/autographd --listen "$server" --data "$out/data" >"$out/log" 2>&1 &
coordinator=$!
build/autograph-worker --server "$server" --device cpu >"$out/worker.log" 2>&1 &
worker=$!
trap 'kill $worker $coordinator 2>/dev/null; wait 2>/dev/null; rm -rf "$out"' EXIT
for _ in $(seq 100); do
  build/autograph workers list --server "$server" --json 2>/dev/null | grep -q '"SERVING"' && break
  sleep 0.2
done
median() { sort -n | awk '{v[NR]=$1} END{print v[int((NR+1)/2)]}'; }
timed() { local begin end; begin=$(date +%s%N); "$@" >/dev/null 2>&1; end=$(date +%s%N); echo $(((end - begin) / 1000)); }
memory() { awk -v f="$1" '$1 == f":" {printf "%d", $2/1024}' "/proc/$coordinator/status"; }
for model in "${models[@]}"; do
  build/autograph zoo "$model" -o "$out/$model.onnx" >/dev/null
  ask=(build/autograph optimize "$out/$model.onnx" -o "$out/o.onnx" --server "$server" --device cpu --rounds 1 --expansions 2)
  "${ask[@]}" >/dev/null 2>&1
  whole=$(for _ in $(seq 9); do timed "${ask[@]}"; done | median)
  call=$(build/repeated_request "$server" "$out/$model.onnx" cpu)
  awk -v m="$model" -v b="$(stat -c %s "$out/$model.onnx")" -v us="$whole" -v call="$call" \
    'BEGIN {printf "repeated request, %-14s %6.1f MB: whole command %6.1f ms, the call alone %s\n", m, b/1e6, us/1000, call}'
done
for _ in $(seq 9); do timed build/autograph jobs list -n 1 --server "$server"; done | median |
  awk '{printf "smallest command with one call: %.1f ms\n", $1/1000}'
echo "coordinator: peak $(memory VmHWM) MiB, now $(memory VmRSS) MiB, of that anonymous $(memory RssAnon) MiB"
build/autograph zoo bert -o "$out/bert.onnx" >/dev/null
build/import_export "$out/bert.onnx" 5
