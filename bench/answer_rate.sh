#!/usr/bin/env bash
# Starts a coordinator that asks for tokens and a worker on sim:small, and runs build/answer_rate on them.
# Usage: bench/answer_rate.sh [MODELS BLOCKS SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$folder"' EXIT
build/autograph token admin --roles admin --tokens "$folder/tokens" -o "$folder/admin.token" >/dev/null 2>&1
build/autograph token worker --roles worker --tokens "$folder/tokens" -o "$folder/worker.token" >/dev/null 2>&1
build/autographd --data "$folder/data" --listen 127.0.0.1:0 --tokens "$folder/tokens" --log-level warn >"$folder/address" 2>"$folder/log" &
for _ in $(seq 100); do address=$(grep -ohE '127\.0\.0\.1:[0-9]+' "$folder/address" "$folder/log" | head -1 || true); [[ -n $address ]] && break; sleep 0.1; done
build/autograph-worker --server "$address" --device sim:small --token-file "$folder/worker.token" --log-level warn &
build/autograph zoo tiny_cnn -o "$folder/model.onnx" >/dev/null
for _ in $(seq 100); do build/autograph health workers --server "$address" >/dev/null 2>&1 && break; sleep 0.1; done
uptime
AUTOGRAPH_TOKEN=$(cat "$folder/admin.token") build/answer_rate "$address" "$folder/model.onnx" sim:small "$@"
uptime
