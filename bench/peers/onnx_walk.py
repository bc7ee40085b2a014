"""Walks an ONNX graph with any array library: one table of operators for all of them.

A library is a namespace of functions (see TorchOps in onnx_to_torch.py, JaxOps in onnx_to_jax.py)
for what differs between libraries; all that is only bookkeeping (attributes, defaults, shapes that
are constants) is here, once. Sizes, axes and indices are known numbers when the walk is made; what
remains are array operations, so that tracing, capture and jit see the graph and nothing else.
"""
import onnx
import numpy as np
from onnx import numpy_helper
from onnx.helper import tensor_dtype_to_np_dtype  # onnx 1.14


class Unsupported(Exception):
    """The model has an operator, or a form of one, that the walk does not know."""


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def text(value, default):
    return value.decode() if isinstance(value, bytes) else (value or default)


def pool_or_conv_pads(node, a, rank):
    """Pads as ONNX has them: begins, then ends."""
    auto = text(a.get("auto_pad"), "NOTSET")
    if auto == "VALID" or (auto == "NOTSET" and "pads" not in a):
        return [0] * (2 * rank)
    if auto != "NOTSET":
        raise Unsupported(f"{node.op_type}: auto_pad {auto}")
    return list(a["pads"])


class Walk:
    """A model bound to a library: call it with a dict of inputs, get the list of outputs.

    Weights are made once, as arrays of `ops`. `half`: floating-point weights become 16-bit; the
    caller gives 16-bit inputs."""

    def __init__(self, path, ops, half=False):
        self.ops = ops
        model = onnx.load(path)
        self.opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        graph = model.graph
        self.known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.inputs = [i for i in graph.input if i.name not in self.known]
        self.outputs = [o.name for o in graph.output]
        self.half = half
        self.steps, self.weights = [], {}
        for node in graph.node:
            self.bind(node)
        self.release_after()

    def bind(self, node):
        if node.domain not in ("", "ai.onnx"):
            raise Unsupported(f"{node.domain}.{node.op_type}")
        if node.op_type == "Constant":
            a = attributes(node)
            if "value" not in a:
                raise Unsupported("Constant without a tensor")
            self.known[node.output[0]] = numpy_helper.to_array(a["value"])
            return
        make = TABLE.get(node.op_type)
        if make is None:
            raise Unsupported(f"no operator {node.op_type}")
        function, arrays = make(self, node, attributes(node))
        for name in arrays:
            if name in self.known and name not in self.weights:
                self.weights[name] = self.weight(self.known[name])
        self.steps.append((function, arrays, list(node.output)))

    def weight(self, array):
        if array.dtype == np.float32 and self.half:
            array = array.astype(np.float16)
        return self.ops.array(array)

    def number(self, node, index):
        """The known values of an input that must be known: sizes, axes, pads."""
        name = node.input[index] if index < len(node.input) else ""
        if not name:
            return None
        if name not in self.known:
            raise Unsupported(f"{node.op_type}: input {index} is not a constant")
        return self.known[name]

    def release_after(self):
        """Which values each step is the last to read: they are let go, as a runtime would."""
        last = {}
        for i, (_, arrays, _) in enumerate(self.steps):
            for name in arrays:
                last[name] = i
        self.dead = [[] for _ in self.steps]
        for name, i in last.items():
            if name not in self.outputs and name not in self.weights:
                self.dead[i].append(name)

    def __call__(self, feeds, weights=None):
        weights = self.weights if weights is None else weights
        values = dict(feeds)
        for (function, arrays, outputs), dead in zip(self.steps, self.dead):
            results = function(*[weights[n] if n in weights else values[n] for n in arrays])
            if len(outputs) == 1 and not isinstance(results, (list, tuple)):
                results = [results]
            values.update(zip(outputs, results))
            for name in dead:
                values.pop(name, None)
        return [values[n] if n in values else weights[n] for n in self.outputs]


TABLE = {}


def operator(*names):
    def add(make):
        for name in names:
            TABLE[name] = make
        return make
    return add


def given(node):
    """The names of the inputs that are there."""
    return [name for name in node.input if name]


@operator("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod", "Equal", "Greater", "Less", "And", "Or", "Where",
          "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Reciprocal", "Floor", "Ceil", "Not",
          "MatMul", "Identity", "HardSwish")
def plain(walk, node, a):
    if a:
        raise Unsupported(f"{node.op_type} with {', '.join(a)}")
    return getattr(walk.ops, node.op_type.lower()), given(node)


