#!/usr/bin/env bash
# Models above 2 GiB, with weights in a data file beside them (a sparse file): 5.4 GB imported in the sandbox and run here;
# 2.7 GB through `optimize` against ONNX Runtime, which must load what comes out, two files, and agree; a server that takes
# less says so. Needs 12 GiB of memory and 45 GB of disk, else it skips.
# usage: scripts/test.sh --long large_files
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'kill ${coordinator:-} 2>/dev/null; wait 2>/dev/null; rm -rf "$out"' EXIT
free_gb=$(($(df --output=avail -B1 "$out" | tail -1) / 1000000000))
memory_gb=$(awk '/MemAvailable/ {print int($2 / 1000000)}' /proc/meminfo)
if ((free_gb < 45 || memory_gb < 13)); then
  echo "skipped: $free_gb GB of disk and $memory_gb GB of memory are free, 45 and 13 are needed" >&2
  exit 77
fi
export AUTOGRAPH_PYTHON=${AUTOGRAPH_PYTHON:-$PWD/.venv/bin/python} TMPDIR=$out AUTOGRAPH_DATA=$out/data
"$AUTOGRAPH_PYTHON" tests/large_model.py "$out/five" 4
"$AUTOGRAPH_PYTHON" tests/large_model.py "$out/two" 2

build/import_export "$out/five/m.onnx" 3
/usr/bin/env time -f "run: %e s, peak %M KiB" build/autograph run "$out/five/m.onnx" --device cpu
rm -r "$out/five"

build/autographd --listen "127.0.0.1:${AUTOGRAPH_TEST_PORT:-7463}" --data "$out/small" --model-bytes-max 1000000000 \
  2>"$out/autographd.log" &
coordinator=$!
for _ in $(seq 100); do
  build/autograph jobs list --server "127.0.0.1:${AUTOGRAPH_TEST_PORT:-7463}" >/dev/null 2>&1 && break
  sleep 0.1
done
code=0
build/autograph optimize "$out/two/m.onnx" -o "$out/no.onnx" --server "127.0.0.1:${AUTOGRAPH_TEST_PORT:-7463}" \
  2>"$out/said" || code=$?
cat "$out/said"
[[ $code != 0 && ! -e $out/no.onnx ]]
grep -q 'has 2684[0-9]* bytes with its weights inside, the server takes 1000000000' "$out/said"

build/autograph optimize "$out/two/m.onnx" -o "$out/o.onnx" --device cpu --rounds 1 --budget 60s
[[ -s $out/o.onnx.data && $(stat -c %s "$out/o.onnx") -lt 1000000 ]]
"$AUTOGRAPH_PYTHON" tests/onnxruntime_agrees.py "$out/two/m.onnx" "$out/o.onnx"
build/autograph verify "$out/two/m.onnx" --against "$out/o.onnx" --device cpu
