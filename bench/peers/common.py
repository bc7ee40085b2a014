"""What the scripts of this folder share: our session, how far results are apart, how sure a median is."""
import os
import random
import statistics
import sys
import types

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def our_session():
    """The package's session without the rest of it, which would want gRPC."""
    folder = os.environ.get("AUTOGRAPH_PYTHON_PACKAGE", os.path.join(ROOT, "client", "python", "autograph"))
    os.environ.setdefault("AUTOGRAPH_LIBRARY", os.path.join(ROOT, "build", "libautograph.so"))
    package = types.ModuleType("autograph")
    package.__path__ = [folder]
    sys.modules.setdefault("autograph", package)
    from autograph.session import Session
    return Session


def largest_difference(found, expected):
    """The largest difference of any output over its largest value; NaN where one is not a number.

    ValueError: outputs that cannot be compared.
    """
    if len(found) != len(expected):
        raise ValueError(f"expected {len(expected)} outputs, got {len(found)}")
    worst = 0.0
    for a, b in zip(expected, found):
        b = np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"expected {a.dtype}{a.shape}, got {b.dtype}{b.shape}")
        if a.size:
            off = np.abs(a.astype(np.float64) - b).max() / (float(np.abs(a).max()) or 1.0)
            worst = float(np.maximum(worst, off))  # Unlike max, this keeps NaN.
    return worst


def bootstrap(values):
    """The 95 % interval of the median."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]
