"""The runtime behind NumPy arrays."""

from __future__ import annotations

import base64
import gc
import os
import shutil
import subprocess
import sys
import threading
import unittest
import warnings
import weakref
from pathlib import Path
from typing import Any, Dict, List, Tuple
from unittest import mock

import autograph
import numpy as np
from autograph import Session, SessionWarning
from autograph.session import _stand_apart
from service import BUILD, DEVICE, Place

ORACLE = os.environ.get("AUTOGRAPH_PYTHON", "")
CPU = "cpu:1"
# x: float[n,2]; r = Relu(x); at = NonZero(r), whose size depends on values.
OPEN_MODEL = base64.b64decode(
    "CAg6ZgoMCgF4EgFyIgRSZWx1ChAKAXISAmF0IgdOb25aZXJvEgFnWhQKAXgSDwoNCAESCQoDEgFuCgII"
    "AmIUCgFyEg8KDQgBEgkKAxIBbgoCCAJiFQoCYXQSDwoNCAcSCQoCCAIKAxIBa0IECgAQEQ=="
)


def has_onnxruntime() -> bool:
    """Returns True when a Python with ONNX Runtime exists to compare with."""
    if shutil.which(ORACLE) is None:
        return False
    words = [ORACLE, "-c", "import onnxruntime"]
    return subprocess.run(words, capture_output=True).returncode == 0


def seeded(session: Session) -> Dict[str, Any]:
    """Returns standard normal floats, or integers 0 or 1."""
    random = np.random.default_rng(1)
    made = {}
    for info in session.inputs:
        floats = np.issubdtype(info.dtype, np.floating)
        data = random.standard_normal(info.shape) if floats else random.integers(0, 2, info.shape)
        made[info.name] = np.asarray(data).astype(info.dtype)
    return made


