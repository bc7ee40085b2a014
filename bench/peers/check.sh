#!/usr/bin/env bash
# The peers on the tiny models of the zoo: their walks against ONNX Runtime (check_walks.py), by the first Python that has what it
# takes; and the sides of cpu.py, where its environment is. Usage: bench/peers/check.sh BUILD [MODEL...]; exit code 77 where
# there is neither.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "$1")
shift
(($#)) || set -- tiny_cnn tiny_inception tiny_resnet tiny_bert tiny_sru tiny_nasnet
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
for model in "$@"; do "$build/autograph" zoo "$model" -o "$models/$model.onnx" >/dev/null; done
checked=""

peers=$root/.venv-cpu-peers/bin/python
if [[ -x $peers ]]; then
  checked=1
  table=$(AUTOGRAPH_LIBRARY=$build/libautograph.so "$peers" "$root/bench/peers/cpu.py" --blocks 2 --threads 1 "$models"/*.onnx) ||
    { echo "$table"; exit 1; }
  rows=$(grep -cE '^[^ ]+ +(ONNX Runtime|OpenVINO|untuned|tuned) +[0-9.]+ ' <<<"$table") || true
  ((rows == 4 * $#)) || { echo "$table"; echo "check.sh: $rows rows of cpu.py, not $((4 * $#))"; exit 1; }
  echo "check.sh: $rows rows of cpu.py agree"
else
  echo "check.sh: cpu.py is left out: scripts/install.sh --cpu-peers"
fi

for python in "${AUTOGRAPH_PYTHON:-}" "$root/.venv-peers/bin/python" "$root/.venv/bin/python" python3 /usr/bin/python3; do
  [[ -n $python ]] && "$python" -c 'import onnx.helper, onnxruntime, torch; onnx.helper.tensor_dtype_to_np_dtype' 2>/dev/null && break
  python=
done
if [[ -n $python ]]; then
  "$python" "$root/bench/peers/check_walks.py" "$models"/*.onnx
else
  echo "check.sh: no Python with onnx 1.14, onnxruntime and torch: scripts/install.sh --peers"
  [[ $checked ]] || exit 77
fi
