"""Differential fuzzing: random models go through import, clean-up, random rewrites and export, and are compared with ONNX Runtime.

usage: compare.py AUTOGRAPH_LAB FOLDER [--count 20000] [--seed 1] [--batch 200] [--steps 8]   (PYTHONPATH: the package `autograph`)
Compared, on random inputs: the rewritten file in ONNX Runtime with its optimizations off, and both files in a session of ours, with
the model in ONNX Runtime. A larger difference than TOLERANCE counts only where ONNX Runtime's own result moves by much less when
inputs change by NUDGE. Prints one line a finding and keeps its model in FOLDER/found; exits 1 when there is one that KNOWN lacks.
"""
from __future__ import annotations

import argparse
import collections
import os
import shutil
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime as ort

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import autograph  # noqa: E402
from random_models import random_inputs, random_model  # noqa: E402
from session_agrees import NUDGE  # noqa: E402

Array = np.ndarray[Any, Any]
TOLERANCE = {np.dtype(np.float16): 2e-2}
TOLERANCE_ELSE = 1e-3
# What a finding's text may contain, and why it is not counted.
KNOWN = {
    "Could not find an implementation": "docs/ROADMAP.md: rewrites in f64 take operators that ONNX Runtime has in f32 only",
}


def in_onnxruntime(model: bytes, given: dict[str, Array]) -> list[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {i.name: given[i.name] for i in session.get_inputs()}))


def in_ours(model: bytes, given: dict[str, Array]) -> list[Array]:
    with autograph.Session(model, device="cpu") as session:
        made = session.run({i.name: given[i.name] for i in session.inputs})
        return [np.asarray(made[o.name]) for o in session.outputs]


def distance(a: Array, b: Array) -> Array:
    """Returns the difference of each element over the output's largest value; infinite for another type, shape or place of a NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.asarray(np.inf)
    if a.dtype.kind != "f":
        return np.where(a != b, np.inf, 0.0)
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        least = 1e-1 if b.dtype == np.float16 else 1e-2  # Steps of f16 below 1 are 5e-4: what cancels leaves them.
        scale = max(least, float(np.max(np.abs(np.where(np.isfinite(y), y, 0.0)), initial=0.0)))
        gap = np.where((np.isnan(x) & np.isnan(y)) | (x == y), 0.0, np.abs(x - y) / scale)
    return np.where(np.isnan(gap), np.inf, gap)


def nudged(array: Array, random: np.random.Generator) -> Array:
    """Returns the array with each float changed by about NUDGE of itself, f16 by a rounding."""
    if array.dtype.kind != "f":
        return array
    size = 1e-3 if array.dtype == np.float16 else NUDGE
    return np.asarray(array * (1 + size * random.standard_normal(array.shape))).astype(array.dtype)


def nudged_weights(model: bytes, random: np.random.Generator) -> bytes:
    """Returns the model with nudged weights."""
    proto = onnx.load_from_string(model)
    for weight in proto.graph.initializer:
        near = nudged(onnx.numpy_helper.to_array(weight), random)
        weight.CopyFrom(onnx.numpy_helper.from_array(near, weight.name))
    return proto.SerializeToString()


class Case:
    def __init__(self, folder: str, seed: int) -> None:
        self.stem = os.path.join(folder, f"{seed:08d}")
        with open(self.stem + ".onnx", "rb") as file:
            self.model = file.read()
        proto = random_model(seed)
        self.given = random_inputs(proto, seed)
        self.names = [o.name for o in proto.graph.output]
        self.expected: list[Array] = []
        self.moved: list[Array] | None = None

    def allowed(self, i: int) -> Array:
        """Returns how far each element of an output may lie, from what ONNX Runtime's own moves by with nudged inputs."""
        if self.moved is None:
            self.moved = [np.zeros(e.shape) for e in self.expected]
            for seed in range(6):
                random = np.random.default_rng(seed)
                near = {name: nudged(array, random) for name, array in self.given.items()}
                try:
                    others = in_onnxruntime(nudged_weights(self.model, random), near)
                except Exception:  # A nudged weight is the scale of a resize, whose size then does not fit.
                    continue
                for j, other in enumerate(others):
                    self.moved[j] = np.maximum(self.moved[j], distance(other, self.expected[j]))
        return 30 * self.moved[i]

    def difference(self, found: list[Array]) -> str:
        if len(found) != len(self.expected):
            return f"{len(found)} outputs of {len(self.expected)}"
        for i, (a, b) in enumerate(zip(found, self.expected)):
            if b.dtype.kind == "f" and not np.isfinite(b).all():
                if a.dtype != b.dtype or a.shape != b.shape:
                    return f"{self.names[i]}: {a.dtype}{a.shape} for {b.dtype}{b.shape}"
                continue  # The policy of the gate: rewrites may differ where results are not finite.
            gap = distance(a, b)
            limit = TOLERANCE.get(b.dtype, TOLERANCE_ELSE)
            if gap.max(initial=0.0) <= limit or (gap.shape == b.shape and (gap <= np.maximum(limit, self.allowed(i))).all()):
                continue
            return f"{self.names[i]}: {b.dtype}{list(b.shape)} differs by {gap.max():.2g}"
        return ""


