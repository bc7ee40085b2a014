"""Runs a model in a session of ours and in ONNX Runtime on seeded inputs of our sizes, and compares every output.

usage: session_agrees.py MODEL.onnx [INPUT=1x3x224x224 | INPUT:VALUE]...   (sizes, or one value for a whole input)
Prints one line: OK, DIFFERENT, REFUSED (by us) or "NOT COMPARED" (ONNX Runtime refuses the model or the data), the largest error over
the output's largest value (at least 1e-4), both times of one run and the sizes. A larger error than 1e-3 is OK only where ONNX Runtime's own result
moves by as much when the inputs change by 1e-6. Exits 1 for DIFFERENT, 2 for REFUSED.
"""
from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any

import numpy as np
import onnxruntime as ort

import autograph

TOLERANCE = 1e-3
NUDGE = 1e-6
LEAST = 1e-4  # Of an output's largest value: outputs of a sigmoid that are all 1e-8 differ by nothing.


def feeds(session: autograph.Session, values: dict[str, float]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns floats from -1 to 1, integers 0 or 1, or the value that is given."""
    random = np.random.default_rng(3)
    made = {}
    for info in session.inputs:
        if info.name in values:
            made[info.name] = np.full(info.shape, values[info.name], info.dtype)
        elif np.issubdtype(info.dtype, np.floating):
            made[info.name] = (random.random(info.shape) * 2 - 1).astype(info.dtype)
        else:
            made[info.name] = np.asarray(random.integers(0, 2, info.shape)).astype(info.dtype)
    return made


def error(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    """Returns the largest difference, relative; infinite for another shape, type or place of NaN."""
    same_kind = ours.shape == theirs.shape and ours.dtype == theirs.dtype
    if not same_kind:
        return float("inf")
    if ours.size == 0 or np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
        return 0.0
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    a, b = np.nan_to_num(a), np.nan_to_num(b)
    return float(np.max(np.abs(a - b)) / max(LEAST, float(np.max(np.abs(b)))))


def nudged(given: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the inputs with each float changed by about NUDGE of itself."""
    random = np.random.default_rng(1)
    return {
        name: (array * (1 + NUDGE * random.standard_normal(array.shape))).astype(array.dtype)
        if array.dtype.kind == "f" else array
        for name, array in given.items()
    }


def main() -> int:
    path, name = sys.argv[1], os.path.basename(sys.argv[1])
    shapes, values = {}, {}
    for word in sys.argv[2:]:
        if "=" in word:
            key, text = word.rsplit("=", 1)
            shapes[key] = tuple(int(size) for size in text.split("x"))
        else:
            key, text = word.rsplit(":", 1)
            values[key] = float(text)
    ort.set_default_logger_severity(4)
    warnings.simplefilter("ignore", autograph.SessionWarning)
    try:
        session = autograph.Session(path, shapes=shapes)
    except autograph.AutoGraphError as refused:
        print(f"REFUSED {name}: {refused}")
        return 2
    given = feeds(session, values)
    sizes = ", ".join(f"{key}{list(array.shape)}" for key, array in given.items())[:160]
    try:
        other = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        begin = time.perf_counter()
        expected = other.run(None, given)
        theirs = time.perf_counter() - begin
    except Exception as refused:  # ONNX Runtime's errors have no common class.
        print(f"NOT COMPARED {name}: {str(refused)[:160]!r} with {sizes}")
        return 0
    try:
        begin = time.perf_counter()
        found = session.run(None, given)
        mine = time.perf_counter() - begin
    except autograph.AutoGraphError as refused:
        print(f"REFUSED {name}: {refused}")
        return 2
    worst = max((error(a, b) for a, b in zip(found, expected)), default=0.0)
    note, allowed = "", TOLERANCE
    if TOLERANCE < worst < float("inf"):  # A quantized model may turn a rounding into a whole step.
        moved = max(error(a, b) for a, b in zip(other.run(None, nudged(given)), expected))
        note = f" (ONNX Runtime's own result moves by {moved:.1e} when inputs change by {NUDGE})"
        allowed = max(allowed, moved)
    agrees = worst <= allowed and len(found) == len(expected)
    print(f"{'OK' if agrees else 'DIFFERENT'} {name}: error {worst:.1e}{note}, first run {mine * 1e3:.0f} ms, "
          f"ONNX Runtime {theirs * 1e3:.0f} ms, {sizes}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
