"""A model's weights in data files beside it (ONNX: external data).

They are put inside as the model is sent: the server opens no path. The bytes made here are those
that the command line makes (graph/onnx/files), so an answer is found again whoever asks. A result
above 2 GiB, which protobuf's readers do not take, is written as two files.
"""

from __future__ import annotations

import mmap
from pathlib import Path, PurePosixPath
from typing import Dict, Iterator, List, Optional, Tuple

from .errors import Code, InvalidArgument, NotFound, error_of

# Field numbers of onnx.proto: for each message the fields that lead to tensors.
_CHILDREN: Dict[str, Dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "function": {7: "node", 11: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 1, 2, 8, 9, 13, 14
_DATA_FIELDS = frozenset([4, 5, 6, 7, 9, 10, 11, _EXTERNAL_DATA, _DATA_LOCATION])
_EXTERNAL = 1

# Bytes of an element by TensorProto.DataType.
_ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}

PROTOBUF_BYTES_MAX = (1 << 31) - 1  # The most that any ONNX reader takes in one file.

_DATA_BYTES_MIN = 1024  # Smaller weights stay inside a model that is split.
_DEPTH_MAX = 100
_LENGTH_BYTES = 5  # Of a message whose length changed.
_SIZE_MAX = (1 << (7 * _LENGTH_BYTES)) - 1

# Number, varint value, bytes of a length-delimited field, the whole field.
_Field = Tuple[int, int, Optional[memoryview], memoryview]


class _NotONNXError(Exception):
    """The bytes are no protobuf: the server says what they are."""


def pieces_of(path: Path) -> Optional[List[memoryview]]:
    """Returns the model with its weights inside, in pieces; None when they are inside already.

    Raises:
        InvalidArgument: a data file is outside of the model's folder or too short, or a tensor's
            place is wrong. NotFound: a data file is missing.
    """
    with open(path, "rb") as file:
        if path.stat().st_size == 0:
            return None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if mapped.find(b"location") < 0:  # Every tensor with external data has this key.
        return None
    try:
        pieces = _Joiner(path).rewrite("model", "", memoryview(mapped), 0)
    except _NotONNXError:
        return None
    if pieces is not None and sum(map(len, pieces)) > _SIZE_MAX:
        raise error_of(
            Code.RESOURCE_EXHAUSTED, f"{path}: with its weights inside the model passes 32 GiB"
        )
    return pieces


def split(
    onnx: bytes, name: str, *, data_bytes_min: int = _DATA_BYTES_MIN
) -> Tuple[List[memoryview], List[memoryview]]:
    """Returns a model whose large weights are in the file `name` beside it, and that file."""
    splitter = _Splitter(name, data_bytes_min)
    model = memoryview(onnx)
    rest = splitter.rewrite("model", "", model, 0)
    return ([model] if rest is None else rest), splitter.data


class _Rewriter:
    """Writes a model anew around the tensors that change."""

    def rewrite(
        self, kind: str, parent: str, message: memoryview, depth: int
    ) -> Optional[List[memoryview]]:
        """Returns the new message in pieces; None when nothing changes."""
        if depth > _DEPTH_MAX:
            return None
        if kind == "tensor":
            return self.tensor(message, parent)
        pieces: List[memoryview] = []
        changed = False
        for number, _, payload, whole in _fields(message):
            child = _CHILDREN[kind].get(number)
            rewritten = None
            if child is not None and payload is not None:
                rewritten = self.rewrite(child, kind, payload, depth + 1)
            if rewritten is None:
                pieces.append(whole)
            else:
                changed = True
                pieces.append(_head(number, sum(map(len, rewritten))))
                pieces.extend(rewritten)
        return pieces if changed else None

    def tensor(self, message: memoryview, parent: str) -> Optional[List[memoryview]]:
        """Returns a tensor in pieces; None when it stays."""
        raise NotImplementedError


class _Splitter(_Rewriter):
    def __init__(self, name: str, data_bytes_min: int) -> None:
        self.data: List[memoryview] = []
        self._name = name
        self._bytes_min = data_bytes_min
        self._end = 0

    def tensor(self, message: memoryview, parent: str) -> Optional[List[memoryview]]:
        raw = memoryview(b"")
        kept: List[memoryview] = []
        for number, _, payload, whole in _fields(message):
            if number not in _DATA_FIELDS:
                kept.append(whole)
            elif number == _RAW_DATA and payload is not None:
                raw = payload
        if parent != "graph" or len(raw) < self._bytes_min:
            return None
        alignment = 4096 if len(raw) >= 1 << 20 else 64  # As graph/onnx/files/split.cc.
        gap = -self._end % alignment
        offset = self._end + gap
        self.data += [memoryview(bytes(gap)), raw]
        self._end = offset + len(raw)
        for key, value in (("location", self._name), ("offset", offset), ("length", len(raw))):
            text = str(value).encode()
            entry = bytes(_head(1, len(key))) + key.encode() + bytes(_head(2, len(text))) + text
            kept += [_head(_EXTERNAL_DATA, len(entry)), memoryview(entry)]
        return [*kept, memoryview(bytes([_DATA_LOCATION << 3, _EXTERNAL]))]


class _Joiner(_Rewriter):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: Dict[str, memoryview] = {}

    def tensor(self, message: memoryview, parent: str) -> Optional[List[memoryview]]:
        dims: List[int] = []
        data_type, name, is_external = 0, "", False
        said: Dict[str, str] = {}
        kept: List[memoryview] = []
        for number, value, payload, whole in _fields(message):
            if number not in _DATA_FIELDS:
                kept.append(whole)
            if number == _DIMS:
                dims.extend([value] if payload is None else _varints(payload))
            elif number == _DATA_TYPE:
                data_type = value
            elif number == _NAME and payload is not None:
                name = _text(payload)
            elif number == _DATA_LOCATION:
                is_external = value == _EXTERNAL
            elif number == _EXTERNAL_DATA and payload is not None:
                entry = {part[0]: _text(part[2]) for part in _fields(payload)}
                said[entry.get(1, "")] = entry.get(2, "")
        if not is_external:
            return None
        needed: Optional[int] = None
        if data_type in _ELEMENT_BYTES:
            needed = _ELEMENT_BYTES[data_type]
            for dim in dims:
                needed *= dim
        data = self._place(f'{self._path}: tensor "{name}"', said, needed)
        return [*kept, _head(_RAW_DATA, len(data)), data]

    def _place(self, noun: str, said: Dict[str, str], needed: Optional[int]) -> memoryview:
        """Returns the bytes at the place that a tensor says, all of which the file has."""
        location = said.get("location", "")
        offset = _number(noun, "offset", said.get("offset", "")) or 0
        length = _number(noun, "length", said.get("length", ""))
        if needed is not None and needed < 0:
            raise InvalidArgument(Code.INVALID_ARGUMENT, f"{noun}: a negative size")
        data = self._open(noun, location)
        if length is None:
            length = needed if needed is not None else max(len(data) - offset, 0)
        if needed is not None and length != needed:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f'{noun}: type and shape need {needed} bytes, it has {length} in "{location}"',
            )
        if offset + length > len(data):
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f'{noun}: its data file "{location}" is too short: {length} bytes from byte '
                f"{offset} on are needed, it has {len(data)}",
            )
        return data[offset : offset + length]

    def _open(self, noun: str, location: str) -> memoryview:
        if location in self._files:
            return self._files[location]
        plain = PurePosixPath(location)
        folder = self._path.parent.resolve()
        outside = not location or "\0" in location or plain.is_absolute() or ".." in plain.parts
        real = folder if outside else Path(folder, location).resolve()
        if outside or folder not in real.parents:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f'{noun}: its data file "{location}" must lie in the model\'s folder or below it',
            )
        if not real.exists():
            raise NotFound(
                Code.NOT_FOUND, f'{noun}: its data file "{location}": there is no file {real}'
            )
        if not real.is_file():
            raise InvalidArgument(
                Code.INVALID_ARGUMENT, f'{noun}: its data file "{location}" is not a regular file'
            )
        try:
            with open(real, "rb") as file:
                data = memoryview(b"")
                if real.stat().st_size > 0:
                    data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT,
                f'{noun}: its data file "{location}": {error.strerror}',
            ) from error
        self._files[location] = data
        return data


