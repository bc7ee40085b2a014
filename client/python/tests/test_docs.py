"""Checks that docs/python.md and examples/python/ run as they say."""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import os
import re
import subprocess
import sys
import textwrap
import unittest
import warnings
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

import autograph
from autograph import errors
from service import BUILD, DEVICE, ROOT, Service

PAGE = ROOT / "docs" / "python.md"
README = ROOT / "README.md"
EXAMPLES = ROOT / "examples" / "python"


def programs_of(page: str) -> List[str]:
    """Returns the page's indented blocks that are Python."""
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", page, flags=re.MULTILINE)
    texts = [textwrap.dedent(block).strip("\n") for block in blocks]
    return [text + "\n" for text in texts if text and "pip install" not in text]


class DocsTest(unittest.TestCase):
    """One service for the page and the examples."""

    service: Service
    models: Dict[str, Path]

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()
        cls.models = {name: cls.service.zoo(name) for name in ("tiny_inception", "tiny_cnn")}

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    def setUp(self) -> None:
        variables = {**self.service.variables, "AUTOGRAPH_PROGRAM": str(BUILD / "autograph")}
        patch = mock.patch.dict(os.environ, variables, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.service.folder)

    def test_the_pages_programs_run(self) -> None:
        programs = programs_of(PAGE.read_text())
        self.assertEqual(len(programs), 5)
        (self.service.folder / "model.onnx").write_bytes(self.models["tiny_inception"].read_bytes())
        names: Dict[str, Any] = {}
        printed = io.StringIO()
        for number, program in enumerate(programs):
            program = program.replace("127.0.0.1:7450", self.service.address)
            if "Session(" in program and not (BUILD / "libautograph.so").exists():
                continue
            with self.subTest(number), contextlib.redirect_stdout(printed):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", autograph.SessionWarning)
                    exec(compile(program, f"{PAGE.name}[{number}]", "exec"), names)
        self.assertIn("FASTER", printed.getvalue())
        self.assertIn("INVALID_ARGUMENT not ONNX", printed.getvalue())

    def test_the_readmes_program_runs(self) -> None:
        (self.service.folder / "model.onnx").write_bytes(self.models["tiny_cnn"].read_bytes())
        programs = [text for text in programs_of(README.read_text()) if "import autograph" in text]
        self.assertEqual(len(programs), 1)
        names: Dict[str, Any] = {}
        budget: Any = {"device": DEVICE, "rounds": 1}
        quick = mock.patch("autograph.optimize", functools.partial(autograph.optimize, **budget))
        with quick, warnings.catch_warnings():
            warnings.simplefilter("ignore", autograph.SessionWarning)
            exec(compile(programs[0], README.name, "exec"), names)
        names["session"].close()
        self.assertEqual(names["y"].shape, (1, 10))

    def test_the_page_has_every_error_and_option_name_right(self) -> None:
        page = PAGE.read_text()
        rows = dict(re.findall(r"^\| `(\w+)` \| (\w*) ?\|", page, flags=re.MULTILINE))
        real = {
            name: next((b.__name__ for b in kind.__bases__ if b.__module__ == "builtins"), "")
            for name, kind in vars(errors).items()
            if isinstance(kind, type) and errors.AutoGraphError in kind.__bases__
        }
        self.assertEqual(rows, real)
        for program in programs_of(page):
            for node in ast.walk(ast.parse(program)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    if node.value.id == "autograph":
                        self.assertTrue(hasattr(autograph, node.attr), node.attr)

    def run_example(self, *words: str, code: int = 0) -> str:
        """Runs a program of examples/python; returns its output."""
        command = [sys.executable, "-W", "ignore", str(EXAMPLES / words[0]), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_the_examples_run(self) -> None:
        self.assertIn("usage: ", self.run_example("optimize.py", code=2))
        self.assertIn("usage: ", self.run_example("deploy.py", code=2))
        self.assertIn("usage: ", self.run_example("run_model.py", code=2))
        model = str(self.models["tiny_inception"])
        self.assertIn("FASTER", self.run_example("optimize.py", model, "fast.onnx", DEVICE))
        self.assertIn("NOT_FOUND", self.run_example("optimize.py", "no.onnx", "o.onnx", code=1))
        words = ["deploy.py", self.service.address, "out", *map(str, self.models.values())]
        self.assertIn("(searched), written to out/tiny_cnn.onnx", self.run_example(*words))
        self.assertIn("(remembered), written to out/tiny_cnn.onnx", self.run_example(*words))
        if (BUILD / "libautograph.so").exists():
            said = self.run_example("run_model.py", "fast.onnx", model)
            self.assertIn("of the largest value", said)


if __name__ == "__main__":
    unittest.main()