def findings(folder: str, seed: int) -> list[tuple[str, str]]:
    """Returns a kind and a text for each finding of one model."""
    case = Case(folder, seed)
    try:
        case.expected = in_onnxruntime(case.model, case.given)
    except Exception:
        return [("not compared", "")]
    if os.path.exists(case.stem + ".refused"):
        with open(case.stem + ".refused") as file:
            return [("REFUSED", file.read())]
    with open(case.stem + ".rewritten", "rb") as file:
        rewritten = file.read()
    made = []
    for what, model, run in (("rewritten in ONNX Runtime", rewritten, in_onnxruntime), ("model in our session", case.model, in_ours),
                             ("rewritten in our session", rewritten, in_ours)):
        try:
            difference = case.difference(run(model, case.given))
        except Exception as error:
            difference = f"{type(error).__name__}: {str(error)[:300]}"
        if difference:
            made.append((what, difference))
    return made


def walk(lab: str, folder: str, seeds: list[int], steps: int) -> None:
    """Rewrites the models of the folder. One that ends the program counts as refused by a crash."""
    while True:
        done = subprocess.run([lab, "walk", folder, "--steps", str(steps)], capture_output=True, text=True, timeout=600)
        if done.returncode == 0:
            return
        left = [s for s in seeds if not any(os.path.exists(f"{folder}/{s:08d}{end}") for end in (".rewritten", ".refused"))]
        if not left:
            raise SystemExit(done.stderr)
        with open(f"{folder}/{left[0]:08d}.refused", "w") as file:
            file.write(f"CRASH, exit code {done.returncode}: {done.stderr[-500:]}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("lab")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--steps", type=int, default=8)
    flags = parser.parse_args()
    warnings.simplefilter("ignore")  # ONNX states larger sizes for some pools with ceil_mode.
    counts: collections.Counter[str] = collections.Counter()
    unknown = 0
    found = os.path.join(flags.folder, "found")
    os.makedirs(found, exist_ok=True)
    for begin in range(flags.seed, flags.seed + flags.count, flags.batch):
        seeds = list(range(begin, min(begin + flags.batch, flags.seed + flags.count)))
        batch = os.path.join(flags.folder, f"batch-{begin}")
        os.makedirs(batch)
        for seed in seeds:
            with open(f"{batch}/{seed:08d}.onnx", "wb") as file:
                file.write(random_model(seed).SerializeToString())
        walk(flags.lab, batch, seeds, flags.steps)
        for seed in seeds:
            made = findings(batch, seed)
            counts["models"] += 1
            for kind, text in made:
                known = next((why for part, why in KNOWN.items() if part in text), None)
                counts[kind if kind == "not compared" else f"{kind}, known" if known else kind] += 1
                if kind == "not compared" or known:
                    continue
                unknown += 1
                shutil.copy(f"{batch}/{seed:08d}.onnx", found)
                print(f"{seed} {kind}: {text}", flush=True)
        shutil.rmtree(batch)
    print(dict(counts))
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