@operator("LeakyRelu", "HardSigmoid", "Gelu", "Elu")
def with_numbers(walk, node, a):
    defaults = {"LeakyRelu": {"alpha": 0.01}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5}, "Elu": {"alpha": 1.0},
                "Gelu": {"approximate": "none"}}
    numbers = {k: text(a.get(k, v), v) if isinstance(v, str) else a.get(k, v)
               for k, v in defaults[node.op_type].items()}
    function = getattr(walk.ops, node.op_type.lower())
    return lambda x: function(x, **numbers), given(node)


@operator("Clip")
def clip(walk, node, a):
    low, high = (a.get("min"), a.get("max")) if walk.opset < 11 else (walk.number(node, 1), walk.number(node, 2))
    low, high = (None if v is None else float(v) for v in (low, high))
    return lambda x: walk.ops.clip(x, low, high), [node.input[0]]


@operator("Cast")
def cast(walk, node, a):
    dtype = tensor_dtype_to_np_dtype(a["to"])
    if dtype == np.float32 and walk.half:
        dtype = np.dtype(np.float16)
    return lambda x: walk.ops.cast(x, dtype), given(node)


@operator("Conv")
def conv(walk, node, a):
    rank = len(a.get("kernel_shape", walk.known.get(node.input[1], np.zeros(4)).shape[2:]))
    pads = pool_or_conv_pads(node, a, rank)
    strides = list(a.get("strides", [1] * rank))
    dilations = list(a.get("dilations", [1] * rank))
    group = a.get("group", 1)
    return lambda x, w, b=None: walk.ops.conv(x, w, b, strides, pads, dilations, group), given(node)


@operator("MaxPool", "AveragePool")
def pool(walk, node, a):
    kernel = list(a["kernel_shape"])
    rank = len(kernel)
    pads = pool_or_conv_pads(node, a, rank)
    if a.get("storage_order", 0) or len(node.output) > 1:
        raise Unsupported(f"{node.op_type} with storage_order or indices")
    if any(d != 1 for d in a.get("dilations", [1])):
        raise Unsupported(f"{node.op_type} with dilations")
    strides = list(a.get("strides", [1] * rank))
    whole = bool(a.get("count_include_pad", 0))
    ceil = bool(a.get("ceil_mode", 0))

    def run(x):
        full = ceil_pads(x.shape[2:], kernel, strides, pads) if ceil else pads
        if node.op_type == "MaxPool":
            return walk.ops.max_pool(x, kernel, strides, full)
        if whole and full != pads:
            raise Unsupported("AveragePool with ceil_mode, counting pads")
        return walk.ops.average_pool(x, kernel, strides, full, whole)
    return run, given(node)


