"""How a client reaches a server and who it is: TLS and the token of each call (docs/security.md)."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from pathlib import Path
from typing import Any, List, Optional, Tuple, Union

import grpc

from .errors import Code, InvalidArgument, NotFound

PathLike = Union[str, "os.PathLike[str]"]

TOKEN_VARIABLE = "AUTOGRAPH_TOKEN"
TOKEN_FILE_VARIABLE = "AUTOGRAPH_TOKEN_FILE"
TRACE_VARIABLE = "TRACEPARENT"

_TRACE = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*")


class Access:
    """The files and the token of one client."""

    def __init__(
        self,
        address: str,
        token: Optional[str],
        tls_ca: Optional[PathLike],
        tls_cert: Optional[PathLike],
        tls_key: Optional[PathLike],
        insecure: bool,
    ) -> None:
        """Takes what is None from the environment, as `Client` says it. Reads the files.

        Raises:
            InvalidArgument: a certificate without its key or without `tls_ca`, what is no token, or
                a token that would leave this machine in plain text. NotFound: no such file.
        """
        self._address = address
        self._token_file = "" if token else os.environ.get(TOKEN_FILE_VARIABLE, "")
        self._token = token or ("" if self._token_file else os.environ.get(TOKEN_VARIABLE, ""))
        self._credentials: Any = None
        files = [
            _file_of(path, variable)
            for path, variable in (
                (tls_ca, "AUTOGRAPH_TLS_CA"),
                (tls_key, "AUTOGRAPH_TLS_KEY"),
                (tls_cert, "AUTOGRAPH_TLS_CERT"),
            )
        ]
        if any(file is not None for file in files):
            if files[0] is None:
                raise _wrong("TLS needs tls_ca, the certificate that signed the server's")
            if (files[1] is None) != (files[2] is None):
                raise _wrong("tls_cert and tls_key come together")
            self._credentials = grpc.ssl_channel_credentials(*files)
        elif self._authorization() and not insecure and not is_loopback(address):
            raise _wrong(
                f"the token would go to {address} in plain text: name the certificate that signed "
                "the server's (tls_ca), or allow it (insecure=True)"
            )
        self._authorization()  # Looks at the token.

    def channel(self, module: Any, options: List[Tuple[str, Union[int, str]]]) -> Any:
        """Returns a new channel of `module`, which is `grpc` or `grpc.aio`."""
        if self._credentials is None:
            return module.insecure_channel(self._address, options=options)
        return module.secure_channel(self._address, self._credentials, options=options)

    def metadata(self) -> Optional[Tuple[Tuple[str, str], ...]]:
        """Returns what each call says of its caller: the token, and the trace that it is part of.

        The trace is the environment's TRACEPARENT (W3C). None: nothing. Reads a token's file anew.
        """
        trace = os.environ.get(TRACE_VARIABLE, "")
        of_trace = (("traceparent", trace),) if _TRACE.fullmatch(trace) else ()
        return (self._authorization() + of_trace) or None

    def _authorization(self) -> Tuple[Tuple[str, str], ...]:
        token = self._token
        if self._token_file:
            token = _read(self._token_file).decode("ascii", "replace").strip()
        if not token and not self._token_file:
            return ()
        if not token or any(not "!" <= letter <= "~" for letter in token):
            raise _wrong("a token is one word of visible ASCII characters")
        return (("authorization", f"Bearer {token}"),)


def is_loopback(address: str) -> bool:
    """Returns True when only this machine can be at `address` (HOST:PORT or unix:PATH)."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        found = socket.getaddrinfo(host, None)
    except OSError:
        return False
    return bool(host) and all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)


def _file_of(path: Optional[PathLike], variable: str) -> Optional[bytes]:
    name = path or os.environ.get(variable, "")
    return _read(name) if name else None


def _read(path: PathLike) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFound(Code.NOT_FOUND, f"{os.fspath(path)}: no such file") from None
    except OSError as error:
        raise _wrong(f"{os.fspath(path)}: {error.strerror}") from None


def _wrong(message: str) -> InvalidArgument:
    return InvalidArgument(Code.INVALID_ARGUMENT, message)
