"""Runs one ONNX model in ONNX Runtime on request, for whoever times it beside others.

Our programs run this text as `python3 -c TEXT REQUEST` and talk over file descriptor 3 in lines.
REQUEST is a JSON object:

  {}                                    answers `ready - VERSION` without loading ONNX Runtime
  {"model", "threads", "shapes", "inputs"}
                                        answers `ready - VERSION`, then each line `run N` with the
                                        mean of N runs in nanoseconds (`warm N`: after one more that
                                        is not counted); ends when the descriptor is closed
  {"compare": [A, B], "shapes", "inputs", "seeds"}
                                        answers one JSON list: differences of B's outputs from A's

"inputs" is the file of a set of inputs (graph/inputs/input_set.h), or a list of such; what it
lacks, or all without one, is random.

`missing WHY` instead says that ONNX Runtime is not installed, `error WHY` that it failed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any, TextIO

FLOOR = 1e-3  # Of the largest value: smaller elements have no relative error.
PR_SET_PDEATHSIG = 1
ANSWER_FD = 3

# By the words of a set of inputs (graph/types.cc). The others have no type in numpy.
NUMPY_TYPES = {"f32": "float32", "f16": "float16", "f64": "float64", "bool": "bool",
               "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
               "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8"}


def open_session(ort: Any, path: str, threads: int) -> Any:
    """Loads a model on the CPU; its threads do not spin between runs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def random_input(numpy: Any, info: Any, shapes: dict[str, list[int]], seed: int) -> Any:
    """Seeded data of an input: floats standard normal, integers 0 or 1, strings numerals."""
    sizes = shapes.get(info.name, info.shape)
    for size in sizes:
        if not isinstance(size, int) or size < 0:
            raise ValueError(f"input {info.name}: size {size} is open; give it with --shape")
    generator = numpy.random.default_rng(seed)
    kind = info.type
    if kind in ("tensor(float)", "tensor(double)", "tensor(float16)"):
        dtype = {"tensor(float)": "float32", "tensor(double)": "float64"}.get(kind, "float16")
        return generator.standard_normal(sizes).astype(dtype)
    if kind == "tensor(string)":
        return generator.integers(0, 100, sizes).astype(str).astype(object)
    dtype = kind[len("tensor("):-1]
    return generator.integers(0, 2, sizes).astype(dtype)


def read_set(numpy: Any, path: str) -> dict[str, Any]:
    """The arrays of a set of inputs, by name; those of types that numpy lacks are left out."""
    arrays: dict[str, Any] = {}
    with open(path, "rb") as file:
        file.readline()
        while words := file.readline().split():
            name = file.read(int(words[0])).decode()
            kind = words[1].decode()
            shape = [] if words[2] == b"-" else [int(size) for size in words[2].split(b"x")]
            data = file.read(int(words[3]))
            if kind == "string":
                count = int(numpy.prod(shape, dtype="int64"))
                ends = numpy.frombuffer(data, "int64", count + 1)
                text = data[8 * (count + 1):]
                parts = [text[a:b].decode() for a, b in zip(ends, ends[1:])]
                arrays[name] = numpy.array(parts, dtype=object).reshape(shape)
            elif kind in NUMPY_TYPES:
                arrays[name] = numpy.frombuffer(data, NUMPY_TYPES[kind]).reshape(shape)
    return arrays


def make_feeds(
    numpy: Any, session: Any, shapes: dict[str, list[int]], seed: int, path: str = ""
) -> dict[str, Any]:
    """One tensor per input; equal names and shapes get equal data whatever their order."""
    inputs = sorted(session.get_inputs(), key=lambda info: info.name)
    given = read_set(numpy, path) if path else {}
    return {info.name: given[info.name] if info.name in given
            else random_input(numpy, info, shapes, seed * 1000 + i)
            for i, info in enumerate(inputs)}


def serve(
    ort: Any, numpy: Any, request: dict[str, Any], reader: TextIO, channel: TextIO
) -> None:
    """Loads the model, says so, and runs it as often as it is asked to."""
    session = open_session(ort, request["model"], request["threads"])
    feeds = make_feeds(numpy, session, request["shapes"], 0, request["inputs"])
    print("ready -", ort.__version__, file=channel, flush=True)
    for line in iter(reader.readline, ""):
        word, runs = line.split()[0], int(line.split()[1])
        if word == "warm":
            session.run(None, feeds)
        begin = time.perf_counter_ns()
        for _ in range(runs):
            session.run(None, feeds)
        mean = max(1.0, (time.perf_counter_ns() - begin) / runs)
        print(mean, file=channel, flush=True)


