"""The user's own inputs: arrays or a folder, as the sets of bytes that a server takes.

A set has an array for each input of the model. Its bytes are those of docs/protocol.md, "Inputs";
the command line makes the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple, Union

import numpy as np

from ._external import _fields, _NotONNXError, _varints
from ._model import Model
from .errors import Code, InvalidArgument, NotFound

Arrays = Mapping[str, Any]
InputsLike = Union[str, "os.PathLike[str]", Arrays, Sequence[Arrays]]

_FIRST_LINE = b"autograph-inputs 1\n"
_TYPES = {
    "<f4": "f32", "<f2": "f16", "<f8": "f64", "|b1": "bool", "<i8": "i64", "<i4": "i32",
    "<i2": "i16", "|i1": "i8", "<u8": "u64", "<u4": "u32", "<u2": "u16", "|u1": "u8",
}  # fmt: skip

# Fields of TensorProto, and its element types: the field of its typed data and numpy's type.
_DIMS, _TYPE, _NAME, _RAW = 1, 2, 8, 9
_ELEMENTS = {
    1: (4, "<f4"), 2: (5, "|u1"), 3: (5, "|i1"), 4: (5, "<u2"), 5: (5, "<i2"), 6: (5, "<i4"),
    7: (7, "<i8"), 9: (5, "|b1"), 10: (5, "<f2"), 11: (10, "<f8"), 12: (11, "<u4"),
    13: (11, "<u8"),
}  # fmt: skip


class InputSet(NamedTuple):
    """A set with its name and the bytes to send."""

    name: str
    blob: Model


def sets_of(options: Mapping[str, Any]) -> List[InputSet]:
    """Returns the sets of the option `inputs`, in order; none without it.

    Raises:
        NotFound: there is no such folder. InvalidArgument: a file or an array cannot be used.
        TypeError: `inputs` is something else.
    """
    if options.get("inputs") is None:
        return []
    return [InputSet(name, Model(encode(arrays))) for name, arrays in _named(options["inputs"])]


def write_folder(inputs: InputsLike, folder: Path) -> Path:
    """Returns the folder for ``autograph optimize --inputs``: the one named, or a new one."""
    if isinstance(inputs, (str, os.PathLike)):
        return Path(inputs)
    for name, arrays in _named(inputs):
        (folder / name).mkdir(parents=True)
        for tensor, value in arrays.items():
            np.save(folder / name / f"{_stem(tensor)}.npy", _array(tensor, value))
    return folder


def encode(arrays: Arrays) -> bytes:
    """Returns the bytes of a set; equal sets have equal bytes."""
    parts = [_FIRST_LINE]
    for tensor in sorted(arrays, key=lambda name: name.encode()):
        array, name = _array(tensor, arrays[tensor]), tensor.encode()
        sizes = "x".join(map(str, array.shape)) or "-"
        parts.append(f"{len(name)} {_TYPES[array.dtype.str]} {sizes} {array.nbytes}\n".encode())
        parts += [name, array.tobytes()]
    return b"".join(parts)


def _named(inputs: Any) -> List[Tuple[str, Arrays]]:
    if isinstance(inputs, (str, os.PathLike)):
        return list(_sets_in(Path(inputs)))
    sets = [inputs] if isinstance(inputs, Mapping) else inputs
    if isinstance(sets, (list, tuple)) and sets and all(isinstance(s, Mapping) for s in sets):
        return [(f"set_{i:02}", arrays) for i, arrays in enumerate(sets)]
    raise TypeError("inputs are a folder, a mapping from names to arrays, or a list of mappings")


def _array(tensor: str, value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    little = array.dtype.newbyteorder("<")
    if little.str not in _TYPES:
        raise InvalidArgument(
            Code.INVALID_ARGUMENT, f"inputs: {tensor}: arrays of {array.dtype} are not taken"
        )
    return np.asarray(array, dtype=little, order="C")


def _stem(tensor: str) -> str:
    """Returns the name of a file, as `autograph run --output` chooses it."""
    kept = (c if c.isascii() and (c.isalnum() or c in "-.") else "_" for c in tensor)
    return "".join(kept)


def _sets_in(folder: Path) -> Iterator[Tuple[str, Arrays]]:
    if not folder.exists():
        raise NotFound(Code.NOT_FOUND, f"inputs: {folder}: there is no such folder")
    if not folder.is_dir():
        raise InvalidArgument(Code.INVALID_ARGUMENT, f"inputs: {folder}: a file, no folder")
    found = False
    below = sorted(path for path in folder.iterdir() if path.is_dir())
    for place in [folder, *(path for path in below if not path.name.startswith("."))]:
        arrays = _arrays_in(place)
        if arrays:
            found = True
            yield place.resolve().name, arrays
    if not found:
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f"inputs: {folder}: no NAME.npy or NAME.pb in it or in a folder below it",
        )


def _arrays_in(folder: Path) -> Dict[str, np.ndarray[Any, Any]]:
    arrays: Dict[str, np.ndarray[Any, Any]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".npy", ".pb") or path.name.startswith((".", "output_")):
            continue
        try:
            if path.suffix == ".npy":
                name, array = path.stem, np.load(path, allow_pickle=False)
            else:
                name, array = _tensor_proto(path)
        except (ValueError, EOFError, OSError, _NotONNXError) as error:
            raise InvalidArgument(Code.INVALID_ARGUMENT, f"{path}: {error}") from error
        if array.dtype.str.startswith(">") or not array.flags.c_contiguous:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT, f"{path}: big-endian or in Fortran order; save it plainly"
            )
        if name in arrays:
            raise InvalidArgument(Code.INVALID_ARGUMENT, f"{path}: input {name} is there twice")
        arrays[name] = array
    return arrays


def _tensor_proto(path: Path) -> Tuple[str, np.ndarray[Any, Any]]:
    """Returns an input's name and data; input_N.pb has the tensor's own name, if any."""
    dims: List[int] = []
    kind, own_name, raw = 0, "", None
    typed: Dict[int, List[bytes]] = {}
    numbers: Dict[int, List[int]] = {}
    for number, value, payload, _ in _fields(memoryview(path.read_bytes())):
        if number == _DIMS:
            dims += [value] if payload is None else list(_varints(payload))
        elif number == _TYPE:
            kind = value
        elif number == _NAME and payload is not None:
            own_name = bytes(payload).decode("utf-8", "replace")
        elif number == _RAW and payload is not None:
            raw = bytes(payload)
        elif payload is not None:
            typed.setdefault(number, []).append(bytes(payload))
        else:
            numbers.setdefault(number, []).append(value)
    if kind not in _ELEMENTS:
        raise ValueError(f"elements of ONNX's type {kind} are not taken")
    field, dtype = _ELEMENTS[kind]
    if raw is not None:
        flat = np.frombuffer(raw, dtype)
    elif field in (4, 10):
        flat = np.frombuffer(b"".join(typed.get(field, [])), dtype)
    else:
        packed = [v for part in typed.get(field, []) for v in _varints(memoryview(part))]
        values = np.array(packed + numbers.get(field, []), dtype=np.int64)
        flat = values.astype("<u2").view(dtype) if kind == 10 else values.astype(dtype)
    name = own_name if own_name and path.stem.startswith("input_") else path.stem
    return name, flat.reshape(dims)
