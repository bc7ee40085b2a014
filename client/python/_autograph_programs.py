"""The commands of a wheel that has the programs: each becomes the program of its name.

Not part of the package, because importing that would take longer than most commands.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn


def _become(name: str) -> NoReturn:
    program = Path(__file__).resolve().parent / "autograph" / "_native" / name
    os.execv(program, [name, *sys.argv[1:]])


def autograph() -> NoReturn:
    """Runs `autograph`."""
    _become("autograph")


def autographd() -> NoReturn:
    """Runs `autographd`."""
    _become("autographd")


def autograph_worker() -> NoReturn:
    """Runs `autograph-worker`."""
    _become("autograph-worker")
