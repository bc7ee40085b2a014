"""The errors, one class for each thing that the caller should do next.

Every error of this package is an :class:`AutoGraphError` with the ``code`` and the ``message`` that
the service or the runtime gave. Where Python has a class of its own for the case (``ValueError``,
``TimeoutError``, ``ConnectionError``), the error is one of those as well.
"""

from __future__ import annotations

import enum
from typing import Dict, Optional, Type


class Code(enum.IntEnum):
    """Status codes, with the numbers of gRPC and of the runtime's C interface."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class AutoGraphError(Exception):
    """The base of all errors here.

    Attributes:
        code: what kind of failure it is.
        message: one sentence that names the subject.
        job: the job that failed ("jobs/7"); empty when it is not about a job.
        reason: the service's word for programs ("NO_WORKER"); empty when it gave none.
        retry_after: seconds after which calling again may help; None when it will not.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        job: str = "",
        reason: str = "",
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.job = job
        self.reason = reason
        self.retry_after = retry_after

    def __str__(self) -> str:
        subject = f"{self.job}: " if self.job else ""
        return f"{self.code.name}: {subject}{self.message}"


class InvalidArgument(AutoGraphError, ValueError):
    """Fix the request or the model."""


class NotFound(AutoGraphError, LookupError):
    """Make it first: no such job, blob, file or stored answer."""


class FailedPrecondition(AutoGraphError):
    """Change some state, then call again: something is not installed, closed or not uploaded."""


class PermissionDenied(AutoGraphError, PermissionError):
    """The service does not let this caller do it."""


class ResourceExhausted(AutoGraphError):
    """Call with less, later, or on another device."""


class DeadlineExceeded(AutoGraphError, TimeoutError):
    """The caller's time limit passed. A job goes on."""


class Cancelled(AutoGraphError):
    """The job was cancelled before anything had been verified."""


class Unimplemented(AutoGraphError):
    """This device or server cannot do it; another may."""


class Unavailable(AutoGraphError, ConnectionError):
    """No server, worker or device now: call again later."""


class InternalError(AutoGraphError):
    """Damaged bytes or a bug in AutoGraph."""


_CLASSES: Dict[Code, Type[AutoGraphError]] = {
    Code.CANCELLED: Cancelled,
    Code.INVALID_ARGUMENT: InvalidArgument,
    Code.OUT_OF_RANGE: InvalidArgument,
    Code.DEADLINE_EXCEEDED: DeadlineExceeded,
    Code.NOT_FOUND: NotFound,
    Code.ALREADY_EXISTS: FailedPrecondition,
    Code.FAILED_PRECONDITION: FailedPrecondition,
    Code.ABORTED: FailedPrecondition,
    Code.PERMISSION_DENIED: PermissionDenied,
    Code.UNAUTHENTICATED: PermissionDenied,
    Code.RESOURCE_EXHAUSTED: ResourceExhausted,
    Code.UNIMPLEMENTED: Unimplemented,
    Code.UNAVAILABLE: Unavailable,
    Code.INTERNAL: InternalError,
    Code.DATA_LOSS: InternalError,
    Code.UNKNOWN: InternalError,
}


def error_of(
    code: int,
    message: str,
    *,
    job: str = "",
    reason: str = "",
    retry_after: Optional[float] = None,
) -> AutoGraphError:
    """Returns an error of the class for ``code``; an unknown code is ``UNKNOWN``."""
    try:
        known = Code(code)
    except ValueError:
        known = Code.UNKNOWN
    return _CLASSES.get(known, AutoGraphError)(
        known, message, job=job, reason=reason, retry_after=retry_after
    )
