"""Random well-typed ONNX models: small sizes, several types and opsets, shared values, weights, shape computations.

Each step draws an operator of STEPS, operands among the values that are there (or new inputs and weights), and attributes. Types and
sizes of results come from ONNX's own shape inference, so a model is valid where ONNX says so. Deterministic in the seed.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper, shape_inference

Array = np.ndarray[Any, Any]
FLOATS = (np.float32, np.float64, np.float16)
INTS = (np.int64, np.int32, np.uint8, np.int8)
NUMBERS = FLOATS + INTS
ALL = NUMBERS + (np.bool_,)
SIZES = (1, 1, 2, 3, 4, 5, 8)
OPSETS = (11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
IR_OF = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
ELEMENTS_MAX = 4096


class Skip(Exception):
    """The step does not fit here."""


@dataclass(frozen=True)
class Value:
    name: str
    dtype: type
    shape: tuple[int, ...]


Result = tuple[str, list[Value | None], dict[str, Any]]


class Maker:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice(OPSETS))
        self.main = self.random.choice([0, 0, 0, 0, 1, 2])  # The type that most new values have.
        self.values: list[Value] = []
        self.inputs: list[Value] = []
        self.weights: list[onnx.TensorProto] = []
        self.constants: dict[str, Array] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.read: set[str] = set()

    # Draws.
    def below(self, n: int) -> int:
        return int(self.random.integers(n))

    def one(self, choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def dtype(self, dtypes: tuple[type, ...]) -> type:
        main = FLOATS[self.main]
        return main if main in dtypes and self.chance(85) else self.one(dtypes)

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.one(SIZES) for _ in range(low + self.below(high - low + 1)))

    def data(self, dtype: type, shape: tuple[int, ...], low: int = -5, high: int = 6) -> Array:
        if np.issubdtype(dtype, np.floating):
            return np.asarray(self.random.standard_normal(shape)).astype(dtype)
        if dtype is np.bool_:
            return np.asarray(self.random.integers(0, 2, shape)).astype(np.bool_)
        return np.asarray(self.random.integers(max(low, 0) if dtype is np.uint8 else low, high, shape)).astype(dtype)

    # Operands.
    def weight(self, array: Array) -> Value:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        self.constants[name] = array
        return Value(name, array.dtype.type, array.shape)

    def ints(self, values: list[int]) -> Value:
        return self.weight(np.asarray(values, np.int64))

    def new(self, dtype: type, shape: tuple[int, ...]) -> Value:
        if self.chance(30):
            return self.weight(self.data(dtype, shape))
        value = Value(f"x{len(self.inputs)}", dtype, shape)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def fitting(self, fits: Callable[[Value], bool]) -> Value | None:
        found = [v for v in self.values if fits(v)]
        return self.one(found[-8:] if self.chance(70) else found) if found else None

    def any(self, dtypes: tuple[type, ...] = NUMBERS, low: int = 0, high: int = 5) -> Value:
        found = self.fitting(lambda v: v.dtype in dtypes and low <= len(v.shape) <= high)
        if found is not None and self.chance(90):
            return found
        return self.new(self.dtype(dtypes), self.shape(low, min(high, 4)))

    def of(self, dtype: type, shape: tuple[int, ...]) -> Value:
        found = self.fitting(lambda v: v.dtype is dtype and v.shape == shape)
        return found if found is not None and self.chance(75) else self.new(dtype, shape)

    def beside(self, value: Value) -> Value:
        """Returns an operand of the same type that broadcasts with `value`."""
        def fits(v: Value) -> bool:
            pairs = zip(reversed(v.shape), reversed(value.shape))
            return v.dtype is value.dtype and all(a == b or 1 in (a, b) for a, b in pairs)

        found = self.fitting(fits)
        if found is not None and self.chance(60):
            return found
        shape = tuple(1 if self.chance(25) else d for d in value.shape[self.below(len(value.shape) + 1) if self.chance(30) else 0:])
        return self.new(value.dtype, shape)

    # The model.
    def add(self, op: str, operands: list[Value | None], attributes: dict[str, Any]) -> list[Value]:
        try:
            schema = defs.get_schema(op, self.opset)
        except defs.SchemaError:
            raise Skip from None
        given = [v for v in operands if v is not None]
        count = attributes.pop("outputs", 1)
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        node = helper.make_node(op, [v.name if v else "" for v in operands], names, name=f"n{len(self.nodes)}", **attributes)
        types = {v.name: helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape) for v in given}
        data = {v.name: numpy_helper.from_array(self.constants[v.name], v.name) for v in given if v.name in self.constants}
        try:
            inferred = shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=[helper.make_opsetid("", self.opset)])
        except Exception:
            raise Skip from None
        made = []
        for name in names:
            tensor = inferred[name].tensor_type if name in inferred else None
            if tensor is None or not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
                raise Skip
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).type
            made.append(Value(name, dtype, tuple(d.dim_value for d in tensor.shape.dim)))
        if any(v.dtype not in ALL or np.prod(v.shape) > ELEMENTS_MAX or min(v.shape, default=1) < 1 for v in made):
            raise Skip
        self.nodes.append(node)
        self.values += made
        self.read |= {v.name for v in given}
        return made

    def step(self) -> None:
        marks = len(self.values), len(self.inputs), len(self.weights)
        try:
            op, operands, attributes = self.one(STEPS)(self)
            self.add(op, operands, attributes)
        except Skip:
            del self.values[marks[0]:], self.inputs[marks[1]:]
            for tensor in self.weights[marks[2]:]:
                del self.constants[tensor.name]
            del self.weights[marks[2]:]

    def model(self) -> onnx.ModelProto:
        outputs = [v for v in self.values if v.name not in self.read and v.name.startswith("v")]
        outputs += [v for v in self.values if v.name in self.read and v.name.startswith("v") and self.chance(5)]

        def info(v: Value) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape)

        used = [v for v in self.inputs if v.name in self.read]
        graph = helper.make_graph(self.nodes, "random", [info(v) for v in used], [info(v) for v in outputs],
                                  [w for w in self.weights if w.name in self.read])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=IR_OF[self.opset])


# Attributes and operands of the operators. Each returns one node.
def unary(op: str, dtypes: tuple[type, ...] = FLOATS, **choices: Any) -> Callable[[Maker], Result]:
    return lambda m: (op, [m.any(dtypes)], {k: m.one(v) for k, v in choices.items() if m.chance(70)})


def rough(m: Maker, v: Value) -> Value:
    """Returns the value with random weights added: a step function of 0.9999999 or of a tie would say nothing."""
    if v.dtype not in FLOATS:
        return v
    return m.add("Add", [v, m.weight(m.data(v.dtype, v.shape))], {})[0]


def stepped(op: str, **attributes: float) -> Callable[[Maker], Result]:
    return lambda m: (op, [rough(m, m.any(FLOATS))], dict(attributes))


def binary(op: str, dtypes: tuple[type, ...] = NUMBERS) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        a = m.any(dtypes)
        pair: list[Value | None] = [a, m.beside(a)]
        return op, pair[::-1] if m.chance(50) else pair, {}
    return make


def divide(m: Maker) -> Result:
    a = m.any(FLOATS + (np.int32, np.int64))
    shape = a.shape[m.below(len(a.shape) + 1):]
    by = np.abs(m.data(a.dtype, shape, 1, 6)) + (np.asarray(0.5, a.dtype) if a.dtype in FLOATS else np.asarray(0, a.dtype))
    return "Div", [a, m.weight(by.astype(a.dtype))], {}


def variadic(op: str) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        a = m.any(FLOATS)
        return op, [a, *(m.beside(a) for _ in range(m.below(3)))], {}
    return make


def axes_of(m: Maker, v: Value) -> list[int]:
    if not v.shape:
        raise Skip
    count = 1 + m.below(len(v.shape))
    axes = [int(a) for a in m.random.permutation(len(v.shape))[:count]]
    return sorted(a - len(v.shape) if m.chance(20) else a for a in axes)


def reduce(op: str) -> Callable[[Maker], Result]:
    as_input = 13 if op == "ReduceSum" else 18

    def make(m: Maker) -> Result:
        a = m.any(FLOATS + ((np.int32, np.int64) if op in ("ReduceSum", "ReduceMax", "ReduceMin") else ()), 1)
        axes = axes_of(m, a)
        attributes: dict[str, Any] = {"keepdims": m.below(2)}
        if m.opset >= as_input:
            return op, [a, m.ints(axes)], attributes
        return op, [a], attributes | {"axes": axes}
    return make


def along(op: str, dtypes: tuple[type, ...] = FLOATS) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        a = m.any(dtypes, 1)
        if op == "Hardmax":
            a = rough(m, a)
        return op, [a], {"axis": m.below(2 * len(a.shape)) - len(a.shape)}
    return make


def matmul(m: Maker) -> Result:
    a = m.any((np.float32, np.float64), 2)
    batch = a.shape[:-2] if m.chance(50) else ()
    return "MatMul", [a, m.of(a.dtype, (*batch, a.shape[-1], m.one(SIZES)))], {}


def gemm(m: Maker) -> Result:
    a = m.any((np.float32, np.float64), 2, 2)
    ta, tb, n = m.below(2), m.below(2), m.one(SIZES)
    rows, k = a.shape[::-1] if ta else a.shape
    b = m.of(a.dtype, (n, k) if tb else (k, n))
    c = m.of(a.dtype, m.one([(n,), (1, n), (rows, n), (rows, 1), ()])) if m.chance(60) else None
    scales = {k: float(m.one((0.5, 2.0, 1.0))) for k in ("alpha", "beta") if m.chance(30)}
    return "Gemm", [a, b, c] if c else [a, b], {"transA": ta, "transB": tb, **scales}


def window(m: Maker, spatial: int) -> dict[str, Any]:
    kernel = [m.one((1, 2, 3, 3)) for _ in range(spatial)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": [m.one((1, 1, 2)) for _ in range(spatial)]}
    if m.chance(20):
        attributes["auto_pad"] = m.one(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif m.chance(60):
        attributes["pads"] = [m.below(k) for k in kernel] + [m.below(k) for k in kernel]
    return attributes


def images(m: Maker, low: int = 3, high: int = 5) -> Value:
    found = m.fitting(lambda v: v.dtype is np.float32 and low <= len(v.shape) <= high and all(d >= 3 for d in v.shape[2:]))
    if found is not None and m.chance(70):
        return found
    rank = low + m.below(high - low + 1)
    return m.new(np.float32, (m.one((1, 2)), m.one((2, 3, 4, 8)), *(m.one((4, 5, 8)) for _ in range(rank - 2))))


def conv(m: Maker) -> Result:
    x = images(m)
    groups = m.one([g for g in (1, 1, 2, x.shape[1]) if x.shape[1] % g == 0])
    out = groups * m.one((1, 2, 3))
    attributes = window(m, len(x.shape) - 2)
    if m.chance(20) and "auto_pad" not in attributes:
        attributes["dilations"] = [m.one((1, 2)) for _ in x.shape[2:]]
    w = m.weight(m.data(np.float32, (out, x.shape[1] // groups, *attributes["kernel_shape"])))
    bias = [m.weight(m.data(np.float32, (out,)))] if m.chance(50) else []
    return "Conv", [x, w, *bias], attributes | {"group": groups}


def conv_transpose(m: Maker) -> Result:
    x = images(m, 3, 4)
    attributes = window(m, len(x.shape) - 2)
    attributes.pop("auto_pad", None)
    w = m.weight(m.data(np.float32, (x.shape[1], m.one((1, 2, 3)), *attributes["kernel_shape"])))
    return "ConvTranspose", [x, w], attributes


def pool(op: str) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        x = images(m)
        attributes = window(m, len(x.shape) - 2)
        if m.chance(20) and "auto_pad" not in attributes:
            attributes["ceil_mode"] = 1
        if op == "AveragePool" and m.chance(40):
            attributes["count_include_pad"] = 1
        return op, [x], attributes
    return make


def batch_norm(m: Maker) -> Result:
    x = images(m, 3, 4)
    c = (x.shape[1],)
    scale, bias, mean = (m.weight(m.data(np.float32, c)) for _ in range(3))
    return "BatchNormalization", [x, scale, bias, mean, m.weight(np.abs(m.data(np.float32, c)) + np.float32(0.5))], {}


def instance_norm(m: Maker) -> Result:
    x = images(m, 3, 4)
    c = (x.shape[1],)
    return "InstanceNormalization", [x, m.weight(m.data(np.float32, c)), m.weight(m.data(np.float32, c))], {}


def layer_norm(m: Maker) -> Result:
    x = m.any((np.float32,), 1)
    axis = m.below(len(x.shape))
    return "LayerNormalization", [x, m.of(np.float32, x.shape[axis:]), m.of(np.float32, x.shape[axis:])], {"axis": axis}


def prelu(m: Maker) -> Result:
    x = m.any((np.float32,), 1)
    return "PRelu", [x, m.weight(m.data(np.float32, (x.shape[-1],)))], {}


def reshape(m: Maker) -> Result:
    a = m.any(ALL, 1)
    sizes = list(a.shape)
    if m.chance(50) and len(sizes) > 1:
        at = m.below(len(sizes) - 1)
        sizes[at:at + 2] = [sizes[at] * sizes[at + 1]]
    else:
        at = m.below(len(sizes))
        parts = [d for d in range(1, sizes[at] + 1) if sizes[at] % d == 0]
        part = m.one(parts)
        sizes[at:at + 1] = [part, sizes[at] // part]
    if len(sizes) > 5:
        raise Skip
    if m.chance(40):
        sizes[m.below(len(sizes))] = -1
    return "Reshape", [a, m.ints(sizes)], {}


def transpose(m: Maker) -> Result:
    a = m.any(ALL, 2)
    return "Transpose", [a], {"perm": [int(p) for p in m.random.permutation(len(a.shape))]}


def concat(m: Maker) -> Result:
    a = m.any(ALL, 1)
    axis = m.below(len(a.shape))
    parts: list[Value | None] = [a]
    for _ in range(1 + m.below(3)):
        parts.append(m.of(a.dtype, (*a.shape[:axis], m.one((a.shape[axis], 1, 2)), *a.shape[axis + 1:])))
    return "Concat", parts, {"axis": axis}


def split(m: Maker) -> Result:
    a = m.any(ALL, 1)
    axis = m.below(len(a.shape))
    size = a.shape[axis]
    if size < 2:
        raise Skip
    first = 1 + m.below(size - 1)
    parts = [first, size - first]
    if m.opset < 13:
        return "Split", [a], {"axis": axis, "split": parts, "outputs": 2}
    return "Split", [a, m.ints(parts)], {"axis": axis, "outputs": 2}


def slice_(m: Maker) -> Result:
    a = m.any(ALL, 1)
    axis = m.below(len(a.shape))
    size = a.shape[axis]
    start = m.below(size)
    step = m.one((1, 1, 2, -1))
    end = -size - 1 if step < 0 else start + 1 + m.below(size - start)
    return "Slice", [a, m.ints([start]), m.ints([end]), m.ints([axis]), m.ints([step])], {}


def squeeze(m: Maker) -> Result:
    a = m.any(ALL, 1)
    axes = [i for i, d in enumerate(a.shape) if d == 1]
    if not axes:
        raise Skip
    axes = axes[:1 + m.below(len(axes))]
    return ("Squeeze", [a, m.ints(axes)], {}) if m.opset >= 13 else ("Squeeze", [a], {"axes": axes})


def unsqueeze(m: Maker) -> Result:
    a = m.any(ALL, 0, 4)
    axes = [m.below(len(a.shape) + 1)]
    return ("Unsqueeze", [a, m.ints(axes)], {}) if m.opset >= 13 else ("Unsqueeze", [a], {"axes": axes})


def expand(m: Maker) -> Result:
    a = m.any(ALL)
    sizes = [m.one(SIZES) if d == 1 else m.one((d, 1)) for d in a.shape]
    return "Expand", [a, m.ints([m.one((1, 2)), *sizes] if m.chance(30) else sizes or [2])], {}


def tile(m: Maker) -> Result:
    a = m.any(FLOATS + (np.int64, np.int32), 1)
    return "Tile", [a, m.ints([m.one((1, 1, 2)) for _ in a.shape])], {}


def pad(m: Maker) -> Result:
    a = m.any(FLOATS + (np.int64, np.int32), 1)
    mode = m.one(("constant", "constant", "reflect", "edge"))
    pads = [m.below(3) for _ in range(2 * len(a.shape))]
    if mode == "reflect":
        pads = [min(p, a.shape[i % len(a.shape)] - 1) for i, p in enumerate(pads)]
    fill = [m.weight(np.asarray(m.one((0, 1, 2)), a.dtype))] if mode == "constant" and m.chance(50) else []
    return "Pad", [a, m.ints(pads), *fill], {"mode": mode}


def gather(m: Maker) -> Result:
    a = m.any(ALL, 1)
    axis = m.below(len(a.shape))
    return "Gather", [a, m.weight(m.data(m.one((np.int64, np.int32)), m.shape(0, 2), -a.shape[axis], a.shape[axis]))], {"axis": axis}


def gather_elements(m: Maker) -> Result:
    a = m.any(NUMBERS, 1)
    axis = m.below(len(a.shape))
    return "GatherElements", [a, m.weight(m.data(np.int64, a.shape, -a.shape[axis], a.shape[axis]))], {"axis": axis}


def scatter_nd(m: Maker) -> Result:
    a = m.any(FLOATS, 1)
    rows = sorted({m.below(a.shape[0]) for _ in range(2)})
    return "ScatterND", [a, m.weight(np.asarray(rows, np.int64)[:, None]), m.of(a.dtype, (len(rows), *a.shape[1:]))], {}


def where(m: Maker) -> Result:
    a = m.any(NUMBERS)
    return "Where", [m.of(np.bool_, a.shape), a, m.beside(a)], {}


def clip(m: Maker) -> Result:
    a = m.any(FLOATS)
    low, high = (m.weight(np.asarray(v, a.dtype)) for v in (m.one((-1.0, 0.0)), m.one((1.0, 6.0))))
    return "Clip", [a, low, high], {}


def cast(m: Maker) -> Result:
    a = m.any(ALL)
    to = m.one((np.float32, np.float32, np.float64, np.int64, np.int32, np.bool_, np.float16))
    return "Cast", [a if to in FLOATS else rough(m, a)], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}


def compare(op: str) -> Callable[[Maker], Result]:
    """Compares with weights: two results that are nearly equal would say nothing."""
    def make(m: Maker) -> Result:
        a = m.any((np.float32, np.float64, np.int64, np.int32))
        return op, [a, m.weight(m.data(a.dtype, a.shape[m.below(len(a.shape) + 1):]))], {}
    return make


def safe(op: str) -> Callable[[Maker], Result]:
    """Roots and logarithms read |x| + 1."""
    def make(m: Maker) -> Result:
        a = m.any(FLOATS)
        positive = m.add("Abs", [a], {})[0]
        shifted = m.add("Add", [positive, m.weight(np.ones((), a.dtype))], {})[0]
        return op, [shifted], {}
    return make


def grow(op: str) -> Callable[[Maker], Result]:
    """Exponentials and products of many read a value between -1 and 1."""
    def make(m: Maker) -> Result:
        return op, [m.add("Tanh", [m.any(FLOATS)], {})[0]], {}
    return make


def power(m: Maker) -> Result:
    a = m.add("Abs", [m.any((np.float32, np.float64))], {})[0]
    return "Pow", [a, m.weight(np.asarray(m.one((2.0, 3.0, 0.5, 1.0)), a.dtype))], {}


def shape_of(m: Maker) -> Result:
    """Reshape by sizes that the model computes."""
    a = m.any(ALL, 1)
    shape = m.add("Shape", [a], {})[0]
    start = m.below(len(a.shape))
    part = m.add("Slice", [shape, m.ints([start]), m.ints([len(a.shape)])], {})[0]
    target = m.add("Concat", [m.ints([-1]), part], {"axis": 0})[0]
    flat = int(np.prod(a.shape[:start])) if start else 1
    name = f"v{len(m.nodes)}_0"
    m.nodes.append(helper.make_node("Reshape", [a.name, target.name], [name], name=f"n{len(m.nodes)}"))
    m.values.append(Value(name, a.dtype, (flat, *a.shape[start:])))
    m.read |= {a.name, target.name}
    return "Identity", [m.values[-1]], {}


def constant_of_shape(m: Maker) -> Result:
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [float(m.one((0, 1, 2.5)))])
    return "ConstantOfShape", [m.ints(list(m.shape(1, 3)))], {"value": value}


def top_k(m: Maker) -> Result:
    a = m.any((np.float32, np.float64, np.int64), 1)
    axis = m.below(len(a.shape))
    return "TopK", [rough(m, a), m.ints([1 + m.below(a.shape[axis])])], {"axis": axis, "largest": m.below(2), "outputs": 2}


def one_hot(m: Maker) -> Result:
    return "OneHot", [m.weight(m.data(np.int64, m.shape(1, 2), 0, 4)), m.ints([4]), m.weight(np.asarray([0, 1], np.float32))], {}


def cum_sum(m: Maker) -> Result:
    a = m.any((np.float32, np.float64, np.int64), 1)
    return "CumSum", [a, m.weight(np.asarray(m.below(len(a.shape)), np.int64))], {"exclusive": m.below(2), "reverse": m.below(2)}


def einsum(m: Maker) -> Result:
    a = m.any((np.float32,), 2, 2)
    return "Einsum", [a, m.of(np.float32, (a.shape[1], m.one(SIZES)))], {"equation": m.one(("ij,jk->ik", "ij,jk->ki", "ij,jk->i"))}


def recurrent(op: str, gates: int) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        x = m.any((np.float32,), 3, 3)
        hidden, ways = m.one((2, 3)), m.one((1, 2))
        w, r = (m.weight(m.data(np.float32, (ways, gates * hidden, k)) * np.float32(0.3)) for k in (x.shape[2], hidden))
        b = m.weight(m.data(np.float32, (ways, 2 * gates * hidden)) * np.float32(0.3))
        return op, [x, w, r, b], {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else m.one(("forward", "reverse")), "outputs": 2}
    return make


def quantized(m: Maker) -> Result:
    """Quantizes and dequantizes a value."""
    x = rough(m, m.any((np.float32,)))
    scale, zero = m.weight(np.asarray(0.05, np.float32)), m.weight(np.asarray(m.one((0, 100, 128)), np.uint8))
    return "DequantizeLinear", [m.add("QuantizeLinear", [x, scale, zero], {})[0], scale, zero], {}


def resize(m: Maker) -> Result:
    x = images(m, 4, 4)
    scales = m.weight(np.asarray([1, 1, m.one((2, 1.5, 0.5)), 2], np.float32))
    empty = m.weight(np.zeros(0, np.float32))
    return "Resize", [x, empty if m.opset < 13 else None, scales], {
        "mode": m.one(("nearest", "linear")), "coordinate_transformation_mode": m.one(("asymmetric", "half_pixel", "align_corners"))}


def arg(op: str) -> Callable[[Maker], Result]:
    def make(m: Maker) -> Result:
        a = m.any((np.float32, np.int32), 1)
        return op, [rough(m, a)], {"axis": m.below(len(a.shape)), "keepdims": m.below(2)}
    return make


def space(m: Maker) -> Result:
    b = 2
    if m.chance(50):
        return "SpaceToDepth", [m.of(np.float32, (1, m.one((1, 3)), 4, 2))], {"blocksize": b}
    return "DepthToSpace", [m.of(np.float32, (1, 4 * m.one((1, 2)), 2, 3))], {"blocksize": b, "mode": m.one(("DCR", "CRD"))}


def lrn(m: Maker) -> Result:
    return "LRN", [images(m, 4, 4)], {"size": m.one((1, 3))}


STEPS: list[Callable[[Maker], Result]] = [
    *(binary(op) for op in ("Add", "Add", "Sub", "Mul", "Mul")), divide, divide,
    *(binary(op, FLOATS) for op in ("Max", "Min")), *(variadic(op) for op in ("Sum", "Mean", "Max", "Min")),
    *(unary(op, FLOATS + (np.int64, np.int32)) for op in ("Neg", "Abs")), *(stepped(op) for op in ("Sign", "Floor", "Ceil", "Round")),
    *(unary(op) for op in ("Relu", "Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "Erf", "HardSwish", "Mish")),
    unary("LeakyRelu", alpha=(0.1, 0.3)), unary("Elu", alpha=(0.5, 1.0)), unary("Selu"), unary("HardSigmoid", alpha=(0.2, 0.3), beta=(0.5, 0.4)),
    stepped("ThresholdedRelu", alpha=0.5), unary("Celu", (np.float32,), alpha=(0.5, 1.0)), stepped("Shrink", lambd=0.3, bias=0.2),
    unary("Gelu", (np.float32,), approximate=("none", "tanh")), *(unary(op, (np.float32,)) for op in ("Sin", "Cos", "Atan", "Asinh")),
    unary("Identity", ALL), unary("Not", (np.bool_,)),
    *(safe(op) for op in ("Sqrt", "Log", "Reciprocal")), *(grow(op) for op in ("Exp", "Sinh", "Cosh")), power,
    *(compare(op) for op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")), binary("Equal", INTS[:2]), *(binary(op, (np.bool_,)) for op in ("And", "Or", "Xor")),
    *(reduce(f"Reduce{op}") for op in ("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare", "Prod", "LogSumExp")),
    *(along(op) for op in ("Softmax", "LogSoftmax", "Hardmax")), along("Flatten", ALL), matmul, matmul, matmul, gemm, gemm, conv, conv, conv, conv_transpose,
    pool("MaxPool"), pool("AveragePool"), *(lambda m, op=op: (op, [images(m)], {}) for op in ("GlobalAveragePool", "GlobalMaxPool")),
    batch_norm, batch_norm, instance_norm, layer_norm, prelu, reshape, reshape, transpose, transpose, concat, concat, split, slice_, squeeze, unsqueeze,
    expand, tile, pad, gather, gather_elements, scatter_nd, where, clip, cast, shape_of, constant_of_shape, top_k, one_hot, cum_sum, einsum,
    recurrent("LSTM", 4), recurrent("GRU", 3), recurrent("RNN", 1), quantized, resize, arg("ArgMax"), arg("ArgMin"), space, lrn,
]


def random_model(seed: int) -> onnx.ModelProto:
    """Returns a model of 1 to 24 steps."""
    maker = Maker(seed)
    for _ in range(3 + maker.below(22)):
        maker.step()
    while not maker.nodes:
        maker.step()
    return maker.model()


def random_inputs(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    maker = Maker(seed ^ 0x5EED)
    made = {}
    for info in model.graph.input:
        tensor = info.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).type
        made[info.name] = maker.data(dtype, tuple(d.dim_value for d in tensor.shape.dim))
    return made
