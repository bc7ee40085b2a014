#!/usr/bin/env bash
# Builds the images of Dockerfile with Debian's tools, on a base by debootstrap, and runs them: a coordinator with TLS and tokens, a worker, a job by the
# command line, the health check, hardened (read-only root, no capabilities, another user). Validates deploy/kubernetes and the dashboard.
# usage: scripts/test.sh --long container     Needs root. The build stage compiles the programs from nothing: some 20 minutes on 2 cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
((EUID == 0)) || { echo "container.sh: needs root (debootstrap, buildah in a chroot)" >&2; exit 77; }
tools=(buildah podman runc debootstrap openssl)
missing=()
for tool in "${tools[@]}"; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if ((${#missing[@]})); then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

work=${AUTOGRAPH_CONTAINER_FOLDER:-$PWD/out/container}
mkdir -p "$work"
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
bud() { buildah "${storage[@]}" bud --isolation chroot --format docker --layers "$@"; }
run() { podman "${storage[@]}" --runtime runc --cgroup-manager=cgroupfs run --ulimit=nofile=1024:1024 --ulimit=nproc=1000:1000 --network=host "$@"; }
hardened=(--read-only --cap-drop=all --security-opt=no-new-privileges --tmpfs /tmp)
failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/last.log" 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; tail -15 "$work/last.log"; failed=1; fi
}

echo "== base: debootstrap"
if ! buildah "${storage[@]}" images -q autograph-base >/dev/null 2>&1; then
  mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' "Created-By: Packages" | awk '$1 == "bookworm" {print $2; exit}')
  rm -rf "$work/rootfs"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$work/rootfs" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail -5 "$work/debootstrap.log"; exit 1; }
  # The way to packages of this machine: its mirror and its proxy, if it has one.
  echo "deb $mirror bookworm main" >"$work/rootfs/etc/apt/sources.list"
  { grep -hi '^Acquire::[a-z]*::Proxy' /etc/apt/apt.conf.d/* || true; } >"$work/rootfs/etc/apt/apt.conf.d/proxy"
  tar -C "$work/rootfs" -cf "$work/rootfs.tar" .
  rm -rf "$work/rootfs"
  mkdir -p "$work/base" && mv "$work/rootfs.tar" "$work/base/"
  printf 'FROM scratch\nADD rootfs.tar /\nCMD ["/bin/bash"]\n' >"$work/base/Dockerfile"
  bud -t autograph-base "$work/base" >"$work/base.log" 2>&1 || { tail -5 "$work/base.log"; exit 1; }
  rm "$work/base/rootfs.tar"
fi

echo "== images"
for target in coordinator worker setup; do
  began=$SECONDS
  bud --build-arg BASE=localhost/autograph-base --target "$target" -t "autograph-$target" . >"$work/$target.log" 2>&1 ||
    { tail -20 "$work/$target.log"; exit 1; }
  echo "built   $target in $((SECONDS - began)) s, $(podman "${storage[@]}" image inspect -f '{{.Size}}' "autograph-$target") bytes"
done

echo "== run"
scripts/build.sh autograph >"$work/build.log" 2>&1 || { tail -20 "$work/build.log"; exit 1; }
volume=$work/volumes
rm -rf "$volume" && mkdir -p "$volume"/{certs,data,worker,lock} && chown -R 10001:10001 "$volume"
chmod 700 "$volume"/*
port=$((20000 + RANDOM % 20000))
check "setup makes certificates and tokens" run --rm "${hardened[@]}" -v "$volume/certs:/certs" autograph-setup
check "setup runs twice" run --rm "${hardened[@]}" -v "$volume/certs:/certs" autograph-setup
check "without TLS beyond loopback it refuses" bash -c \
  "! $(declare -f run); storage=(${storage[*]}); run --rm ${hardened[*]} autograph-coordinator 2>&1 | tee /dev/stderr | grep -q insecure"
run -d --name coordinator "${hardened[@]}" -v "$volume/certs:/certs:ro" -v "$volume/data:/data" -v "$volume/lock:/var/lock/autograph" \
  -e AUTOGRAPH_LISTEN=0.0.0.0:$port -e AUTOGRAPH_SERVER=127.0.0.1:$port -e AUTOGRAPH_TLS_CERT=/certs/server.crt -e AUTOGRAPH_TLS_KEY=/certs/server.key \
  -e AUTOGRAPH_TOKENS=/certs/tokens -e AUTOGRAPH_TLS_CA=/certs/ca.crt -e AUTOGRAPH_METRICS=127.0.0.1:$((port + 1)) autograph-coordinator >/dev/null
trap 'podman "${storage[@]}" rm -f -t 5 worker coordinator >/dev/null 2>&1 || true' EXIT
inside() { podman "${storage[@]}" --runtime runc --cgroup-manager=cgroupfs exec coordinator "$@"; }
check "the coordinator becomes ready" timeout 30 bash -c "until podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec coordinator autograph health ready; do sleep 0.5; done"
check "its user has no rights" bash -c "[[ \$(podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec coordinator bash -c 'grep -E \"^(Uid|CapEff|NoNewPrivs)\" /proc/1/status' | tr -s '\t\n ' ' ') == 'Uid: 10001 10001 10001 10001 CapEff: 0000000000000000 NoNewPrivs: 1 ' ]]"
check "no worker serves yet" bash -c "! podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec coordinator autograph health workers"
run -d --name worker "${hardened[@]}" -v "$volume/certs:/certs:ro" -v "$volume/worker:/data" -v "$volume/lock:/var/lock/autograph" \
  -e AUTOGRAPH_SERVER=127.0.0.1:$port -e AUTOGRAPH_DEVICE=cpu -e AUTOGRAPH_TLS_CA=/certs/ca.crt -e AUTOGRAPH_TOKEN_FILE=/certs/worker.token autograph-worker >/dev/null
check "a worker serves" timeout 60 bash -c "until podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec coordinator autograph health workers; do sleep 0.5; done"

cli=(build/autograph --server "localhost:$port" --tls-ca "$volume/certs/ca.crt")
build/autograph zoo squeezenet -o "$work/model.onnx" >/dev/null
check "a job from outside" "${cli[@]}" optimize "$work/model.onnx" -o "$work/out.onnx" --token-file "$volume/certs/user.token" --budget 60s --rounds 1
check "its result is equal to its input" build/autograph verify "$work/out.onnx" --against "$work/model.onnx"
check "without a token it is refused" bash -c "! ${cli[*]} jobs list 2>/dev/null"
check "a user may not see workers' measurements" bash -c "! ${cli[*]} cache list --token-file $volume/certs/user.token 2>/dev/null"
check "metrics count the job" bash -c "curl -sf http://127.0.0.1:$((port + 1))/metrics | grep -E '^autograph_jobs_total\\{device=\"cpu\",outcome=\"[A-Z_]+\"\\} 1'"
check "the bill of materials names the libraries" bash -c "podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec coordinator cat /opt/autograph/share/autograph.spdx.json | python3 -c 'import json, sys; names = [p[\"name\"] for p in json.load(sys.stdin)[\"packages\"]]; assert \"libgrpc++1.51\" in names, names'"
check "kill -9 and start again: the job is there" bash -c "podman ${storage[*]} kill -s KILL coordinator && podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs start coordinator && sleep 3 && podman ${storage[*]} --runtime runc --cgroup-manager=cgroupfs exec -e AUTOGRAPH_TOKEN_FILE=/certs/admin.token coordinator autograph jobs list --json | grep -q '\"SUCCEEDED\"'"
check "SIGTERM ends the worker" bash -c "podman ${storage[*]} stop -t 60 worker && [[ \$(podman ${storage[*]} inspect -f '{{.State.ExitCode}}' worker) == 0 ]]"
check "SIGTERM ends the coordinator" bash -c "podman ${storage[*]} stop -t 30 coordinator && [[ \$(podman ${storage[*]} inspect -f '{{.State.ExitCode}}' coordinator) == 0 ]]"

echo "== files of deploy/"
if [[ ! -x $work/venv/bin/python ]]; then python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q pyyaml kubernetes-validate; fi
check "Kubernetes accepts the manifests" "$work/venv/bin/python" tests/long/check_manifests.py deploy/kubernetes
check "compose.yaml and the dashboard are well formed" "$work/venv/bin/python" -c '
import json, yaml
compose = yaml.safe_load(open("deploy/compose.yaml"))
assert {"setup", "coordinator", "worker-1", "worker-2", "prometheus", "grafana"} <= set(compose["services"])
yaml.safe_load(open("deploy/compose/prometheus.yml")); yaml.safe_load(open("deploy/compose/alerts.yml"))
metrics = open("server/rpc/metrics.cc").read()
import re
for place in ("deploy/compose/grafana/autograph.json", "deploy/compose/alerts.yml", "deploy/kubernetes/scaling.yaml"):
    for name in re.findall(r"autograph_[a-z_]+", open(place).read()):
        assert re.sub("_bucket$", "", name) in metrics, (place, name)
json.load(open("deploy/compose/grafana/autograph.json"))'
if command -v systemd-analyze >/dev/null; then
  for unit in deploy/systemd/*.service; do
    check "systemd reads $(basename "$unit")" bash -c "! systemd-analyze verify $unit 2>&1 | grep -vE 'is not executable|Failed to (open|connect)|/opt/autograph' | grep -E 'Unknown|Failed to parse|Invalid'"
  done
fi
exit "$failed"
