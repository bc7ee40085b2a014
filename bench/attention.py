"""Attention alone, on eleven shapes: our session beside ONNX Runtime and OpenVINO, interleaved in one process.

    bench/attention.py [--threads 2] [--blocks 15] [--before LIBRARY] [--only NAME,...] [MODEL.onnx...]

Needs build/libautograph.so and the environment of `scripts/install.sh --cpu-peers`. Each shape is one ONNX model as
exporters write it: Reshape and Transpose of Q, K and V, MatMul, a scale, a mask or bias, Softmax, MatMul, Transpose.
Those of decoders have a causal mask (a Where as of GPT-2, or a sum as of Llama), Q, K and V that a Split cuts out of one
tensor or Gathers do, and heads that read one of fewer K and V by Expand.
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
import typing

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
class Shape(typing.NamedTuple):
    batch: int
    heads: int
    tokens: int
    size: int  # Of a head.
    added: typing.Optional[str] = None  # To the scores.
    readers: int = 1  # Heads that read one head of K and V.
    joined: typing.Optional[str] = None  # What cuts Q, K and V out of one tensor.


SHAPES = {
    "BERT 12x128x64": Shape(1, 12, 128, 64, "mask"),
    "ViT 12x197x64": Shape(1, 12, 197, 64),
    "Swin 192x49x32": Shape(64, 3, 49, 32, "bias"),
    "Swin 48x49x32": Shape(4, 12, 49, 32, "bias"),
    "12x512x64": Shape(1, 12, 512, 64),
    "12x1024x64": Shape(1, 12, 1024, 64),
    "joined ViT 12x197x64": Shape(1, 12, 197, 64, joined="Gather"),
    "GPT-2 12x256x64, causal": Shape(1, 12, 256, 64, "where", joined="Split"),
    "causal 12x512x64": Shape(1, 12, 512, 64, "where"),
    "causal 12x1024x64": Shape(1, 12, 1024, 64, "where"),
    "grouped causal 32x256x64 of 8": Shape(1, 32, 256, 64, "sum", readers=4),
}


class Model:
    """A graph in the making. Q has [batch, tokens, heads * size], as has the result."""

    def __init__(self, shape):
        self.shape, self.inputs, self.weights, self.nodes = shape, [], [], []

    def input(self, name, sizes):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))
        return name

    def constant(self, name, value):
        self.weights.append(numpy_helper.from_array(np.array(value), name))
        return name

    def add(self, op, operands, *results, **attributes):
        self.nodes.append(helper.make_node(op, operands, list(results), **attributes))
        return results[0]

    def heads_of(self, name, heads):
        s = self.shape
        return self.add("Reshape", [name, self.constant(name + "_sizes", [s.batch, s.tokens, heads, s.size])], name + "_heads")

    def operands(self):
        """Q, K and V as [batch, heads, tokens, size], K with the last two exchanged."""
        s = self.shape
        shared = s.heads // s.readers
        perms = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}
        if s.joined == "Gather":
            self.input("x", [s.batch, s.tokens, 3 * s.heads * s.size])
            self.add("Reshape", ["x", self.constant("sizes", [s.batch, s.tokens, 3, s.heads, s.size])], "x_heads")
            self.add("Transpose", ["x_heads"], "by_part", perm=[2, 0, 3, 1, 4])
            q, k, v = (self.add("Gather", ["by_part", self.constant(f"part_{n}", i)], n, axis=0) for i, n in enumerate("qkv"))
            return q, self.add("Transpose", [k], "k_by_head", perm=[0, 1, 3, 2]), v
        if s.joined == "Split":
            self.input("x", [s.batch, s.tokens, 3 * s.heads * s.size])
            self.add("Split", ["x", self.constant("parts", [s.heads * s.size] * 3)], *"qkv", axis=2)
        else:
            for name in "qkv":
                self.input(name, [s.batch, s.tokens, (s.heads if name == "q" else shared) * s.size])
        made = []
        for name, perm in perms.items():
            last = self.heads_of(name, s.heads if name == "q" else shared)
            if s.readers > 1 and name != "q":
                last = self.add("Transpose", [last], name + "_shared", perm=[0, 2, 1, 3])
                last = self.add("Unsqueeze", [last, self.constant(name + "_axis", [2])], name + "_one")
                sizes = [s.batch, shared, s.readers, s.tokens, s.size]
                last = self.add("Expand", [last, self.constant(name + "_all", sizes)], name + "_expanded")
                sizes = [s.batch, s.heads, s.tokens, s.size]
                last = self.add("Reshape", [last, self.constant(name + "_joined", sizes)], name + "_repeated")
                perm = [0, 1, 3, 2] if name == "k" else [0, 1, 2, 3]
            made.append(self.add("Transpose", [last], name + "_by_head", perm=perm))
        return made

    def masked(self, scores):
        s = self.shape
        causal = np.tril(np.ones([1, 1, s.tokens, s.tokens], bool))
        lowest = np.finfo(np.float32).min
        if s.added == "mask":
            return self.add("Add", [scores, self.input("mask", [s.batch, 1, 1, s.tokens])], "added")
        if s.added == "bias":
            bias = np.random.default_rng(2).standard_normal([1, s.heads, s.tokens, s.tokens]).astype(np.float32)
            return self.add("Add", [scores, self.constant("bias", bias)], "added")
        if s.added == "where":
            return self.add("Where", [self.constant("causal", causal), scores, self.constant("lowest", lowest)], "added")
        if s.added == "sum":
            return self.add("Add", [scores, self.constant("causal", np.where(causal, np.float32(0), lowest))], "added")
        return scores

    def make(self):
        s = self.shape
        q, k, v = self.operands()
        self.add("MatMul", [q, k], "products")
        self.add("Div", ["products", self.constant("scale", np.float32(math.sqrt(s.size)))], "scores")
        self.add("Softmax", [self.masked("scores")], "shares", axis=-1)
        self.add("MatMul", ["shares", v], "by_head")
        self.add("Transpose", ["by_head"], "tokens", perm=[0, 2, 1, 3])
        sizes = [s.batch, s.tokens, s.heads * s.size]
        self.add("Reshape", ["tokens", self.constant("width", sizes)], "y")
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)
        graph = helper.make_graph(self.nodes, "attention", self.inputs, [result], self.weights)
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
                onnx.save(Model(SHAPES[name]).make(), path)
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
