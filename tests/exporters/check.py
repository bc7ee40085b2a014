"""Optimizes one model, then asks ONNX Runtime and our own session whether the output computes what the model computes.

usage: check.py AUTOGRAPH MODEL.onnx FOLDER [--budget 20s] [--device cpu]   (PYTHONPATH: the package `autograph` with its library)
The output is loaded in ONNX Runtime with its optimizations off and on, and in a session of ours, on two seeds that are not the
gate's; open dimensions take three other sizes where the output keeps them. Prints one line: OK, DIFFERENT or REFUSED.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import autograph  # noqa: E402
from session_agrees import NUDGE, TOLERANCE, error, nudged  # noqa: E402

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64, "tensor(int32)": np.int32,
         "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8}
SIZES = ({"batch": 2, "n": 2, "sequence": 37, "time": 61, "height": 96, "width": 160},
         {"batch": 3, "n": 5, "sequence": 64, "time": 50, "height": 64, "width": 64},
         {"batch": 1, "n": 1, "sequence": 5, "time": 33, "height": 32, "width": 224})
Feeds = dict[str, "np.ndarray[Any, Any]"]


def load(path: str, optimized: bool) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(model: ort.InferenceSession, sizes: dict[str, int], seed: int) -> Feeds:
    """Floats standard normal, integers from 0 to 99; open dimensions from `sizes`, else 1."""
    random, made = np.random.default_rng(seed), {}
    for info in model.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in info.shape]
        dtype = TYPES[info.type]
        floats = np.issubdtype(dtype, np.floating)
        made[info.name] = (random.standard_normal(shape) if floats else random.integers(0, 100, shape)).astype(dtype)
    return made


def fixed_sizes(model: ort.InferenceSession, output: ort.InferenceSession) -> dict[str, int]:
    """Returns the sizes of the symbols that the job fixed in its output."""
    sizes = {}
    shapes = {info.name: info.shape for info in output.get_inputs()}
    for info in model.get_inputs():
        for symbol, size in zip(info.shape, shapes[info.name]):
            if not isinstance(symbol, int) and isinstance(size, int):
                sizes[symbol] = size
    return sizes


class Worst:
    """The largest error over all runs, and whether ONNX Runtime's own results explain it: a quantized model may turn a rounding
    into a whole step."""

    def __init__(self) -> None:
        self.error, self.bad = 0.0, ""

    def take(self, what: str, models: list[ort.InferenceSession], given: Feeds, found: list[Any]) -> None:
        """`models`: the model in ONNX Runtime, unoptimized and optimized; the nearer one counts."""
        errors = []
        for model in models:
            expected = model.run(None, given)
            errors.append(max((error(a, b) for a, b in zip(found, expected)), default=0.0))
            if len(found) != len(expected):
                errors[-1] = float("inf")
        worst = min(errors)
        self.error = max(self.error, worst)
        if worst <= TOLERANCE:
            return
        expected = models[0].run(None, given)
        moved = max(error(a, b) for a, b in zip(models[0].run(None, nudged(given)), expected))
        moved = max([moved] + [error(a, b) for a, b in zip(models[1].run(None, given), expected)])
        if worst > 2 * moved:
            self.bad = self.bad or f"{what}: error {worst:.1e} (nudged by {NUDGE}, or optimized there: {moved:.1e})"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("autograph")
    parser.add_argument("model")
    parser.add_argument("folder")
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    name = os.path.basename(asked.model)
    output = os.path.join(asked.folder, name.removesuffix(".onnx") + ".optimized.onnx")
    done = subprocess.run([asked.autograph, "--data", os.path.join(asked.folder, "data"), "optimize", asked.model, "-o", output,
                           "--force", "--device", asked.device, "--budget", asked.budget, "--json"],
                          capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        print(f"REFUSED {name}: {(done.stdout + done.stderr).strip()[-300:]}")
        return 2
    result = json.loads(done.stdout)
    result = result.get("result", result)
    ort.set_default_logger_severity(4)
    warnings.simplefilter("ignore", autograph.SessionWarning)
    models, worst = [load(asked.model, False), load(asked.model, True)], Worst()
    model = models[0]
    others = {"unoptimized": load(output, False), "optimized": load(output, True)}
    fixed = fixed_sizes(model, others["optimized"])
    is_open = any(not isinstance(d, int) for info in others["optimized"].get_inputs() for d in info.shape)
    sizes = [size | fixed for size in SIZES] if is_open else [fixed]
    session = autograph.Session(output)
    for size in sizes:
        for seed in (11, 12):
            given = feeds(model, size, seed)
            for what, other in others.items():
                worst.take(f"{what} {size}", models, given, other.run(None, given))
            worst.take(f"session {size}", models, given, session.run(None, given))
    kind = "DIFFERENT" if worst.bad else "OK"
    print(f"{kind} {name}: {result.get('verdict')} {result.get('speedup', 0):.3f} {result.get('output')} "
          f"{'open' if is_open else 'fixed'}, error {worst.error:.1e} {worst.bad}")
    return 1 if worst.bad else 0


if __name__ == "__main__":
    sys.exit(main())
