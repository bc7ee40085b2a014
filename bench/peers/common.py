"""What the scripts of this folder share: how far results are apart, and how sure a median is."""
import random
import statistics

import numpy as np


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
