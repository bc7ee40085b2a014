"""Clients that leave, repeat themselves, lie about what they send, or send too much."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
import time
from typing import Any, Iterator, List

import served
from cluster import (
    PB,
    Calls,
    Cluster,
    Job,
    code_of,
    eventually,
    expect,
    grpc,
    memory_mb,
    products,
    reason_of,
    refused,
    undisturbed,
)
from network import Forger

MEMORY_MAX_MB = 150  # The coordinator, whatever comes.


def leave_repeat_and_cancel() -> None:
    """Clients leave a watch, ask twice, ask something else under one id, wait too short, and cancel."""
    model = products()
    digest = hashlib.sha256(model).hexdigest()
    wanted = undisturbed(model)
    with Cluster() as cluster:
        cluster.hold("a")
        job = cluster.submit(model, 1, request_id="mine")
        expect(cluster.submit(model, 1, request_id="mine") == job, "a repeated request is another job")
        other = served.request_of(digest, 2, request_id="mine")
        error = refused(lambda: cluster.calls.optimizer.Optimize(other, timeout=10))
        expect(code_of(error) == "INVALID_ARGUMENT" and b"REQUEST_ID_REUSED" in reason_of(error), error)
        calls = Calls(cluster.address)
        next(calls.optimizer.WatchJob(PB["optimizer"].WatchJobRequest(name=job)))
        calls.close()  # It leaves in the middle.
        short = cluster.calls.optimizer.WatchJob(PB["optimizer"].WatchJobRequest(name=job), timeout=0.5)
        expect(code_of(refused(lambda: list(short))) == "DEADLINE_EXCEEDED", "no deadline")
        # A second request waits for the same job: the first one's cancellation does not end it.
        expect(cluster.submit(model, 1, request_id="yours") == job, "equal requests are two jobs")
        cancel = PB["optimizer"].CancelJobRequest(name=job, request_id="yours")
        for _ in range(2):  # A repeated one is harmless.
            expect(cluster.calls.optimizer.CancelJob(cancel, timeout=10).waiters == 1, "not one waits")
        waiting = cluster.submit(products("Tanh"), 3)
        cluster.calls.optimizer.CancelJob(PB["optimizer"].CancelJobRequest(name=waiting), timeout=10)
        expect(cluster.job(waiting).state == Job.CANCELLED, "a queued job is not cancelled at once")
        cluster.release("a")
        expect(cluster.succeeds(job).output_digest == wanted, "another output")
        expect(cluster.submit(model, 1, request_id="mine") == job, "the id is forgotten at the end")


def uploads_that_lie() -> None:
    """Uploads are cut, repeated, out of order, of another size or digest, and two write one blob at once."""
    data = os.urandom(300_000)
    digest = hashlib.sha256(data).hexdigest()
    chunk = PB["blobs"].UploadRequest
    half = len(data) // 2

    def pieces(first: Any, *rest: Any) -> Iterator[Any]:
        yield first
        yield from rest

    begin = {"digest": digest, "size_bytes": len(data), "data": data[:half]}
    end = {"offset": half, "data": data[half:], "last": True}
    wrong = {
        "cut": [chunk(**begin)],
        "another digest": [chunk(**{**begin, "digest": "0" * 64}), chunk(**end)],
        "more than it said": [chunk(**{**begin, "size_bytes": half + 10}), chunk(**end)],
        "less than it said": [chunk(**{**begin, "size_bytes": len(data) + 10}), chunk(**end)],
        "a hole": [chunk(**begin), chunk(**{**end, "offset": half + 1})],
        "a piece twice": [chunk(**begin), chunk(offset=0, data=data[:half]), chunk(**end)],
        "a size below 0": [chunk(**{**begin, "size_bytes": -1}), chunk(**end)],
        "no digest": [chunk(**{**begin, "digest": "../../jobs.db"}), chunk(**end)],
    }
    with Cluster(workers=[]) as cluster:
        blobs = cluster.calls.blobs
        ask = PB["blobs"].FindMissingRequest(digests=[digest])
        for name, messages in wrong.items():
            error = refused(lambda m=messages: blobs.Upload(pieces(*m), timeout=20))
            expect(code_of(error) == "INVALID_ARGUMENT", f"{name}: {error}")
            expect(list(blobs.FindMissing(ask, timeout=10).missing) == [digest], f"{name}: it is there")
        folder = cluster.folder / "served" / "blobs"
        expect(not list((folder / "tmp").iterdir()), "temporary files are left")
        gate = threading.Event()

        def slow() -> Iterator[Any]:
            yield chunk(**begin)
            gate.wait(20)
            yield chunk(**end)

        first = blobs.Upload.future(slow(), timeout=30)
        cluster.calls.upload(digest, data)  # The second writer is the first to be done.
        gate.set()
        expect(first.result().digest == digest, "the slow one failed")
        cluster.calls.upload(digest, data)
        expect((folder / digest[:2] / digest).read_bytes() == data, "other bytes are stored")
        expect(not list(blobs.FindMissing(ask, timeout=10).missing), "it is missing")


def _preface() -> bytes:
    """Returns the begin of an HTTP/2 connection, with empty settings."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def _is_closed(one: socket.socket, seconds: float) -> bool:
    """Reads what comes; whether the other side closes the connection in time."""
    end = time.monotonic() + seconds
    one.settimeout(0.5)
    while time.monotonic() < end:
        try:
            if not one.recv(65536):
                return True
        except socket.timeout:
            continue
        except OSError:
            return True
    return False


