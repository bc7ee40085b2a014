#!/usr/bin/env python3
"""Peak memory of `autograph optimize`: the sum of PSS of the command and its children, without the
process that ONNX Runtime runs in.

    bench/peak_memory.py [--budget 40s] [--device cpu] [--programs build] MODEL...

MODEL is a name of the zoo or a path. Prints a line per model: weights, peak, limit (4 x the weights
+ 300 MB), seconds, and what of the peak each process had. Exits 1 when one is above its limit.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

ZOO = ["squeezenet", "resnet50", "resnext50", "inception_v3", "nasnet_mobile", "nasnet_a", "bert",
       "rnntc_sru"]
MB = 1e6
FACTOR, SLACK_MB = 4, 300


def all_children(pid):
    """Children of every thread of pid, and theirs."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            tasks = os.listdir(f"/proc/{parent}/task")
        except OSError:
            continue
        for task in tasks:
            try:
                with open(f"/proc/{parent}/task/{task}/children") as f:
                    direct = [int(word) for word in f.read().split()]
            except OSError:
                continue
            found += direct
            todo += direct
    return found


def role(pid):
    """What the process is: the command's name, or the role of its child."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().decode(errors="replace").split("\0")
    except OSError:
        return "gone"
    if len(words) > 1 and words[1].startswith("--") and "=" in words[1]:
        return words[1].split("=", 1)[1]
    return os.path.basename(words[0])


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Sampler(threading.Thread):
    def __init__(self, pid, every):
        super().__init__(daemon=True)
        self.pid, self.every = pid, every
        self.peak, self.parts, self.at, self.over = 0, {}, 0, False
        self.begin = time.monotonic()

    def run(self):
        while not self.over:
            parts = {}
            for pid in [self.pid] + all_children(self.pid):
                name = role(pid)
                if not name.startswith("python"):  # ONNX Runtime's is not ours.
                    parts[name] = parts.get(name, 0) + pss(pid)
            total = sum(parts.values())
            if total > self.peak:
                self.peak, self.parts = total, parts
                self.at = time.monotonic() - self.begin
            time.sleep(self.every)


def weights_bytes(path):
    import onnx
    model = onnx.load(path)
    bytes_ = 0
    for tensor in model.graph.initializer:
        item = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        count = 1
        for dim in tensor.dims:
            count *= dim
        bytes_ += item * count
    return bytes_


def measure(arguments, name, folder):
    autograph = os.path.join(arguments.programs, "autograph")
    path = name
    if not os.path.exists(path):
        path = os.path.join(folder, name + ".onnx")
        subprocess.run([autograph, "zoo", name, "-o", path], check=True, stdout=subprocess.DEVNULL)
    weights = weights_bytes(path)
    command = [autograph, "optimize", path, "-o", os.path.join(folder, "out.onnx"), "--device",
               arguments.device, "--budget", arguments.budget, "--data",
               os.path.join(folder, "store-" + os.path.basename(name))]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    sampler = Sampler(process.pid, arguments.every)
    sampler.start()
    _, errors = process.communicate()
    seconds = time.monotonic() - begin
    sampler.over = True
    sampler.join()
    limit = FACTOR * weights + SLACK_MB * MB
    ok = sampler.peak <= limit and process.returncode in (0, 6)
    parts = ", ".join(f"{role_} {bytes_ / MB:.0f}" for role_, bytes_ in
                      sorted(sampler.parts.items(), key=lambda part: -part[1]))
    print(f"{os.path.basename(name):16} {weights / MB:8.1f} {sampler.peak / MB:8.0f} "
          f"{limit / MB:8.0f} {seconds:7.1f}  {'ok' if ok else 'ABOVE':5}  {parts} "
          f"at {sampler.at:.1f} s", flush=True)
    if process.returncode not in (0, 6):
        print(errors, file=sys.stderr)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=ZOO, metavar="MODEL")
    parser.add_argument("--budget", default="40s")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--programs", default="build")
    parser.add_argument("--every", type=float, default=0.1, help="seconds between samples")
    arguments = parser.parse_args()
    print(f"{'model':16} {'weights':>8} {'peak':>8} {'limit':>8} {'seconds':>7}         (MB)")
    with tempfile.TemporaryDirectory() as folder:
        done = [measure(arguments, name, folder) for name in arguments.models]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
