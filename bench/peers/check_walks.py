"""Checks the peers' walks on the CPU: each model through torch (and JAX) against ONNX Runtime.

    bench/peers/check_walks.py [--tolerance 1e-4] MODEL.onnx...

One line a model and library: the largest difference over the largest value of each output. Exits 1
when one is beyond the tolerance. A library that is not installed is named and left out; with none of
them, or without ONNX Runtime, the exit code is 77.
"""
import argparse
import importlib.util
import sys

try:
    import numpy as np
    import onnxruntime
    from common import largest_difference
except ImportError as error:
    print(f"check_walks.py: {error}")
    sys.exit(77)


def make_feeds(session):
    rng = np.random.default_rng(1)
    feeds = {}
    for i in session.get_inputs():
        is_float = i.type == "tensor(float)"
        integers = np.int32 if i.type == "tensor(int32)" else np.int64
        feeds[i.name] = (rng.standard_normal(i.shape).astype(np.float32) if is_float
                         else rng.integers(0, 2, i.shape).astype(integers))
    return feeds


def run_torch(path, feeds):
    import torch
    from onnx_to_torch import load
    module, inputs = load(path, feeds)
    with torch.inference_mode():
        return [v.numpy() for v in module(*inputs)]


def run_jax(path, feeds):
    import jax
    from onnx_to_jax import OnnxFunction
    function = OnnxFunction(path)
    return jax.jit(lambda *xs: function(*xs))(*[feeds[n] for n in function.input_names])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    failed, libraries = False, {}
    for name, run in {"torch": run_torch, "jax": run_jax}.items():
        if importlib.util.find_spec(name):
            libraries[name] = run
        else:
            print(f"{name}: left out: not installed")
    if not libraries:
        return 77
    for path in args.models:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        feeds = make_feeds(session)
        expected = session.run(None, feeds)
        for name, run in libraries.items():
            off = largest_difference(run(path, feeds), expected)
            failed = failed or not off <= args.tolerance
            print(f"{path}: {name}: {off:.1e}{'' if off <= args.tolerance else '  TOO FAR'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
