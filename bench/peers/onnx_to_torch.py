"""An ONNX model as a torch module with the same weights: onnx_walk.py's table, in torch's words."""
import operator

import torch
import torch.fx
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from onnx_walk import Walk


def _pads(pads):
    """ONNX's begins-then-ends as F.pad's last-axis-first pairs."""
    rank = len(pads) // 2
    return [pads[i + rank * side] for i in reversed(range(rank)) for side in (0, 1)]


def _is_even(pads):
    rank = len(pads) // 2
    return pads[:rank] == pads[rank:]


# What torch has under another name, or as it is.
WORDS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "min": torch.minimum, "max": torch.maximum, "mod": torch.remainder, "matmul": torch.matmul,
    "equal": torch.eq, "greater": torch.gt, "less": torch.lt, "where": torch.where,
    "and": torch.logical_and, "or": torch.logical_or, "not": torch.logical_not,
    "relu": F.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "erf": torch.erf, "exp": torch.exp,
    "log": torch.log, "sqrt": torch.sqrt, "neg": torch.neg, "abs": torch.abs,
    "reciprocal": torch.reciprocal, "floor": torch.floor, "ceil": torch.ceil,
    "hardswish": F.hardswish, "leakyrelu": lambda x, alpha: F.leaky_relu(x, alpha), "elu": lambda x, alpha: F.elu(x, alpha), "clip": torch.clamp,
    "softmax": torch.softmax, "reduce_mean": torch.mean, "reduce_sum": torch.sum,
    "reduce_max": torch.amax, "reshape": torch.reshape, "transpose": torch.permute,
    "expand": torch.broadcast_to, "concat": torch.cat, "split": torch.split,
}


class TorchOps:
    """`device` holds the weights; `channels_last` lays out those of two-dimensional convolutions so."""

    def __init__(self, device="cpu", channels_last=False):
        self.device, self.channels_last = device, channels_last
        self.__dict__.update(WORDS)

    def array(self, values):
        tensor = torch.from_numpy(values.copy()).to(self.device)
        if self.channels_last and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor

    @staticmethod
    def identity(x):
        return x

    @staticmethod
    def hardsigmoid(x, alpha, beta):
        return torch.clamp(alpha * x + beta, 0, 1)

    @staticmethod
    def gelu(x, approximate):
        return F.gelu(x, approximate=approximate)

    @staticmethod
    def cast(x, dtype):
        return x.to(getattr(torch, dtype.name))

    @staticmethod
    def conv(x, w, b, strides, pads, dilations, group):
        rank = len(strides)
        if not _is_even(pads):
            x, pads = F.pad(x, _pads(pads)), [0] * (2 * rank)
        return getattr(F, f"conv{rank}d")(x, w, b, strides, pads[:rank], dilations, group)

    @staticmethod
    def max_pool(x, kernel, strides, pads):
        rank = len(kernel)
        if not _is_even(pads) or any(2 * p > k for p, k in zip(pads, kernel)):
            x, pads = F.pad(x, _pads(pads), value=float("-inf")), [0] * (2 * rank)
        return getattr(F, f"max_pool{rank}d")(x, kernel, strides, pads[:rank])

    @staticmethod
    def average_pool(x, kernel, strides, pads, whole):
        rank = len(kernel)
        function = getattr(F, f"avg_pool{rank}d")
        if _is_even(pads) and all(2 * p <= k for p, k in zip(pads, kernel)):
            return function(x, kernel, strides, pads[:rank], False, whole)
        sums = function(F.pad(x, _pads(pads)), kernel, strides)
        if whole:
            return sums
        ones = torch.ones_like(x[:1, :1])
        return sums / function(F.pad(ones, _pads(pads)), kernel, strides)

    @staticmethod
    def batch_norm(x, scale, bias, mean, var, epsilon):
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)

    @staticmethod
    def layer_norm(x, scale, bias, axis, epsilon):
        return F.layer_norm(x, x.shape[axis % x.ndim:], scale, bias, epsilon)

    @staticmethod
    def pad(x, pads, value):
        rank = len(pads) // 2
        if min(pads) < 0 and value != 0:
            cut = [max(0, p) for p in pads]
            x = F.pad(x, _pads([min(0, p) for p in pads]))
            return F.pad(x, _pads(cut), value=value)
        return F.pad(x, _pads(pads), value=value) if rank else x

    @staticmethod
    def gather(x, indices, axis):
        flat = torch.where(indices < 0, indices + x.shape[axis], indices).reshape(-1).long()
        taken = torch.index_select(x, axis, flat)
        return taken.reshape(*x.shape[:axis % x.ndim], *indices.shape, *x.shape[axis % x.ndim + 1:])


class _Recorder(TorchFunctionMode):
    """Writes down every torch function that is called, as a graph of torch.fx."""

    def __init__(self):
        super().__init__()
        self.graph, self.nodes, self.alive = torch.fx.Graph(), {}, []

    def know(self, tensor, node):
        self.nodes[id(tensor)] = node
        self.alive.append(tensor)  # Else another tensor may get its id.

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if not results or not all(isinstance(r, torch.Tensor) for r in results):
            return result  # A shape or another number: it is part of what is recorded next.
        args, kwargs = torch.fx.node.map_aggregate((args, kwargs), lambda v: self.nodes.get(id(v), v))
        name = getattr(func, "__name__", "")
        if name == "__getitem__":
            node = self.graph.call_function(operator.getitem, args, kwargs)
        elif getattr(torch.Tensor, name, None) is func:
            node = self.graph.call_method(name, args, kwargs)
        else:
            node = self.graph.call_function(func, args, kwargs)
        if isinstance(result, torch.Tensor):
            self.know(result, node)
        else:
            for i, r in enumerate(results):
                self.know(r, self.graph.call_function(operator.getitem, (node, i)))
        return result


def load(path, feeds, device="cpu", half=False, channels_last=False):
    """(module, inputs): the model as straight-line code over torch's functions, as if somebody had written it for these
    shapes, so that compilers see no Python; weights are its buffers. It takes the inputs in order and gives its outputs
    as a tuple. `feeds` are numpy arrays by name."""
    walk = Walk(path, TorchOps(device, channels_last), half)
    inputs = {}
    for i in walk.inputs:
        x = torch.from_numpy(feeds[i.name]).to(device)
        x = x.half() if half and x.is_floating_point() else x
        inputs[i.name] = x.contiguous(memory_format=torch.channels_last) if channels_last and x.ndim == 4 else x
    recorder, root = _Recorder(), torch.nn.Module()
    for i, x in enumerate(inputs.values()):
        recorder.know(x, recorder.graph.placeholder(f"input_{i}"))
    for i, w in enumerate(walk.weights.values()):
        root.register_buffer(f"w{i}", w, persistent=False)
        recorder.know(w, recorder.graph.get_attr(f"w{i}"))
    with torch.no_grad(), recorder:
        outputs = walk(inputs)
    recorder.graph.output(tuple(recorder.nodes[id(y)] for y in outputs))
    recorder.graph.lint()
    return torch.fx.GraphModule(root, recorder.graph).eval(), list(inputs.values())
