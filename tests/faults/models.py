"""Models that point elsewhere, grow without end, are damaged, or have more than we know."""

from __future__ import annotations

import hashlib
import os
import random
import time
from typing import Any, Dict, List

import numpy
from cluster import Cluster, Job, expect, memory_mb, products
from onnx import TensorProto, helper, numpy_helper

MEMORY_MAX_MB = 150  # The coordinator, whatever comes.


def _value(name: str, sizes: Any = (4,), kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, sizes)


def model_of(nodes: Any, outputs: Any = None, inputs: Any = None, weights: Any = (), **more: Any) -> bytes:
    """Returns a model's bytes."""
    graph = helper.make_graph(nodes, "g", inputs or [_value("x")], outputs or [_value("y")], list(weights))
    opset = more.pop("opset", 13)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)
    made.ir_version = 8
    return made.SerializeToString()


def _fails(cluster: Cluster, model: bytes, seconds: float = 60) -> Any:
    """Runs a job that must fail; returns its error."""
    digest = hashlib.sha256(model).hexdigest()
    job = cluster.end(cluster.submit(model, 1 + int(digest[:6], 16)), seconds)
    expect(job.state == Job.FAILED, f"it is {Job.State.Name(job.state)}: {job.result.output}")
    return job.error


def _external(location: bytes) -> bytes:
    """Returns a model whose weight lies in another file, of any name."""
    weight = numpy_helper.from_array(numpy.zeros(4, numpy.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="?" * len(location))
    model = model_of([helper.make_node("Add", ["x", "w"], ["y"])], weights=[weight])
    return model.replace(b"?" * len(location), location)


def weights_elsewhere() -> None:
    """A model names files of the coordinator's host as its weights, in every way."""
    locations = [
        b"../../jobs.db", b"/etc/passwd", b"/proc/self/fd/3", b"/proc/self/environ", b"w.bin", b".",
        b"w.bin\x00/etc/passwd", b"\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/jobs.db", b"..\\..\\jobs.db",
        b"C:\\windows\\win.ini", b"file:///etc/passwd", b"//host/share/w.bin", b"a/" * 4000 + b"w",
    ]
    with Cluster() as cluster:
        for location in locations:
            error = _fails(cluster, _external(location))
            expect(error.code == 3 and "data in another file" in error.message
                   or "UTF-8" in error.message, f"{location[:40]!r}: {error}")
        place = cluster.folder / "in"
        place.mkdir()
        (place / "m.onnx").write_bytes(_external(b"link.bin"))
        secret = cluster.folder / "secret"
        secret.write_bytes(os.urandom(16))
        (place / "link.bin").symlink_to(secret)
        words = ("optimize", str(place / "m.onnx"), "-o", str(place / "o.onnx"), "--device", "sim:small",
                 "--server", cluster.address)
        try:
            cluster.cli(*words)
            raise AssertionError("the command line followed a link out of the model's folder")
        except Exception as error:  # pylint: disable=broad-except
            expect("CalledProcessError" in type(error).__name__, error)
        stored = [path.read_bytes() for path in (cluster.folder / "served" / "blobs").glob("*/*")]
        expect(not any(secret.read_bytes() in data for data in stored), "the secret was sent")
        cluster.succeeds(cluster.submit(products()))


def bombs() -> Dict[str, bytes]:
    """Returns small models that want more memory, depth or time than anybody has, by name."""
    large = 17_000_000_000_000
    ends = [
        helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]

    def sized(op: str, *inputs: str, **weights: Any) -> bytes:
        node = helper.make_node(op, list(inputs), ["b"])
        arrays = [numpy_helper.from_array(numpy.array(v), k) for k, v in weights.items()]
        return model_of([node, *ends], weights=arrays)

    def nested(depth: int) -> bytes:
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "b", [], [_value("r")])
        data = graph.SerializeToString()
        for _ in range(depth):  # Written by hand: the library's writer calls itself for each level.
            attribute = b"\x0a\x0bthen_branch\xa0\x01\x05\x32" + _varint(len(data)) + data
            node = b"\x0a\x01c\x12\x01r\x22\x02If\x2a" + _varint(len(attribute)) + attribute
            data = b"\x0a" + _varint(len(node)) + node
        return b"\x08\x08\x3a" + _varint(len(data)) + data + b"\x42\x02\x10\x0d"

    relu = helper.make_node("Relu", ["x"], ["y"])
    many = helper.make_node("Relu", ["x"], ["y"], **{f"a{n}": n for n in range(200_000)})
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    inner = helper.make_node("again", ["a"], ["b"], domain="f")
    again = helper.make_function("f", "again", ["a"], ["b"], [inner], opsets)
    outer = helper.make_node("again", ["x"], ["y"], domain="f")
    graph = helper.make_graph([outer], "g", [_value("x")], [_value("y")])
    calls = helper.make_model(graph, opset_imports=opsets, functions=[again])
    calls.ir_version = 8
    cycle = [helper.make_node("Add", ["y", "x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    return {
        "ConstantOfShape": sized("ConstantOfShape", "s", s=[large]),
        "Expand": sized("Expand", "x", "s", s=[large, 4]),
        "Tile": sized("Tile", "x", "s", s=[large]),
        "40 GB": sized("ConstantOfShape", "s", s=[10_000_000_000]),
        "Range": sized("Range", "i", "s", "d", i=numpy.int64(0), s=numpy.int64(large), d=numpy.int64(1)),
        "Pad": sized("Pad", "x", "s", s=[large, large]),
        "Resize": sized("Resize", "x", "", "f", f=numpy.array([1e12], numpy.float32)),
        "rank": model_of([relu], inputs=[_value("x", [1] * 1_000_000)]),
        "depth": nested(20_000),
        "recursion": calls.SerializeToString(),
        "cycle": model_of(cycle),
        "two of one name": model_of([relu, helper.make_node("Exp", ["x"], ["y"])]),
        "length": b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\x0a" * 100,
        "attributes": model_of([many, helper.make_node("Relu", ["y"], ["y"])]),
    }


def _varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def grow_without_end() -> None:
    """Small models with immense sizes, depths and lengths are submitted, one after the other."""
    with Cluster() as cluster:
        assert cluster.coordinator is not None
        for name, model in bombs().items():
            begin = time.monotonic()
            error = _fails(cluster, model)
            expect(error.code in (3, 8, 12), f"{name}: {error}")
            expect("crashed" not in error.message, f"{name}: {error}")
            if name[0].isupper() or name == "40 GB":
                expect("node 0" in error.message, f"{name}: it does not name the node: {error}")
            # Below a second by itself; the machine may be busy.
            expect(time.monotonic() - begin < 30, f"{name}: {time.monotonic() - begin:.0f} s")
        peak = memory_mb(cluster.coordinator.pid, "VmHWM")
        expect(peak < MEMORY_MAX_MB, f"the coordinator took {peak:.0f} MB")
        cluster.succeeds(cluster.submit(products()))


def damaged() -> None:
    """Sixty models with flipped, cut and repeated bytes are submitted."""
    random_ = random.Random(11)
    with Cluster("--import-time", "20") as cluster:
        assert cluster.coordinator is not None
        pid = cluster.coordinator.pid
        whole = [products(), cluster.zoo("tiny_cnn").read_bytes(), cluster.zoo("tiny_sru").read_bytes()]
        jobs: List[str] = []
        for seed in range(60):
            data = bytearray(random_.choice(whole))
            for _ in range(random_.randint(1, 8)):
                at = random_.randrange(min(len(data), 3000))  # Where the structure is.
                what = random_.randrange(4)
                if what == 0:
                    data[at] ^= 1 << random_.randrange(8)
                elif what == 1:
                    data[at] = random_.choice([0, 0x7F, 0x80, 0xFF])
                elif what == 2:
                    del data[at : at + random_.randint(1, 20)]
                else:
                    data[at:at] = data[at : at + random_.randint(1, 20)]
            jobs.append(cluster.submit(bytes(data), 1000 + seed))
        bad = [job for job in (cluster.end(job, 120) for job in jobs) if job.state == Job.FAILED]
        expect(len(bad) > 10, f"only {len(bad)} were bad")
        for job in bad:
            expect(job.error.message and job.error.code in (3, 8, 12), f"{job.name}: {job.error}")
            expect("crashed" not in job.error.message, f"{job.name}: {job.error}")
        expect(cluster.coordinator.poll() is None and cluster.coordinator.pid == pid, "it died")
        expect(memory_mb(pid, "VmHWM") < MEMORY_MAX_MB, "the coordinator grew")
        cluster.succeeds(cluster.submit(products(), 5000))


def larger_when_folded() -> None:
    """A right model of opset 12 has a constant of 80 MB that a few bytes describe."""
    sizes = numpy_helper.from_array(numpy.array([20_000_000], numpy.int64), "s")
    model = model_of(
        [
            helper.make_node("ConstantOfShape", ["s"], ["b"],
                             value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])),
            helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
            helper.make_node("Add", ["x", "m"], ["t"]),
            helper.make_node("Relu", ["t"], ["y"]),
        ],
        weights=[sizes],
        opset=12,
    )
    with Cluster() as cluster:
        result = cluster.succeeds(cluster.submit(model), 120)
        expect(result.output_bytes < 100_000, f"the output has {result.output_bytes} bytes")
        expect(result.speedup >= 1, f"it became slower: {result.speedup}")
        source, output = cluster.folder / "in.onnx", cluster.folder / "out.onnx"
        source.write_bytes(model)
        blobs = cluster.folder / "served" / "blobs"
        output.write_bytes((blobs / result.output_digest[:2] / result.output_digest).read_bytes())
        cluster.cli("verify", str(source), "--against", str(output), "--device", "sim:small")
