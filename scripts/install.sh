#!/usr/bin/env bash
# Installs the Debian packages that building and testing need; says nothing when all are there.
# Usage: scripts/install.sh [--python|--peers|--bundle]   (--python: also the virtual environment with test oracles; --peers:
# one with PyTorch for bench/peers on a CPU; --bundle: what scripts/bundle.sh and its soak need)
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build ccache mold pkg-config ca-certificates
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libabsl-dev
  libonnx-dev libonnx-testdata libsqlite3-dev libgtest-dev libgmock-dev libbenchmark-dev
  libdnnl-dev prometheus-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
  libssl-dev libseccomp-dev grpc-proto
)
if [[ "${1:-}" == --python ]]; then packages+=(python3 python3-venv); fi
if [[ "${1:-}" == --peers ]]; then packages+=(python3 python3-venv python3-torch); fi
if [[ "${1:-}" == --bundle ]]; then packages+=(patchelf debootstrap); fi
if [[ "${1:-}" == --check ]]; then packages+=(python3 clang-14 clang-format-14 clang-tidy-14); fi

missing=()
for package in "${packages[@]}"; do
  [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" == "install ok installed" ]] ||
    missing+=("$package")
done
if ((${#missing[@]})); then
  as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      { echo "install.sh: not root and no sudo; install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    exit 1
  fi
  rm -f "$log"
fi

if [[ "${1:-}" == --python && ! -f .venv/ready ]]; then
  # Oracles for tests and peers for benches; the product itself needs no Python.
  python3 -m venv .venv
  .venv/bin/pip install -q --disable-pip-version-check numpy onnx onnxruntime grpcio grpcio-tools
  touch .venv/ready
fi

if [[ "${1:-}" == --peers && ! -f .venv-peers/ready ]]; then
  # Debian's PyTorch is for Debian's Python and was built for numpy 1. Nothing but it comes from there: its onnx is too old.
  /usr/bin/python3 -m venv --system-site-packages .venv-peers
  .venv-peers/bin/pip install -q --disable-pip-version-check --ignore-installed "numpy<2" "onnx>=1.14,<1.18" "onnxruntime<1.24"
  touch .venv-peers/ready
fi
