"""Builds the wheel: generates the wire messages and takes in the programs and the library.

The messages become the private package autograph._wire with a descriptor pool of its own, so that
they clash with nobody else's code generated from the same protos.

AUTOGRAPH_NATIVE_FOLDER names a folder of programs and libraries that runs from anywhere
(scripts/relocate.sh --flat); it becomes autograph/_native, each program a command of the
environment, and the wheel is for the platform AUTOGRAPH_WHEEL_PLATFORM.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
PROTOS = ["measurement", "optimizer", "blobs", "cache", "error"]
NATIVE = os.environ.get("AUTOGRAPH_NATIVE_FOLDER", "")
PROGRAMS = ["autograph", "autographd", "autograph-worker"]

POOL = '''"""Keeps these messages apart from the process's other ones."""
from google.protobuf.descriptor_pool import DescriptorPool

POOL = DescriptorPool()
'''


def proto_folder() -> Path:
    """Returns proto/ of the repository, or the copy beside this file."""
    for folder in (HERE / "proto", HERE.parent.parent / "proto"):
        if (folder / "autograph" / "v1").is_dir():
            return folder
    raise SystemExit("setup.py: proto/autograph/v1 is neither here nor in the repository's root")


def make_private(text: str) -> str:
    """Moves generated code from autograph.v1 and the global pool to this package and its own."""
    text = re.sub(r"^from autograph\.v1 import", "from . import", text, flags=re.MULTILINE)
    text = text.replace("_descriptor_pool.Default()", "_POOL")
    return re.sub(r"^_sym_db = .*$", "from ._pool import POOL as _POOL", text, flags=re.MULTILINE)


def generate(target: Path) -> None:
    """Writes the package of messages and stubs to `target`."""
    import grpc_tools
    from grpc_tools import protoc

    folder = proto_folder()
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as out:
        words = ["protoc", f"-I{folder}", f"-I{well_known}"]
        words += [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        words += [f"autograph/v1/{name}.proto" for name in PROTOS]
        if protoc.main(words) != 0:
            raise SystemExit("setup.py: protoc failed")
        target.mkdir(parents=True, exist_ok=True)
        for file in Path(out, "autograph", "v1").iterdir():
            (target / file.name).write_text(make_private(file.read_text()))
    (target / "_pool.py").write_text(POOL)
    (target / "__init__.py").write_text('"""Generated from proto/autograph/v1; private."""\n')


class BuildPackage(build_py):
    """Adds the generated files to the build."""

    def run(self) -> None:
        """Copies the sources, then generates beside them."""
        super().run()
        package = Path(self.build_lib, "autograph")
        generate(package / "_wire")
        if NATIVE:
            shutil.rmtree(package / "_native", ignore_errors=True)
            shutil.copytree(NATIVE, package / "_native")


class PlatformDistribution(Distribution):
    """A package for one platform."""

    def has_ext_modules(self) -> bool:
        """Returns True, though nothing is compiled here."""
        return True


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and every Python: its programs do not depend on Python."""

    def get_tag(self) -> "tuple[str, str, str]":
        """Returns py3-none-PLATFORM."""
        return ("py3", "none", os.environ["AUTOGRAPH_WHEEL_PLATFORM"])


def commands_of(folder: str) -> "list[str]":
    """Returns the entry points of the programs that exist."""
    names = [name for name in PROGRAMS if Path(folder, name).exists()]
    return [f"{name} = _autograph_programs:{name.replace('-', '_')}" for name in names]


native = {}
commands = {"build_py": BuildPackage}
if NATIVE:
    commands["bdist_wheel"] = PlatformWheel
    native = {
        "distclass": PlatformDistribution,
        "entry_points": {"console_scripts": commands_of(NATIVE)},
    }
setup(
    packages=["autograph"],
    py_modules=["_autograph_programs"],
    package_data={"autograph": ["py.typed"]},
    cmdclass=commands,
    **native,
)
