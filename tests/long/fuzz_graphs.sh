#!/usr/bin/env bash
# Differential fuzzing (tests/fuzz): 20,000 random models through import, random rewrites and export, compared with ONNX Runtime.
# What differs is kept in out/fuzz_graphs/found.
# usage: scripts/test.sh --long fuzz_graphs [COUNT [SEED]]
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/install.sh --python
scripts/build.sh
out=$PWD/out/fuzz_graphs
rm -rf "$out"
mkdir -p "$out"
.venv/bin/python -m zipfile -e "$(scripts/wheel.sh build)" "$out/autograph"
export PYTHONPATH=$out/autograph
.venv/bin/python -W ignore tests/fuzz/compare.py build/autograph-lab "$out" --count "${1:-20000}" --seed "${2:-1}"
