"""Writes resizes in the form of ONNX's own test data, with outputs that ONNX Runtime computed.

usage: resize_samples.py FOLDER [OPSET]
Every mode, way of finding places and way of rounding, on odd shapes, up and down, by sizes and by scales:
FOLDER/node/<name>/model.onnx, test_data_set_0/input_0.pb, output_0.pb. A node that ONNX Runtime has no
kernel for is left out and counted.
"""
import itertools
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
# Shapes and what becomes of them: sizes, or factors.
SIZES = [([1, 2, 5, 7], [1, 2, 10, 14]), ([1, 2, 5, 7], [1, 2, 13, 9]), ([2, 1, 9, 6], [2, 1, 4, 5]),
         ([1, 1, 8, 8], [1, 1, 3, 1]), ([1, 1, 3, 3], [1, 1, 21, 7]), ([7, 11], [10, 6]),
         ([20, 22], [6, 28])]
SCALES = [([1, 2, 5, 7], [1, 1, 2, 2]), ([1, 2, 5, 7], [1, 1, 1.3, 1.6]), ([1, 1, 11, 13], [1, 1, 0.6, 0.35]),
          ([1, 1, 10, 9], [1, 1, 0.3, 2.7]), ([10, 5], [0.6, 1.7]),
          ([3, 4], [2, 1.2]), ([3, 4], [1, 1.2])]
NEAREST_ONLY = [([3, 4, 2], [5, 2, 3]), ([6], [11])]


def attributes_of(opset):
    places = list(PLACES)
    if opset < 13:
        places.append("tf_half_pixel_for_nn")
    if opset >= 19:
        places.append("half_pixel_symmetric")
    for place in places:
        for rounding in ROUNDINGS:
            yield {"mode": "nearest", "coordinate_transformation_mode": place, "nearest_mode": rounding}
        if place == "tf_half_pixel_for_nn":
            continue
        yield {"mode": "linear", "coordinate_transformation_mode": place}
        for a, outside in itertools.product([-0.75, -0.5], [0, 1]):
            yield {"mode": "cubic", "coordinate_transformation_mode": place, "cubic_coeff_a": a,
                   "exclude_outside": outside}


def model_of(shape, attributes, opset, sizes=None, scales=None):
    names = ["x", "roi", "scales"] + (["sizes"] if sizes else [])
    constants = [numpy_helper.from_array(np.zeros(0, np.float32), "roi"),
                 numpy_helper.from_array(np.array(scales or [], np.float32), "scales")]
    if sizes:
        constants.append(numpy_helper.from_array(np.array(sizes, np.int64), "sizes"))
    node = helper.make_node("Resize", names, ["y"], **attributes)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(shape))
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [result],
                              constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def write(folder, model, x, y):
    (folder / "test_data_set_0").mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for name, array in (("input_0", x), ("output_0", y)):
        (folder / "test_data_set_0" / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def main():
    root, opset = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 13
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    written = left_out = 0
    for attributes in attributes_of(opset):
        nearest = attributes["mode"] == "nearest"
        cases = [(s, {"sizes": to}) for s, to in SIZES + (NEAREST_ONLY if nearest else [])]
        cases += [(s, {"scales": by}) for s, by in SCALES]
        for shape, target in cases:
            model = model_of(shape, attributes, opset, **target)
            x = np.random.default_rng(written).standard_normal(shape).astype(np.float32)
            try:
                session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                       providers=["CPUExecutionProvider"])
                y = session.run(None, {"x": x})[0]
            except Exception as error:
                print(f"left out: {attributes} {shape} {target}: {error}")
                left_out += 1
                continue
            write(root / "node" / f"resize_{opset}_{written:03}", model, x, y)
            written += 1
    print(f"resize_samples.py: {written} samples of opset {opset}, {left_out} left out")


if __name__ == "__main__":
    main()
