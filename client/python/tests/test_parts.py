"""The parts that need no service."""

from __future__ import annotations

import asyncio
import hashlib
import json
import unittest
from typing import Any, Iterator, List
from unittest import mock

import autograph
import grpc
from autograph import AsyncClient, Client, Code, Retry, _rpc, errors
from autograph._wire import blobs_pb2, optimizer_pb2
from autograph.report import parse_report
from autograph.retry import Backoff


class FakeRpcError(grpc.RpcError):  # type: ignore[misc]
    """An error as a call raises it."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__()
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        """The status code."""
        return self._code

    def details(self) -> str:
        """The message."""
        return self._details


class ErrorTest(unittest.TestCase):
    """Codes and their error classes."""

    def test_every_grpc_code_has_a_class(self) -> None:
        for status in grpc.StatusCode:
            if status is grpc.StatusCode.OK:
                continue
            error = _rpc.to_error(FakeRpcError(status, "why"), "HOST:1", "jobs/7")
            self.assertEqual(error.code.name, status.name)
            self.assertIsNot(type(error), autograph.AutoGraphError, status)
            self.assertEqual(str(error), f"{status.name}: jobs/7: why")
        self.assertEqual(type(errors.error_of(77, "new")), autograph.InternalError)

    def test_a_connection_that_failed_names_the_server(self) -> None:
        cases = [
            ("failed to connect to all addresses; last error: x", True),
            ("Socket closed", True),
            ("DNS resolution failed for nowhere:1", True),
            ("no worker offers device cpu", False),
            ("the server stops", False),
        ]
        for details, lost in cases:
            error = _rpc.to_error(FakeRpcError(grpc.StatusCode.UNAVAILABLE, details), "HOST:1")
            self.assertEqual("no server at HOST:1" in error.message, lost, details)
            self.assertIn(details, error.message)

    def test_a_report_that_is_none_is_said(self) -> None:
        for text in ("", "[]", "{}", "nonsense", json.dumps({"result": 1})):
            with self.assertRaisesRegex(autograph.InternalError, "the report cannot be read"):
                parse_report(text)


class RetryTest(unittest.TestCase):
    """Pauses, and calls that are repeated."""

    def test_pauses_grow_and_end(self) -> None:
        moment = [0.0]
        with mock.patch("time.monotonic", lambda: moment[0]):
            with mock.patch("random.uniform", lambda low, high: 1.0):
                backoff = Backoff(Retry(first_pause=1, last_pause=4), seconds=12)
                pauses: List[float] = []
                while (pause := backoff.next_pause()) is not None:
                    pauses.append(pause)
                    moment[0] += pause
                self.assertEqual(pauses, [1, 2, 4, 4])
                backoff.reset()
                self.assertEqual(backoff.next_pause(), 1)
                self.assertIsNone(Backoff(Retry(), seconds=0).next_pause())

    def call(self, *failures: grpc.StatusCode) -> List[Any]:
        """Makes a call that fails so, then answers; returns the attempts."""
        left, attempts = list(failures), []

        def method(request: object, timeout: float, metadata: Any) -> str:
            attempts.append(request)
            if left:
                raise FakeRpcError(left.pop(0), "the server stops")
            return "answer"

        with Client("HOST:1", retry=Retry(first_pause=0.001, seconds=1)) as client:
            self.assertEqual(client._call(method, "request"), "answer")
        return attempts

    def test_only_unavailable_is_called_again(self) -> None:
        self.assertEqual(len(self.call()), 1)
        unavailable = grpc.StatusCode.UNAVAILABLE
        self.assertEqual(len(self.call(unavailable, unavailable)), 3)
        with self.assertRaises(autograph.ResourceExhausted):
            self.call(grpc.StatusCode.RESOURCE_EXHAUSTED)
        with self.assertRaises(autograph.DeadlineExceeded):
            self.call(unavailable, grpc.StatusCode.DEADLINE_EXCEEDED)


class FakeStream:
    """A stream of WatchJob for both clients: messages, then perhaps a break."""

    def __init__(self, versions: List[int], cut: bool) -> None:
        self._messages = iter([job_message(version) for version in versions])
        self._cut = cut

    def __iter__(self) -> FakeStream:
        return self

    def __next__(self) -> Any:
        message = next(self._messages, None)
        if message is not None:
            return message
        if self._cut:
            raise FakeRpcError(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        raise StopIteration

    def __aiter__(self) -> FakeStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def cancel(self) -> None:
        """Does nothing."""


def job_message(version: int) -> Any:
    """Returns a job that searches, and has ended at version 4."""
    state = "SUCCEEDED" if version == 4 else "SEARCHING"
    return optimizer_pb2.Job(name="jobs/7", state=state, version=version)


class WatchTest(unittest.TestCase):
    """A watch of streams that repeat states and break."""

    RETRY = Retry(first_pause=0.001)

    def streams(self) -> Any:
        """Returns streams: a tick without news, a break, an early end, the last state twice."""
        made = [FakeStream([1, 1, 2], True), FakeStream([2], False), FakeStream([2, 3, 4, 4], True)]
        return lambda request, timeout, metadata: made.pop(0)

    def test_each_change_is_seen_once(self) -> None:
        with Client("HOST:1", retry=self.RETRY) as client:
            client._optimizer.WatchJob = self.streams()
            seen = [job.version for job in client.watch("7")]
        self.assertEqual(seen, [1, 2, 3, 4])

    def test_each_change_is_seen_once_by_asyncio(self) -> None:
        async def watch() -> List[int]:
            async with AsyncClient("HOST:1", retry=self.RETRY) as client:
                client._optimizer.WatchJob = self.streams()
                return [job.version async for job in client.watch("7")]

        self.assertEqual(asyncio.run(watch()), [1, 2, 3, 4])


class DownloadTest(unittest.TestCase):
    """Bytes that come in pieces."""

    def test_a_cut_download_goes_on_and_is_checked(self) -> None:
        data = b"0123456789"
        digest = hashlib.sha256(data).hexdigest()
        offsets: List[int] = []

        def download(request: Any, metadata: Any) -> Iterator[Any]:
            offsets.append(request.offset)
            yield blobs_pb2.DownloadResponse(data=data[request.offset :][:4])
            if request.offset + 4 < len(data):
                raise FakeRpcError(grpc.StatusCode.UNAVAILABLE, "Socket closed")

        with Client("HOST:1", retry=Retry(first_pause=0.001)) as client:
            client._blobs.Download = download
            self.assertEqual(client.download(digest), data)
            self.assertEqual(offsets, [0, 4, 8])
            with self.assertRaisesRegex(autograph.InternalError, "have another digest") as caught:
                client.download("0" * 64)
        self.assertEqual(caught.exception.code, Code.DATA_LOSS)


if __name__ == "__main__":
    unittest.main()
