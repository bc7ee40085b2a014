"""The service's client for asyncio: the methods of `Client` as coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, List, Optional, Type, Union

import grpc
import grpc.aio

from . import _rpc
from ._access import Access, PathLike
from ._inputs import sets_of
from ._model import Model, ModelLike
from ._wire import blobs_pb2, blobs_pb2_grpc, cache_pb2_grpc, optimizer_pb2, optimizer_pb2_grpc
from .client import OnProgress
from .errors import AutoGraphError, Code, FailedPrecondition, NotFound, Unavailable
from .graph import Graph, graph_of
from .job import Job, State, best_of, job_of, raise_unless_answered
from .report import Result
from .retry import Backoff, Deadline, Retry

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import Options


class AsyncClient:
    """A connection to a server. Make it and use it in one event loop; `async with` closes it.

    Each method does, takes and raises the same as in `Client`. Cancelling the task that waits ends
    the wait; the job goes on.
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
        """Takes the arguments of `Client`. Does not connect yet."""
        self.server = _rpc.address_of(server)
        self._timeout = timeout
        self._retry = retry
        self._access = Access(self.server, token, tls_ca, tls_cert, tls_key, insecure)
        self._channel: Any = self._access.channel(grpc.aio, _rpc.CHANNEL_OPTIONS)
        self._optimizer: Any = optimizer_pb2_grpc.OptimizerStub(self._channel)
        self._blobs: Any = blobs_pb2_grpc.BlobsStub(self._channel)
        self._cache: Any = cache_pb2_grpc.CacheStub(self._channel)
        self._closed = False

    async def close(self) -> None:
        """Closes the connection. Jobs go on."""
        self._closed = True
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def optimize(
        self,
        model: ModelLike,
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
        **options: Unpack[Options],
    ) -> Result:
        """`submit`, then `result`."""
        job = await self.submit(model, **options)
        return await self.result(job, timeout=timeout, on_progress=on_progress)

    async def submit(
        self, model: ModelLike, *, request_id: str = "", **options: Unpack[Options]
    ) -> Job:
        """As `Client.submit`. Reads the file outside of the event loop."""
        source = await asyncio.to_thread(Model, model)
        inputs = await asyncio.to_thread(sets_of, options)
        request = _rpc.submission(source, request_id, options, inputs)
        for blob in (source, *(one.blob for one in inputs)):
            await self._upload(blob)
        try:
            return job_of(await self._call(self._optimizer.Optimize, request))
        except FailedPrecondition:  # The server removed the file in between.
            for blob in (source, *(one.blob for one in inputs)):
                await self._upload(blob)
            return job_of(await self._call(self._optimizer.Optimize, request))

    async def cached(self, model: ModelLike, **options: Unpack[Options]) -> Optional[Result]:
        """As `Client.cached`."""
        inputs = await asyncio.to_thread(sets_of, options)
        request = _rpc.look_up(await asyncio.to_thread(Model, model), options, inputs)
        try:
            job = await self._call(self._optimizer.Optimize, request)
        except NotFound:
            return None
        return await self.result(job_of(job))

    async def watch(
        self, job: Union[Job, str], *, timeout: Optional[float] = None
    ) -> AsyncIterator[Job]:
        """As `Client.watch`, for ``async for``."""
        name = _rpc.name_of(job)
        deadline, backoff = Deadline(timeout), Backoff(self._retry, self._retry.watch_seconds)
        state, version = "unseen", -1
        while True:
            failure: AutoGraphError = Unavailable(Code.UNAVAILABLE, "the stream ended", job=name)
            self._check_open()
            stream = self._optimizer.WatchJob(
                optimizer_pb2.WatchJobRequest(name=name),
                timeout=deadline.left(),
                metadata=self._access.metadata(),
            )
            try:
                async for message in stream:
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
            await self._pause(deadline.shorten(pause))

    async def result(
        self,
        job: Union[Job, str],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Result:
        """As `Client.result`."""
        last = job if isinstance(job, Job) and job.done else None
        if last is not None and on_progress is not None:
            on_progress(last)
        if last is None:
            async for seen in self.watch(job, timeout=timeout):
                last = seen
                if on_progress is not None:
                    on_progress(seen)
        assert last is not None, "a watch ends after a job that is done, or raises"
        raise_unless_answered(last)
        onnx = await self.download(last.output_digest)
        return _rpc.result_of(last, onnx, await self.download(last.report_digest))

    async def best_so_far(
        self,
        job: Union[Job, str],
        *,
        timeout: Optional[float] = None,
        on_progress: Optional[OnProgress] = None,
    ) -> Result:
        """As `Client.best_so_far`."""
        name = _rpc.name_of(job)
        request = optimizer_pb2.PublishBestRequest(name=name)
        asked = job_of(await self._call(self._optimizer.PublishBest, request))
        async for seen in self.watch(name, timeout=timeout):
            if on_progress is not None:
                on_progress(seen)
            if seen.done:
                return await self.result(seen)
            if seen.best_version > asked.best_version:
                best = best_of(seen)
                onnx = await self.download(best.output_digest)
                return _rpc.result_of(best, onnx, await self.download(best.report_digest))
        raise AssertionError("a watch ends after a job that is done, or raises")

    async def job(self, name: str) -> Job:
        """As `Client.job`."""
        request = optimizer_pb2.GetJobRequest(name=_rpc.name_of(name))
        return job_of(await self._call(self._optimizer.GetJob, request))

    async def cancel(self, job: Union[Job, str], *, for_all: bool = False) -> Job:
        """As `Client.cancel`."""
        request = optimizer_pb2.CancelJobRequest(name=_rpc.name_of(job), for_all=for_all)
        return job_of(await self._call(self._optimizer.CancelJob, request))

    async def list(
        self,
        *,
        state: Optional[State] = None,
        device: str = "",
        model: Optional[ModelLike] = None,
        since: float = 0,
        page_size: int = 50,
    ) -> AsyncIterator[Job]:
        """As `Client.list`, for ``async for``."""
        request = await asyncio.to_thread(
            _rpc.list_request, state, device, model, since, page_size
        )
        while True:
            page = await self._call(self._optimizer.ListJobs, request)
            for message in page.jobs:
                yield job_of(message)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def graphs(
        self,
        model: Optional[ModelLike] = None,
        *,
        device: str = "",
        environment: str = "",
        page_size: int = 50,
    ) -> AsyncIterator[Graph]:
        """As `Client.graphs`, for ``async for``."""
        request = await asyncio.to_thread(
            _rpc.graphs_request, model, device, environment, page_size
        )
        while True:
            page = await self._call(self._cache.ListGraphs, request)
            for message in page.graphs:
                yield graph_of(message)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def capabilities(self) -> _rpc.Capabilities:
        """As `Client.capabilities`."""
        found = await self._call(
            self._optimizer.GetCapabilities, optimizer_pb2.GetCapabilitiesRequest()
        )
        return _rpc.capabilities_of(found)

    async def download(self, digest: str) -> bytes:
        """As `Client.download`."""
        parts: List[bytes] = []
        size = 0
        backoff = Backoff(self._retry, self._retry.seconds)
        while True:
            self._check_open()
            request = blobs_pb2.DownloadRequest(digest=digest, offset=size)
            metadata = self._access.metadata()
            try:
                async for message in self._blobs.Download(request, metadata=metadata):
                    parts.append(message.data)
                    size += len(message.data)
                return _rpc.check_download(digest, b"".join(parts))
            except grpc.RpcError as error:
                await self._pause_or_raise(error, backoff)

    async def _upload(self, model: Model) -> None:
        find = blobs_pb2.FindMissingRequest(digests=[model.digest])
        backoff = Backoff(self._retry, self._retry.seconds)
        while (await self._call(self._blobs.FindMissing, find)).missing:
            try:
                await self._blobs.Upload(
                    _upload_messages(model), metadata=self._access.metadata()
                )
                return
            except grpc.RpcError as error:
                await self._pause_or_raise(error, backoff)

    async def _call(self, method: Any, request: Any) -> Any:
        backoff = Backoff(self._retry, self._retry.seconds)
        while True:
            self._check_open()
            try:
                return await method(
                    request, timeout=self._timeout, metadata=self._access.metadata()
                )
            except grpc.RpcError as error:
                await self._pause_or_raise(error, backoff)

    async def _pause_or_raise(self, error: Any, backoff: Backoff) -> None:
        pause = backoff.next_pause() if _rpc.is_unavailable(error) else None
        if pause is None:
            raise _rpc.to_error(error, self.server) from error
        await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        """Waits, in a call, so that the channel connects meanwhile."""
        end = time.monotonic() + seconds
        request = optimizer_pb2.GetCapabilitiesRequest()
        with contextlib.suppress(grpc.RpcError):
            await self._optimizer.GetCapabilities(
                request, timeout=seconds, metadata=self._access.metadata(), wait_for_ready=True
            )
        await asyncio.sleep(max(0.0, end - time.monotonic()))

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPrecondition(Code.FAILED_PRECONDITION, "this client was closed")


async def _upload_messages(model: Model) -> AsyncIterator[Any]:
    """Yields `_rpc.upload_messages`, each read outside of the event loop."""
    messages = _rpc.upload_messages(model)
    while (message := await asyncio.to_thread(next, messages, None)) is not None:
        yield message
