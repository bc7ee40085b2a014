#!/usr/bin/env bash
# The wheel where nothing else of ours is: `pip install` into a minimal Debian 12 with Python and without a network, then optimize, run
# and verify there, from Python and from the command line. Needs root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
((EUID == 0)) || { echo "wheel.sh: only root can change the root folder" >&2; exit 1; }
scripts/install.sh --bundle

out=$PWD/out/wheel root=$PWD/out/wheel/debian12
mkdir -p "$out"
wheel=$(scripts/wheel.sh)
if [[ ! -e $root/ready ]]; then
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" >"$out/debootstrap.log" ||
    { tail -5 "$out/debootstrap.log" >&2; exit 1; }
  touch "$root/ready"
fi
rm -rf "$root/opt"
mkdir -p "$root/opt/wheels"
build/wheel/tools/bin/pip download -q --disable-pip-version-check -d "$root/opt/wheels" "$wheel"
cat >"$root/opt/check.sh" <<'CHECK'
set -e
for library in libprotobuf libgrpc libdnnl libonnx; do
  if ldconfig -p | grep -q "$library"; then echo "wheel.sh: this Debian has $library: this shows nothing" >&2; exit 1; fi
done
cd /opt
python3 -m venv venv
venv/bin/pip install -q --no-index --find-links wheels autograph-client
export PATH=/opt/venv/bin:$PATH
for program in autograph autographd autograph-worker; do $program --version; done
autograph zoo tiny_inception -o in.onnx
cat >check.py <<'PYTHON'
import autograph, numpy
result = autograph.optimize("in.onnx", device="cpu", rounds=1, time_seconds=20)
print(repr(result))
with autograph.Session(result.save("out.onnx")) as session:
    x = numpy.ones(session.inputs[0].shape, session.inputs[0].dtype)
    print(session(x).shape, session.run(None, {session.inputs[0].name: x})[0].shape)
PYTHON
python check.py
autograph verify in.onnx --against out.onnx
echo "wheel.sh: installs, optimizes, runs, agrees"
CHECK
# The new /proc is gone with the processes that saw it.
unshare --mount --pid --net --fork --mount-proc="$root/proc" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  chroot "$root" /bin/bash /opt/check.sh
