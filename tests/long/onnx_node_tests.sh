#!/usr/bin/env bash
# ONNX's node tests of several versions: up to 1.18 the stored ones of PyPI's wheel, later ones as that version makes them. Each is
# imported, run on the reference kernels, exported, and run again; what does not pass is in graph/onnx/testing/known_cases.cc.
# usage: scripts/test.sh --long onnx_node_tests [VERSION...]
set -euo pipefail
cd "$(dirname "$0")/../.."
versions=(1.16.2 1.18.0 1.23.2)
(($# == 0)) || versions=("$@")
scripts/install.sh --python
scripts/build.sh graph_onnx_import_test
out=$PWD/out/onnx_node_tests
# Returns by its status whether the version is newer than 1.18.
makes_them() { [[ $(printf '%s\n' 1.19 "$1" | sort -V | head -1) == 1.19 ]]; }
make_them() {
  PYTHONPATH=$1 .venv/bin/python - "$2" <<'END'
import sys
import onnx.backend.test.case.model as models
import onnx.backend.test.case.node as nodes
from onnx.backend.test import cmd_tools

models.collect_testcases = lambda: nodes.collect_testcases(None)
sys.argv[1:] = ["generate-data", "-o", sys.argv[1]]
cmd_tools.main()
END
}
failed=0
for version in "${versions[@]}"; do
  folder=$out/$version
  if [[ ! -d $folder ]]; then
    mkdir -p "$folder.part"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --target "$folder.part" "onnx==$version"
    mv "$folder.part" "$folder"
  fi
  samples=$folder/onnx/backend/test/data
  if makes_them "$version" && [[ ! -d $folder/made/node ]]; then make_them "$folder" "$folder/made" 2>"$folder/log"; fi
  if makes_them "$version"; then samples=$folder/made; fi
  AG_ONNX_SAMPLES=$samples build/graph_onnx_import_test --gtest_filter='*Samples*' >"$folder/result" || failed=1
  echo "$version: $(grep -h -e ^samples -e '^of the default' "$folder/result" | tr '\n' ';')"
done
exit "$failed"
