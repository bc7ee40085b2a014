#!/usr/bin/env bash
# From nothing to a faster model on Debian 12: installs what is missing (ONNX Runtime into .venv, to compare with), builds the three
# programs, optimizes models on this machine's CPU, prints one table and what to do next. Ctrl-C stops everything it started.
# Usage: scripts/demo.sh [MODEL...]    a name from `build/autograph zoo --list`, or a path; without: squeezenet nasnet_mobile
# Variables: AUTOGRAPH_DEMO_BUDGET=90s (wall time of each search), AUTOGRAPH_DEMO_OUT=out/demo (models, reports, measurements),
# AUTOGRAPH_VENV=.venv (where ONNX Runtime goes)
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac
models=()
for model in "$@"; do
  if [[ -e $model ]]; then model=$(realpath "$model"); fi
  models+=("$model")
done
((${#models[@]})) || models=(squeezenet nasnet_mobile)
cd "$(dirname "$0")/.."
budget=${AUTOGRAPH_DEMO_BUDGET:-90s}
export AUTOGRAPH_VENV=${AUTOGRAPH_VENV:-$PWD/.venv}
out=${AUTOGRAPH_DEMO_OUT:-$PWD/out/demo}
mkdir -p "$out"
export AUTOGRAPH_DATA=$out/data
unset AUTOGRAPH_SERVER

# Every step runs in a session of its own, so that all it started can be found.
step=""
in_step() {
  local stat line fields
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    read -ra fields <<<"${line##*) }"  # state, parent, group, session
    stat=${stat#/proc/}
    if [[ ${fields[3]} == "$step" && ${fields[0]} != Z ]]; then echo "${stat%/stat}"; fi
  done
}
# run [--clock] COMMAND...: with --clock a terminal shows how long it has been running.
run() {
  local code=0 clock="" begin=$SECONDS
  if [[ $1 == --clock ]]; then clock=1; shift; fi
  setpriv --pdeathsig TERM setsid --wait "$@" &
  step=$!
  if [[ $clock && -t 2 ]]; then
    while kill -0 "$step" 2>/dev/null; do
      printf '\r  %d s' "$((SECONDS - begin))" >&2
      sleep 1
    done
    printf '\r\033[K' >&2
  fi
  wait "$step" || code=$?
  step=""
  return "$code"
}
stop() {
  trap '' INT TERM HUP
  local signal left
  for signal in TERM TERM KILL; do  # A second one ends `autograph` at once.
    for _ in $(seq 40); do
      mapfile -t left < <(if [[ $step ]]; then in_step; fi)
      ((${#left[@]})) || break 2
      if [[ $signal ]]; then kill -s "$signal" "${left[@]}" 2>/dev/null || true; fi
      signal=""
      sleep 0.1
    done
  done
  printf '\ndemo.sh: stopped; nothing of it runs any more\n' >&2
  exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM
trap 'stop 129' HUP

began=$SECONDS
echo "== 1. Install what is missing: Debian packages, ONNX Runtime"
install=(run scripts/install.sh --python)
if ((EUID != 0)); then install=(scripts/install.sh --python); fi  # sudo may ask at the terminal.
code=0
"${install[@]}" || code=$?
case $code in
  0) export AUTOGRAPH_PYTHON=$AUTOGRAPH_VENV/bin/python ;;
  3) echo "demo.sh: ONNX Runtime could not be installed (no network?): comparing with our own untuned session instead" ;;
  *) exit "$code" ;;
esac
installed=$SECONDS
echo "== 2. Build autograph, autographd, autograph-worker (from nothing: minutes)"
run scripts/build.sh autographd autograph-worker autograph
built=$SECONDS

rows=() paths=()
for model in "${models[@]}"; do
  name=$(basename "$model" .onnx) input=$model
  echo "== 3. Optimize $name for at most $budget"
  if [[ ! -e $model ]]; then
    input=$out/$name.onnx
    run build/autograph zoo "$model" -o "$input"
  fi
  begin=$SECONDS
  run --clock build/autograph optimize "$input" -o "$out/$name.optimized.onnx" --budget "$budget" --json >"$out/$name.json" ||
    { code=$?; ((code < 128)) || exit "$code"; }  # The table says what failed.
  rows+=("$name=$out/$name.json=$((SECONDS - begin))")
  paths+=("$input" "$out/$name.optimized.onnx")
done
echo
code=0
python3 scripts/demo_table.py "${rows[@]}" || code=$?
echo
echo "installed in $((installed - began)) s, built in $((built - installed)) s, optimized in $((SECONDS - built)) s"
if ((code == 0)); then
  cat <<END

Next:
  see it again      build/autograph bench ${paths[1]#"$PWD/"} --compare ${paths[0]#"$PWD/"}
  your own model    build/autograph optimize model.onnx -o faster.onnx      (or scripts/demo.sh model.onnx)
  serve it in C++   examples/cpp/README.md     in Python   examples/python/README.md
  as a service      build/autographd & build/autograph-worker --device cpu &     (docs/cli.md)
Models, reports and what was measured are in ${out#"$PWD/"}/.
END
fi
exit "$code"
