"""Messages, errors and settings that the synchronous and the asynchronous client share."""

from __future__ import annotations

import hashlib
import math
import os
import re
import uuid
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import grpc
from google.protobuf.message import DecodeError

from ._inputs import InputSet
from ._model import Model, ModelLike
from ._wire import blobs_pb2, cache_pb2, error_pb2, optimizer_pb2
from .errors import AutoGraphError, Code, DeadlineExceeded, InternalError, InvalidArgument, error_of
from .job import Job, State
from .options import request_of
from .report import Result, parse_report

SERVER_VARIABLE = "AUTOGRAPH_SERVER"

# The settings of the C++ client: it finds a dead server, and a restarted one, within a second. A
# ping finds a host that vanished without closing; older servers accept one each 20 s.
CHANNEL_OPTIONS: List[Tuple[str, Union[int, str]]] = [
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Each client has its own connection, so that closing one does not affect the others.
    ("grpc.use_local_subchannel_pool", 1),
]

# gRPC's messages for a connection that failed or was lost.
_TRANSPORT = re.compile(
    r"failed to connect|connection (refused|reset|attempt)|socket closed|dns |name resol|recvmsg"
    r"|sendmsg|no such file or directory|keepalive|goaway|broken pipe|stream removed",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Capabilities:
    """A server's offer: its version, the devices of connected workers, the largest model."""

    version: str
    build: str
    devices: Tuple[str, ...]
    model_bytes_max: int


def capabilities_of(message: Any) -> Capabilities:
    """Returns the capabilities of an ``autograph.v1.Capabilities`` message."""
    return Capabilities(
        message.version, message.build, tuple(message.devices), message.model_bytes_max
    )


def address_of(server: Optional[str]) -> str:
    """Returns HOST:PORT or unix:PATH from the argument or from AUTOGRAPH_SERVER.

    Raises:
        InvalidArgument: neither names a server.
    """
    address = server or os.environ.get(SERVER_VARIABLE, "")
    if not address:
        raise InvalidArgument(
            Code.INVALID_ARGUMENT, f"no server: pass server='HOST:PORT' or set {SERVER_VARIABLE}"
        )
    return address


def to_error(error: Any, address: str, job: str = "") -> AutoGraphError:
    """Returns the error of this package for a `grpc.RpcError`."""
    code, details = int(error.code().value[0]), str(error.details() or "")
    if code == Code.UNAVAILABLE and _TRANSPORT.search(details):
        details = f"no server at {address}: is autographd running? ({details})"
    reason, retry_after = _details_of(error)
    return error_of(code, details, job=job, reason=reason, retry_after=retry_after)


def _details_of(error: Any) -> Tuple[str, Optional[float]]:
    """Returns the reason and the pause of google.rpc's ErrorInfo and RetryInfo."""
    reason, retry_after = "", None
    metadata = error.trailing_metadata() if hasattr(error, "trailing_metadata") else None
    for key, value in metadata or ():
        if key != "grpc-status-details-bin":
            continue
        try:
            for detail in error_pb2.ErrorStatus.FromString(value).details:
                if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                    reason = error_pb2.ErrorInfo.FromString(detail.value).reason
                if detail.type_url.endswith("/google.rpc.RetryInfo"):
                    delay = error_pb2.RetryInfo.FromString(detail.value).retry_delay
                    retry_after = delay.seconds + delay.nanos / 1e9
        except DecodeError:  # Not this server's.
            continue
    return reason, retry_after


def is_unavailable(error: Any) -> bool:
    """Returns True when calling again may help."""
    return bool(error.code() == grpc.StatusCode.UNAVAILABLE)


def name_of(job: Union[Job, str]) -> str:
    """Returns "jobs/7" for a job, "jobs/7" or "7"."""
    name = job.name if isinstance(job, Job) else str(job)
    return name if name.startswith("jobs/") else f"jobs/{name}"


def submission(
    model: Model, request_id: str, options: Mapping[str, Any], inputs: Sequence[InputSet]
) -> Any:
    """Returns the request that submits `model`; its id makes a repeated call harmless."""
    request = request_of(
        options,
        model_digest=model.digest,
        model_name=model.name,
        request_id=request_id or uuid.uuid4().hex,
    )
    return _with_inputs(request, inputs)


def _with_inputs(request: Any, inputs: Sequence[InputSet]) -> Any:
    for name, blob in inputs:
        request.inputs.add(name=name, digest=blob.digest)
    return request


def look_up(model: Model, options: Mapping[str, Any], inputs: Sequence[InputSet]) -> Any:
    """Returns the request that asks only for a stored answer."""
    request = request_of(options, model_digest=model.digest, model_name=model.name)
    _with_inputs(request, inputs)
    request.only_cached = True
    return request


def upload_messages(model: Model) -> Iterator[Any]:
    """Yields the messages of one upload."""
    sent = 0
    for chunk in model.chunks():
        first = sent == 0
        yield blobs_pb2.UploadRequest(
            digest=model.digest if first else "",
            size_bytes=model.size if first else 0,
            offset=sent,
            data=chunk,
            last=sent + len(chunk) == model.size,
        )
        sent += len(chunk)
    if sent == 0:
        yield blobs_pb2.UploadRequest(digest=model.digest, last=True)


def check_download(digest: str, data: bytes) -> bytes:
    """Returns `data` if its digest is `digest`.

    Raises:
        InternalError: the bytes have another digest.
    """
    if hashlib.sha256(data).hexdigest() != digest:
        raise InternalError(
            Code.DATA_LOSS, f"download {digest[:12]}: the bytes have another digest"
        )
    return data


def result_of(job: Job, onnx: bytes, report: bytes) -> Result:
    """Builds a result."""
    text = report.decode("utf-8")
    return Result(
        job=job.name,
        model_name=job.model_name,
        onnx=onnx,
        report=parse_report(text),
        report_json=text,
        cached=job.cached,
        cancelled=job.state is State.CANCELLED,
    )


def list_request(
    state: Optional[State], device: str, model: Optional[ModelLike], since: float, page_size: int
) -> Any:
    """Returns the request for the first page of jobs. None, "" and 0: all."""
    name = "STATE_UNSPECIFIED" if state is None else State(state).name
    return optimizer_pb2.ListJobsRequest(
        page_size=page_size,
        state=name,
        device=device,
        model_digest="" if model is None else Model(model).digest,
        created_since_unix_seconds=math.ceil(since),
    )


def graphs_request(
    model: Optional[ModelLike], device: str, environment: str, page_size: int
) -> Any:
    """Returns the request for the first page of remembered graphs. None and "": all."""
    return cache_pb2.ListGraphsRequest(
        page_size=page_size,
        model_digest="" if model is None else Model(model).digest,
        device=device,
        environment=environment,
    )


def waited_too_long(job: str, state: str, timeout: Optional[float]) -> DeadlineExceeded:
    """Returns the error for a wait that ends before its job."""
    return DeadlineExceeded(
        Code.DEADLINE_EXCEEDED, f"still {state} after {timeout} s; the job goes on", job=job
    )


def interrupted(job: str, address: str) -> KeyboardInterrupt:
    """Returns the exception for Ctrl-C during a wait. The wait ends, the job goes on."""
    return KeyboardInterrupt(
        f"{job} goes on at {address}: Client.result({job!r}) waits again, "
        f"Client.cancel({job!r}) stops it"
    )
