"""Our runtime beside ONNX Runtime on the CPU: one process, interleaved, the same inputs.

    bench/peers/onnx_runtime.py [--threads 2] [--blocks 11] [--streams N] MODEL.onnx [OUTPUT.onnx]
    bench/peers/onnx_runtime.py --json ...

MODEL is what a user has. OUTPUT, when given, is what `autograph optimize` made of it. Sides:
  ort         ONNX Runtime, all optimizations, so many intra-op threads
  one stream  our runtime on MODEL: clean-up and grouping, no rules, kernels chosen by measuring
  untuned     the same without measuring: what a session gets at once
  N streams   as one stream, with a plan of at most N streams (--streams)
  output      our runtime on OUTPUT with the plan it carries
Needs the package autograph-client (`.venv/bin/pip install $(scripts/wheel.sh)`); the library is build/libautograph.so.
Every block runs each side once to settle and then for about 100 ms; the order alternates from block
to block. A ratio is the median over the blocks of ours / ort, with the 95 % bootstrap interval; below 1 we
are faster. Exits 1 when outputs differ by more than 1e-3 of the largest value.
"""
import argparse
import json
import os
import statistics
import sys
import time
import warnings

import numpy as np
import onnxruntime
from common import bootstrap, largest_difference

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("AUTOGRAPH_LIBRARY", os.path.join(ROOT, "build", "libautograph.so"))
try:
    from autograph import Session
except ImportError:
    sys.exit("onnx_runtime.py: no package autograph-client here: .venv/bin/pip install $(scripts/wheel.sh)")

SETTLE_SECONDS = 0.005  # Longer than either side's threads spin after a run.
BLOCK_SECONDS = 0.1


class Ours:
    """A session of ours with buffers for the outputs."""

    def __init__(self, path, feeds, cores, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.session = Session(path, device=f"cpu:{cores}", **options)
        self.warnings = [str(warning.message) for warning in caught]
        self.feeds = {i.name: feeds[i.name] for i in self.session.inputs}
        self.outputs = {o.name: np.zeros(o.shape, o.dtype) for o in self.session.outputs}

    def run(self):
        return self.session.run(self.feeds, out=self.outputs)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=11)
    parser.add_argument("--streams", type=int, default=1, help="also the model on so many streams")
    parser.add_argument("--tuned-plans", help="folder that remembers what tuning found")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("model")
    parser.add_argument("output", nargs="?")
    args = parser.parse_args()
    feeds = make_feeds(args.model)
    sides = {"ort": Ort(args.model, feeds, args.threads)}
    tuned = {"plan": "input", "tune": True, "tuned_plans": args.tuned_plans}
    sides["one stream"] = Ours(args.model, feeds, args.threads, streams=1, **tuned)
    if args.streams > 1:
        sides[f"{args.streams} streams"] = Ours(args.model, feeds, args.threads, streams=args.streams, **tuned)
    sides["untuned"] = Ours(args.model, feeds, args.threads, plan="input")
    if args.output:
        sides["output"] = Ours(args.output, feeds, args.threads)
    expected = sides["ort"].run()
    differences = {name: largest_difference(list(side.run().values()), list(expected.values())) for name, side in sides.items() if name != "ort"}
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