def ceil_pads(sizes, kernel, strides, pads):
    """The pads with which rounding down gives as many windows as rounding up does without: a last
    window that begins inside of the input counts."""
    rank = len(kernel)
    full = list(pads)
    for i, (size, window, stride) in enumerate(zip(sizes, kernel, strides)):
        padded = size + pads[i] + pads[i + rank]
        last = -(-(padded - window) // stride) * stride
        if last >= size + pads[i]:
            last -= stride
        full[i + rank] += max(0, last + window - padded)
    return full


@operator("GlobalAveragePool")
def global_average_pool(walk, node, a):
    return lambda x: walk.ops.reduce_mean(x, tuple(range(2, x.ndim)), True), given(node)


@operator("ReduceMean", "ReduceSum", "ReduceMax")
def reduce(walk, node, a):
    axes = a.get("axes")
    if axes is None and len(node.input) > 1:
        axes = [int(v) for v in walk.number(node, 1)]
    if axes is None and a.get("noop_with_empty_axes", 0):
        raise Unsupported(f"{node.op_type} with noop_with_empty_axes")
    function = getattr(walk.ops, {"ReduceMean": "reduce_mean", "ReduceSum": "reduce_sum", "ReduceMax": "reduce_max"}
                       [node.op_type])
    keep = bool(a.get("keepdims", 1))
    return lambda x: function(x, tuple(range(x.ndim)) if axes is None else tuple(axes), keep), [node.input[0]]


@operator("Softmax")
def softmax(walk, node, a):
    if walk.opset < 13:
        raise Unsupported("Softmax before opset 13")
    return lambda x: walk.ops.softmax(x, a.get("axis", -1)), given(node)


@operator("BatchNormalization")
def batch_normalization(walk, node, a):
    if a.get("training_mode", 0):
        raise Unsupported("BatchNormalization in training mode")
    epsilon = a.get("epsilon", 1e-5)
    return lambda x, scale, bias, mean, var: walk.ops.batch_norm(x, scale, bias, mean, var, epsilon), given(node)


@operator("LayerNormalization")
def layer_normalization(walk, node, a):
    axis, epsilon = a.get("axis", -1), a.get("epsilon", 1e-5)
    return lambda x, scale, bias=None: walk.ops.layer_norm(x, scale, bias, axis, epsilon), given(node)


@operator("Gemm")
def gemm(walk, node, a):
    alpha, beta = a.get("alpha", 1.0), a.get("beta", 1.0)

    def run(x, w, c=None):
        x = walk.ops.transpose(x, (1, 0)) if a.get("transA", 0) else x
        w = walk.ops.transpose(w, (1, 0)) if a.get("transB", 0) else w
        y = walk.ops.matmul(x, w)
        y = walk.ops.mul(y, alpha) if alpha != 1 else y
        if c is None:
            return y
        return walk.ops.add(y, walk.ops.mul(c, beta) if beta != 1 else c)
    return run, given(node)


@operator("Concat")
def concat(walk, node, a):
    return lambda *xs: walk.ops.concat(xs, a["axis"]), given(node)


@operator("Split")
def split(walk, node, a):
    axis = a.get("axis", 0)
    sizes = a.get("split") if "split" in a else walk.number(node, 1)
    count = len(node.output)

    def run(x):
        if sizes is not None:
            return walk.ops.split(x, [int(s) for s in sizes], axis)
        size = -(-x.shape[axis] // count)
        left = [size] * (count - 1)
        return walk.ops.split(x, left + [x.shape[axis] - sum(left)], axis)
    return run, [node.input[0]]


@operator("Slice")
def slice_(walk, node, a):
    if walk.opset < 10:
        raise Unsupported("Slice before opset 10")
    starts, ends, axes, steps = (walk.number(node, i) for i in (1, 2, 3, 4))
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if any(int(s) < 1 for s in steps):
        raise Unsupported("Slice with a negative step")

    def run(x):
        cut = [slice(None)] * x.ndim
        for start, end, axis, step in zip(starts, ends, axes, steps):
            size = x.shape[int(axis)]
            cut[int(axis)] = slice(*slice(int(start), int(max(min(end, size), -size - 1)), int(step)).indices(size))
        return x[tuple(cut)]
    return run, [node.input[0]]


@operator("Transpose")
def transpose(walk, node, a):
    return lambda x: walk.ops.transpose(x, tuple(a.get("perm", range(x.ndim)[::-1]))), given(node)


@operator("Reshape")
def reshape(walk, node, a):
    target = [int(v) for v in walk.number(node, 1)]
    if a.get("allowzero", 0):
        raise Unsupported("Reshape with allowzero")
    return lambda x: walk.ops.reshape(x, [x.shape[i] if v == 0 else v for i, v in enumerate(target)]), [node.input[0]]


@operator("Flatten")
def flatten(walk, node, a):
    axis = a.get("axis", 1)
    return lambda x: walk.ops.reshape(x, [int(np.prod(x.shape[:axis], dtype=np.int64)), -1]), given(node)


@operator("Squeeze", "Unsqueeze")
def squeeze(walk, node, a):
    axes = a.get("axes") if "axes" in a else walk.number(node, 1)
    adds = node.op_type == "Unsqueeze"

    def run(x):
        if adds:
            rank = x.ndim + len(axes)
            wanted = {int(v) % rank for v in axes}
            sizes = iter(x.shape)
            return walk.ops.reshape(x, [1 if i in wanted else next(sizes) for i in range(rank)])
        gone = {i for i, s in enumerate(x.shape) if s == 1} if axes is None else {int(v) % x.ndim for v in axes}
        return walk.ops.reshape(x, [s for i, s in enumerate(x.shape) if i not in gone])
    return run, [node.input[0]]


@operator("Expand")
def expand(walk, node, a):
    target = [int(v) for v in walk.number(node, 1)]
    return lambda x: walk.ops.expand(x, list(np.broadcast_shapes(tuple(x.shape), tuple(target)))), [node.input[0]]


@operator("Pad")
def pad(walk, node, a):
    mode = text(a.get("mode"), "constant")
    if mode != "constant" or len(node.input) > 3 and node.input[3]:
        raise Unsupported(f"Pad with mode {mode} or axes")
    pads = [int(v) for v in (a["pads"] if walk.opset < 11 else walk.number(node, 1))]
    value = a.get("value", 0.0) if walk.opset < 11 else walk.number(node, 2)
    return lambda x: walk.ops.pad(x, pads, 0.0 if value is None else float(value)), [node.input[0]]


@operator("Gather")
def gather(walk, node, a):
    return lambda x, indices: walk.ops.gather(x, indices, a.get("axis", 0)), given(node)
