"""Operators that are kept in ONNX's own form, on our `cpu` beside ONNX Runtime: one small model each, interleaved.

    bench/peers/kept_operators.py [--threads 2] [--blocks 11] [--only WORD,WORD] [--tuned] [--keep FOLDER]

Prints for each case the median milliseconds of both sides and the median ratio of the blocks with its 95 % interval;
below 1 ours is faster. "plain" is a session as opened, "tuned" one that measured its kernels (--tuned). Both sides
run the same inputs in one process, on so many threads, ONNX Runtime with all optimizations. Exits 1 when outputs
differ by more than 1e-3 of the largest value, 77 without ONNX Runtime.
"""
import argparse
import os
import sys
import tempfile

import cpu
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

cpu.BLOCK_SECONDS = 0.03
rng = np.random.default_rng(5)


def normal(*shape):
    return (rng.standard_normal(shape) * 0.2).astype(np.float32)


def small_ints(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


class Model:
    """Nodes over named inputs and constants; the last node's results are the outputs."""

    def __init__(self, opset=17, domains=()):
        self.opset, self.domains = opset, domains
        self.nodes, self.inputs, self.constants, self.count = [], [], [], 0

    def input(self, *shape, dtype=np.float32):
        name = f"x{len(self.inputs)}"
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value):
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def bytes(self):
        results = [onnx.ValueInfoProto(name=name) for name in self.nodes[-1].output]
        graph = helper.make_graph(self.nodes, "kept", self.inputs, results, self.constants)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in self.domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(op, steps, batch, width, hidden, both=False, layers=1, **attributes):
    m, gates, d = Model(), GATES[op], 2 if both else 1
    x = m.input(steps, batch, width)
    for layer in range(layers):
        columns = width if layer == 0 else d * hidden
        if layer > 0:
            x = m.add("Reshape", m.add("Transpose", x, perm=[0, 2, 1, 3]),
                      m.constant(np.array([steps, batch, -1], np.int64)))
        scale = hidden ** -0.5
        w, r, b = (m.constant(normal(*s) * scale * 4) for s in
                   ((d, gates * hidden, columns), (d, gates * hidden, hidden), (d, 2 * gates * hidden)))
        if both:
            attributes["direction"] = "bidirectional"
        x = m.add(op, x, w, r, b, outputs=1, hidden_size=hidden, **attributes)
    return m


def quantized_lstm(steps, batch, width, hidden, both=False):
    """What dynamic quantization makes of an LSTM."""
    m, d = Model(domains=["com.microsoft"]), 2 if both else 1
    w, r = (m.constant(small_ints(np.int8, d, columns, 4 * hidden)) for columns in (width, hidden))
    scale, zero = m.constant(np.full(d, hidden ** -0.5 / 100, np.float32)), m.constant(np.zeros(d, np.int8))
    m.add("DynamicQuantizeLSTM", m.input(steps, batch, width), w, r, m.constant(normal(d, 8 * hidden)), "", "", "", "",
          scale, zero, scale, zero, domain="com.microsoft", hidden_size=hidden,
          direction="bidirectional" if both else "forward")
    return m


