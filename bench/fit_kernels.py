"""Fits the numbers of the CPU's kernel families (device/cpu/host.cc) to measured groups.

    build/first_guesses --groups MODEL... > groups.txt
    .venv/bin/python bench/fit_kernels.py groups.txt       # After scripts/install.sh --python.

A line for each kernel with six groups or more, by form and layout: how many; the error of the spec's estimate (of the
group's best kernel); share, bytes, far and fixed_ns of the fit, in shares of the rates below, and its error. Error: the factor
between estimate and measurement, median and ninth decile. The model is that of plan/fusion/kernel_estimate.cc; the fit
makes the sum of the roots of errors of logarithms small, on a grid first, then step by step.
"""
import math
import re
import sys
from collections import defaultdict

import numpy as np

# The spec of two cores with AVX-512.
PEAK, CACHE_RATE, MEMORY_RATE = 4e11, 6e10, 2e10
CACHE_BYTES, FAR_BYTES = 16 << 20, 1 << 20
GRID = [(fixed, share, moved, from_far) for fixed in (1, 300, 600, 1000, 2000, 3000, 4500, 6000, 8000, 12000)
        for share in (0.18, 0.36, 0.54, 0.72, 0.96, 1.32, 1.8) for moved in (0.15, 0.25, 0.35, 0.5, 0.7, 1, 1.4)
        for from_far in (0.7, 1, 2, 4)]
LARGEST = (1e6, 2.4, 4, 8)
GROUP = re.compile(r"  group (\S+): (.*) > (\S+) \| est (\S+) flops (\S+) bytes (\S+) \| (.*)")
# Winograd's kernels by the side of their tiles; oneDNN's errors are smallest with 2.
TILES = {"winograd_tiles": 4, "winograd_small_tiles": 2, "winograd": 2}


def shape_of(text):
    found = re.search(r"\[([\d,]+)\]", text)
    return [int(size) for size in found[1].split(",")] if found else []


def winograd_work(weights, tile, flops, moved, constant):
    """Returns operations, bytes, and bytes of constants by tiles of a square image."""
    filters = weights[0] * weights[1]
    side = round(math.sqrt(flops / (2 * 9 * filters)))
    tiles, points = math.ceil(side / tile) ** 2, (tile + 2) ** 2
    flops += 2 * points * tiles * filters - 2 * 9 * side * side * filters
    moved += 4 * ((points - 9) * filters + points * tiles * (weights[0] + weights[1]))
    return flops, moved, constant * points / 9


def read(lines):
    """Returns by kernel: rows of operations, bytes, bytes from memory, measured and estimated nanoseconds."""
    rows = defaultdict(list)
    for line in lines:
        if not (found := GROUP.match(line)):
            continue
        pattern, head, layout, estimate, flops, moved, times = found.groups()
        conv, product = re.search(r" w(\S+) s\d+ g(\d+)", head), re.search(r" mm(\S+)", head)
        weights = shape_of((conv or product)[1]) if conv or product else []
        constant = 4 * math.prod(weights) if conv or (product and len(weights) == 2) else 0
        place = "blocks" if layout.startswith("blocked") else layout
        for kernel, us in (word.split("=") for word in times.split()):
            name, work = f"{kernel} {pattern}", (float(flops), float(moved), constant)
            if conv:
                is_depthwise = int(conv[2]) > 1 and weights[1] == 1
                is_pointwise = weights[2:] == [1, 1] and conv[2] == "1"
                form = "depthwise " if is_depthwise else "pointwise " if is_pointwise and kernel == "panels" else ""
                name += f" {form}{place}"
                if kernel in TILES and len(weights) == 4:
                    work = winograd_work(weights, TILES[kernel], *work)
            elif product:
                name += " product" if len(weights) == 2 else ""
            far = work[2] if constant >= FAR_BYTES else 0
            rows[name].append((work[0], work[1], far, float(us) * 1e3, float(estimate) * 1e3))
    return {name: np.array(of) for name, of in rows.items()}


def errors(expected, measured):
    return np.abs(np.log(expected / measured))


def fit(rows):
    flops, moved, far, measured, _ = rows.T
    rate = np.where(moved > CACHE_BYTES, MEMORY_RATE, CACHE_RATE)

    def model(numbers):
        fixed, share, of_rate, of_far = numbers
        near = np.maximum(moved - far, 0)
        return fixed + 1e9 * (flops / (share * PEAK) + near / (of_rate * rate) + far / (of_far * MEMORY_RATE))

    def cost(numbers):
        return np.sum(np.sqrt(errors(model(numbers), measured)))

    best = min(GRID, key=cost)
    for step in (1.25, 1.12, 1.06, 1.03):
        is_better = True
        while is_better:
            near = [tuple(min(n * factor, LARGEST[i]) if i == k else n for i, n in enumerate(best))
                    for k in range(4) for factor in (step, 1 / step)]
            other = min(near, key=cost)
            is_better = cost(other) < cost(best) - 1e-9
            best = other if is_better else best
    return best, errors(model(best), measured)


def text_of(error):
    return f"{np.exp(np.median(error)):.2f}, {np.exp(np.quantile(error, 0.9)):.2f}"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    with open(sys.argv[1], errors="replace") as lines:
        kernels = read(lines)
    for name, rows in sorted(kernels.items()):
        if len(rows) < 6:
            continue
        (fixed, share, moved, from_far), error = fit(rows)
        print(f"{name:44s} {len(rows):5d} groups, {text_of(errors(rows[:, 4], rows[:, 3]))} now; "
              f"share {share:.2f} bytes {moved:.2f} far {from_far:.1f} fixed_ns {fixed:.0f}: {text_of(error)}")


if __name__ == "__main__":
    main()
