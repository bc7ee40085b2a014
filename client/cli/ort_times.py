"""Times ONNX models in ONNX Runtime, interleaved, and answers with one JSON document.

The command line runs this text as `python3 -c TEXT REQUEST` and reads file descriptor 3. REQUEST is
a JSON object: `models` (none, one or two paths), `threads`, `seconds` (of sampling, at most),
`blocks_max`, `shapes` (sizes by input name, where the model leaves them open).

The answer has `version` and `blocks`: lists of times per run in nanoseconds, [A, B, B, A] of two
models, [A] of one. `missing` instead says that ONNX Runtime is not installed, `error` that it
failed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

PLACE_NS = 2_000_000  # Short models run several times per place in a block.
RUNS_MAX = 64
WARM_RUNS = 3
PR_SET_PDEATHSIG = 1
ANSWER_FD = 3


def open_session(ort: Any, path: str, threads: int) -> Any:
    """Loads a model on the CPU; its threads do not spin between runs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def random_input(numpy: Any, info: Any, shapes: dict[str, list[int]], seed: int) -> Any:
    """Seeded data of an input: floats standard normal, integers 0 or 1."""
    sizes = shapes.get(info.name, info.shape)
    for size in sizes:
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"input {info.name}: size {size} is open; give it with --shape")
    generator = numpy.random.default_rng(seed)
    kind = info.type
    if kind in ("tensor(float)", "tensor(double)", "tensor(float16)"):
        dtype = {"tensor(float)": "float32", "tensor(double)": "float64"}.get(kind, "float16")
        return generator.standard_normal(sizes).astype(dtype)
    dtype = kind[len("tensor("):-1]
    return generator.integers(0, 2, sizes).astype(dtype)


def make_feeds(numpy: Any, session: Any, shapes: dict[str, list[int]]) -> dict[str, Any]:
    """One tensor per input; equal names and shapes get equal data whatever their order."""
    inputs = sorted(session.get_inputs(), key=lambda info: info.name)
    return {info.name: random_input(numpy, info, shapes, i) for i, info in enumerate(inputs)}


def time_runs(session: Any, feeds: dict[str, Any], runs: int) -> float:
    """The mean of `runs` runs in nanoseconds."""
    begin = time.perf_counter_ns()
    for _ in range(runs):
        session.run(None, feeds)
    return max(1.0, (time.perf_counter_ns() - begin) / runs)


def time_blocks(ort: Any, numpy: Any, request: dict[str, Any]) -> list[list[float]]:
    """Blocks of times until the time is spent or there are enough."""
    sessions = [open_session(ort, path, request["threads"]) for path in request["models"]]
    feeds = [make_feeds(numpy, session, request["shapes"]) for session in sessions]
    runs = []
    for session, feed in zip(sessions, feeds):
        warm = [time_runs(session, feed, 1) for _ in range(WARM_RUNS)]
        runs.append(max(1, min(RUNS_MAX, int(PLACE_NS / min(warm)))))
    order = [0, 1, 1, 0] if len(sessions) == 2 else [0]
    deadline = time.monotonic() + request["seconds"]
    blocks: list[list[float]] = []
    while len(blocks) < request["blocks_max"]:
        blocks.append([time_runs(sessions[i], feeds[i], runs[i]) for i in order])
        if time.monotonic() >= deadline:
            break
    return blocks


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is sent back."""
    try:
        import numpy
        import onnxruntime as ort
    except ImportError as error:
        return {"missing": str(error)}
    try:
        ort.set_default_logger_severity(4)
        blocks = time_blocks(ort, numpy, request) if request["models"] else []
        return {"version": ort.__version__, "blocks": blocks}
    except Exception as error:  # Whatever it is, the caller has to hear of it.
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Dies with the caller, says nothing on standard output, answers on its descriptor."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.path = [entry for entry in sys.path if entry]  # Not from the working folder.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    text = json.dumps(answer(json.loads(sys.argv[1])))
    with os.fdopen(ANSWER_FD, "w") as out:
        out.write(text)


if __name__ == "__main__":
    main()
