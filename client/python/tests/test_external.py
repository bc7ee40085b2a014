"""Models with weights in data files beside them."""

from __future__ import annotations

import os
import struct
import unittest
from typing import Optional
from unittest import mock

import autograph
import numpy as np
from autograph._model import CHUNK_BYTES, Model
from service import DEVICE, Place, Service

COLUMNS = 64
WEIGHT = np.linspace(-1, 1, COLUMNS * COLUMNS, dtype=np.float32).reshape(COLUMNS, COLUMNS)


def varint(value: int) -> bytes:
    """The value in protobuf's form."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: object) -> bytes:
    """A field with a number, a text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    assert isinstance(data, bytes)
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name: str) -> bytes:
    """A matrix of floats."""
    shape = field(1, field(1, 2)) + field(1, field(1, COLUMNS))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(location: Optional[str], offset: str = "", length: str = "") -> bytes:
    """y = relu(x w); w is in the file `location`, or inside for None."""
    tensor = field(1, COLUMNS) + field(1, COLUMNS) + field(2, 1) + field(8, "w")
    if location is None:
        tensor += field(9, WEIGHT.tobytes())
    else:
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            if value:
                tensor += field(13, field(1, key) + field(2, value))
        tensor += field(14, 1)
    product = field(1, "x") + field(1, "w") + field(2, "p") + field(4, "MatMul")
    relu = field(1, "p") + field(2, "y") + field(4, "Relu")
    graph = field(1, product) + field(1, relu) + field(2, "g") + field(5, tensor)
    graph += field(11, value_info("x")) + field(12, value_info("y"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


class ExternalTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self) -> None:
        self.place = Place()
        self.addCleanup(self.place.close)
        self.path = self.place.folder / "m.onnx"
        (self.place.folder / "sub").mkdir()
        (self.place.folder / "sub" / "w.bin").write_bytes(b"12345678" + WEIGHT.tobytes())
        self.path.write_bytes(model("sub/w.bin", "8", str(WEIGHT.nbytes)))

    def test_the_server_gets_the_weights(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        with autograph.Client(service.address) as client:
            result = client.optimize(self.path, device=DEVICE, rounds=1)
            x = np.ones((2, COLUMNS), np.float32)
            alone = self.place.folder / "elsewhere"
            alone.mkdir()
            session = autograph.Session(result.save(alone / "out.onnx"), device="cpu:1")
            np.testing.assert_allclose(session(x), np.maximum(x @ WEIGHT, 0), rtol=1e-4, atol=1e-4)
            with self.assertRaisesRegex(
                autograph.InvalidArgument, "only the model's own bytes came: give the model by its"
            ):
                client.optimize(self.path.read_bytes(), device=DEVICE, rounds=1)

    def test_the_command_line_sends_the_same_bytes(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        words = ["-o", str(self.place.folder / "o.onnx"), "--server", service.address]
        self.place.cli("optimize", str(self.path), *words, "--device", DEVICE, "--rounds", "1")
        with autograph.Client(service.address) as client:
            self.assertIsNotNone(client.cached(self.path, device=DEVICE, rounds=1))

    def test_a_session_reads_them(self) -> None:
        x = np.ones((2, COLUMNS), np.float32)
        expected = np.maximum(x @ WEIGHT, 0)
        session = autograph.Session(self.path, device="cpu:1")
        np.testing.assert_allclose(session(x), expected, rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(autograph.InvalidArgument, "only the model's own bytes came"):
            autograph.Session(self.path.read_bytes(), device="cpu:1")

    def test_a_model_without_any_is_sent_as_it_is(self) -> None:
        whole = model(None)
        self.path.write_bytes(whole)
        self.assertEqual(b"".join(Model(self.path).chunks()), whole)
        self.path.write_bytes(b"no model, but a location")
        self.assertEqual(b"".join(Model(self.path).chunks()), b"no model, but a location")

    def test_chunks_are_full(self) -> None:
        rows = struct.pack("<f", 1.0) * (3 * CHUNK_BYTES // 4)
        (self.place.folder / "w.bin").write_bytes(rows)
        dims = field(1, COLUMNS) * 2
        self.path.write_bytes(model("w.bin").replace(dims, field(1, len(rows) // 4), 1))
        sizes = [len(chunk) for chunk in Model(self.path).chunks()]
        self.assertEqual(sizes[:3], [CHUNK_BYTES] * 3)
        self.assertEqual(sum(sizes), Model(self.path).size)

    def test_a_large_result_is_saved_as_two_files(self) -> None:
        onnx = model(None)
        result = autograph.Result(
            job="jobs/1", model_name="m", onnx=onnx, report=autograph.Report(), report_json=""
        )
        saved = result.save(self.place.folder / "one.onnx")
        self.assertEqual(saved.read_bytes(), onnx)
        with mock.patch("autograph.report.PROTOBUF_BYTES_MAX", 1000):
            saved = result.save(self.place.folder / "two.onnx")
        self.assertLess(saved.stat().st_size, 1000)
        self.assertEqual((self.place.folder / "two.onnx.data").read_bytes(), WEIGHT.tobytes())
        x = np.ones((2, COLUMNS), np.float32)
        session = autograph.Session(saved, device="cpu:1")
        np.testing.assert_allclose(session(x), np.maximum(x @ WEIGHT, 0), rtol=1e-4, atol=1e-4)

    def test_wrong_places_are_said(self) -> None:
        os.symlink("/etc/hostname", self.place.folder / "link.bin")
        (self.place.folder / "short.bin").write_bytes(b"1234")
        outside = "must lie in the model's folder or below it"
        cases = [
            ("/etc/passwd", "", "", autograph.InvalidArgument, outside),
            ("../m.onnx", "", "", autograph.InvalidArgument, outside),
            ("link.bin", "", "", autograph.InvalidArgument, outside),
            ("none.bin", "", "", autograph.NotFound, "there is no file"),
            ("sub", "", "", autograph.InvalidArgument, "is not a regular file"),
            ("short.bin", "", "", autograph.InvalidArgument, "is too short: 16384 bytes from"),
            ("sub/w.bin", "16", "", autograph.InvalidArgument, "is too short"),
            ("sub/w.bin", "", "8", autograph.InvalidArgument, "need 16384 bytes, it has 8"),
            ("sub/w.bin", "-1", "", autograph.InvalidArgument, '"-1", is no number from 0 on'),
        ]
        for location, offset, length, kind, message in cases:
            self.path.write_bytes(model(location, offset, length))
            with self.assertRaisesRegex(kind, f'tensor "w": .*{message}'):
                Model(self.path)


if __name__ == "__main__":
    unittest.main()
