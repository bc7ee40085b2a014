"""The user's own inputs: arrays, folders, and what is wrong with them."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

import autograph
import numpy as np
from autograph import Client, _inputs
from service import BUILD, DEVICE, Place, Service


class SetsTest(unittest.TestCase):
    """The bytes that are sent."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def names(self, inputs: Any) -> List[str]:
        """Returns the names of the sets."""
        return [one.name for one in _inputs.sets_of({"inputs": inputs})]

    def test_the_bytes_are_those_of_the_protocol(self) -> None:
        self.assertEqual(
            _inputs.encode({"ab": np.array([[65]])}),
            b"autograph-inputs 1\n2 i64 1x1 8\nabA\0\0\0\0\0\0\0",
        )
        # The order of names, of memory and of bytes does not count.
        plain = {"x": np.ones((2, 3), "f4"), "s": np.float32(3)}
        other = {"s": np.array(3, ">f4"), "x": np.asfortranarray(np.ones((2, 3), "f4"))}
        self.assertEqual(_inputs.encode(plain), _inputs.encode(other))
        self.assertIn(b"1 f32 - 4\n", _inputs.encode(plain))

    def test_arrays_and_folders_are_the_same(self) -> None:
        sets: List[Any] = [{"x/y": np.arange(3)}, {"x/y": np.zeros(3)}]
        folder = _inputs.write_folder(sets, self.folder / "inputs")
        self.assertEqual(self.names(sets), ["set_00", "set_01"])
        self.assertEqual(self.names(folder), ["set_00", "set_01"])
        self.assertEqual(self.names(folder / "set_00"), ["set_00"])
        self.assertEqual([path.name for path in folder.rglob("*.npy")], ["x_y.npy"] * 2)
        self.assertEqual(self.names(None), [])
        self.assertEqual(self.names({"x": np.zeros(1)}), ["set_00"])

    def test_tensors_of_onnx_are_read(self) -> None:
        raw = np.array([1.5, -2], "<f4").tobytes()
        (self.folder / "input_0.pb").write_bytes(b"\x08\x02\x10\x01\x42\x01x\x4a\x08" + raw)
        (self.folder / "ids.pb").write_bytes(b"\x08\x02\x10\x07\x3a\x02\x05\x06")
        (self.folder / "output_0.pb").write_bytes(b"anything")
        (sent,) = _inputs.sets_of({"inputs": self.folder})
        expected = {"x": np.array([1.5, -2], "f4"), "ids": np.array([5, 6])}
        self.assertEqual(b"".join(sent.blob.chunks()), _inputs.encode(expected))

    def test_what_is_wrong_is_said(self) -> None:
        with self.assertRaisesRegex(autograph.NotFound, "there is no such folder"):
            self.names("/nowhere")
        with self.assertRaisesRegex(autograph.InvalidArgument, "no NAME.npy or NAME.pb"):
            self.names(self.folder)
        with self.assertRaisesRegex(autograph.InvalidArgument, "arrays of object are not taken"):
            self.names({"x": np.array(["a"], object)})
        for wrong in (3, [], [np.zeros(1)]):
            with self.assertRaisesRegex(TypeError, "inputs are a folder, a mapping"):
                self.names(wrong)
        path = self.folder / "x.npy"
        np.save(path, np.zeros(4))
        whole = path.read_bytes()
        for cut in (3, 20, len(whole) - 1):
            path.write_bytes(whole[:cut])
            with self.assertRaisesRegex(autograph.InvalidArgument, "x.npy: "):
                self.names(self.folder)
        np.save(path, np.array([{}]), allow_pickle=True)
        with self.assertRaisesRegex(autograph.InvalidArgument, "allow_pickle=False"):
            self.names(self.folder)
        for odd in (np.zeros(2, ">f4"), np.asfortranarray(np.zeros((2, 2)))):
            np.save(path, odd)
            with self.assertRaisesRegex(autograph.InvalidArgument, "big-endian or in Fortran"):
                self.names(self.folder)


class OptimizeTest(unittest.TestCase):
    """With a server and without one."""

    def check(self, result: autograph.Result, name: str) -> None:
        """Checks that the set was compared on first."""
        compared = result.report.result.compared_inputs
        self.assertEqual(compared[0].inputs, name)
        self.assertEqual(compared[0].left_out, "")
        self.assertEqual(compared[1].inputs, "usual")

    def test_a_server_gets_arrays(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        model, x = service.zoo("tiny_inception"), np.full((1, 3, 15, 15), 0.5, "f4")
        with Client(service.address) as client:
            result = client.optimize(model, device=DEVICE, rounds=1, inputs={"input": x})
            self.check(result, "set_00")
            again = client.optimize(model, device=DEVICE, rounds=1, inputs=[{"input": x}])
            self.assertTrue(again.cached)
            self.assertIsNone(client.cached(model, device=DEVICE, rounds=1))
            unknown = "inputs set_00: the model has no input input_; did you mean 'input'"
            with self.assertRaisesRegex(autograph.InvalidArgument, unknown):
                client.optimize(model, device=DEVICE, rounds=1, inputs={"input_": x})

    def test_no_server_is_needed(self) -> None:
        place = Place()
        self.addCleanup(place.close)
        model, x = place.zoo("tiny_inception"), np.full((1, 3, 15, 15), 0.5, "f4")
        variables = {**place.variables, "AUTOGRAPH_PROGRAM": str(BUILD / "autograph")}
        with mock.patch.dict(os.environ, variables, clear=True):
            result = autograph.optimize(model, device=DEVICE, rounds=1, inputs={"input": x})
        self.check(result, "set_00")


if __name__ == "__main__":
    unittest.main()
