#!/usr/bin/env bash
# Generated CUDA kernels: every group of the conformance cases in every layout, precision and variant, run on the
# host and compared with the reference kernels; and, where this build has NVRTC, compiled for sm_80 and sm_90.
# usage: scripts/test.sh --long cuda_kernels
set -euo pipefail
cd "$(dirname "$0")/../.."
export AG_CUDA_KERNELS=long
build/device_cuda_codegen_test --gtest_filter='Kernels.*'
build/device_cuda_launch_test --gtest_filter='RealNvrtc.*'
