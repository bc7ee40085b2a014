"""Attention alone, on six shapes: our session beside ONNX Runtime and OpenVINO, interleaved in one process.

    bench/attention.py [--threads 2] [--blocks 15] [--before LIBRARY] [--only NAME,...] [MODEL.onnx...]

Needs build/libautograph.so and the environment of `scripts/install.sh --cpu-peers`. Each shape is one ONNX model as
exporters write it: Reshape and Transpose of Q, K and V, MatMul, a scale, a mask or bias, Softmax, MatMul, Transpose.
Sides, all fp32: ours (every kernel measured), before (the same by the libautograph.so of another tree, for example one
without the pattern), ONNX Runtime, OpenVINO. Every block runs each side once to settle and then for about 100 ms; the
order alternates. With MODEL those are timed in the place of the shapes. A ratio is the median over the blocks of our
time over the other's, with its 95 % bootstrap interval.
Exits 1 when outputs differ by more than 1e-3 of the largest value, 77 without a peer's package.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    import cpu
    from common import ROOT, bootstrap, largest_difference
except ImportError as error:
    print(f"attention.py: {error}", file=sys.stderr)
    sys.exit(77)

TOLERANCE = 1e-3
# Name: batch, heads, tokens, head size, what is added to the scores.
SHAPES = {
    "BERT 12x128x64": (1, 12, 128, 64, "mask"),
    "ViT 12x197x64": (1, 12, 197, 64, None),
    "Swin 192x49x32": (64, 3, 49, 32, "bias"),
    "Swin 48x49x32": (4, 12, 49, 32, "bias"),
    "12x512x64": (1, 12, 512, 64, None),
    "12x1024x64": (1, 12, 1024, 64, None),
}


def attention_model(batch, heads, tokens, size, added):
    """The block from [batch, tokens, heads * size] to the same."""
    width = heads * size
    tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, tokens, width])
    shape = numpy_helper.from_array(np.array([batch, tokens, heads, size]), "heads")
    back = numpy_helper.from_array(np.array([batch, tokens, width]), "width")
    scale = numpy_helper.from_array(np.array(math.sqrt(size), np.float32), "scale")
    inputs, weights, nodes = [tensor(name) for name in "qkv"], [shape, back, scale], []
    add = lambda op, operands, result, **attributes: nodes.append(helper.make_node(op, operands, [result], **attributes))
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        add("Reshape", [name, "heads"], name + "_heads")
        add("Transpose", [name + "_heads"], name + "_by_head", perm=perm)
    add("MatMul", ["q_by_head", "k_by_head"], "products")
    add("Div", ["products", "scale"], "scores")
    if added == "mask":
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, [batch, 1, 1, tokens]))
        add("Add", ["scores", "mask"], "added")
    elif added == "bias":
        bias = np.random.default_rng(2).standard_normal([1, heads, tokens, tokens]).astype(np.float32)
        weights.append(numpy_helper.from_array(bias, "bias"))
        add("Add", ["scores", "bias"], "added")
    add("Softmax", ["added" if added else "scores"], "shares", axis=-1)
    add("MatMul", ["shares", "v_by_head"], "by_head")
    add("Transpose", ["by_head"], "tokens", perm=[0, 2, 1, 3])
    add("Reshape", ["tokens", "width"], "y")
    graph = helper.make_graph(nodes, "attention", inputs, [tensor("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def session_of(library):
    """A Session class of its own that uses the given libautograph.so."""
    os.environ["AUTOGRAPH_LIBRARY"] = library
    for name in [name for name in sys.modules if name.split(".")[0] == "autograph"]:
        del sys.modules[name]
    package = types.ModuleType("autograph")
    package.__path__ = [os.path.join(ROOT, "client", "python", "autograph")]
    sys.modules["autograph"] = package
    from autograph.session import Session
    return Session


class Ours(cpu.Ours):
    def __init__(self, path, feeds, threads, library):
        session = session_of(library)(path, device=f"cpu:{threads}", plan="input", tune=True, tuned_plans="")
        self.session, self.warnings = session, []
        self.feeds = {i.name: feeds[i.name] for i in session.inputs}
        self.outputs = {o.name: np.zeros(o.shape, o.dtype) for o in session.outputs}


def open_sides(path, args):
    feeds = cpu.make_feeds(path)
    sides = {"ours": Ours(path, feeds, args.threads, os.path.join(ROOT, "build", "libautograph.so"))}
    if args.before:
        sides["before"] = Ours(path, feeds, args.threads, args.before)
    sides["ONNX Runtime"] = cpu.Ort(path, feeds, args.threads)
    try:
        sides["OpenVINO"] = cpu.OpenVino(path, feeds, args.threads)
    except (ImportError, RuntimeError) as error:
        print(f"  OpenVINO is left out: {type(error).__name__}: {str(error).strip()[-200:]}", flush=True)
    return sides


def times_of(sides, blocks):
    """Microseconds of each side by block."""
    times = {name: [] for name in sides}
    for block in range(blocks):
        order = list(sides)
        for name in order if block % 2 == 0 else reversed(order):
            cpu.run_ms(sides[name])
            cpu.time.sleep(cpu.SETTLE_SECONDS)
            runs, begin = [], cpu.time.perf_counter()
            while cpu.time.perf_counter() - begin < cpu.BLOCK_SECONDS:
                runs.append(cpu.run_ms(sides[name]))
            times[name].append(statistics.median(runs) * 1e3)
    return times


def ratio_text(ours, other):
    ratios = [a / b for a, b in zip(ours, other)]
    low, high = bootstrap(ratios)
    return f"{statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]", statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--before", help="libautograph.so of another tree")
    parser.add_argument("--only", default="", help="words of shapes")
    parser.add_argument("models", nargs="*", help="models to time in the place of the shapes")
    args = parser.parse_args()
    words = [word for word in args.only.split(",") if word]
    print(f"load {os.getloadavg()}, {args.threads} threads, {args.blocks} blocks", flush=True)
    over_peers, failed = [], False
    for name in args.models or SHAPES:
        if words and not any(word in name for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = name
            if not args.models:
                path = os.path.join(folder, "attention.onnx")
                onnx.save(attention_model(*SHAPES[name]), path)
            sides = open_sides(path, args)
        expected = [np.array(value) for value in sides["ONNX Runtime"].run()]
        differences = {side: largest_difference(sides[side].run(), expected) for side in sides}
        failed |= any(not difference <= TOLERANCE for difference in differences.values())
        times = times_of(sides, args.blocks)
        peers = [side for side in ("ONNX Runtime", "OpenVINO") if side in sides]
        best = min(peers, key=lambda side: statistics.median(times[side]))
        text, ratio = ratio_text(times["ours"], times[best])
        over_peers.append(ratio)
        print(f"{name}: " + ", ".join(f"{side} {statistics.median(times[side]):.0f} us" for side in sides))
        print(f"  ours / {best} {text}", end="")
        if args.before:
            print(f", ours / before {ratio_text(times['ours'], times['before'])[0]}", end="")
        print(f", largest difference {max(differences.values()):.1e}", flush=True)
    if over_peers:
        print(f"geometric mean over the better peer: {math.exp(statistics.fmean(map(math.log, over_peers))):.3f}")
    print(f"load {os.getloadavg()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
