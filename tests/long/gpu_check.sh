#!/usr/bin/env bash
# scripts/gpu_check.sh from a bundle, scaled down: on the CPU, cut off and resumed; and on cuda:0, which must be skipped with a reason
# where there is no GPU. Usage: tests/long/gpu_check.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/install.sh --bundle
out=$PWD/out/gpu_check
rm -rf "$out"
mkdir -p "$out"
scripts/bundle.sh "$out/autograph-check.tar.gz"
cp scripts/gpu_check.sh "$out/"
ln -s "$out/gpu_check.sh" "$out/link"
export TMPDIR=$out
python=${AUTOGRAPH_PYTHON:-python3}

small=(--device cpu --models tiny_cnn --precisions fp32,tf32 --budget 5 --rounds 1 --blocks 3 --cases relu)
code=0
(cd / && "$out/link" "$out/cpu" "${small[@]}" --seconds 1) || code=$?
((code == 75)) || { echo "gpu_check.sh: expected 75 (steps are left), got $code" >&2; exit 1; }
(cd / && "$out/link" "$out/cpu" "${small[@]}" --resume "$out/cpu/state.json")

# The state alone goes on elsewhere: no step is done again, and what was measured is there.
mkdir "$out/elsewhere"
cp "$out/cpu/state.json" "$out/state"
"$out/link" "$out/elsewhere" "${small[@]}" --resume "$out/state" --work "$out/elsewhere.work" | tee "$out/again"
if grep -vxFf "$out/elsewhere/device.recording" "$out/cpu/device.recording"; then
  echo "gpu_check.sh: measurements are lost" >&2
  exit 1
fi
if grep -E '^(conformance|one stream|best) .* done ' "$out/again"; then echo "gpu_check.sh: done twice" >&2; exit 1; fi

# One test's crash, hang or lost device costs that test alone.
PYTHONPATH=bench/gpu_check "$python" - <<'CHECK'
import cases
def run_chunk(names):
    text = ""
    for name in names:
        text += f"[ RUN      ] {name}\n"
        if name in ("crash", "hang"):
            return cases.Chunk(-6 if name == "crash" else None, text, False)
        lost = name == "lost"
        text += f"it {cases.LOST}\n[  FAILED  ] {name}, where ... (1 ms)\n" if lost else f"[       OK ] {name} (1 ms)\n"
        if lost:
            text += "".join(f"[ RUN      ] {n}\n[  FAILED  ] {n} (0 ms)\n" for n in names[names.index(name) + 1:])
            break
    return cases.Chunk(0, text, False)
result = cases.Cases(run_chunk, [*map(str, range(100)), "crash", "hang", "lost"], 3).run()
assert (result["passed"], result["skipped"], result["not_run"]) == (100, 0, 0), result
assert result["failed"] == {"crash": "ended its process with code -6", "hang": "did not end", "lost": f"it {cases.LOST}"}, result
result = cases.Cases(lambda names: cases.Chunk(None, f"[ RUN      ] {names[0]}\n", True), map(str, range(40)), 1).run()
assert result == {"passed": 0, "skipped": 0, "failed": {}, "not_run": 40}, result
CHECK

# A recording of it is a device.
"$python" - "$out" <<'CHECK'
import json, os, sys
out = sys.argv[1]
cpu = json.load(open(f"{out}/cpu/results.json"))["steps"]
for name in ("machine", "conformance fp32", "one stream tiny_cnn fp32", "best tiny_cnn fp32"):
    assert cpu[name]["status"] == "done", (name, cpu[name])
assert cpu["best tiny_cnn tf32"] == {"status": "skipped", "reason": "cpu has no tf32", "seconds": 0.0}, cpu["best tiny_cnn tf32"]
assert not [name for name, step in cpu.items() if step["status"] == "failed"]
tables = open(f"{out}/cpu/tables.md").read()
assert "| tiny_cnn | tf32 | - | - |" in tables, tables
assert "| tiny_cnn | fp32 | 0" in tables, tables
assert "## tiny_cnn fp32\n\n| group | what | kernel |" in open(f"{out}/cpu/groups.md").read()
assert len(os.listdir(f"{out}/cpu")) <= 8
CHECK
build/autograph zoo tiny_cnn -o "$out/tiny_cnn.onnx"
build/autograph optimize "$out/tiny_cnn.onnx" -o "$out/o.onnx" --device "sim:$out/cpu/device.recording" --data "$out/data" \
  --rounds 1 --ort off >"$out/sim"

if [[ ! -e /dev/nvidia0 ]]; then
  "$out/link" "$out/none" --models tiny_cnn | tee "$out/skipped"
  if grep -vE '^machine |skipped .* cuda:0: ' "$out/skipped"; then echo "gpu_check.sh: not skipped" >&2; exit 1; fi
fi
for bad in "--resume $out/again" "--resume /none" "--bundle /none"; do
  code=0
  # shellcheck disable=SC2086
  "$out/link" "$out/bad" $bad 2>"$out/message" || code=$?
  ((code != 0)) && [[ $(wc -l <"$out/message") == 1 ]] || { echo "gpu_check.sh $bad: $code" >&2; cat "$out/message" >&2; exit 1; }
done
echo "gpu_check.sh: runs, is cut off, goes on, skips"
