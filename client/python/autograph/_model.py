"""A model to send: a file or bytes, with its digest."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Iterator, List, Optional, Union

from ._external import pieces_of
from .errors import Code, InvalidArgument, NotFound

CHUNK_BYTES = 1 << 20  # The most that one message of an upload carries (proto: Blobs.Upload).

ModelLike = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class Model:
    """The bytes of an ONNX model. A file is read twice (digest, upload), never as a whole.

    Weights in data files beside a file are put inside.
    """

    def __init__(self, model: ModelLike) -> None:
        """Takes a path or the bytes themselves and computes the digest.

        Raises:
            NotFound: there is no such file, or a data file is missing. InvalidArgument: the file
                cannot be read, or a data file is not as the model says.
            TypeError: `model` is something else.
        """
        self._bytes = memoryview(b"")
        self.path: Optional[Path] = None
        self._pieces: Optional[List[memoryview]] = None  # Where it has data files.
        if isinstance(model, (bytes, bytearray, memoryview)):
            self._bytes = memoryview(model).cast("B")
            self.name = "model.onnx"
        elif isinstance(model, (str, os.PathLike)):
            self.path = Path(model)
            self.name = self.path.name
            with _as_errors_of(self.path):
                self._pieces = pieces_of(self.path)
        else:
            raise TypeError(f"a model is a path or bytes, not {type(model).__name__}")
        digest = hashlib.sha256()
        self.size = 0
        for chunk in self.chunks():
            digest.update(chunk)
            self.size += len(chunk)
        self.digest = digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Gives the bytes in order, in pieces of at most CHUNK_BYTES."""
        if self._pieces is not None:
            yield from _chunks_of(self._pieces)
        elif self.path is None:
            yield from _chunks_of([self._bytes])
        else:
            with _as_errors_of(self.path), open(self.path, "rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk


def _chunks_of(pieces: List[memoryview]) -> Iterator[bytes]:
    """Gives the bytes of all pieces in chunks of CHUNK_BYTES, of which the last may be shorter."""
    chunk = bytearray()
    for piece in pieces:
        at = 0
        while at < len(piece):
            part = piece[at : at + CHUNK_BYTES - len(chunk)]
            chunk += part
            at += len(part)
            if len(chunk) == CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
    if chunk:
        yield bytes(chunk)


@contextlib.contextmanager
def _as_errors_of(path: Path) -> Iterator[None]:
    """Turns the system's errors into this package's."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(Code.NOT_FOUND, f"read {path}: there is no such file") from error
    except OSError as error:
        raise InvalidArgument(Code.INVALID_ARGUMENT, f"read {path}: {error.strerror}") from error
