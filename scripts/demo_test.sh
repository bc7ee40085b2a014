#!/usr/bin/env bash
# Runs scripts/demo.sh: whole on a tiny model, where ONNX Runtime cannot be installed, and stopped in each of its steps, after
# which nothing of it may run. Usage: scripts/demo_test.sh BUILD      (77: skipped, BUILD is not what the demo builds)
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $(realpath "${1:?"usage: scripts/demo_test.sh BUILD"}") == "$PWD/build" ]] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "demo_test.sh: $*" >&2; cat "$work/log" >&2; exit 1; }

# Running processes that the demo under test started, by a variable of theirs.
marked() { grep -lazZ "^AUTOGRAPH_DEMO_MARK=$$\$" /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | cut -d/ -f3 || true; }
# In the place of the shell that calls it.
demo() { exec env AUTOGRAPH_DEMO_MARK=$$ AUTOGRAPH_DEMO_OUT="$work/out" PATH="$work/fake:$PATH" "$@"; }
# slow PROGRAM: a program of that name that has a child and does not end.
slow() { mkdir -p "$work/fake"; printf '#!/bin/sh\nsleep 300 &\nsleep 301\n' >"$work/fake/$1"; chmod +x "$work/fake/$1"; }
# stop_in STEP PROCESS SIGNAL CODE [GROUP]: stops the demo when PROCESS runs in that step; GROUP: all of its group, as a terminal does.
stop_in() {
  local step=$1 process=$2 signal=$3 code=$4 pid found=0
  set -m
  demo AUTOGRAPH_DEMO_BUDGET=300s scripts/demo.sh tiny_nasnet >"$work/log" 2>&1 &
  pid=$!
  set +m
  for _ in $(seq 300); do
    if grep -q "^== $step" "$work/log" && grep -qza -- "$process" /dev/null $(marked | sed 's|.*|/proc/&/cmdline|') 2>/dev/null; then break; fi
    kill -0 "$pid" 2>/dev/null || fail "step $step ended before it could be stopped"
    sleep 0.1
  done
  kill -s "$signal" -- "${5:+-}$pid"
  wait "$pid" || found=$?
  [[ $found == "$code" ]] || fail "$signal in step $step: exit code $found, not $code"
  for _ in $(seq 20); do [[ $(marked) ]] || break; sleep 0.1; done
  for pid in $(marked); do fail "$signal in step $step left $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"; done
  grep -q 'stopped; nothing of it runs any more' "$work/log" || fail "$signal in step $step is not said"
  rm -rf "$work/fake"
}

# The table says what the document says; what was not measured is a dash.
cat >"$work/gain.json" <<'END'
{"result": {"verdict": "FASTER", "search": "COMPLETE", "output": "REWRITTEN", "baseline": "ONNX Runtime 1.32.0",
 "cache": {"model_hit": true}, "input_latency": {"median_ns": 6e6}, "output_latency": {"median_ns": 3e6},
 "over_onnxruntime": {"median": 2, "low": 1.9, "high": 2.1}, "over_untuned": {"median": 1.5, "low": 1.4, "high": 1.6}}}
END
cat >"$work/none.json" <<'END'
{"result": {"verdict": "NO_GAIN_FOUND", "search": "NOT_SEARCHED", "output": "PLAN_ADDED", "baseline": "AutoGraph, untuned",
 "input_latency": {"median_ns": 4e6}, "output_latency": {"median_ns": 4e6}}}
END
cat >"$work/expected" <<'END'
                        a=b                         none
ONNX Runtime            6.000 ms                    -
AutoGraph before        4.500 ms                    4.000 ms
AutoGraph after         3.000 ms                    4.000 ms
over ONNX Runtime       2.000x (1.900 to 2.100)     -
over AutoGraph before   1.500x (1.400 to 1.600)     -
over that, tuned        -                           -
verdict                 FASTER                      NO GAIN FOUND
search                  COMPLETE                    NOT SEARCHED
the new file is         rewritten                   plan added
seconds                 1 (remembered)              7
END
python3 scripts/demo_table.py "a=b=$work/gain.json=1" "none=$work/none.json=7" | head -n -1 >"$work/log"
diff "$work/expected" "$work/log" >&2 || fail "another table"

slow dpkg-query
stop_in 1 'sleep' INT 130 group
slow cmake
stop_in 2 'sleep' INT 130 group
stop_in 3 'executor' INT 130 group
stop_in 3 'executor' TERM 143

# Without a package index ONNX Runtime cannot be had; the demo goes on without it.
(demo AUTOGRAPH_DEMO_BUDGET=5s AUTOGRAPH_VENV="$work/venv" PIP_NO_INDEX=1 scripts/demo.sh tiny_cnn) >"$work/log" 2>&1 || fail "without ONNX Runtime"
grep -q 'ONNX Runtime could not be installed' "$work/log" || fail "a missing ONNX Runtime is not said"
grep -Eq '^AutoGraph after +[0-9.]+ ms$' "$work/log" || fail "no time of the output"

# A path, and a model that is none: the table has the one, the exit code is of the other.
build/autograph zoo tiny_cnn -o "$work/mine.onnx" >/dev/null
echo nonsense >"$work/broken.onnx"
if (demo AUTOGRAPH_DEMO_BUDGET=5s scripts/demo.sh "$work/mine.onnx" "$work/broken.onnx") >"$work/log" 2>&1; then
  fail "a broken model is no error"
fi
grep -q '^broken: no result: ' "$work/log" || fail "what is wrong with the model is not said"
grep -Eq '^ +mine$' "$work/log" || fail "no column of the good model"
[[ -z $(marked) ]] || fail "something still runs: $(marked)"
echo "demo_test.sh: the demo runs, and stops in each step"