def difference(numpy: Any, name: str, expected: Any, actual: Any) -> dict[str, Any]:
    """How far an output is from the expected one."""
    if numpy.asarray(expected).dtype.kind in "OU":
        far = 0.0 if numpy.array_equal(expected, actual) else 1.0
        return {"output": name, "max_abs": far, "max_rel": far, "max_elementwise": far,
                "nonfinite_differs": False}
    a = numpy.asarray(expected).astype("float64")
    b = numpy.asarray(actual).astype("float64")
    if a.shape != b.shape:
        return {"output": name, "max_abs": 0.0, "max_rel": 0.0, "max_elementwise": 0.0,
                "nonfinite_differs": True}
    finite = numpy.isfinite(a)
    same = numpy.array_equal(a[~finite], b[~finite], equal_nan=True)
    nonfinite_differs = not (same and bool(numpy.isfinite(b[finite]).all()))
    distance = numpy.abs(a - b)[finite & numpy.isfinite(b)]
    size = numpy.abs(a)[finite & numpy.isfinite(b)]
    largest = float(size.max(initial=0.0))
    far = float(distance.max(initial=0.0))
    counted = size > FLOOR * largest
    elementwise = float((distance[counted] / size[counted]).max(initial=0.0))
    return {"output": name, "max_abs": far, "max_rel": far / largest if largest > 0 else far,
            "max_elementwise": elementwise, "nonfinite_differs": nonfinite_differs}


def compare(ort: Any, numpy: Any, request: dict[str, Any]) -> list[dict[str, Any]]:
    """The largest differences over the seeds, by output."""
    sessions = [open_session(ort, path, os.cpu_count() or 1) for path in request["compare"]]
    names = [output.name for output in sessions[0].get_outputs()]
    worst: list[dict[str, Any]] = []
    paths = request["inputs"] or [""] * request["seeds"]
    for seed, path in enumerate(paths):
        feeds = make_feeds(numpy, sessions[0], request["shapes"], seed, path)
        expected, actual = (session.run(names, feeds) for session in sessions)
        found = [difference(numpy, *three) for three in zip(names, expected, actual)]
        if not worst:
            worst = found
            continue
        for old, new in zip(worst, found):
            for key in ("max_abs", "max_rel", "max_elementwise", "nonfinite_differs"):
                old[key] = max(old[key], new[key])
    return worst


def answer(request: dict[str, Any], reader: TextIO, channel: TextIO) -> None:
    """Answers the request, or says why not."""
    try:
        if not request:
            import importlib.metadata
            for package in ("onnxruntime", "onnxruntime-gpu"):
                try:
                    print("ready -", importlib.metadata.version(package), file=channel, flush=True)
                    return
                except importlib.metadata.PackageNotFoundError:
                    continue
        import numpy
        import onnxruntime as ort
    except ImportError as error:
        print("missing", error, file=channel, flush=True)
        return
    try:
        ort.set_default_logger_severity(4)
        if not request:
            print("ready -", ort.__version__, file=channel, flush=True)
        elif "compare" in request:
            print(json.dumps(compare(ort, numpy, request)), file=channel, flush=True)
        else:
            serve(ort, numpy, request, reader, channel)
    except Exception as error:  # Whatever it is, the caller has to hear of it.
        text = " ".join(f"{type(error).__name__}: {error}".split())
        for path in request.get("compare", [request.get("model", "")]):
            text = text.replace(path, "the model") if path else text  # It may be a server's.
        print("error", text, file=channel, flush=True)


def main() -> None:
    """Dies with the caller, says nothing on standard output, answers on its descriptor."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.path = [entry for entry in sys.path if entry]  # Not from the working folder.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        with os.fdopen(os.dup(ANSWER_FD), "r") as reader, os.fdopen(ANSWER_FD, "w") as writer:
            answer(json.loads(sys.argv[1]), reader, writer)
    except ConnectionError:
        sys.exit(1)  # The caller is gone, and so is its interest.


if __name__ == "__main__":
    main()
