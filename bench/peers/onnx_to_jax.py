"""An ONNX model as a JAX function with the same weights: onnx_walk.py's table, in JAX's words."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from onnx_walk import Walk


def _pairs(pads):
    rank = len(pads) // 2
    return [(pads[i], pads[i + rank]) for i in range(rank)]


# What JAX has under another name, or as it is.
WORDS = {
    "array": jnp.asarray, "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide,
    "pow": jnp.power, "min": jnp.minimum, "max": jnp.maximum, "mod": jnp.mod, "matmul": jnp.matmul,
    "equal": jnp.equal, "greater": jnp.greater, "less": jnp.less, "where": jnp.where,
    "and": jnp.logical_and, "or": jnp.logical_or, "not": jnp.logical_not,
    "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "tanh": jnp.tanh, "erf": jax.scipy.special.erf,
    "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "neg": jnp.negative, "abs": jnp.abs,
    "reciprocal": jnp.reciprocal, "floor": jnp.floor, "ceil": jnp.ceil,
    "hardswish": jax.nn.hard_swish, "leakyrelu": lambda x, alpha: jax.nn.leaky_relu(x, alpha), "elu": jax.nn.elu,
    "clip": jnp.clip, "softmax": jax.nn.softmax, "reshape": jnp.reshape, "transpose": jnp.transpose,
    "expand": jnp.broadcast_to, "concat": jnp.concatenate,
    "reduce_mean": lambda x, axes, keep: jnp.mean(x, axis=axes, keepdims=keep),
    "reduce_sum": lambda x, axes, keep: jnp.sum(x, axis=axes, keepdims=keep),
    "reduce_max": lambda x, axes, keep: jnp.max(x, axis=axes, keepdims=keep),
}


class JaxOps:
    def __init__(self):
        self.__dict__.update(WORDS)

    @staticmethod
    def identity(x):
        return x

    @staticmethod
    def hardsigmoid(x, alpha, beta):
        return jnp.clip(alpha * x + beta, 0, 1)

    @staticmethod
    def gelu(x, approximate):
        return jax.nn.gelu(x, approximate=approximate == "tanh")

    @staticmethod
    def cast(x, dtype):
        return x.astype(dtype)

    @staticmethod
    def split(x, sizes, axis):
        return jnp.split(x, np.cumsum(sizes)[:-1].tolist(), axis=axis)

    @staticmethod
    def conv(x, w, b, strides, pads, dilations, group):
        y = lax.conv_general_dilated(x, w, strides, _pairs(pads), rhs_dilation=dilations, feature_group_count=group)
        return y if b is None else y + b.reshape(1, -1, *[1] * len(strides))

    @staticmethod
    def max_pool(x, kernel, strides, pads):
        return lax.reduce_window(x, jnp.asarray(-jnp.inf, x.dtype), lax.max, (1, 1, *kernel), (1, 1, *strides),
                                 [(0, 0), (0, 0), *_pairs(pads)])

    @staticmethod
    def average_pool(x, kernel, strides, pads, whole):
        def window_sum(values):
            return lax.reduce_window(values, jnp.asarray(0, x.dtype), lax.add, (1, 1, *kernel), (1, 1, *strides),
                                     [(0, 0), (0, 0), *_pairs(pads)])
        return window_sum(x) / (np.prod(kernel) if whole else window_sum(jnp.ones_like(x[:1, :1])))

    @staticmethod
    def batch_norm(x, scale, bias, mean, var, epsilon):
        shape = (1, -1, *[1] * (x.ndim - 2))
        factor = scale / jnp.sqrt(var + epsilon)
        return x * factor.reshape(shape) + (bias - mean * factor).reshape(shape)

    @staticmethod
    def layer_norm(x, scale, bias, axis, epsilon):
        axes = tuple(range(axis % x.ndim, x.ndim))
        mean = jnp.mean(x, axis=axes, keepdims=True)
        var = jnp.mean(jnp.square(x - mean), axis=axes, keepdims=True)
        y = (x - mean) / jnp.sqrt(var + epsilon) * scale
        return y if bias is None else y + bias

    @staticmethod
    def pad(x, pads, value):
        return lax.pad(x, jnp.asarray(value, x.dtype), [(low, high, 0) for low, high in _pairs(pads)])

    @staticmethod
    def gather(x, indices, axis):
        return jnp.take(x, indices, axis=axis)  # Negative indices count from the end, as in ONNX.


class OnnxFunction:
    """Takes the model's inputs in order, gives its outputs as a list. Weights are constants of what
    jit compiles, so that XLA may fold them, as a deployed model's are."""

    def __init__(self, path, half=False):
        self.walk = Walk(path, JaxOps(), half)
        self.input_names = [i.name for i in self.walk.inputs]

    def __call__(self, *inputs):
        return self.walk(dict(zip(self.input_names, inputs)))
