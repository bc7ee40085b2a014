"""Our runtime beside ONNX Runtime on the CPU: one process, interleaved, the same inputs.

    bench/peers/onnx_runtime.py [--threads 2] [--blocks 11] MODEL.onnx [OUTPUT.onnx]
    bench/peers/onnx_runtime.py --json ...

MODEL is what a user has. OUTPUT, when given, is what `autograph optimize` made of it. Sides:
  ort         ONNX Runtime, all optimizations, so many intra-op threads
  one stream  our runtime on MODEL: clean-up and grouping, no rules, kernels chosen by measuring
  untuned     the same without measuring: what a session gets at once
  output      our runtime on OUTPUT with the plan it carries
Every block runs each side once to settle and then for about 100 ms; the order alternates from block
to block. A ratio is the median over the blocks of ours / ort, with the 95 % bootstrap interval; below 1 we
are faster. Exits 1 when outputs differ by more than 1e-3 of the largest value.
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import sys
import time

import numpy as np
import onnxruntime

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTLE_SECONDS = 0.005  # Longer than either side's threads spin after a run.
BLOCK_SECONDS = 0.1
DTYPES = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}


class Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("plan", ctypes.c_int),
                ("streams", ctypes.c_int32), ("shapes", ctypes.c_void_p), ("shapes_count", ctypes.c_size_t),
                ("tune", ctypes.c_int32), ("tuned_plans", ctypes.c_char_p)]


def load_library():
    library = ctypes.CDLL(os.environ.get("AUTOGRAPH_LIBRARY", os.path.join(ROOT, "build", "libautograph.so")))
    library.ag_last_error.restype = ctypes.c_char_p
    library.ag_session_warning.restype = ctypes.c_char_p
    for name in ("ag_session_input", "ag_session_output"):
        getattr(library, name).restype = ctypes.POINTER(Info)
    for name in ("ag_session_input_count", "ag_session_output_count", "ag_session_warning_count"):
        getattr(library, name).restype = ctypes.c_size_t
    return library


class Ours:
    """A session of ours with buffers for the inputs given and the outputs wanted."""

    def __init__(self, library, path, feeds, cores, **options):
        self.library, self.session = library, ctypes.c_void_p()
        given = Options(size=ctypes.sizeof(Options), device=f"cpu:{cores}".encode(), **options)
        self.check(library.ag_session_create_from_file(path.encode(), ctypes.byref(given), ctypes.byref(self.session)))
        self.warnings = [library.ag_session_warning(self.session, i).decode()
                         for i in range(library.ag_session_warning_count(self.session))]
        inputs = [library.ag_session_input(self.session, i).contents
                  for i in range(library.ag_session_input_count(self.session))]
        outputs = [library.ag_session_output(self.session, i).contents
                   for i in range(library.ag_session_output_count(self.session))]
        self.given = [np.ascontiguousarray(feeds[i.name.decode()]) for i in inputs]
        self.outputs = {o.name.decode(): np.zeros([o.shape[d] for d in range(o.rank)], DTYPES[o.dtype]) for o in outputs}
        self.pointers = [(ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
                         for arrays in (self.given, list(self.outputs.values()))]

    def check(self, status):
        if status != 0:
            sys.exit(f"autograph: {self.library.ag_last_error().decode()}")

    def run(self):
        self.check(self.library.ag_session_run(self.session, *self.pointers))
        return self.outputs


class Ort:
    def __init__(self, path, feeds, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        # Its threads spin while it runs, as by default, but not into our turn.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feeds = {i.name: feeds[i.name] for i in self.session.get_inputs()}

    def run(self):
        return dict(zip([o.name for o in self.session.get_outputs()], self.session.run(None, self.feeds)))


def make_feeds(path):
    rng = np.random.default_rng(1)
    feeds = {}
    for i in onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs():
        if any(not isinstance(d, int) for d in i.shape):
            sys.exit(f'{path}: input "{i.name}" has open sizes {i.shape}')
        is_float = i.type == "tensor(float)"
        integers = np.int32 if i.type == "tensor(int32)" else np.int64
        feeds[i.name] = (rng.standard_normal(i.shape).astype(np.float32) if is_float
                         else rng.integers(0, 2, i.shape).astype(integers))
    return feeds


def block_ms(side):
    """Median milliseconds of a run, after one that settles."""
    time.sleep(SETTLE_SECONDS)
    side.run()
    times, end = [], time.perf_counter() + BLOCK_SECONDS
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        side.run()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def bootstrap(values):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def largest_difference(ours, theirs):
    worst = 0.0
    for name, a in theirs.items():
        scale = np.abs(a).max() or 1.0
        worst = max(worst, float(np.abs(ours[name] - a).max() / scale))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=11)
    parser.add_argument("--tuned-plans", help="folder that remembers what tuning found")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("model")
    parser.add_argument("output", nargs="?")
    args = parser.parse_args()
    feeds, library = make_feeds(args.model), load_library()
    sides = {"ort": Ort(args.model, feeds, args.threads)}
    folder = args.tuned_plans.encode() if args.tuned_plans else None
    sides["one stream"] = Ours(library, args.model, feeds, args.threads, plan=1, tune=1, tuned_plans=folder)
    sides["untuned"] = Ours(library, args.model, feeds, args.threads, plan=1)
    if args.output:
        sides["output"] = Ours(library, args.output, feeds, args.threads)
    expected = sides["ort"].run()
    differences = {name: largest_difference(side.run(), expected) for name, side in sides.items() if name != "ort"}
    times = {name: [] for name in sides}
    for block in range(args.blocks):
        order = list(sides) if block % 2 == 0 else list(reversed(sides))
        for name in order:
            times[name].append(block_ms(sides[name]))
    result = {"model": os.path.basename(args.model), "onnxruntime": onnxruntime.__version__, "threads": args.threads,
              "blocks": args.blocks, "sides": {}}
    for name in sides:
        ratios = [ours / theirs for ours, theirs in zip(times[name], times["ort"])]
        low, high = bootstrap(ratios)
        result["sides"][name] = {"median_ms": statistics.median(times[name]), "ratio": statistics.median(ratios),
                                 "low": low, "high": high, "difference": differences.get(name, 0.0)}
    if args.json:
        print(json.dumps(result, indent=1))
    else:
        for name, side in result["sides"].items():
            print(f"{result['model']:<22} {name:<11} {side['median_ms']:9.3f} ms  {side['ratio']:.3f}x of ort "
                  f"({side['low']:.3f} to {side['high']:.3f})  differs by {side['difference']:.1e}", flush=True)
        for warning in (sides["output"].warnings if args.output else []):
            print(f"  output: {warning}")
    return 1 if max(differences.values()) > 1e-3 else 0


if __name__ == "__main__":
    sys.exit(main())
