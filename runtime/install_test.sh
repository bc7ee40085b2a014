#!/usr/bin/env bash
# Installs the build into an empty folder, moves that folder, and builds and runs examples/ against it as their pages say, by
# CMake and by pkg-config.
#   runtime/install_test.sh BUILD
set -euo pipefail
build=$(realpath "${1:?"usage: runtime/install_test.sh BUILD"}")
examples=$(realpath "$(dirname "$0")/../examples")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install_test.sh: $*" >&2; exit 1; }
# Says what it looked for when the output of a command lacks it: expect PATTERN COMMAND...
expect() {
  local pattern=$1; shift
  local out; out=$("$@" 2>&1) || fail "$*: $out"
  grep -Eq -- "$pattern" <<<"$out" || fail "$*: no '$pattern' in: $out"
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
prefix=$work/prefix
library=$(dirname "$(find "$prefix" -name libautograph.so)")
version=$(sed -n 's/^Version: //p' "$library/pkgconfig/autograph.pc")
for program in autograph autographd autograph-worker autograph-lab; do
  expect "^$program ${version//./\\.}( |$)" "$prefix/bin/$program" --version
done
notices=$prefix/share/licenses/autograph
for package in LICENSE libgrpc++-dev libonnx-dev nlohmann-json3-dev; do
  [[ -s $notices/$package ]] || fail "no licence of $package in $notices"
done
if out=$(cmake -S "$examples/.." -B "$work/other" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 2>&1); then
  fail "another processor is not refused"
fi
grep -q 'AutoGraph is for x86_64; this is aarch64' <<<"$out" || fail "$out"
for file in "$prefix"/include/*; do
  ! grep -nE 'absl|#include "(base|graph|device)/' "$file" || fail "$file shows what is not installed"
done
! grep -rnF "$work" "$prefix" --include='*.cmake' --include='*.pc' || fail "a path of the installation is written down"
"$prefix/bin/autograph" zoo tiny_cnn -o "$work/model.onnx" >/dev/null

for language in c cpp; do
  cp -r "$examples/$language" "$work/$language"
  cmake -S "$work/$language" -B "$work/$language/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$work/$language/build" >/dev/null
done
expect '^own plan, [0-9.]+ ms$' "$work/c/build/classify" "$work/model.onnx"
expect '^2 sessions, [0-9.]+ runs/s$' "$work/cpp/build/serve" "$work/model.onnx" 2 10

export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library
read -ra flags <<<"$(pkg-config --cflags --libs autograph)"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$work/c/classify.c" -o "$work/classify" "${flags[@]}"
c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -O2 -pthread "$work/cpp/serve.cc" -o "$work/serve" "${flags[@]}"
expect '^  \[[0-9]+\] [0-9.e+-]+$' "$work/classify" "$work/model.onnx"
expect '^2 sessions, [0-9.]+ runs/s$' "$work/serve" "$work/model.onnx" 2 10

# The programs of the page and of the README: the indented text below the line that matches.
snippet() { awk -v begin="$2" '$0 ~ begin {on = 1; next} on && /^[^ ]/ {on = 0}
  on && /^    /{print substr($0, 5)} on && /^$/{print}' "$examples/../$1"; }
snippet docs/runtime.md '^## C$' >"$work/page.c"
snippet docs/runtime.md '^## C[+][+]$' >"$work/page.cc"
snippet README.md '^In C[+][+]20, with ' >"$work/readme.cc"
cc -std=c99 -Wall -Wextra -Wno-missing-field-initializers -Werror "$work/page.c" -o "$work/page_c" "${flags[@]}"
c++ -std=c++20 -Wall -Wextra -Werror "$work/page.cc" -o "$work/page_cpp" "${flags[@]}"
for page in page_c page_cpp; do
  expect '^logits\[0\] = -?[0-9.e+-]+$' "$work/$page" "$work/model.onnx"
done
c++ -std=c++20 -Wall -Wextra -Werror "$work/readme.cc" -o "$work/readme" "${flags[@]}"
if out=$(cd "$work" && ./readme 2>&1); then fail "the README's program runs without faster.onnx"; fi
cp "$work/model.onnx" "$work/faster.onnx"
(cd "$work" && ./readme) || fail "the README's program: exit code $?"
[[ $("$work/page_c" "$work/model.onnx") == "$("$work/page_cpp" "$work/model.onnx")" ]] || fail "the page's programs differ"

# What fails must say so.
if out=$("$work/classify" "$work/none.onnx" 2>&1); then fail "a missing model is no error"; fi
grep -q "classify: load: read $work/none.onnx: No such file or directory" <<<"$out" || fail "$out"
echo "install_test.sh: examples run against version $version"
