"""The installed wheel alone: its programs and library, without the rest of AutoGraph."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

import autograph
from autograph._library import NATIVE
from service import DEVICE, Place

PROGRAMS = ("autograph", "autographd", "autograph-worker")

# Of glibc; the wheel contains all others.
SYSTEM = re.compile(r"/(ld-linux[^/]*|lib(c|m|dl|rt|util|pthread|resolv|anl|nsl|mvec))\.so[.0-9]*$")

OPTIMIZE = """
import sys
import autograph
import numpy as np
result = autograph.optimize(sys.argv[1], device=sys.argv[2], rounds=2)
print(repr(result))
with autograph.Session(result.save(sys.argv[3]), device="cpu:1", plan="input") as session:
    x = np.ones(session.inputs[0].shape, np.float32)
    print(session(x).shape)
"""


class WheelTest(unittest.TestCase):
    """Every test in an empty home, with no path to anything."""

    def setUp(self) -> None:
        self.place = Place()
        self.addCleanup(self.place.close)

    def alone(self, *words: str) -> str:
        """Runs a command that sees only the wheel; returns its output."""
        home = {"HOME": str(self.place.folder), "PATH": "/nowhere"}
        done = subprocess.run(words, env=home, cwd=home["HOME"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def command(self, name: str) -> str:
        """Returns the path of a command of this environment."""
        return str(Path(sys.executable).parent / name)

    def test_the_programs_are_commands(self) -> None:
        for name in PROGRAMS:
            begin = time.monotonic()
            said = self.alone(self.command(name), "--version")
            self.assertTrue(said.startswith(f"{name} {autograph.__version__}"), said)
            self.assertLess(time.monotonic() - begin, 5, name)

    def test_they_load_nothing_from_outside(self) -> None:
        files = [path for path in NATIVE.iterdir() if path.is_file()]
        self.assertGreater(len(files), len(PROGRAMS) + 1)
        said = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=True)
        wanted = re.findall(r"=> (\S.*?)(?: \(0x[0-9a-f]+\))?$", said.stdout, flags=re.MULTILINE)
        self.assertTrue(any(str(NATIVE) in path for path in wanted))
        outside = {path for path in wanted if str(NATIVE) not in path and not SYSTEM.search(path)}
        # The CUDA module, where it is built, loads the toolkit of the machine it runs on.
        outside = {path for path in outside if not re.search(r"/lib(cuda|cublas|cudnn|nv)", path)}
        self.assertEqual(outside, set())
        self.assertNotIn("not found", said.stdout)

    def test_licenses_of_others_are_inside(self) -> None:
        found = [path.name for path in (NATIVE / "licenses").iterdir()]
        for name in ("libdnnl", "libgrpc++", "libprotobuf", "libonnx", "libssl"):
            self.assertTrue(any(package.startswith(name) for package in found), (name, found))

    def test_it_optimizes_and_runs(self) -> None:
        self.alone(self.command("autograph"), "zoo", "tiny_inception", "-o", "in.onnx")
        words = [sys.executable, "-c", OPTIMIZE, "in.onnx", DEVICE, "out.onnx"]
        said = self.alone(*words).splitlines()
        self.assertRegex(said[0], r"^<autograph\.Result FASTER 1\.\d+x \(1\.\d+ to 1\.\d+\) over ")
        self.assertEqual(said[1], "(1, 10)")
        self.alone(self.command("autograph"), "verify", "in.onnx", "--against", "out.onnx")


if __name__ == "__main__":
    unittest.main()
