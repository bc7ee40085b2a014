"""Runs one scenario, MODULE.FUNCTION, of this folder. Exit code 1 and a traceback: what must hold did not."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "long"))

if __name__ == "__main__":
    module, function = sys.argv[1].split(".")
    getattr(importlib.import_module(module), function)()
