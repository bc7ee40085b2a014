#!/usr/bin/env bash
# A client in another language, made of the protos alone (examples/ruby), against real processes: plain, and with TLS and a token;
# what it writes is what the command line fetches; errors are said; a client that is interrupted cancels its job.
# usage: scripts/test.sh --long other_language
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! dpkg-query -W ruby-grpc >/dev/null 2>&1; then
  ((EUID == 0)) || { echo "other_language.sh: wants ruby-grpc: apt install ruby-grpc" >&2; exit 77; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ruby-grpc >/dev/null
fi
work=$(mktemp -d) pids=()
finish() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap finish EXIT
export HOME=$work AUTOGRAPH_MEASURING_LOCK=$work/lock
failed=0
# check NAME EXPECTED-EXIT-CODE TEXT COMMAND...: the command ends so, and what it printed has the text.
check() {
  local name=$1 code=$2 text=$3 got=0
  shift 3
  "$@" >"$work/said" 2>&1 || got=$?
  if ((got == code)) && { [[ -z $text ]] || grep -qF -- "$text" "$work/said"; }; then
    echo "ok      $name"
  else
    echo "FAILED  $name: exit code $got, $code expected, and '$text'"
    tail -5 "$work/said"
    failed=1
  fi
}

mkdir "$work/stubs"
protoc -Iproto --ruby_out="$work/stubs" --grpc_out="$work/stubs" --plugin=protoc-gen-grpc="$(command -v grpc_ruby_plugin)" \
  proto/autograph/v1/*.proto
build/autograph zoo tiny_cnn -o "$work/tiny.onnx" >/dev/null
client() { ruby examples/ruby/optimize.rb "$work/stubs" "$@"; }

# Starts a coordinator with these flags, and a worker with the flags behind --; sets `address`.
serve() {
  local name=$1 flags=() last=""
  shift
  while (($#)) && [[ $1 != -- ]]; do flags+=("$1") && shift; done
  shift || true
  build/autographd --listen 127.0.0.1:0 --data "$work/$name" "${flags[@]}" >"$work/$name.out" 2>"$work/$name.log" &
  pids+=($!)
  for ((i = 0; i < 100; ++i)); do
    last=$(grep -ohE '127\.0\.0\.1:[0-9]+' "$work/$name.out" "$work/$name.log" | head -1 || true)
    [[ -z $last ]] || break
    sleep 0.1
  done
  address=localhost:${last##*:}
  build/autograph-worker --server "$address" --device sim:small "$@" 2>"$work/$name.worker.log" &
  pids+=($!)
}
# wait_for COMMAND...: until it succeeds, 20 s at most.
wait_for() {
  for ((i = 0; i < 100; ++i)); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.2; done
  echo "FAILED  $*: it never did"
  tail -3 "$work"/*.log
  exit 1
}

serve plain
wait_for build/autograph health workers --server "$address"
check "optimizes" 0 "written to" client "$address" "$work/tiny.onnx" "$work/out.onnx" sim:small
build/autograph jobs fetch 1 -o "$work/fetched.onnx" --server "$address" >/dev/null
check "writes what the command line fetches" 0 "" cmp "$work/out.onnx" "$work/fetched.onnx"
check "gets the remembered answer" 0 "written to" client "$address" "$work/tiny.onnx" "$work/again.onnx" sim:small
check "says what a device without a worker is" 1 "Unavailable" client "$address" "$work/tiny.onnx" "$work/o" sim:h200
check "says what no model is" 1 "FAILED" client "$address" README.md "$work/o" sim:small
check "says that there is no file" 1 "No such file" client "$address" "$work/none.onnx" "$work/o"
check "says that there is no server" 1 "Unavailable" client localhost:1 "$work/tiny.onnx" "$work/o"
build/autograph zoo inception_v3 -o "$work/large.onnx" >/dev/null
check "cancels its job when it is interrupted" 130 "cancelled" timeout --preserve-status -s INT 5 \
  ruby examples/ruby/optimize.rb "$work/stubs" "$address" "$work/large.onnx" "$work/o" sim:small
is_cancelled() { build/autograph jobs list --state CANCELLED --model "$work/large.onnx" --server "$address" | grep -q large; }
wait_for is_cancelled
check "says how it is used" 2 "usage" client

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout "$work/key.pem" -out "$work/cert.pem" -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost 2>/dev/null
build/autograph token ruby --tokens "$work/tokens" -o "$work/ruby.token" >/dev/null 2>&1
build/autograph token box --roles worker --tokens "$work/tokens" -o "$work/box.token" >/dev/null 2>&1
serve secure --tls-cert "$work/cert.pem" --tls-key "$work/key.pem" --tokens "$work/tokens" -- \
  --tls-ca "$work/cert.pem" --token-file "$work/box.token"
wait_for build/autograph health workers --server "$address" --tls-ca "$work/cert.pem"
token=$(cat "$work/ruby.token")
check "speaks TLS and shows its token" 0 "written to" env AUTOGRAPH_CA="$work/cert.pem" AUTOGRAPH_TOKEN="$token" \
  ruby examples/ruby/optimize.rb "$work/stubs" "$address" "$work/tiny.onnx" "$work/o" sim:small
check "says that its token is wrong" 1 "Unauthenticated" env AUTOGRAPH_CA="$work/cert.pem" AUTOGRAPH_TOKEN=wrong \
  ruby examples/ruby/optimize.rb "$work/stubs" "$address" "$work/tiny.onnx" "$work/o" sim:small
exit "$failed"
