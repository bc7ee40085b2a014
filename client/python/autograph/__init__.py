"""AutoGraph: a faster ONNX model that computes the same, with proof.

`optimize` does all of it in one call. `Client` and `AsyncClient` talk to a server: submit,
watch, wait, cancel, list, look up. `Session` runs a model in this process, with the plan that it
carries. Errors are `AutoGraphError`, one subclass for each thing to do next.
"""

from importlib.metadata import version as _version

from ._library import runtime_version
from ._optimize import optimize
from ._rpc import Capabilities
from .aio import AsyncClient
from .client import Client
from .errors import (
    AutoGraphError,
    Cancelled,
    Code,
    DeadlineExceeded,
    FailedPrecondition,
    InternalError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
)
from .graph import Graph
from .job import Job, Progress, State
from .options import Options
from .report import Latency, OutputError, Ratio, Report, Result, RewriteCount
from .retry import Retry
from .session import Session, SessionWarning, TensorInfo

__version__ = _version("autograph-client")

__all__ = [
    "AsyncClient",
    "AutoGraphError",
    "Cancelled",
    "Capabilities",
    "Client",
    "Code",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Graph",
    "InternalError",
    "InvalidArgument",
    "Job",
    "Latency",
    "NotFound",
    "Options",
    "OutputError",
    "PermissionDenied",
    "Progress",
    "Ratio",
    "Report",
    "ResourceExhausted",
    "Result",
    "Retry",
    "RewriteCount",
    "Session",
    "SessionWarning",
    "State",
    "TensorInfo",
    "Unavailable",
    "Unimplemented",
    "optimize",
    "runtime_version",
]
