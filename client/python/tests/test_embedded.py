"""optimize() without a server, and the program behind it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

import autograph
from autograph.options import Options, flags_of
from service import BUILD, DEVICE, LONG, Place, Service, eventually


def processes_with(word: str) -> List[int]:
    """Returns the ids of running processes whose command line has `word`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


class EmbeddedTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self) -> None:
        self.place = Place()
        self.addCleanup(self.place.close)
        variables = {**self.place.variables, "AUTOGRAPH_PROGRAM": str(BUILD / "autograph")}
        patch = mock.patch.dict(os.environ, variables, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_model_is_made_faster_and_remembered(self) -> None:
        model = self.place.zoo("tiny_inception")
        result = autograph.optimize(model, device=DEVICE, rounds=2, time_seconds=60)
        self.assertTrue(result.faster)
        self.assertFalse(result.cached)
        self.assertEqual(result.model_name, "tiny_inception.onnx")
        self.assertEqual(result.report.request.budget.rounds, 2)
        self.assertGreater(len(result.onnx), 1000)
        again = autograph.optimize(
            model.read_bytes(),
            device=DEVICE,
            rounds=2,
            time_seconds=60,
            data=self.place.folder / "data",
        )
        self.assertTrue(again.cached)
        self.assertEqual((again.onnx, again.report_json), (result.onnx, result.report_json))

    def test_it_is_the_servers_answer(self) -> None:
        model = self.place.zoo("tiny_resnet")
        here = autograph.optimize(model, device=DEVICE, rounds=1)
        service = Service()
        self.addCleanup(service.close)
        at_server = autograph.optimize(model, server=service.address, device=DEVICE, rounds=1)
        self.assertEqual(here.onnx, at_server.onnx)
        with mock.patch.dict(os.environ, AUTOGRAPH_SERVER=service.address):
            self.assertTrue(autograph.optimize(model, device=DEVICE, rounds=1).cached)

    def test_what_is_wrong_is_said(self) -> None:
        model = self.place.zoo("tiny_cnn")
        cases: List[Any] = [
            ("no model", b"\x07not a model", {}, autograph.InvalidArgument, "not ONNX"),
            ("no file", "missing.onnx", {}, autograph.NotFound, "read missing.onnx"),
            ("device", model, {"device": "tpu"}, autograph.InvalidArgument, "tpu"),
            ("number", model, {"rounds": -1}, autograph.InvalidArgument, "-1"),
            ("rule", model, {"without": ["no"]}, autograph.InvalidArgument, "no rule is called no"),
            ("server only", model, {"remeasure": True}, autograph.Unimplemented, "remeasure: only a server"),
            ("name", model, {"round": 1}, TypeError, "there is no option 'round'"),
        ]
        for name, what, options, kind, message in cases:
            with self.subTest(name), self.assertRaises(kind) as caught:
                autograph.optimize(what, **{"device": DEVICE, **options})
            self.assertIn(message, str(caught.exception), name)

    def test_a_missing_program_is_said(self) -> None:
        for variables, message in (
            (
                {"AUTOGRAPH_PROGRAM": "/no/autograph"},
                "AUTOGRAPH_PROGRAM=/no/autograph is no program",
            ),
            ({"AUTOGRAPH_PROGRAM": "", "PATH": "/nowhere"}, "it is not on PATH: install a wheel"),
        ):
            without = mock.patch("autograph.embedded.NATIVE", Path("/nowhere"))
            with mock.patch.dict(os.environ, variables), without:
                with self.assertRaisesRegex(autograph.FailedPrecondition, message):
                    autograph.optimize(b"x", device=DEVICE)

    def test_every_option_has_a_flag_or_a_refusal(self) -> None:
        values: Any = {
            "device": "cpu", "shapes": {"x": (1, 3), "s": [7]}, "inputs": "folder",
            "shape_sets": [{"x": (2, 3), "s": [7]}, {"x": (4, 3)}], "precision": "fp32",
            "tolerance": 1e-4, "rounds": 1, "expansions": 2, "graphs": 3, "stale_graphs": 9, "cell_graphs": 0, "candidates": 4,
            "search": "paper_without_dp", "piece_nodes": 30, "region_nodes": 90,
            "alpha": 0.5, "beta": 1.5,
            "time_seconds": 5.5, "streams": 6, "batch": 8, "objective": "throughput", "seed": 7, "without": ["a", "b"], "no_cache": True,
            "cold_cache": True, "target": "device", "keep_bytes": True, "onnxruntime": "off",
        }  # fmt: skip
        refused = {"nonfinite_strict": True, "remeasure": True}
        self.assertEqual(sorted({**values, **refused}), sorted(Options.__annotations__))
        self.assertEqual(
            " ".join(flags_of(values)),
            "--device cpu --shape x=1x3 --shape s=7 --shape-set x=2x3 s=7 --shape-set x=4x3 "
            "--precision fp32 --tolerance 0.0001 --rounds 1 "
            "--expansions 2 --graphs 3 --stale-graphs 9 --cell-graphs 0 --candidates 4 --search paper-without-dp --piece-nodes 30 --region-nodes 90 --alpha 0.5 --beta 1.5 --budget 5.5s --streams 6 --batch 8 --objective throughput --seed 7 "
            "--without a --without b --no-cache --cold-cache --target device --keep-bytes --ort off",
        )
        for name, value in refused.items():
            with self.assertRaises(autograph.Unimplemented):
                flags_of({name: value})
        known = self.place.cli("optimize", "--help")
        for flag in flags_of(values):
            if flag.startswith("--"):
                self.assertIn(flag, known)

    def test_the_baseline_is_of_this_python(self) -> None:
        fake = self.place.folder / "autograph"
        fake.write_text('#!/bin/sh\necho "$AUTOGRAPH_PYTHON" >&2\nexit 2\n')
        fake.chmod(0o755)
        for variables, python in (({}, sys.executable), ({"AUTOGRAPH_PYTHON": "mine"}, "mine")):
            with mock.patch.dict(os.environ, AUTOGRAPH_PROGRAM=str(fake), **variables):
                with self.assertRaisesRegex(autograph.InvalidArgument, re.escape(python)):
                    autograph.optimize(b"x", device=DEVICE)

    def test_a_timeout_stops_the_search(self) -> None:
        model = self.place.zoo("tiny_nasnet")
        with self.assertRaisesRegex(TimeoutError, "no answer after 0.5 s; the search was stopped"):
            autograph.optimize(model, timeout=0.5, **LONG)
        self.assertEqual(processes_with(str(model)), [])

    def test_ctrl_c_stops_the_search(self) -> None:
        model = self.place.zoo("tiny_nasnet")
        script = f"import autograph; autograph.optimize({str(model)!r}, **{LONG!r})"
        words, here = [sys.executable, "-c", script], {"TMPDIR": str(self.place.folder)}
        with subprocess.Popen(words, stderr=-1, text=True, env={**os.environ, **here}) as child:
            search = f"optimize\0{model}"
            self.assertTrue(eventually(lambda: processes_with(search)))
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=20)
        self.assertIn("KeyboardInterrupt", err)
        self.assertEqual(processes_with(search), [])
        self.assertEqual(list(self.place.folder.glob("autograph-*")), [])


if __name__ == "__main__":
    unittest.main()
