"""The runtime's C interface (runtime/autograph.h) by ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
)
from pathlib import Path
from typing import Any, List

from .errors import Code, FailedPrecondition, error_of

LIBRARY_VARIABLE = "AUTOGRAPH_LIBRARY"
# Programs and libraries that a wheel for one platform contains.
NATIVE = Path(__file__).with_name("_native")


class TensorInfoC(Structure):
    """ag_tensor_info."""

    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("bytes", c_size_t),
    ]


class InputShapeC(Structure):
    """ag_input_shape."""

    _fields_ = [("input", c_char_p), ("rank", c_int32), ("shape", POINTER(c_int64))]


class TensorC(Structure):
    """ag_tensor."""

    _fields_ = [
        ("dtype", c_int),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("data", c_void_p),
    ]


class ValueC(Structure):
    """ag_value."""

    _fields_ = [("is_none", c_int32), ("count", c_size_t), ("tensors", POINTER(TensorC))]


class OptionsC(Structure):
    """ag_session_options."""

    _fields_ = [
        ("size", c_size_t),
        ("device", c_char_p),
        ("plan", c_int),
        ("streams", c_int32),
        ("shapes", POINTER(InputShapeC)),
        ("shapes_count", c_size_t),
        ("tune", c_int32),
        ("tuned_plans", c_char_p),
    ]


# The functions that this package uses: result, arguments. Handles are void pointers.
_FUNCTIONS = {
    "ag_version": (c_char_p, []),
    "ag_last_error": (c_char_p, []),
    "ag_session_create": (
        c_int,
        [c_void_p, c_size_t, POINTER(OptionsC), POINTER(c_void_p)],
    ),
    "ag_session_create_from_file": (c_int, [c_char_p, POINTER(OptionsC), POINTER(c_void_p)]),
    "ag_session_destroy": (None, [c_void_p]),
    "ag_session_input_count": (c_size_t, [c_void_p]),
    "ag_session_output_count": (c_size_t, [c_void_p]),
    "ag_session_input": (POINTER(TensorInfoC), [c_void_p, c_size_t]),
    "ag_session_output": (POINTER(TensorInfoC), [c_void_p, c_size_t]),
    "ag_session_warning_count": (c_size_t, [c_void_p]),
    "ag_session_warning": (c_char_p, [c_void_p, c_size_t]),
    "ag_session_uses_carried_plan": (c_int, [c_void_p]),
    "ag_session_run_timed": (
        c_int,
        [c_void_p, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_int64)],
    ),
    "ag_session_input_is_open": (c_int, [c_void_p, c_size_t, c_int32]),
    "ag_session_input_kind": (c_int, [c_void_p, c_size_t]),
    "ag_session_output_kind": (c_int, [c_void_p, c_size_t]),
    "ag_session_run_values": (c_int, [c_void_p, POINTER(ValueC), c_size_t, POINTER(c_void_p)]),
    "ag_results_value": (POINTER(ValueC), [c_void_p, c_size_t]),
    "ag_results_destroy": (None, [c_void_p]),
}


def _candidates() -> List[str]:
    named = os.environ.get(LIBRARY_VARIABLE, "")
    if named:
        return [named]
    inside = NATIVE / "libautograph.so"
    return ([str(inside)] if inside.exists() else []) + ["libautograph.so.0"]


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """Returns the loaded library: AUTOGRAPH_LIBRARY, else the package's own, else the system's.

    Raises:
        FailedPrecondition: no library loads; the message lists the places that were tried.
    """
    tried = []
    for path in _candidates():
        try:
            return _declare(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            tried.append(f"{path}: {error}")
    raise FailedPrecondition(
        Code.FAILED_PRECONDITION,
        "running a model needs libautograph.so: install a wheel that has it (scripts/build.sh, then "
        "scripts/wheel.sh) or AutoGraph itself (cmake --install build), or set "
        f"{LIBRARY_VARIABLE} to its path. Tried {'; '.join(tried)}",
    )


def _declare(found: Any) -> Any:
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype = result
        function.argtypes = arguments
    return found


def runtime_version() -> str:
    """Returns the version of the runtime library. Raises FailedPrecondition: no library loads."""
    return str(library().ag_version().decode())


def check(status: int) -> None:
    """Raises the error of a call of the library that did not return AG_OK.

    REQUIRES: called in the thread that made the call, before it makes another.
    """
    if status != 0:
        raise error_of(status, library().ag_last_error().decode("utf-8", "replace"))