def transposed(channels, size, to, kernel, stride, pad=0, group=1, axes=2):
    m = Model()
    x = m.input(1, channels, *([size] * axes))
    w = m.constant(normal(channels, to // group, *([kernel] * axes)))
    m.add("ConvTranspose", x, w, m.constant(normal(to)), strides=[stride] * axes, pads=[pad] * 2 * axes, group=group)
    return m


def conv3d(channels, size, to, kernel=3):
    m = Model()
    x, w = m.input(1, channels, 8, size, size), m.constant(normal(to, channels, *([kernel] * 3)))
    m.add("Conv", x, w, m.constant(normal(to)), pads=[kernel // 2] * 6)
    return m


def one(op, *shapes, opset=17, constants=(), outputs=1, **attributes):
    m = Model(opset)
    names = [m.input(*shape) for shape in shapes]
    m.add(op, *names, *(m.constant(c) if c is not None else "" for c in constants), outputs=outputs, **attributes)
    return m


def integer(op, shape, weights, zeros=True, dtype=np.uint8, **attributes):
    """MatMulInteger or ConvInteger behind DynamicQuantizeLinear, scaled back: what dynamic quantization writes."""
    m = Model()
    q, scale, zero = m.add("DynamicQuantizeLinear", m.input(*shape), outputs=3)
    w = m.constant(small_ints(np.int8, *weights))
    y = m.add(op, q, w, zero, m.constant(np.int8(0)), **attributes)
    m.add("Mul", m.add("Cast", y, to=TensorProto.FLOAT), m.add("Mul", scale, m.constant(np.float32(0.01))))
    return m


def quantized(op, shape, weights, **attributes):
    """QLinearConv or QLinearMatMul between QuantizeLinear and DequantizeLinear."""
    m = Model()
    one_of = lambda value: m.constant(value)
    x = m.add("QuantizeLinear", m.input(*shape), one_of(np.float32(0.03)), one_of(np.uint8(120)))
    w = small_ints(np.int8, *weights)
    scale, zero = (0.002 * np.ones(weights[0], np.float32), np.zeros(weights[0], np.int8))
    if op == "QLinearMatMul":
        scale, zero = np.float32(0.002), np.int8(0)
    args = [x, one_of(np.float32(0.03)), one_of(np.uint8(120)), one_of(w), one_of(scale), one_of(zero),
            one_of(np.float32(0.05)), one_of(np.uint8(128))]
    if op == "QLinearConv":
        args.append(one_of(rng.integers(-1000, 1000, weights[0]).astype(np.int32)))
    y = m.add(op, *args, **attributes)
    m.add("DequantizeLinear", y, args[6], args[7])
    return m


def on_bytes(op, *shapes, **attributes):
    """An operator of com.microsoft on quantized tensors, between QuantizeLinear and DequantizeLinear."""
    m = Model(domains=["com.microsoft"])
    scale, zero = m.constant(np.float32(0.03)), m.constant(np.uint8(120))
    args = []
    for shape in shapes:
        args += [m.add("QuantizeLinear", m.input(*shape), scale, zero), scale, zero]
    to = [m.constant(np.float32(0.0471)), m.constant(np.uint8(128))]
    y = m.add(op, *(to + args if op == "QLinearConcat" else args + to), domain="com.microsoft", **attributes)
    m.add("DequantizeLinear", y, *to)
    return m


def two_activations(batch, rows, depth, columns):
    """QLinearMatMul as quantized attention has it."""
    m = Model()
    scale, zero = m.constant(np.float32(0.03)), m.constant(np.uint8(120))
    a, b = (m.add("QuantizeLinear", m.input(1, batch, *shape), scale, zero) for shape in ((rows, depth), (depth, columns)))
    to = [m.constant(np.float32(0.0471)), m.constant(np.uint8(128))]
    m.add("DequantizeLinear", m.add("QLinearMatMul", a, scale, zero, b, scale, zero, *to), *to)
    return m


def quantized_gemm(rows, depth, columns):
    m = Model(domains=["com.microsoft"])
    scale, zero = m.constant(np.float32(0.03)), m.constant(np.uint8(120))
    x = m.add("QuantizeLinear", m.input(rows, depth), scale, zero)
    w, bias = small_ints(np.int8, columns, depth), rng.integers(-1000, 1000, columns).astype(np.int32)
    to = [m.constant(np.float32(0.05)), m.constant(np.uint8(128))]
    y = m.add("QGemm", x, scale, zero, m.constant(w), m.constant(np.float32(0.002)), m.constant(np.int8(0)), m.constant(bias),
              *to, domain="com.microsoft", transB=1)
    m.add("DequantizeLinear", y, *to)
    return m


def quantize_pairs(shape, weights, **attributes):
    """A convolution between pairs of QuantizeLinear and DequantizeLinear, twice, with a Relu."""
    m = Model()
    x = m.input(*shape)
    for _ in range(2):
        scale, zero = m.constant(np.float32(0.03)), m.constant(np.uint8(120))
        x = m.add("DequantizeLinear", m.add("QuantizeLinear", x, scale, zero), scale, zero)
        w = m.add("DequantizeLinear", m.constant(small_ints(np.int8, *weights)), m.constant(np.float32(0.002)),
                  m.constant(np.int8(0)))
        x = m.add("Relu", m.add("Conv", x, w, **attributes))
    return m


def indexed(op, shape, indices, updates=None, opset=17, **attributes):
    m = Model(opset)
    args = [m.input(*shape), m.constant(indices)]
    if updates is not None:
        args.append(m.input(*updates))
    m.add(op, *args, **attributes)
    return m


def grid_sample(channels, size, grid, **attributes):
    m = Model()
    m.add("GridSample", m.input(1, channels, size, size), m.input(1, grid, grid, 2), **attributes)
    return m


def group_norm(channels, size, groups):
    return one("GroupNormalization", (1, channels, size, size), opset=21, constants=[normal(channels), normal(channels)],
               num_groups=groups)


def group_norm_of_instances(channels, size, groups):
    """Group normalization as exporters write it before opset 18."""
    m = Model()
    x = m.input(1, channels, size, size)
    y = m.add("Reshape", x, m.constant(np.array([0, groups, -1], np.int64)))
    y = m.add("InstanceNormalization", y, m.constant(np.ones(groups, np.float32)), m.constant(np.zeros(groups, np.float32)))
    y = m.add("Reshape", y, m.constant(np.array([1, channels, size, size], np.int64)))
    m.add("Add", m.add("Mul", y, m.constant(normal(channels, 1, 1))), m.constant(normal(channels, 1, 1)))
    return m


def resize(mode, size, to, **attributes):
    m = Model()
    m.add("Resize", m.input(1, 32, size, size), "", "", m.constant(np.array([1, 32, to, to], np.int64)), mode=mode, **attributes)
    return m


def top_k(shape, k, **attributes):
    return one("TopK", shape, constants=[np.array([k], np.int64)], outputs=2, **attributes)


CASES = {}
for op in ("LSTM", "GRU", "RNN"):
    for steps, batch, width, hidden, both in (
            (20, 1, 64, 64, False), (40, 1, 96, 48, True), (40, 1, 288, 96, True), (40, 1, 512, 256, True),
            (40, 1, 256, 256, False), (100, 1, 128, 128, False), (40, 8, 128, 128, False), (40, 8, 256, 256, True),
            (20, 1, 512, 512, False), (100, 8, 512, 512, False), (1, 1, 128, 128, False)):
        if op == "RNN" and hidden not in (64, 256):
            continue
        name = f"{op} {steps}x{batch}x{width} h{hidden}" + (" both" if both else "")
        CASES[name] = lambda a=(op, steps, batch, width, hidden, both): recurrent(*a)
CASES.update({
    "DynamicQuantizeLSTM 40x1x256 h256": lambda: quantized_lstm(40, 1, 256, 256),
    "DynamicQuantizeLSTM 40x1x288 h96 both": lambda: quantized_lstm(40, 1, 288, 96, True),
    "LSTM 2 layers 40x1x288 h48 both": lambda: recurrent("LSTM", 40, 1, 288, 48, True, 2),
    "GRU linear 40x1x256 h256": lambda: recurrent("GRU", 40, 1, 256, 256, linear_before_reset=1),
    "GRU linear 40x1x288 h96 both": lambda: recurrent("GRU", 40, 1, 288, 96, True, linear_before_reset=1),
    "ConvTranspose 512>256 14 2x2 s2": lambda: transposed(512, 14, 256, 2, 2),
    "ConvTranspose 256>128 28 2x2 s2": lambda: transposed(256, 28, 128, 2, 2),
    "ConvTranspose 128>64 56 2x2 s2": lambda: transposed(128, 56, 64, 2, 2),
    "ConvTranspose 64>32 112 2x2 s2": lambda: transposed(64, 112, 32, 2, 2),
    "ConvTranspose 256>128 16 4x4 s2 p1": lambda: transposed(256, 16, 128, 4, 2, 1),
    "ConvTranspose 128>64 32 4x4 s2 p1": lambda: transposed(128, 32, 64, 4, 2, 1),
    "ConvTranspose 64>3 64 4x4 s2 p1": lambda: transposed(64, 64, 3, 4, 2, 1),
    "ConvTranspose 128>64 28 3x3 s1 p1": lambda: transposed(128, 28, 64, 3, 1, 1),
    "ConvTranspose 21>21 28 4x4 s2 p1 depthwise": lambda: transposed(21, 28, 21, 4, 2, 1, 21),
    "ConvTranspose 64>64 56 4x4 s2 p1 depthwise": lambda: transposed(64, 56, 64, 4, 2, 1, 64),
    "ConvTranspose 100>512 1 4x4 s1": lambda: transposed(100, 1, 512, 4, 1),
    "ConvTranspose 256>128 200 16 s8 p4 1-D": lambda: transposed(256, 200, 128, 16, 8, 4, axes=1),
    "ConvTranspose 64>32 8 2 s2 3-D": lambda: transposed(64, 8, 32, 2, 2, axes=3),
    "Conv 3-D 16>32 56": lambda: conv3d(16, 56, 32),
    "Conv 3-D 64>64 28": lambda: conv3d(64, 28, 64),
    "Conv 3-D 64>64 28 1x1x1": lambda: conv3d(64, 28, 64, 1),
    "MaxPool 3-D": lambda: one("MaxPool", (1, 32, 8, 56, 56), kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    "AveragePool 3-D": lambda: one("AveragePool", (1, 32, 8, 56, 56), kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    "InstanceNormalization 64x56": lambda: one("InstanceNormalization", (1, 64, 56, 56), constants=[normal(64), normal(64)]),
    "InstanceNormalization 32x224": lambda: one("InstanceNormalization", (1, 32, 224, 224), constants=[normal(32), normal(32)]),
    "GroupNormalization 128x32": lambda: group_norm(128, 32, 32),
    "GroupNormalization as InstanceNormalization": lambda: group_norm_of_instances(128, 32, 32),
    "LRN 96x55": lambda: one("LRN", (1, 96, 55, 55), size=5),
    "LpNormalization": lambda: one("LpNormalization", (64, 512), axis=1),
    "QLinearConv 64>64 28 3x3": lambda: quantized("QLinearConv", (1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4),
    "QLinearConv 256>256 14 1x1": lambda: quantized("QLinearConv", (1, 256, 14, 14), (256, 256, 1, 1)),
    "QLinearConv 64 56 depthwise": lambda: quantized("QLinearConv", (1, 64, 56, 56), (64, 1, 3, 3), pads=[1] * 4, group=64),
    "QLinearMatMul 128x768x768": lambda: quantized("QLinearMatMul", (128, 768), (768, 768)),
    "QLinearMatMul 12 of 128x64x128": lambda: two_activations(12, 128, 64, 128),
    "QLinearMatMul 12 of 128x128x64": lambda: two_activations(12, 128, 128, 64),
    "MatMulInteger dynamic 128x768x768": lambda: integer("MatMulInteger", (1, 128, 768), (768, 768)),
    "MatMulInteger dynamic 1x512x512": lambda: integer("MatMulInteger", (1, 512), (512, 512)),
    "ConvInteger dynamic 64>64 28 3x3": lambda: integer("ConvInteger", (1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4),
    "Conv between Q and DQ 64>64 28": lambda: quantize_pairs((1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4),
    "QLinearAdd 256x56": lambda: on_bytes("QLinearAdd", (1, 256, 56, 56), (1, 256, 56, 56)),
    "QLinearAdd 64x14": lambda: on_bytes("QLinearAdd", (1, 64, 14, 14), (1, 64, 14, 14)),
    "QLinearMul 64x56 by channel": lambda: on_bytes("QLinearMul", (1, 64, 56, 56), (1, 64, 1, 1)),
    "QLinearSigmoid 64x56": lambda: on_bytes("QLinearSigmoid", (1, 64, 56, 56)),
    "QLinearLeakyRelu 64x56": lambda: on_bytes("QLinearLeakyRelu", (1, 64, 56, 56), alpha=0.1),
    "QLinearConcat 2 of 64x28": lambda: on_bytes("QLinearConcat", (1, 64, 28, 28), (1, 64, 28, 28), axis=1),
    "QLinearGlobalAveragePool 512x7": lambda: on_bytes("QLinearGlobalAveragePool", (1, 512, 7, 7)),
    "QGemm 1x512x1000": lambda: quantized_gemm(1, 512, 1000),
    "QGemm 64x768x768": lambda: quantized_gemm(64, 768, 768),
    "DynamicQuantizeLinear 128x768": lambda: one("DynamicQuantizeLinear", (128, 768), outputs=3),
    "QuantizeLinear 128x768": lambda: one("QuantizeLinear", (128, 768), constants=[np.float32(0.03), np.uint8(120)]),
    "TopK 10 of 1x1000": lambda: top_k((1, 1000), 10),
    "TopK 100 of 1x25200": lambda: top_k((1, 25200), 100),
    "TopK 5 of 100x1000": lambda: top_k((100, 1000), 5),
    "TopK 300 of 1x8400, axis 0": lambda: top_k((8400, 1), 300, axis=0),
    "ArgMax 40x6625": lambda: one("ArgMax", (1, 40, 6625), axis=2, keepdims=0),
    "ArgMax 21 classes of 128x128": lambda: one("ArgMax", (1, 21, 128, 128), axis=1),
    "GatherElements 8400x80": lambda: indexed("GatherElements", (8400, 80), rng.integers(0, 8400, (300, 80)), axis=0),
    "GatherND 300 rows": lambda: indexed("GatherND", (8400, 80), rng.integers(0, 8400, (300, 1))),
    "Gather rows of 30522x256": lambda: indexed("Gather", (30522, 256), rng.integers(0, 30522, (128,))),
    "ScatterND 100 rows": lambda: indexed("ScatterND", (1024, 64), rng.permutation(1024)[:100, None], (100, 64)),
    "ScatterElements 100x64": lambda: indexed("ScatterElements", (1024, 64), rng.integers(0, 1024, (100, 64)), (100, 64), axis=0),
    "CumSum 1x128x64": lambda: one("CumSum", (1, 128, 64), constants=[np.int64(1)]),
    "CumSum 1x16000": lambda: one("CumSum", (1, 16000), constants=[np.int64(1)]),
    "ReduceProd 64x512": lambda: one("ReduceProd", (64, 512), axes=[1]),
    "OneHot 1000 of 128": lambda: one("OneHot", (128,), constants=[np.int64(1000), np.array([0, 1], np.float32)]),
    "GridSample 32 64>64": lambda: grid_sample(32, 64, 64),
    "GridSample 3 224>224 nearest": lambda: grid_sample(3, 224, 224, mode="nearest"),
    "Resize cubic 64>128": lambda: resize("cubic", 64, 128),
    "Resize linear 64>128": lambda: resize("linear", 64, 128),
    "Resize linear corners 64>100": lambda: resize("linear", 64, 100, coordinate_transformation_mode="align_corners"),
    "Trilu 512": lambda: one("Trilu", (512, 512), upper=0),
    "MaxPool with indices": lambda: one("MaxPool", (1, 64, 56, 56), outputs=2, kernel_shape=[2, 2], strides=[2, 2]),
    "LpPool": lambda: one("LpPool", (1, 64, 56, 56), kernel_shape=[2, 2], strides=[2, 2]),
    "Einsum bhid,bhjd->bhij": lambda: one("Einsum", (1, 8, 128, 64), (1, 8, 128, 64), equation="bhid,bhjd->bhij"),
})


def measure(name, path, args):
    with open(path, "wb") as file:
        file.write(CASES[name]().bytes())
    feeds = cpu.make_feeds(path)
    sides = {"ONNX Runtime": cpu.Ort(path, feeds, args.threads), "plain": cpu.Ours(path, feeds, args.threads, plan="input")}
    if args.tuned:
        sides["tuned"] = cpu.Ours(path, feeds, args.threads, plan="input", tune=True, tuned_plans="")
    differences = cpu.differences_of(sides)
    rows = cpu.rows_of(cpu.interleave(sides, args.blocks, cpu.block_ms), differences)
    cells = [f"| {name} | {rows['ONNX Runtime']['median_ms']:.4f}"]
    for side in list(rows)[1:]:
        ratio = rows[side]["ratios"]["ONNX Runtime"]
        cells.append(f"{rows[side]['median_ms']:.4f} | {ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})")
    worst = max(differences.values())
    print(" | ".join(cells) + f" | {worst:.0e} |", flush=True)
    return not worst > cpu.TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=11)
    parser.add_argument("--only", default="", metavar="WORD,WORD", help="cases whose names begin with one of these")
    parser.add_argument("--tuned", action="store_true", help="also a session that measured its kernels")
    parser.add_argument("--keep", metavar="FOLDER", help="leaves the models there")
    args = parser.parse_args()
    titles = "".join(f" {side} ms | {side} / ONNX Runtime |" for side in ["plain"] + ["tuned"] * args.tuned)
    print(f"| case | ONNX Runtime {onnxruntime.__version__} ms |{titles} differs |\n|{'---|' * (5 + 2 * args.tuned)}", flush=True)
    load, fine = cpu.Load(), True
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(CASES):
            if not name.startswith(tuple(args.only.split(","))):
                continue
            try:
                fine &= measure(name, os.path.join(args.keep or folder, f"{number}.onnx"), args)
            except Exception as error:  # One case less; the others are still worth their time.
                print(f"| {name} | {type(error).__name__}: {str(error).strip()[:200]} |", flush=True)
                fine = False
    print("others used {others_cores:.2f} cores meanwhile".format(**load.found()))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
