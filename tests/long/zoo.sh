#!/usr/bin/env bash
# Every large zoo model through `optimize` on this machine's CPU over real sockets; ONNX Runtime must load each output and
# agree within 1e-3 of the largest value. Prints a table; exits 1 when any model fails.
# usage: scripts/test.sh --long zoo   (MODELS="squeezenet bert" for some of them)
set -euo pipefail
models=${MODELS:-"squeezenet resnet50 inception_v3 resnext50 nasnet_mobile rnntc_sru bert nasnet_a"}
out=$(mktemp -d)
port=${AUTOGRAPH_TEST_PORT:-7461}
export AUTOGRAPH_SERVER=127.0.0.1:$port
build/autographd --listen "$AUTOGRAPH_SERVER" --data "$out/data" >"$out/autographd.log" 2>&1 &
coordinator=$!
build/autograph-worker --device cpu >"$out/worker.log" 2>&1 &
worker=$!
trap 'kill $worker $coordinator 2>/dev/null; wait 2>/dev/null; rm -rf "$out"' EXIT
for _ in $(seq 100); do
  build/autograph workers list --json 2>/dev/null | grep -q '"SERVING"' && break
  sleep 0.2
done
failed=0
printf '%-14s %-13s %8s %10s %10s %10s %8s %9s  %s\n' model verdict speedup unfused_ms today_ms output_ms seconds max_rel onnxruntime
for model in $models; do
  build/autograph zoo "$model" -o "$out/m.onnx" >/dev/null
  if ! build/autograph optimize "$out/m.onnx" -o "$out/o.onnx" --device cpu --json >"$out/r.json" 2>"$out/err"; then
    echo "$model: $(tail -1 "$out/err")"; failed=1; continue
  fi
  agree=agrees
  .venv/bin/python tests/onnxruntime_agrees.py "$out/m.onnx" "$out/o.onnx" >"$out/agree" 2>&1 || { agree=DIFFERS; failed=1; tail -3 "$out/agree"; }
  .venv/bin/python - "$model" "$agree" "$out/r.json" <<'PY'
import json, sys
name, agree, path = sys.argv[1:]
r = json.load(open(path))["result"]
ms = lambda k: r[k]["median_ns"] / 1e6
max_rel = max((e["max_rel"] for e in r["errors"]), default=0)
print(f"{name:<14} {r['verdict']:<13} {r['speedup']:8.3f} {ms('unfused_latency'):10.3f} {ms('input_latency'):10.3f} "
      f"{ms('output_latency'):10.3f} {r['seconds']:8.1f} {max_rel:9.1e}  {agree}", flush=True)
PY
  [[ -n "${KEEP:-}" ]] && { mkdir -p "$KEEP"; cp "$out/r.json" "$KEEP/$model.json"; }
done
awk '{sub(":", "", $1); mib[$1] = int($2 / 1024)} END {printf "coordinator: peak %d MiB, now %d MiB, of that anonymous %d MiB\n", mib["VmHWM"], mib["VmRSS"], mib["RssAnon"]}' "/proc/$coordinator/status"
exit $failed
