#!/usr/bin/env bash
# Packs what is built into one relocatable archive: build/autograph-VERSION-ARCH.tar.gz. It starts on Debian 12 and
# Ubuntu 24.04 with nothing installed, from any folder. Usage: scripts/bundle.sh [OUT.tar.gz]
#   bin/     the programs            lib/    libautograph.so, the CUDA module, every library that is not glibc's own
#   test/    the conformance suite   python/, peers/  the Python package's sources and bench/peers
#   gpu_check.sh, gpu_check/         share/licenses/  of the libraries of others
# libstdc++ and libgcc_s go along: a minimal image may lack them, and ours are at least as new as what we were built with.
# glibc is the target's: 2.36 (Debian 12) or newer. CUDA's libraries are the target's too (device/cuda finds them).
set -euo pipefail
cd "$(dirname "$0")/.."
build=build
bytes_max=$((40 << 20))

command -v patchelf >/dev/null || { echo "bundle.sh: no patchelf: apt-get install patchelf" >&2; exit 1; }
[[ -x $build/autograph ]] || { echo "bundle.sh: nothing is built: scripts/build.sh" >&2; exit 1; }
version=$("$build/autograph" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)
name=autograph-$version-$(uname -m)
out=$(realpath -m "${1:-$build/$name.tar.gz}")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/$name
mkdir -p "$top"/{bin,lib,test,python,peers,gpu_check,share/licenses}

programs=() modules=()
for program in autograph autographd autograph-worker autograph-nvrtc; do
  if [[ -x $build/$program ]]; then cp "$build/$program" "$top/bin/" && programs+=("$top/bin/$program"); fi
done
for test in device_conformance_test gpu_facts; do
  if [[ -x $build/$test ]]; then cp "$build/$test" "$top/test/" && programs+=("$top/test/$test"); fi
done
if [[ -e $build/libautograph.so ]]; then
  cp -P "$build"/libautograph.so* "$top/lib/"
  modules+=("$(realpath "$top/lib/libautograph.so")")
fi
if [[ -e $build/libautograph_cuda.so ]]; then
  cp "$build/libautograph_cuda.so" "$top/lib/"
  modules+=("$top/lib/libautograph_cuda.so")
  # Programs look beside themselves, a process that loads libautograph.so beside that.
  ln -s ../lib/libautograph_cuda.so "$top/bin/"
  if [[ -e $top/bin/autograph-nvrtc ]]; then ln -s ../bin/autograph-nvrtc "$top/lib/"; fi
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
  cp -L "$library" "$top/lib/$own"
  modules+=("$top/lib/$own")
  if [[ $own != "$base" ]]; then names+="${names:+|}\\Q${base#lib}\\E"; fi
  package=$(dpkg -S "$(realpath "$library")" "/usr$library" "$library" 2>/dev/null | head -1 | cut -d: -f1 || true)
  if [[ -n $package && -e /usr/share/doc/$package/copyright ]]; then
    cp -L "/usr/share/doc/$package/copyright" "$top/share/licenses/$package"
  fi
done

strip --strip-unneeded "${programs[@]}" "${modules[@]}"
# What was built on a newer system would ask for a glibc that Debian 12 does not have.
newest=$(objdump -T "${programs[@]}" "${modules[@]}" | grep -oE 'GLIBC_2\.[0-9]+' | cut -d. -f2 | sort -n | tail -1)
if ((newest > 36)); then
  echo "bundle.sh: what is built here wants glibc 2.$newest; Debian 12 has 2.36: build it there" >&2
  exit 1
fi
# A name of the same length in its place: needed libraries, versions and a library's own name are the same string.
perl -0777 -pi -e "s/(?<=\\0)lib($names)(?=\\0)/ag_\$1/g" "${programs[@]}" "${modules[@]}"
# A program's path serves for all it loads; a library loaded by another process finds its own neighbors.
for program in "${programs[@]}"; do patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$program"; done
for module in "${modules[@]}"; do patchelf --set-rpath "\$ORIGIN" "$module"; done
if of_others "${programs[@]}" "${modules[@]}" | grep -vF "$top/" >&2; then
  echo "bundle.sh: these are wanted from outside of the bundle" >&2
  exit 1
fi

cp -r client/python/autograph "$top/python/"
cp bench/peers/*.py "$top/peers/"
cp bench/gpu_check/*.py "$top/gpu_check/"
cp scripts/gpu_check.sh LICENSE "$top/"
find "$top" -name __pycache__ -prune -exec rm -rf {} +

# The same tree gives the same bytes.
mkdir -p "$(dirname "$out")"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | gzip -9n >"$out.new"
bytes=$(stat -c %s "$out.new")
if ((bytes > bytes_max)); then
  echo "bundle.sh: $bytes bytes; at most $bytes_max may be" >&2
  rm "$out.new"
  exit 1
fi
mv "$out.new" "$out"
echo "$out: $bytes bytes, ${#programs[@]} programs, ${#needed[@]} libraries of others"
