"""The service's client."""

from __future__ import annotations

import contextlib
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional, Type, Union

import grpc

from . import _rpc
from ._access import Access, PathLike
from ._inputs import sets_of
from ._model import Model, ModelLike
from ._wire import blobs_pb2, blobs_pb2_grpc, cache_pb2_grpc, optimizer_pb2, optimizer_pb2_grpc
from .errors import AutoGraphError, Code, FailedPrecondition, NotFound, Unavailable
from .graph import Graph, graph_of
from .job import Job, State, best_of, job_of, raise_unless_answered
from .report import Result
from .retry import Backoff, Deadline, Retry

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import Options

OnProgress = Callable[[Job], object]


class Client:
    """A connection to a server. Thread-safe; use it as a context manager or `close` it.

    Calls that are UNAVAILABLE are repeated as `retry` says. Errors are `AutoGraphError`. Ctrl-C
    during `result` or `optimize` ends the wait; the job goes on, and the KeyboardInterrupt says its
    name.
    """

    def __init__(
        self,
        server: Optional[str] = None,
        *,
        timeout: Optional[float] = 30.0,
        retry: Retry = Retry(),
        token: Optional[str] = None,
        tls_ca: Optional[PathLike] = None,
        tls_cert: Optional[PathLike] = None,
        tls_key: Optional[PathLike] = None,
        insecure: bool = False,
    ) -> None:
        """Does not connect yet.

        Args:
            server: HOST:PORT or unix:PATH; default: the variable AUTOGRAPH_SERVER.
            timeout: seconds for one short call (not for uploads, downloads and waits).
            retry: how long to repeat calls that are UNAVAILABLE.
            token: default: the one in the file that AUTOGRAPH_TOKEN_FILE names, else the variable
                AUTOGRAPH_TOKEN.
            tls_ca: PEM file with what signed the server's certificate; switches TLS on. Default:
                the variable AUTOGRAPH_TLS_CA.
            tls_cert: PEM file with the own certificate, for a server that wants one. Default:
                AUTOGRAPH_TLS_CERT.
            tls_key: PEM file with its key. Default: AUTOGRAPH_TLS_KEY.
            insecure: the token may go to another machine in plain text, where there is no TLS.

        Raises:
            InvalidArgument: no server is named, or the token would leave this machine in plain
                text. NotFound: no such file.
        """
        self.server = _rpc.address_of(server)
        self._access = Access(self.server, token, tls_ca, tls_cert, tls_key, insecure)
        self._timeout = timeout
        self._retry = retry
        self._channel = self._access.channel(grpc, _rpc.CHANNEL_OPTIONS)
        self._optimizer: Any = optimizer_pb2_grpc.OptimizerStub(self._channel)
        self._blobs: Any = blobs_pb2_grpc.BlobsStub(self._channel)
        self._cache: Any = cache_pb2_grpc.CacheStub(self._channel)
        self._closed = False

    def close(self) -> None:
        """Closes the connection. Jobs go on."""
        self._closed = True
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def optimize(
        self,
        model: ModelLike,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
        **options: Unpack[Options],
    ) -> Result:
        """Submits `model` and waits for its result: `submit`, then `result`."""
        job = self.submit(model, **options)
        return self.result(job, timeout=timeout, on_progress=on_progress)

    def submit(self, model: ModelLike, *, request_id: str = "", **options: Unpack[Options]) -> Job:
        """Sends `model` unless the server has it, and asks for a faster one. Does not wait.

        Args:
            model: path or bytes of an ONNX model.
            request_id: a repeated call with the same id and options gives the same job. Default:
                a new id for every call of `submit`.
            options: see `Options`.

        Returns:
            A finished job when the answer is stored, the running job of an equal
            request, or a new one. It survives a crash of the server.

        Raises:
            NotFound: no such file. InvalidArgument: an option is out of range.
            Unavailable: no server, or no worker offers the device.
        """
        source = Model(model)
        inputs = sets_of(options)
        request = _rpc.submission(source, request_id, options, inputs)
        for blob in (source, *(one.blob for one in inputs)):
            self._upload(blob)
        try:
            return job_of(self._call(self._optimizer.Optimize, request))
        except FailedPrecondition:  # The server removed the file in between.
            for blob in (source, *(one.blob for one in inputs)):
                self._upload(blob)
            return job_of(self._call(self._optimizer.Optimize, request))

    def cached(self, model: ModelLike, **options: Unpack[Options]) -> Optional[Result]:
        """Returns the server's stored answer for `model` and these options, else None.

        Nothing is uploaded or searched. Needs a worker of the device: an answer belongs to an
        environment.
        """
        request = _rpc.look_up(Model(model), options, sets_of(options))
        try:
            job = self._call(self._optimizer.Optimize, request)
        except NotFound:
            return None
        return self.result(job_of(job))

    def watch(self, job: Union[Job, str], *, timeout: Optional[float] = None) -> Iterator[Job]:
        """Yields the job's state now and after every change, until its end.

        Attaches again when the connection breaks. Leaving the loop does not stop the job.

        Raises:
            NotFound: no such job. DeadlineExceeded: `timeout` seconds are over; the job goes on.
            Unavailable: the server did not come back within `retry.watch_seconds`.
        """
        name = _rpc.name_of(job)
        deadline, backoff = Deadline(timeout), Backoff(self._retry, self._retry.watch_seconds)
        state, version = "unseen", -1
        while True:
            failure: AutoGraphError = Unavailable(Code.UNAVAILABLE, "the stream ended", job=name)
            stream = self._stream(self._optimizer.WatchJob, name, deadline)
            try:
                for message in stream:
                    backoff.reset()
                    seen = job_of(message)
                    if seen.version > version:
                        state, version = str(seen.state), seen.version
                        yield seen
                    if seen.done:
                        return
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise _rpc.waited_too_long(name, state, timeout) from None
                failure = _rpc.to_error(error, self.server, name)
                if not _rpc.is_unavailable(error):
                    raise failure from error
            finally:
                stream.cancel()
            pause = backoff.next_pause()
            if pause is None:
                raise failure
            self._pause(deadline.shorten(pause))

    def result(
        self,
        job: Union[Job, str],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Result:
        """Waits for the job's end and fetches its answer.

        Args:
            job: of `submit`, or its name.
            timeout: seconds to wait for the end; None: as long as it takes.
            on_progress: called with each state seen.

        Raises:
            AutoGraphError: the job failed; the class and `code` say why, `job` which.
            Cancelled: it was cancelled before anything had been verified. (A job that was cancelled
                later has a result, with `cancelled` set.)
            DeadlineExceeded: it has not ended yet; it goes on.
        """
        last = job if isinstance(job, Job) and job.done else None
        try:
            for seen in [last] if last else self.watch(job, timeout=timeout):
                last = seen
                if on_progress is not None:
                    on_progress(seen)
            assert last is not None, "a watch ends after a job that is done, or raises"
            raise_unless_answered(last)
            return _rpc.result_of(
                last, self.download(last.output_digest), self.download(last.report_digest)
            )
        except KeyboardInterrupt:
            raise _rpc.interrupted(_rpc.name_of(job), self.server) from None

    def best_so_far(
        self,
        job: Union[Job, str],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Result:
        """Returns the best that a running job has found; the job goes on.

        Its file is made, compared and timed now, as a result's is, out of the job's own budget. Of
        a job that has ended, or ends meanwhile, the result is returned. Arguments and errors as
        `result`'s.
        """
        name = _rpc.name_of(job)
        request = optimizer_pb2.PublishBestRequest(name=name)
        asked = job_of(self._call(self._optimizer.PublishBest, request))
        for seen in self.watch(name, timeout=timeout):
            if on_progress is not None:
                on_progress(seen)
            if seen.done:
                return self.result(seen)
            if seen.best_version > asked.best_version:
                best = best_of(seen)
                return _rpc.result_of(
                    best, self.download(best.output_digest), self.download(best.report_digest)
                )
        raise AssertionError("a watch ends after a job that is done, or raises")

    def job(self, name: str) -> Job:
        """Returns the job as it is now. Raises NotFound."""
        request = optimizer_pb2.GetJobRequest(name=_rpc.name_of(name))
        return job_of(self._call(self._optimizer.GetJob, request))

    def cancel(self, job: Union[Job, str], *, for_all: bool = False) -> Job:
        """Takes one request off the job; the last one cancels it.

        `result` of a cancelled job returns the best answer that was verified, if any. While others
        wait for an equal request the job goes on for them, unless `for_all`. Does not wait for the
        end. A job that has ended stays as it is.
        """
        request = optimizer_pb2.CancelJobRequest(name=_rpc.name_of(job), for_all=for_all)
        return job_of(self._call(self._optimizer.CancelJob, request))

    def list(
        self,
        *,
        state: Optional[State] = None,
        device: str = "",
        model: Optional[ModelLike] = None,
        since: float = 0,
        page_size: int = 50,
    ) -> Iterator[Job]:
        """Yields the server's jobs, the newest first; fetches the next page when needed.

        Args:
            state: only those in it. device: only its. model: only those for it.
            since: only those accepted then or later, in seconds since 1970.
            page_size: at most so many at a time.
        """
        request = _rpc.list_request(state, device, model, since, page_size)
        while True:
            page = self._call(self._optimizer.ListJobs, request)
            yield from map(job_of, page.jobs)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def graphs(
        self,
        model: Optional[ModelLike] = None,
        *,
        device: str = "",
        environment: str = "",
        page_size: int = 50,
    ) -> Iterator[Graph]:
        """Yields the optimized graphs that the server remembers, the newest first.

        Args:
            model: only those of it. device, environment: only those made for it.
            page_size: at most so many at a time.
        """
        request = _rpc.graphs_request(model, device, environment, page_size)
        while True:
            page = self._call(self._cache.ListGraphs, request)
            yield from map(graph_of, page.graphs)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def capabilities(self) -> _rpc.Capabilities:
        """Returns the server's capabilities."""
        found = self._call(self._optimizer.GetCapabilities, optimizer_pb2.GetCapabilitiesRequest())
        return _rpc.capabilities_of(found)

    def download(self, digest: str) -> bytes:
        """Returns the blob with the SHA-256 `digest`, checked. Resumes a stream that broke."""
        parts: List[bytes] = []
        size = 0
        backoff = Backoff(self._retry, self._retry.seconds)
        while True:
            self._check_open()
            request = blobs_pb2.DownloadRequest(digest=digest, offset=size)
            try:
                for message in self._blobs.Download(request, metadata=self._access.metadata()):
                    parts.append(message.data)
                    size += len(message.data)
                return _rpc.check_download(digest, b"".join(parts))
            except grpc.RpcError as error:
                self._pause_or_raise(error, backoff)

    def _upload(self, model: Model) -> None:
        find = blobs_pb2.FindMissingRequest(digests=[model.digest])
        backoff = Backoff(self._retry, self._retry.seconds)
        while self._call(self._blobs.FindMissing, find).missing:
            try:
                self._blobs.Upload(_rpc.upload_messages(model), metadata=self._access.metadata())
                return
            except grpc.RpcError as error:
                self._pause_or_raise(error, backoff)

    def _stream(self, method: Any, name: str, deadline: Deadline) -> Any:
        self._check_open()
        request = optimizer_pb2.WatchJobRequest(name=name)
        return method(request, timeout=deadline.left(), metadata=self._access.metadata())

    def _call(self, method: Any, request: Any) -> Any:
        backoff = Backoff(self._retry, self._retry.seconds)
        while True:
            self._check_open()
            try:
                return method(request, timeout=self._timeout, metadata=self._access.metadata())
            except grpc.RpcError as error:
                self._pause_or_raise(error, backoff)

    def _pause_or_raise(self, error: Any, backoff: Backoff) -> None:
        pause = backoff.next_pause() if _rpc.is_unavailable(error) else None
        if pause is None:
            raise _rpc.to_error(error, self.server) from error
        self._pause(pause)

    def _pause(self, seconds: float) -> None:
        """Waits, in a call, so that the channel connects meanwhile."""
        end = time.monotonic() + seconds
        request = optimizer_pb2.GetCapabilitiesRequest()
        with contextlib.suppress(grpc.RpcError):
            self._optimizer.GetCapabilities(
                request, timeout=seconds, metadata=self._access.metadata(), wait_for_ready=True
            )
        time.sleep(max(0.0, end - time.monotonic()))

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPrecondition(Code.FAILED_PRECONDITION, "this client was closed")
