# Makes the environment of the CPU's peers and what is missing of the build. Sourced by cpu.sh and images.sh, which set `root`,
# `build` and `out`: the folder of what they make and of what searches measured.
"$root/scripts/install.sh" --cpu-peers
[[ -x $build/autograph && -e $build/libautograph.so ]] || "$root/scripts/build.sh" autograph autograph_runtime
mkdir -p "$out"
export AUTOGRAPH_DATA=$out/data AUTOGRAPH_PYTHON=$root/.venv-cpu-peers/bin/python
unset AUTOGRAPH_SERVER
