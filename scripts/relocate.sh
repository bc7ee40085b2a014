#!/usr/bin/env bash
# Copies what is built, with every library that it loads and that is not glibc's own, into a folder that runs from anywhere on
# Debian 12, Ubuntu 24.04 and newer with nothing installed. Prints the minor version of the newest glibc (2.N) that it asks for.
# Usage: scripts/relocate.sh BUILD TOP [--flat] [--tests]     (bundle.sh and wheel.sh call it)
#   TOP/bin/  the programs       TOP/lib/  libautograph.so, the CUDA module, libraries of others       TOP/share/licenses/
#   --tests   also TOP/test/: the conformance suite     --flat   all files in TOP itself, no links (a wheel has none)
# libstdc++ and libgcc_s go along: a minimal image may lack them, and ours are at least as new as what we were built with.
# CUDA's libraries are the target's (device/cuda finds them). Needs patchelf.
set -euo pipefail
build=$1 top=$(realpath -m "$2") flat="" tests=""
shift 2
for word in "$@"; do
  case $word in
    --flat) flat=1 ;;
    --tests) tests=1 ;;
    *) echo "relocate.sh: what is $word?" >&2; exit 2 ;;
  esac
done
glibc_max=36  # Debian 12's.
command -v patchelf >/dev/null || { echo "relocate.sh: no patchelf: scripts/install.sh --bundle" >&2; exit 1; }

bin=$top/bin lib=$top/lib licenses=$top/share/licenses
if [[ $flat ]]; then bin=$top lib=$top licenses=$top/licenses; fi
mkdir -p "$bin" "$lib" "$licenses"
programs=() modules=()
for program in autograph autographd autograph-worker autograph-nvrtc; do
  if [[ -x $build/$program ]]; then cp "$build/$program" "$bin/" && programs+=("$bin/$program"); fi
done
if [[ $tests ]]; then
  mkdir -p "$top/test"
  for test in device_conformance_test gpu_facts; do
    if [[ -x $build/$test ]]; then cp "$build/$test" "$top/test/" && programs+=("$top/test/$test"); fi
  done
fi
if [[ -e $build/libautograph.so ]]; then
  if [[ $flat ]]; then cp -L "$build/libautograph.so" "$lib/"; else cp -P "$build"/libautograph.so* "$lib/"; fi
  modules+=("$(realpath "$lib/libautograph.so")")
fi
if [[ -e $build/libautograph_cuda.so ]]; then
  cp "$build/libautograph_cuda.so" "$lib/"
  modules+=("$lib/libautograph_cuda.so")
  # Programs look beside themselves, a process that loads libautograph.so beside that.
  if [[ ! $flat ]]; then
    ln -s ../lib/libautograph_cuda.so "$bin/"
    if [[ -e $bin/autograph-nvrtc ]]; then ln -s ../bin/autograph-nvrtc "$lib/"; fi
  fi
fi

# Everything they load, but what the C library brings and what belongs to the GPU's driver and toolkit.
of_others() {
  ldd "$@" | awk '$2 == "=>" {print $3 == "not" ? $1 " is not found" : $3}' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|util|anl|pthread|resolv|nsl|nss_[a-z]*|mvec))\.so[.0-9]*$' |
    grep -vE '(^|/)lib(cuda|cudart|cublas|cublasLt|cudnn|nvrtc|nv)[^/]*\.so' | grep -vE '/libautograph[^/]*\.so'
}
mapfile -t needed < <(of_others "${programs[@]}" "${modules[@]}")
# A process that loads libautograph.so may have another version of one of them (PyTorch brings ONNX, protobuf, oneDNN), and the loader
# takes what has the name already: so ours have names of their own. Of GCC's runtimes there is one in a process, and newer ones serve.
names=""
for library in "${needed[@]}"; do
  base=$(basename "$library")
  own=ag_${base#lib}
  if [[ $base =~ ^lib(stdc\+\+|gcc_s|gomp)\. ]]; then own=$base; fi
  cp -L "$library" "$lib/$own"
  modules+=("$lib/$own")
  if [[ $own != "$base" ]]; then names+="${names:+|}\\Q${base#lib}\\E"; fi
  package=$(dpkg -S "$(realpath "$library")" "/usr$library" "$library" 2>/dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -e /usr/share/doc/$package/copyright ]]; then
    cp -L "/usr/share/doc/$package/copyright" "$licenses/$package"
  fi
done

# Packages of headers alone are in no library's list.
while read -r package; do
  if [[ -e /usr/share/doc/$package/copyright ]]; then cp -L "/usr/share/doc/$package/copyright" "$licenses/$package"; fi
done <"$(dirname "$0")/../cmake/licensed_packages.txt"

strip --strip-unneeded "${programs[@]}" "${modules[@]}"
# What was built on a newer system would ask for a glibc that Debian 12 does not have.
newest=$(objdump -T "${programs[@]}" "${modules[@]}" | grep -oE 'GLIBC_2\.[0-9]+' | cut -d. -f2 | sort -n | tail -1)
if ((newest > glibc_max)); then
  echo "relocate.sh: what is built here wants glibc 2.$newest; Debian 12 has 2.$glibc_max: build it there" >&2
  exit 1
fi
# A name of the same length in its place: needed libraries, versions and a library's own name are the same string.
perl -0777 -pi -e "s/(?<=\\0)lib($names)(?=\\0)/ag_\$1/g" "${programs[@]}" "${modules[@]}"
# A program's path serves for all it loads; a library loaded by another process finds its own neighbors.
for program in "${programs[@]}"; do
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to="$(dirname "$program")" "$lib")" "$program"
done
for module in "${modules[@]}"; do patchelf --set-rpath "\$ORIGIN" "$module"; done
if of_others "${programs[@]}" "${modules[@]}" | grep -vF "$top/" >&2; then
  echo "relocate.sh: these are wanted from outside of the folder" >&2
  exit 1
fi
echo "$newest"
