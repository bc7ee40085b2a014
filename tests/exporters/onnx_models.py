"""Writes ONNX models with onnx.helper, ONNX's converter and ONNX Runtime's quantizer: newer opsets, 1-D convolutions, integers.

usage: onnx_models.py FOLDER   (models of torch_models.py in FOLDER are what is converted and quantized)
"""
from __future__ import annotations

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic,
                                      quantize_static)

RANDOM = np.random.default_rng(7)


class Pictures(CalibrationDataReader):
    """Eight random inputs of the model's first input's shape."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.left = iter([{name: RANDOM.random(shape, np.float32)} for _ in range(8)])

    def get_next(self) -> "dict[str, np.ndarray] | None":
        return next(self.left, None)


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 1 else 1)
    return numpy_helper.from_array(values.astype(np.float32), name)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def save(path: str, nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], shape: list[int | str],
         result: list[int | str], opset: int, ir: int, elem: int = TensorProto.FLOAT) -> None:
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", elem, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    print(path, flush=True)


def keras_text(path: str) -> None:
    """A text classifier as tf2onnx writes one: channels last in and out, 1-D convolutions as [1, k]."""
    node = helper.make_node
    nodes, weights = [node("Gather", ["words", "x"], ["e"]), node("Transpose", ["e"], ["e1"], perm=[0, 2, 1]),
                      node("Unsqueeze", ["e1", "two"], ["c0"])], [weight("words", 2000, 64), ints("two", 2), ints("last", 3)]
    for i, (a, b) in enumerate([(64, 128), (128, 128), (128, 64)]):
        weights += [weight(f"w{i}", b, a, 1, 5), weight(f"b{i}", b)]
        nodes += [node("Conv", [f"c{i}", f"w{i}", f"b{i}"], [f"d{i}"], pads=[0, 2, 0, 2], kernel_shape=[1, 5]),
                  node("Relu", [f"d{i}"], [f"c{i + 1}"])]
    weights += [weight("fw", 64, 10), weight("fb", 10), ints("axes", 2, 3)]
    nodes += [node("ReduceMax", ["c3", "axes"], ["m"], keepdims=0), node("Gemm", ["m", "fw", "fb"], ["g"]),
              node("Softmax", ["g"], ["y"], axis=1)]
    save(path, nodes, weights, ["batch", 80], ["batch", 10], 18, 8, TensorProto.INT64)


def norms(path: str, opset: int, ir: int) -> None:
    """Norms and activations that newer opsets brought."""
    node = helper.make_node
    weights = [weight("w", 32, 8, 3, 3), weight("s", 32), weight("o", 32), weight("l", 32), weight("lo", 32)]
    nodes = [node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
             node("GroupNormalization", ["a", "s", "o"], ["b"], num_groups=4) if opset >= 21 else
             node("InstanceNormalization", ["a", "s", "o"], ["b"]),
             node("Gelu", ["b"], ["c"]) if opset >= 20 else node("Mish", ["b"], ["c"]),
             node("Transpose", ["c"], ["d"], perm=[0, 2, 3, 1]),
             node("LayerNormalization", ["d", "l", "lo"], ["e"]),
             node("ReduceMean", ["e", "axes"], ["y"], keepdims=0)]
    save(path, nodes, weights + [ints("axes", 1, 2)], ["n", 8, 20, 20], ["n", 32], opset, ir)


def convert(source: str, target: str, opset: int, ir: int) -> None:
    model = version_converter.convert_version(onnx.load(source), opset)
    model.ir_version = ir
    onnx.save(model, target)
    print(target, flush=True)


def main() -> int:
    folder = sys.argv[1]

    def path(name: str) -> str:
        return os.path.join(folder, name + ".onnx")

    keras_text(path("keras_text.opset18"))
    for opset, ir in ((18, 8), (20, 9), (21, 10)):
        norms(path(f"norms.opset{opset}"), opset, ir)
    for name in ("resnet18", "bert"):
        for opset, ir in ((18, 8), (19, 9), (21, 10)):
            convert(path(f"{name}.opset17"), path(f"{name}.opset{opset}"), opset, ir)
    quantize_static(path("resnet18.opset13"), path("resnet18_qdq.opset13"), Pictures("x", (1, 3, 224, 224)),
                    quant_format=QuantFormat.QDQ, weight_type=QuantType.QInt8)
    print(path("resnet18_qdq.opset13"), flush=True)
    for name in ("resnet18", "bert", "lstm"):
        quantize_dynamic(path(f"{name}.opset13"), path(f"{name}_dynamic.opset13"))
        print(path(f"{name}_dynamic.opset13"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
