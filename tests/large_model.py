"""Writes a model of large products whose weights are in a data file beside it, most of it a hole.

usage: large_model.py FOLDER PRODUCTS
Each product has 1.34 GB of weights in FOLDER/m.onnx.data; some kilobytes of each are not zero.
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDE, WIDER, FILLED = 16384, 20480, 64


def main() -> None:
    folder, products = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    nodes, weights = [], []
    end = 0
    with open(folder / "m.onnx.data", "wb") as data:
        for i in range(products):
            rows, columns = (WIDE, WIDER) if i % 2 == 0 else (WIDER, WIDE)
            weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[rows, columns],
                                 data_location=TensorProto.EXTERNAL)
            size = 4 * rows * columns
            for key, value in (("location", "m.onnx.data"), ("offset", end), ("length", size)):
                weight.external_data.add(key=key, value=str(value))
            rng = np.random.default_rng(i)
            for row in range(FILLED):
                data.seek(end + 4 * row * columns)
                data.write(rng.standard_normal(FILLED).astype(np.float32).tobytes())
            end += size
            weights.append(weight)
            nodes.append(helper.make_node("MatMul", [f"r{i}", f"w{i}"], [f"p{i}"]))
            nodes.append(helper.make_node("Relu", [f"p{i}"], [f"r{i + 1}"]))
        data.truncate(end)
    given = helper.make_tensor_value_info("r0", TensorProto.FLOAT, [1, WIDE])
    made = helper.make_tensor_value_info(f"r{products}", TensorProto.FLOAT,
                                         [1, WIDE if products % 2 == 0 else WIDER])
    graph = helper.make_graph(nodes, "large", [given], [made], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "m.onnx"))


if __name__ == "__main__":
    main()
