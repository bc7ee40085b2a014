"""What no implementation of a model can go below on a machine: the largest of bytes over bandwidth,
operations over peak, and the critical path's kernels times the gap between two launches."""
import collections
import time

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

# Operators that need a kernel of their own whatever is fused into them; what is not listed can be a
# view, or part of a neighbor.
KERNELS = {"Conv", "MatMul", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum",
           "ReduceMax", "Softmax", "LayerNormalization"}

Work = collections.namedtuple("Work", "operations bytes kernels path")


def shapes_of(model):
    inferred = shape_inference.infer_shapes(model)
    values = list(inferred.graph.input) + list(inferred.graph.value_info) + list(inferred.graph.output)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
    shapes.update({t.name: list(t.dims) for t in model.graph.initializer})
    return shapes


def work_of(path, item_bytes=4):
    """Multiply and add are two operations; weights, inputs and outputs move once."""
    model = onnx.load(path)
    graph = model.graph
    shapes = shapes_of(model)
    floats = {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    operations, depth, kernels = 0, {}, 0
    for node in graph.node:
        out = shapes.get(node.output[0])
        if node.op_type == "Conv":
            operations += 2 * np.prod(out) * np.prod(shapes[node.input[1]][1:])
        elif node.op_type in ("MatMul", "Gemm"):
            a = {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute}
            inner = shapes[node.input[0]][-2 if a.get("transA", 0) else -1]
            operations += 2 * np.prod(out) * inner
        is_kernel = node.op_type in KERNELS
        kernels += is_kernel
        before = max((depth.get(name, 0) for name in node.input), default=0)
        for name in node.output:
            depth[name] = before + is_kernel
    initial = {t.name for t in graph.initializer}
    edges = [i.name for i in graph.input if i.name not in initial] + [o.name for o in graph.output]
    moved = sum(numpy_helper.to_array(t).size * (item_bytes if t.name in floats else 8) for t in graph.initializer)
    moved += sum(int(np.prod(shapes[name])) * item_bytes for name in edges)
    return Work(float(operations), float(moved), kernels, max(depth.values(), default=0))


def floor_ms(work, machine, precision):
    terms = {"bytes": work.bytes / machine["bytes_per_second"],
             "operations": work.operations / machine["operations_per_second"][precision],
             "launches": work.path * machine["launch_gap_ns"] * 1e-9}
    name = max(terms, key=terms.get)
    return terms[name] * 1e3, name


def _best(seconds_of, tries=5):
    return min(seconds_of() for _ in range(tries))


def _timer(torch, device):
    def seconds(run, count):
        if device != "cuda":
            begin = time.perf_counter()
            for _ in range(count):
                run()
            return (time.perf_counter() - begin) / count
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / count
    return seconds


def measure_machine(torch, device, precisions, scale=1.0):
    """Measured with torch on the device: memory bandwidth of a copy, operations of a large matrix
    product, and the gap of empty kernels in one CUDA graph (0 on a CPU). `scale` < 1: smaller, for tests."""
    seconds = _timer(torch, device)
    source = torch.ones(int(scale * 2 ** 28), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    run = lambda: target.copy_(source)
    run()
    machine = {"bytes_per_second": 2 * source.numel() / _best(lambda: seconds(run, 5)),
               "operations_per_second": {}, "launch_gap_ns": 0.0}
    size = int((8192 if device == "cuda" else 2048) * scale ** 0.5) // 8 * 8
    for precision in precisions:
        set_precision(torch, precision)
        dtype = torch.float16 if precision == "fp16" and device == "cuda" else torch.float32
        a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        product = lambda: torch.matmul(a, b)
        product()
        machine["operations_per_second"][precision] = 2 * size ** 3 / _best(lambda: seconds(product, 5))
    if device == "cuda":
        machine["launch_gap_ns"] = _graph_gap_ns(torch, seconds)
    return machine


def _graph_gap_ns(torch, seconds):
    """The slope over the length of a chain of kernels that do nothing worth a time."""
    x = torch.zeros(1, device="cuda")

    def chain(count):
        graph = torch.cuda.CUDAGraph()
        x.add_(1)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(count):
                x.add_(1)
        graph.replay()
        return _best(lambda: seconds(graph.replay, 20))
    return (chain(520) - chain(20)) / 500 * 1e9


def set_precision(torch, precision):
    """torch's flags for a precision, asserted: what is set is what it says."""
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    assert torch.backends.cuda.matmul.allow_tf32 == tf32 and torch.backends.cudnn.allow_tf32 == tf32
    assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")
    assert not torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
