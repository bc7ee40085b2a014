#!/usr/bin/env bash
# Models as exporters write them (tests/exporters): made, optimized on `cpu`, and compared with the model in ONNX Runtime
# (optimizations off and on) and in a session of ours, on other inputs and other sizes than the job's. One line a model.
# usage: scripts/test.sh --long exporters [PATTERN]   (BUDGET=20s: the time of each job)
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/install.sh --python
scripts/install.sh --exporters
scripts/build.sh
out=$PWD/out/exporters
mkdir -p "$out"
/usr/bin/python3 tests/exporters/torch_models.py "$out"
[[ -e $out/norms.opset21.onnx && -e $out/lstm_dynamic.opset13.onnx ]] || .venv/bin/python -W ignore tests/exporters/onnx_models.py "$out" 2>"$out/log"
rm -rf "$out/autograph"
.venv/bin/python -m zipfile -e "$(scripts/wheel.sh build)" "$out/autograph"
export AUTOGRAPH_PYTHON=$PWD/.venv/bin/python PYTHONPATH=$out/autograph
: >"$out/result"
for model in "$out"/${1:-}*.onnx; do
  [[ $model != *.optimized.onnx ]] || continue
  line=$(timeout 900 .venv/bin/python tests/exporters/check.py build/autograph "$model" "$out" --budget "${BUDGET:-20s}" 2>"$out/log") || true
  echo "${line:-FAILED $(basename "$model"): $(tail -1 "$out/log")}" | tee -a "$out/result"
done
cut -d' ' -f1 "$out/result" | sort | uniq -c
! grep -qE '^(DIFFERENT|REFUSED|FAILED)' "$out/result"
