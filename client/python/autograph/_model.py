"""A model to send: a file or bytes, with its digest."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Iterator, Optional, Union

from .errors import Code, InvalidArgument, NotFound

CHUNK_BYTES = 1 << 20  # The most that one message of an upload carries (proto: Blobs.Upload).

ModelLike = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class Model:
    """The bytes of an ONNX model. A file is read twice (digest, upload), never as a whole."""

    def __init__(self, model: ModelLike) -> None:
        """Takes a path or the bytes themselves and computes the digest.

        Raises:
            NotFound: there is no such file. InvalidArgument: the file cannot be read.
            TypeError: `model` is something else.
        """
        self._bytes = memoryview(b"")
        self.path: Optional[Path] = None
        if isinstance(model, (bytes, bytearray, memoryview)):
            self._bytes = memoryview(model).cast("B")
            self.name = "model.onnx"
        elif isinstance(model, (str, os.PathLike)):
            self.path = Path(model)
            self.name = self.path.name
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
        if self.path is None:
            for begin in range(0, len(self._bytes), CHUNK_BYTES):
                yield bytes(self._bytes[begin : begin + CHUNK_BYTES])
            return
        try:
            with open(self.path, "rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except FileNotFoundError as error:
            raise NotFound(Code.NOT_FOUND, f"read {self.path}: there is no such file") from error
        except OSError as error:
            raise InvalidArgument(
                Code.INVALID_ARGUMENT, f"read {self.path}: {error.strerror}"
            ) from error