def _number(noun: str, what: str, text: str) -> Optional[int]:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgument(
            Code.INVALID_ARGUMENT,
            f'{noun}: the {what} of its data, "{text}", is no number from 0 on',
        )
    return int(text)


def _text(payload: Optional[memoryview]) -> str:
    return bytes(payload or b"").decode("utf-8", "replace")


def _fields(message: memoryview) -> Iterator[_Field]:
    """Gives the fields of a protobuf message, in order."""
    at, end = 0, len(message)
    while at < end:
        begin = at
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        value, payload = 0, None
        if wire == 0:
            value, at = _varint(message, at)
        elif wire == 2:
            size, at = _varint(message, at)
            payload = message[at : at + size]
            at += size
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        if number == 0 or wire not in (0, 1, 2, 5) or at > end:
            raise _NotONNXError
        yield number, value, payload, message[begin:at]


def _varint(message: memoryview, at: int) -> Tuple[int, int]:
    """Returns a varint, as a signed number, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= (1 << 64) - 1
            return (value - (1 << 64) if value >> 63 else value), at
    raise _NotONNXError


def _varints(packed: memoryview) -> Iterator[int]:
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


def _head(number: int, size: int) -> memoryview:
    """Returns tag and length of a length-delimited field."""
    tag = bytearray()
    rest = number << 3 | 2
    while rest >= 0x80:
        tag.append(rest & 0x7F | 0x80)
        rest >>= 7
    tag.append(rest)
    for i in range(_LENGTH_BYTES):
        more = 0x80 if i + 1 < _LENGTH_BYTES else 0
        tag.append((size >> (7 * i)) & 0x7F | more)
    return memoryview(bytes(tag))
