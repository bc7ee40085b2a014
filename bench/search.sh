#!/usr/bin/env bash
# Everything that is said of the search on simulated times, which repeat exactly: what it finds and the least time of any
# schedule, on the old roofline and on the h200 spec; brute force; cells and known cells; the estimate
# beside the best plan's makespan; seconds of cold searches; without
# rules of a kind, larger budgets, the paper's search. The last command takes the longest; run it after scripts/build.sh.
#   bench/search.sh [PLOT.svg]     (a plot of the gain by graphs scored; default: none)
set -euo pipefail
cd "$(dirname "$0")/.."
plot=()
if (($# > 0)); then plot=(--plot "$1"); fi
build/search_gains --threads 2 --check bench/search_gains.txt "${plot[@]}" \
  fire1 fire2 squeezenet inception_v3 nasnet_mobile bert resnet50 resnext50 rnntc_sru
build/search_gains --threads 2 --spec deploy/devices/h200.spec --check bench/search_gains_h200.txt \
  fire1 fire2 squeezenet rnntc_sru resnet50 inception_v3
build/search_optimum --graphs 200 | tail -n 1
for pair in bert:6,bert squeezenet,squeezenet inception_v3,inception_v3 nasnet_a,nasnet_a; do
  build/search_cells --after "${pair%,*}" "${pair#*,}"
done
build/rank --device sim:bench/h200-v1.spec --precision fp16 --plans 50 squeezenet inception_v3 bert nasnet_mobile
build/search_numbers --part search --rounds 8 --threads 2 --spec bench/h200-v1.spec --precision fp16 inception_v3 bert nasnet_a
build/search_numbers --part region --threads 2
build/search_choices --threads 2
