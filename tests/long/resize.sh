#!/usr/bin/env bash
# Resizes of every mode, place and rounding, up and down: models made in Python, their outputs computed by ONNX Runtime,
# compared with the reference kernels before and after an export.
# usage: scripts/test.sh --long resize
set -euo pipefail
cd "$(dirname "$0")/../.."
samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT
for opset in 11 13; do .venv/bin/python tests/resize_samples.py "$samples" "$opset"; done
AG_ONNX_SAMPLES=$samples build/graph_onnx_import_test --gtest_filter='TestDataTest.Samples'
