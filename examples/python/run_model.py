"""Runs a model on this machine; with a second one, compares the two and times both.

usage: run_model.py MODEL.onnx [OTHER.onnx]
Inputs are seeded: floats standard normal, integers 0 or 1.
"""

import sys
import time
from typing import Any, Dict

import numpy as np
from autograph import Session
from numpy.typing import NDArray

RUNS = 20

Arrays = Dict[str, NDArray[Any]]


def seeded(session: Session) -> Arrays:
    """Returns an array for every input."""
    random = np.random.default_rng(1)
    made = {}
    for info in session.inputs:
        floats = np.issubdtype(info.dtype, np.floating)
        data = random.standard_normal(info.shape) if floats else random.integers(0, 2, info.shape)
        made[info.name] = np.asarray(data).astype(info.dtype)
    return made


def median_ms(session: Session, inputs: Arrays) -> float:
    """Returns the median time of a run in milliseconds; the outputs' memory is used again."""
    outputs = session.run(inputs)
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        session.run(inputs, out=outputs)
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times))


def main() -> int:
    """Returns the exit code: 1 when the models differ by more than 1e-3 of the largest value."""
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    worst, expected = 0.0, None
    for path in sys.argv[1:]:
        with Session(path) as session:
            inputs = seeded(session)
            outputs = session.run(inputs)
            plan = "its own plan" if session.uses_carried_plan else "a plan made here"
            print(f"{path}: {median_ms(session, inputs):.3f} ms with {plan}")
        for name, array in outputs.items():
            if expected is None:
                print(f"  {name}: {array.dtype}{list(array.shape)} {array.ravel()[:4]}")
            else:
                largest = float(np.max(np.abs(expected[name]))) or 1.0
                error = float(np.max(np.abs(expected[name] - array))) / largest
                worst = max(worst, error)
                print(f"  {name}: differs by {error:.1e} of the largest value")
        expected = outputs
    return 0 if worst <= 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
