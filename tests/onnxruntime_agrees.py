"""Loads two ONNX models in ONNX Runtime and compares every output on seeded inputs.

usage: onnxruntime_agrees.py INPUT.onnx OUTPUT.onnx [TOLERANCE [INPUT=1x3x224x224]...]
An open size that no shape gives is 1.
Prints one line a model output; exits 1 when any differs by more than TOLERANCE (default 1e-3) of its largest value.
"""
import sys

import numpy as np
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def session(path: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def feeds(model: ort.InferenceSession, seed: int, shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Floats standard normal, integers 0 or 1."""
    rng = np.random.default_rng(seed)
    made = {}
    for value in model.get_inputs():
        shape = shapes.get(value.name) or [d if isinstance(d, int) else 1 for d in value.shape]
        dtype = TYPES[value.type]
        data = rng.standard_normal(shape) if dtype == np.float32 else rng.integers(0, 2, shape)
        made[value.name] = data.astype(dtype)
    return made


def main() -> int:
    a, b = session(sys.argv[1]), session(sys.argv[2])
    tolerance = float(sys.argv[3]) if len(sys.argv) > 3 else 1e-3
    shapes = {name: [int(d) for d in sizes.split("x")] for name, sizes in (a.rsplit("=", 1) for a in sys.argv[4:])}
    worst = 0.0
    names = [o.name for o in a.get_outputs()]
    if names != [o.name for o in b.get_outputs()]:
        print(f"outputs differ: {names} against {[o.name for o in b.get_outputs()]}")
        return 1
    for seed in (1, 2):
        given = feeds(a, seed, shapes)
        for name, x, y in zip(names, a.run(None, given), b.run(None, given)):
            if x.shape != y.shape:
                print(f"{name}: shape {x.shape} against {y.shape}")
                return 1
            largest = float(np.max(np.abs(x))) or 1.0
            error = float(np.max(np.abs(x.astype(np.float64) - y.astype(np.float64)))) / largest
            worst = max(worst, error if np.isfinite(error) else np.inf)
            print(f"{name} seed {seed}: max rel {error:.2e} of {largest:.4g}")
    return 0 if worst <= tolerance else 1


if __name__ == "__main__":
    sys.exit(main())