def messages_that_are_too_much() -> None:
    """Too long a message, one that grows when unpacked, half a greeting, many headers, many pings."""
    with Cluster(workers=[]) as cluster:
        host, port = cluster.address.rsplit(":", 1)
        assert cluster.coordinator is not None
        pid = cluster.coordinator.pid
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1),
                   ("grpc.max_metadata_size", 1 << 24)]
        channel = grpc.insecure_channel(cluster.address, options=options)
        call = channel.unary_unary("/autograph.v1.Blobs/FindMissing")
        long = b"\x0a\x80\x80\x80\x20" + bytes(64 << 20)  # A digest of 64 MiB.
        error = refused(lambda: call(long[: 6 << 20], timeout=60))
        expect(code_of(error) == "RESOURCE_EXHAUSTED", error)
        error = refused(lambda: call(long, timeout=60, compression=grpc.Compression.Gzip))
        expect(code_of(error) == "RESOURCE_EXHAUSTED", error)
        headers = tuple((f"x-{number}", "y" * 1000) for number in range(1000))
        error = refused(lambda: call(b"", timeout=20, metadata=headers))
        expect(code_of(error) in ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL"), error)
        channel.close()
        with socket.create_connection((host, int(port)), timeout=5) as slow:
            slow.sendall(_preface()[:10])
            expect(_is_closed(slow, 30), "half a greeting is waited for")
        with socket.create_connection((host, int(port)), timeout=5) as flood:
            ping = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + struct.pack(">Q", 1)
            try:
                flood.sendall(_preface() + b"\x00\x00\x00\x04\x01\x00\x00\x00\x00")
                for _ in range(200):
                    flood.sendall(ping * 50)
                    time.sleep(0.01)
            except OSError:
                pass  # It was closed meanwhile.
            expect(_is_closed(flood, 20), "a flood of pings is answered for ever")
        peak = memory_mb(pid, "VmHWM")
        expect(peak < MEMORY_MAX_MB, f"the coordinator took {peak:.0f} MB")
        cluster.answers()


def long_error() -> None:
    """What an error tells is a megabyte long: of a call, and of a worker."""
    long = "x" * 1_000_000

    def forge(result: Any) -> None:
        result.code, result.message = 13, long
        for field in ("measurement", "timing", "file_times"):
            result.ClearField(field)

    with Cluster() as cluster:
        error = refused(lambda: cluster.job(f"jobs/{long}"))
        expect(code_of(error) == "NOT_FOUND" and b"JOB_MISSING" in reason_of(error), error.code())
        expect(error.details().startswith("no job jobs/xxx"), "it does not tell of what")
        expect(len(error.details()) < 4096, f"{len(error.details())} bytes")
        request = served.request_of(hashlib.sha256(products()).hexdigest(), 1, disabled_rules=[long])
        cluster.calls.upload(request.model_digest, products())
        error = refused(lambda: cluster.calls.optimizer.Optimize(request, timeout=20))
        expect(code_of(error) == "INVALID_ARGUMENT", error.code())
        expect(len(error.details()) < 4096, f"{len(error.details())} bytes")
        cluster.workers["a"].kill()
        cluster.workers.pop("a").wait()
        forger = Forger(cluster.address, forge)
        cluster.start_worker("far", server=forger.address)
        ended = cluster.end(cluster.submit(products()))
        expect(ended.state == Job.FAILED and ended.error.code == 13, ended.state)
        expect(0 < len(ended.error.message) < 4096, f"{len(ended.error.message)} bytes")
        forger.close()


def one_client_floods() -> None:
    """One client asks for thirty searches, and then another one asks for one."""
    model = products()
    with Cluster() as cluster:
        cluster.hold("a")
        flood = [cluster.submit(model, seed, client="flood", skip_group_cache=True)
                 for seed in range(1, 31)]
        other = cluster.submit(model, 100, client="other", skip_group_cache=True)
        cluster.release("a")
        cluster.succeeds(other)
        before = [name for name in flood if _finished(cluster, name) <= _finished(cluster, other)]
        # The one that ran when it came, and what ends within the second of the times' stamps.
        expect(len(before) < 20, f"{len(before)} of 30 jobs of the flood were before it")
        order: List[str] = cluster.log().split(" SUCCEEDED ")
        place = next(i for i, text in enumerate(order) if text.endswith(f"{other}:"))
        expect(place <= 2, f"{place} jobs of the flood ended before the other client's")


def _finished(cluster: Cluster, name: str) -> float:
    return cluster.job(name).finished_unix_seconds or float("inf")


def no_worker_is_there() -> None:
    """A job is asked for where no worker is, and waits for one that has left."""
    with Cluster("--no-worker", "3", "--reconnect", "0.2") as cluster:
        cluster.hold("a")
        job = cluster.submit(products())
        cluster.holder()
        cluster.workers["a"].kill()
        cluster.workers.pop("a").wait()
        expect(eventually(lambda: cluster.seen("a") is None), "it is still listed")
        error = refused(lambda: cluster.submit(products("Tanh"), 2))
        expect(code_of(error) == "UNAVAILABLE" and b"NO_WORKER" in reason_of(error), error)
        expect(b"RetryInfo" in reason_of(error), "no time to come back")
        expect(
            eventually(lambda: "a worker of device" in cluster.job(job).progress.waits_for),
            f"it does not say what it waits for: {cluster.job(job).progress}",
        )
        ended = cluster.end(job)
        expect(ended.state == Job.FAILED and "no worker offers" in ended.error.message, ended)
        cluster.start_worker("a")
        cluster.succeeds(cluster.submit(products(), 3))
