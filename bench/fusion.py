"""Groups that are trees or have several outputs, on small networks: our session beside that of another tree and the peers.

    bench/fusion.py [--threads 2] [--blocks 15] [--before LIBRARY] [--only NAME,...]

Each network is four blocks (24 steps of the cell) as exporters write them, with seeded weights. Sides, method and exit
codes are those of attention.py, which does the timing.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attention
from attention import TensorProto, helper, np, numpy_helper, onnx


class Network:
    """An ONNX graph under construction; methods return names of values."""

    def __init__(self):
        self.nodes, self.weights, self.random = [], [], np.random.default_rng(1)

    def op(self, kind, *operands, outputs=1, **attributes):
        results = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(operands), results, **attributes))
        return results[0] if outputs == 1 else results

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) / np.sqrt(shape[0]))

    def linear(self, x, inner, outer, bias=True):
        y = self.op("MatMul", x, self.weight(inner, outer))
        return self.op("Add", y, self.weight(outer)) if bias else y

    def norm(self, x, width):
        return self.op("LayerNormalization", x, self.weight(width), self.weight(width), axis=-1)

    def rms_norm(self, x, width):
        mean = self.op("ReduceMean", self.op("Mul", x, x), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-5)))
        return self.op("Mul", self.op("Div", x, root), self.weight(width))

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.constant(2 ** 0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", erf, self.constant(1))), self.constant(0.5))

    def heads(self, x, tokens, heads, size, perm):
        shape = self.constant([1, tokens, heads, size], np.int64)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=perm)

    def turned(self, x, tokens, size):
        """Rotary positions of [1, heads, tokens, size]: x cos + rotated x sin."""
        tables = [self.constant(self.random.standard_normal([tokens, size])) for _ in range(2)]
        first, second = self.op("Split", x, outputs=2, axis=-1)
        rotated = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, tables[0]), self.op("Mul", rotated, tables[1]))

    def attention(self, x, tokens, width, heads, rotary=False, bias=True):
        size = width // heads
        q, k, v = (self.heads(self.linear(x, width, width, bias), tokens, heads, size, [0, 2, 1, 3]) for _ in range(3))
        if rotary:
            q, k = self.turned(q, tokens, size), self.turned(k, tokens, size)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        shares = self.op("Softmax", self.op("Div", scores, self.constant(size ** 0.5)), axis=-1)
        y = self.op("Transpose", self.op("MatMul", shares, v), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.constant([1, tokens, width], np.int64))
        return self.linear(y, width, width, bias)

    def perceptron(self, x, width):
        return self.linear(self.gelu(self.linear(x, width, 4 * width)), 4 * width, width)

    def model(self, shape, y):
        tensor = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        graph = helper.make_graph(self.nodes, "fusion", [tensor("x")], [tensor("y")], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layer_scale(tokens, width, heads):
    net, x = Network(), "x"
    for _ in range(4):
        for part in (lambda n: net.attention(n, tokens, width, heads), lambda n: net.perceptron(n, width)):
            x = net.op("Add", x, net.op("Mul", part(net.norm(x, width)), net.weight(width)))
    return net.model([1, tokens, width], net.norm(x, width))


def parallel_residual(tokens, width, heads):
    net, x = Network(), "x"
    for _ in range(4):
        parts = net.attention(net.norm(x, width), tokens, width, heads), net.perceptron(net.norm(x, width), width)
        x = net.op("Add", net.op("Add", parts[0], parts[1]), x)
    return net.model([1, tokens, width], net.norm(x, width))


def gated(tokens, width, heads):
    net, x = Network(), "x"
    for _ in range(4):
        y = net.attention(net.rms_norm(x, width), tokens, width, heads, rotary=True, bias=False)
        x = net.op("Add", x, y)
        n = net.rms_norm(x, width)
        up, gate = (net.linear(n, width, 3 * width, bias=False) for _ in range(2))
        product = net.op("Mul", net.op("Mul", gate, net.op("Sigmoid", gate)), up)
        x = net.op("Add", x, net.linear(product, 3 * width, width, bias=False))
    return net.model([1, tokens, width], net.rms_norm(x, width))


def post_norm(tokens, width, heads):
    net, x = Network(), "x"
    for _ in range(4):
        x = net.norm(net.op("Add", net.attention(x, tokens, width, heads), x), width)
        x = net.norm(net.op("Add", net.perceptron(x, width), x), width)
    return net.model([1, tokens, width], x)


def cell(batch, width):
    net, c = Network(), "x"
    h, weights = "x", net.weight(width, 4 * width)
    for _ in range(24):
        i, f, g, o = net.op("Split", net.op("MatMul", h, weights), outputs=4, axis=-1)
        kept = net.op("Mul", net.op("Sigmoid", f), c)
        c = net.op("Add", kept, net.op("Mul", net.op("Sigmoid", i), net.op("Tanh", g)))
        h = net.op("Mul", net.op("Sigmoid", o), net.op("Tanh", c))
    return net.model([batch, width], h)


NETWORKS = {
    "layer scale 257x384": lambda: layer_scale(257, 384, 6),
    "layer scale 65x192": lambda: layer_scale(65, 192, 3),
    "parallel residual 128x512": lambda: parallel_residual(128, 512, 8),
    "parallel residual 32x256": lambda: parallel_residual(32, 256, 4),
    "rotary, gated 64x288": lambda: gated(64, 288, 6),
    "post-norm 16x312": lambda: post_norm(16, 312, 12),
    "cell 8x256": lambda: cell(8, 256),
    "cell 64x128": lambda: cell(64, 128),
}


def main():
    words = [word for i, flag in enumerate(sys.argv) if flag == "--only" for word in sys.argv[i + 1].split(",")]
    flags = [arg for i, arg in enumerate(sys.argv[1:]) if arg != "--only" and sys.argv[i] != "--only"]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, network in NETWORKS.items():
            if not words or any(word in name for word in words):
                paths.append(os.path.join(folder, name + ".onnx"))
                onnx.save(network(), paths[-1])
        sys.argv = [sys.argv[0], *flags, *paths]
        return attention.main()


if __name__ == "__main__":
    sys.exit(main())
