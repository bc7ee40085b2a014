#!/usr/bin/env bash
# The peers' walks on the tiny models of the zoo against ONNX Runtime (check_walks.py), by the first Python that has what it
# takes. Usage: bench/peers/check.sh BUILD [MODEL...]; exit code 77 where there is no such Python.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
shift
(($#)) || set -- tiny_cnn tiny_inception tiny_resnet tiny_bert tiny_sru tiny_nasnet
for python in "${AUTOGRAPH_PYTHON:-}" "$root/.venv-peers/bin/python" "$root/.venv/bin/python" python3 /usr/bin/python3; do
  [[ -n $python ]] && "$python" -c 'import onnx.helper, onnxruntime, torch; onnx.helper.tensor_dtype_to_np_dtype' 2>/dev/null && break
  python=
done
[[ -n $python ]] || { echo "check.sh: no Python with onnx 1.14, onnxruntime and torch: scripts/install.sh --peers"; exit 77; }
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
for model in "$@"; do "$build/autograph" zoo "$model" -o "$models/$model.onnx" >/dev/null; done
"$python" "$root/bench/peers/check_walks.py" "$models"/*.onnx
