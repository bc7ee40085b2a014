#!/usr/bin/env bash
# Installs the Debian packages that building and testing need; says nothing when all are there.
# Usage: scripts/install.sh [--python|--cpu-peers|--peers|--exporters|--bundle|--check|--fuzz]
#   --python     also .venv (or AUTOGRAPH_VENV): ONNX Runtime, and what tests compare with
#   --cpu-peers  also .venv-cpu-peers: ONNX Runtime and OpenVINO, for bench/peers/cpu.sh
#   --peers      also .venv-peers: PyTorch for the CPU, for bench/peers/check.sh
#   --exporters  also Debian's PyTorch and torchvision, for tests/exporters
#   --bundle, --check   also what scripts/bundle.sh and its soak, or scripts/check.sh, need
#   --fuzz       also Clang with libFuzzer, for tests/fuzz
# Exit codes: 0 all is there. 1 Debian packages are missing. 3 a virtual environment could not be filled (no network?).
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential cmake ninja-build ccache mold pkg-config ca-certificates
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libabsl-dev
  libonnx-dev libonnx-testdata libsqlite3-dev libgtest-dev libgmock-dev
  libdnnl-dev prometheus-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
  libssl-dev libseccomp-dev libre2-dev grpc-proto universal-ctags
)
if [[ "${1:-}" == --python || "${1:-}" == --cpu-peers ]]; then packages+=(python3 python3-venv); fi
if [[ "${1:-}" == --peers ]]; then packages+=(python3 python3-venv python3-torch); fi
if [[ "${1:-}" == --exporters ]]; then packages+=(python3-torch python3-torchvision); fi
if [[ "${1:-}" == --bundle ]]; then packages+=(patchelf debootstrap); fi
if [[ "${1:-}" == --check ]]; then packages+=(python3 clang-14 clang-format-14 clang-tidy-14); fi
if [[ "${1:-}" == --fuzz ]]; then packages+=(clang-14 libclang-rt-14-dev libomp-14-dev); fi

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

# Makes a virtual environment, or fills it again when what it is to hold has changed.
#   environment FOLDER PYTHON VENV_FLAG PIP_FLAG PACKAGE...   ("" for no flag)
environment() {
  local folder=$1 python=$2 venv_flag=$3 pip_flag=$4
  shift 4
  if [[ "$(cat "$folder/ready" 2>/dev/null)" == "$*" ]]; then return; fi
  echo "Installing into $folder: $*"
  local log; log=$(mktemp)
  if ! { { [[ -x $folder/bin/pip ]] || "$python" -m venv ${venv_flag:+"$venv_flag"} "$folder"; } &&
         "$folder/bin/pip" install -q --disable-pip-version-check --retries 2 --timeout 15 ${pip_flag:+"$pip_flag"} "$@"; } \
       >"$log" 2>&1; then
    tail -5 "$log" >&2
    rm -f "$log"
    exit 3
  fi
  rm -f "$log"
  echo "$*" >"$folder/ready"
}

# Nothing of the product needs Python.
case "${1:-}" in
  --python) environment "${AUTOGRAPH_VENV:-.venv}" python3 "" "" numpy onnx onnxruntime grpcio grpcio-tools ;;
  --cpu-peers) environment .venv-cpu-peers python3 "" "" numpy onnxruntime openvino onnx onnxconverter-common ;;
  # Debian's PyTorch is for Debian's Python and was built for numpy 1. Nothing but it comes from there: its onnx is too old.
  --peers) environment .venv-peers /usr/bin/python3 --system-site-packages --ignore-installed \
             "numpy<2" "onnx>=1.14,<1.18" "onnxruntime<1.24" ;;
esac