@unittest.skipUnless((BUILD / "libautograph.so").exists(), "libautograph.so is not built")
class SessionTest(unittest.TestCase):
    """One folder of models for all of its tests."""

    place: Place
    model: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = Place()
        cls.model = cls.place.zoo("tiny_inception")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.place.close()

    def open(self, **options: Any) -> Tuple[Session, Dict[str, Any]]:
        """Returns a session that ends with the test, and inputs for it."""
        session = Session(self.model, **{"device": CPU, **options})
        self.addCleanup(session.close)
        return session, seeded(session)

    @unittest.skipUnless(has_onnxruntime(), "AUTOGRAPH_PYTHON has no onnxruntime")
    def test_it_computes_what_onnx_runtime_does(self) -> None:
        for name in ("tiny_cnn", "tiny_inception", "tiny_resnet", "tiny_bert", "tiny_sru"):
            model = self.place.zoo(name)
            with self.subTest(name), Session(str(model), device=CPU) as session:
                inputs = seeded(session)
                files = [str(self.place.folder / f"{name}.{kind}.npz") for kind in ("in", "out")]
                np.savez(files[0], **inputs)
                script = Path(__file__).with_name("reference.py")
                subprocess.run([ORACLE, str(script), str(model), *files], check=True)
                outputs = session.run(inputs)
                expected = np.load(files[1])
                self.assertEqual(sorted(outputs), sorted(expected.files))
                for key, array in outputs.items():
                    self.assertEqual(array.dtype, expected[key].dtype)
                    self.assertEqual(array.shape, expected[key].shape)
                    largest = np.max(np.abs(expected[key])) or 1.0
                    self.assertLess(np.max(np.abs(array - expected[key])) / largest, 1e-3, key)

    def test_it_says_what_the_model_takes(self) -> None:
        session, _ = self.open()
        self.assertEqual([str(info) for info in session.inputs], ["input: float32[1, 3, 15, 15]"])
        self.assertEqual([str(info) for info in session.outputs], ["logits: float32[1, 10]"])
        self.assertEqual(session.inputs[0].onnx_type, "float32")
        self.assertIn("input: float32[1, 3, 15, 15]", repr(session))
        self.assertFalse(session.uses_carried_plan)
        self.assertEqual(session.warnings, ())

    def test_file_and_bytes_give_the_same_bits(self) -> None:
        session, inputs = self.open()
        expected = session.run(inputs)["logits"]
        for kind in (bytes, bytearray, memoryview):
            with Session(kind(self.model.read_bytes()), device=CPU) as other:
                np.testing.assert_array_equal(other.run(inputs)["logits"], expected)

    def test_a_plan_that_fits_is_used(self) -> None:
        out = self.place.folder / "carried.onnx"
        words = ["optimize", str(self.model), "-o", str(out), "--device", DEVICE]
        self.place.cli(*words)
        with Session(out, device=DEVICE) as session:
            self.assertTrue(session.uses_carried_plan)
        with self.assertWarnsRegex(SessionWarning, "ignored: made for environment"):
            session = Session(out, device=CPU)
        self.assertFalse(session.uses_carried_plan)
        self.assertEqual(len(session.warnings), 1)
        inputs = seeded(session)
        mine, inputs_of_mine = self.open()
        np.testing.assert_allclose(
            session.run(inputs)["logits"], mine.run(inputs_of_mine)["logits"], rtol=1e-3, atol=1e-3
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaises(SessionWarning):
                Session(out, device=CPU)

    def test_arrays_that_do_not_fit_are_refused(self) -> None:
        session, good = self.open()
        x = good["input"]
        cases: List[Any] = [
            ("none", {}, "input: missing input; the model has input: float32[1, 3, 15, 15]"),
            ("other", {**good, "y": x}, "input: unknown y; the model has"),
            ("shape", {"input": x[:, :2]}, "expected float32[1, 3, 15, 15], got float32[1, 2,"),
            ("rank", {"input": x[0]}, "got float32[3, 15, 15]"),
            ("dtype", {"input": x.astype(np.float64)}, "got float64[1, 3, 15, 15]; convert it: "),
            ("order", {"input": x.astype(">f4")}, "got >f4[1, 3, 15, 15]; convert it"),
            ("list", {"input": x.tolist()}, "got a list; pass a numpy.ndarray"),
        ]
        for name, inputs, message in cases:
            with self.subTest(name), self.assertRaises(autograph.InvalidArgument) as caught:
                session.run(inputs)
            self.assertIn(message, str(caught.exception))

    def test_memory_order_is_converted_and_nothing_else(self) -> None:
        session, good = self.open()
        x, expected = good["input"], session.run(good)["logits"]
        wide = np.zeros((1, 3, 15, 30), np.float32)
        wide[..., ::2] = x
        shifted = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
        shifted[:] = x
        frozen = x.copy()
        frozen.flags.writeable = False
        for name, array in {
            "fortran": np.asfortranarray(x),
            "strided": wide[..., ::2],
            "unaligned": shifted,
            "read-only": frozen,
        }.items():
            with self.subTest(name):
                np.testing.assert_array_equal(session.run({"input": array})["logits"], expected)

    def test_outputs_are_written_in_place(self) -> None:
        session, good = self.open()
        expected = session.run(good)["logits"]
        out = np.full((1, 10), np.nan, np.float32)
        results = session.run(good, out={"logits": out})
        self.assertIs(results["logits"], out)
        np.testing.assert_array_equal(out, expected)
        frozen = out.copy()
        frozen.flags.writeable = False
        shared = np.zeros(3 * 15 * 15, np.float32)
        cases: List[Any] = [
            ("name", {"y": out}, "out: unknown y; the model has logits: float32[1, 10]"),
            ("shape", {"logits": out[0]}, "out logits: expected float32[1, 10], got float32[10]"),
            ("dtype", {"logits": out.astype(np.float64)}, "expected float32[1, 10], got float64"),
            ("order", {"logits": np.zeros((1, 20), np.float32)[:, ::2]}, "must be C-contiguous"),
            ("read-only", {"logits": frozen}, "writable"),
            ("shared", {"logits": shared[:10].reshape(1, 10)}, "shares memory with input"),
        ]
        for name, given, message in cases:
            with self.subTest(name), self.assertRaises(autograph.InvalidArgument) as caught:
                session.run({"input": shared.reshape(1, 3, 15, 15)}, out=given)
            self.assertIn(message, str(caught.exception))

    def test_ranges_of_memory_stand_apart_or_not(self) -> None:
        for name, inputs, outputs, apart in (
            ("beside each other", [(0, 8)], [(8, 8)], True),
            ("one input twice", [(0, 8), (0, 8)], [(8, 8)], True),
            ("input within an output", [(4, 2)], [(0, 8)], False),
            ("output within an input", [(0, 8)], [(4, 2)], False),
            ("output over a far end", [(0, 20), (2, 2)], [(8, 4)], False),
            ("two outputs", [], [(0, 8), (7, 8)], False),
            ("one output twice", [], [(0, 8), (0, 8)], False),
            ("nothing in it", [(0, 8)], [(4, 0)], True),
        ):
            with self.subTest(name):
                self.assertEqual(_stand_apart(inputs, outputs), apart)

    def test_it_is_called_with_arrays(self) -> None:
        session, good = self.open()
        x, expected = good["input"], session.run(good)["logits"]
        for name, found in {
            "position": session(x),
            "name": session(input=x),
            "mapping": session({"input": x}),
        }.items():
            with self.subTest(name):
                self.assertIsInstance(found, np.ndarray)
                np.testing.assert_array_equal(found, expected)
        cases: List[Any] = [
            ("too many", (x, x), {}, "2 inputs given; the model has input: float32[1, 3, 15, 15]"),
            ("twice", (x,), {"input": x}, "input input: given twice"),
            ("none", (), {}, "input: missing input"),
            ("unknown", (x,), {"y": x}, "input: unknown y"),
            ("list", (x.tolist(),), {}, "got a list; pass a numpy.ndarray"),
        ]
        for name, arrays, named, message in cases:
            with self.subTest(name), self.assertRaises(autograph.InvalidArgument) as caught:
                session(*arrays, **named)
            self.assertIn(message, str(caught.exception))

    def test_several_inputs_and_outputs_go_by_order(self) -> None:
        with Session(str(self.place.zoo("tiny_bert")), device=CPU) as session:
            inputs = seeded(session)
            self.assertGreater(len(inputs), 1)
            expected = session.run(inputs)
            by_order = session(*[inputs[info.name] for info in session.inputs])
            first = session.inputs[0].name
            rest = {name: array for name, array in inputs.items() if name != first}
            mixed = session(inputs[first], **rest)
        names = [info.name for info in session.outputs]
        for found in (by_order, mixed):
            arrays = found if len(names) > 1 else (found,)
            self.assertEqual(len(arrays), len(names))
            for name, array in zip(names, arrays):
                np.testing.assert_array_equal(array, expected[name])

    def test_it_runs_as_onnx_runtime_is_run(self) -> None:
        session, good = self.open()
        expected = session.run(good)["logits"]
        out = np.empty_like(expected)
        for found in (
            session.run(None, good),
            session.run(["logits"], good),
            session.run(None, good, out={"logits": out}),
        ):
            self.assertIsInstance(found, list)
            self.assertEqual(len(found), 1)
            np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_array_equal(out, expected)
        self.assertEqual(session.run([], good), [])
        with self.assertRaisesRegex(autograph.InvalidArgument, "output: unknown y; the model has"):
            session.run(["y"], good)
        wrong: Any = session.run
        for arguments in ((None,), ("logits", good), (good, good), (["logits"],)):
            with self.assertRaisesRegex(TypeError, "run takes inputs, or a list of outputs' names"):
                wrong(*arguments)

    def test_open_sizes_and_sizes_that_depend_on_values(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = Session(OPEN_MODEL, device=CPU, shapes={"x": (2, 2)})
        self.addCleanup(session.close)
        self.assertIn("1 of 2 nodes run one by one", str(caught[0].message))
        self.assertEqual(session.inputs[0].open_axes, (0,))
        self.assertEqual([info.shape for info in session.outputs], [None, None])
        self.assertEqual(str(session.outputs[1]), "at: int64[...]")
        for rows in (2, 3, 1, 5):
            x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) - 2
            found = session.run({"x": x})
            np.testing.assert_array_equal(found["r"], np.maximum(x, 0))
            np.testing.assert_array_equal(found["at"], np.nonzero(np.maximum(x, 0)))
        with self.assertRaisesRegex(autograph.InvalidArgument, r"expected float32\[2, 2\], got"):
            session.run({"x": np.zeros((2, 3), np.float32)})
        with self.assertRaisesRegex(autograph.InvalidArgument, "sizes are known after the run"):
            session.run({"x": x}, out={"r": x.copy()})

    def test_time_is_told(self) -> None:
        session, good = self.open()
        _, nanoseconds = session.run_timed(good)
        self.assertGreater(nanoseconds, 1000)
        self.assertLess(nanoseconds, 10e9)

    def test_what_cannot_be_loaded_is_said(self) -> None:
        missing = self.place.folder / "missing.onnx"
        cases: List[Any] = [
            ("no file", missing, {}, autograph.NotFound, str(missing)),
            ("nothing", b"", {}, autograph.InvalidArgument, ""),
            ("no model", b"\x07not a model", {}, autograph.InvalidArgument, "ONNX"),
            ("device", self.model, {"device": "tpu"}, autograph.InvalidArgument, "tpu"),
            ("plan", self.model, {"plan": "best"}, autograph.InvalidArgument, "'best' is none of"),
            ("shapes", self.model, {"shapes": {"y": (1, 2)}}, autograph.InvalidArgument, "y"),
            ("type", 3, {}, TypeError, "a model is a path or bytes, not int"),
        ]
        for name, model, options, kind, message in cases:
            with self.subTest(name), self.assertRaises(kind) as caught:
                Session(model, **{"device": CPU, **options})
            self.assertIn(message, str(caught.exception))

    def test_threads_may_share_it(self) -> None:
        session, good = self.open()
        expected = session.run(good)["logits"]
        failures: List[str] = []

        def work() -> None:
            for _ in range(50):
                if not np.array_equal(session.run(good)["logits"], expected):
                    failures.append("other bits")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_it_ends_once(self) -> None:
        with Session(self.model, device=CPU) as session:
            inputs = seeded(session)
        session.close()
        with self.assertRaisesRegex(autograph.FailedPrecondition, "this session was closed"):
            session.run(inputs)
        alive = weakref.ref(session)
        del session
        gc.collect()
        self.assertIsNone(alive())

    def test_a_fork_is_told_apart(self) -> None:
        script = (
            "import os, sys, autograph\n"
            f"session = autograph.Session({str(self.model)!r}, device='cpu:1')\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    try:\n"
            "        session.uses_carried_plan\n"
            "    except autograph.FailedPrecondition as error:\n"
            "        print(error, flush=True)\n"
            "    session.close()\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertIn("was made before a fork", done.stdout, done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_the_library_is_looked_for(self) -> None:
        script = (
            "import autograph\n"
            "try:\n"
            "    print(autograph.runtime_version())\n"
            "except autograph.FailedPrecondition as error:\n"
            "    print(error)\n"
        )
        for path, message in (
            (str(BUILD / "libautograph.so"), autograph.__version__),
            ("/nowhere.so", "set AUTOGRAPH_LIBRARY to its path. Tried /nowhere.so: "),
            (sys.executable, "Tried " + sys.executable),
        ):
            with mock.patch.dict(os.environ, AUTOGRAPH_LIBRARY=path):
                words = [sys.executable, "-c", script]
                done = subprocess.run(words, capture_output=True, text=True)
            self.assertIn(message, done.stdout, done.stderr)
        self.assertEqual(autograph.runtime_version(), autograph.__version__)


if __name__ == "__main__":
    unittest.main()
