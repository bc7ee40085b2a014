"""An ONNX model as a torch module with the same weights: onnx_walk.py's table, in torch's words."""
import torch
import torch.nn.functional as F

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
    "expand": torch.Tensor.expand, "concat": torch.cat, "split": torch.split,
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
        return torch.convolution(x, w, b, strides, pads[:rank], dilations, False, [0] * rank, group)

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


class OnnxModule(torch.nn.Module):
    """Takes the model's inputs in order, gives its outputs as a tuple. Weights are buffers, so that
    freezing and tracing see them as a module's own."""

    def __init__(self, path, device="cpu", half=False, channels_last=False):
        super().__init__()
        self.walk = Walk(path, TorchOps(device, channels_last), half)
        self.input_names = [i.name for i in self.walk.inputs]
        self.buffer_of = {name: f"w{i}" for i, name in enumerate(self.walk.weights)}
        for name, buffer in self.buffer_of.items():
            self.register_buffer(buffer, self.walk.weights[name], persistent=False)
        self.walk.weights = dict.fromkeys(self.buffer_of)
        self.eval()

    def forward(self, *inputs):
        weights = {name: getattr(self, buffer) for name, buffer in self.buffer_of.items()}
        return tuple(self.walk(dict(zip(self.input_names, inputs)), weights))
