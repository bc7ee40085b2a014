"""Hostile clients, workers and models beside honest ones, for minutes.

The honest clients, in a process of their own, repeat short calls and small jobs; the hostile ones
hold uploads that stand still, idle connections, bytes that are no gRPC, messages that are too long or
do not decode, requests with 200,000 shapes, watches, models that want time and memory, and workers
that lie. Shown: how long honest calls take, and the coordinator's memory.
usage: hostile.py [SECONDS] [STREAMS]
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import served
from served import PB, Calls, Service, eventually, request_of

grpc = served.grpc
stopping = threading.Event()
done: Dict[str, int] = {}
lock = threading.Lock()

STREAMS_OF_CONNECTION = 16  # What the coordinator allows.
MEMORY_MAX_MB, HONEST_P99_MS = 200, 50


def count(what: str) -> None:
    """Counts one hostile act."""
    with lock:
        done[what] = done.get(what, 0) + 1


def repeat(act: Callable[[], None], pause: float) -> None:
    """Repeats an act that may fail in any way."""
    while not stopping.is_set():
        try:
            act()
        except Exception:  # pylint: disable=broad-except
            pass
        stopping.wait(pause)


# --- Honest


def honest(address: str, path: str, seconds: float) -> None:
    """Runs as a process: repeats short calls and jobs, and prints what they took, as JSON."""
    model = Path(path).read_bytes()
    digest = hashlib.sha256(model).hexdigest()
    times: Dict[str, List[float]] = {"short": [], "job": []}
    failed: List[str] = []
    end = time.monotonic() + seconds

    def timed(kind: str, what: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        try:
            return what()
        except grpc.RpcError as error:
            failed.append(f"{kind}: {error.code().name}: {error.details()}")
            return None
        finally:
            times[kind].append(time.monotonic() - begin)

    def short_calls() -> None:
        calls = Calls(address)
        while time.monotonic() < end:
            timed(
                "short",
                lambda: calls.optimizer.GetCapabilities(
                    PB["optimizer"].GetCapabilitiesRequest(), timeout=10
                ),
            )
            timed("short", lambda: calls.optimizer.Optimize(request_of(digest, 1), timeout=10))
            timed(
                "short",
                lambda: calls.optimizer.ListJobs(
                    PB["optimizer"].ListJobsRequest(page_size=20), timeout=10
                ),
            )
            time.sleep(0.02)
        calls.close()

    def jobs() -> None:
        calls, seed = Calls(address), 2

        def one_job() -> None:
            job = calls.optimizer.Optimize(request_of(digest, seed, client="honest"), timeout=10)
            for state in calls.optimizer.WatchJob(
                PB["optimizer"].WatchJobRequest(name=job.name), timeout=300
            ):
                if state.state == PB["optimizer"].Job.FAILED:
                    failed.append(f"{state.name}: {state.error.message}")

        while time.monotonic() < end:
            timed("job", one_job)
            seed += 1
            time.sleep(0.5)
        calls.close()

    calls = Calls(address)
    calls.upload(digest, model)
    first = calls.optimizer.Optimize(request_of(digest, 1), timeout=10)
    for _ in calls.optimizer.WatchJob(PB["optimizer"].WatchJobRequest(name=first.name), timeout=60):
        pass
    calls.close()
    threads = [threading.Thread(target=run) for run in (short_calls, jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"times": times, "failed": failed}))


# --- Hostile


def stalled_uploads(address: str, streams: int) -> None:
    """Opens uploads that send one message and then nothing, and opens them again when they end."""

    def hold() -> None:
        calls = Calls(address)
        gate = threading.Event()

        def messages() -> Any:
            yield PB["blobs"].UploadRequest(digest="0" * 64, size_bytes=1 << 30, data=b"x" * 1000)
            gate.wait(60)

        futures = [
            calls.blobs.Upload.future(messages(), timeout=60) for _ in range(STREAMS_OF_CONNECTION)
        ]
        count("connections with 16 uploads that stand still")
        while not stopping.is_set() and not all(future.done() for future in futures):
            stopping.wait(0.5)
        gate.set()
        calls.close()

    for _ in range(max(1, streams // STREAMS_OF_CONNECTION)):
        threading.Thread(target=repeat, args=(hold, 1.0), daemon=True).start()


def idle_connections(host: str, port: int) -> None:
    """Opens connections that say nothing."""
    held = []
    for _ in range(200):
        held.append(socket.create_connection((host, port), timeout=5))
        count("idle connections")
    stopping.wait(5)
    for one in held:
        one.close()


def garbage(host: str, port: int) -> None:
    """Sends bytes that are no gRPC, and frames that are cut."""
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for data in (os.urandom(5000), preface + os.urandom(2000), preface + b"\x00\xff\xff\x04\x00" * 50):
        with socket.create_connection((host, port), timeout=5) as one:
            one.sendall(data)
            one.settimeout(0.2)
            try:
                one.recv(1000)
            except OSError:
                pass
        count("connections with bytes that are no gRPC")


def wrong_messages(address: str) -> None:
    """Sends what is too long or does not decode to every rpc that takes one message."""
    channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
    for method in (
        "Optimizer/Optimize",
        "Optimizer/GetJob",
        "Optimizer/ListJobs",
        "Optimizer/CancelJob",
        "Optimizer/PublishBest",
        "Optimizer/DeleteModel",
        "Cache/ListMeasurements",
        "Cache/ListGraphs",
        "Cache/ListRegions",
        "Blobs/FindMissing",
    ):
        call = channel.unary_unary(
            f"/autograph.v1.{method}",
            request_serializer=lambda data: data,
            response_deserializer=lambda data: data,
        )
        for data in (os.urandom(300), b"\x0a\xff\xff\xff\xff\x0f", b"\x0a" + b"\x01" * (5 << 20)):
            try:
                call(data, timeout=5)
            except grpc.RpcError:
                pass
            count("messages that are too long or do not decode")
    channel.close()


def many_shapes(address: str) -> None:
    """Asks with 200,000 shapes."""
    calls = Calls(address)
    request = request_of("0" * 64, 1)
    for number in range(200_000):
        request.shapes.add(input=f"x{number}", dims=[1, 2, 3])
    try:
        calls.optimizer.Optimize(request, timeout=10)
    except grpc.RpcError:
        pass
    calls.close()
    count("requests with 200,000 shapes")


def watches(address: str) -> None:
    """Opens more watches than there are."""
    calls = Calls(address)
    jobs = calls.optimizer.ListJobs(PB["optimizer"].ListJobsRequest(page_size=1), timeout=5).jobs
    streams = [
        calls.optimizer.WatchJob(PB["optimizer"].WatchJobRequest(name=job.name), timeout=20)
        for job in jobs
        for _ in range(300)
    ]
    stopping.wait(3)
    for stream in streams:
        stream.cancel()
        count("watches")
    calls.close()


def hostile_models() -> List[bytes]:
    """Returns models that want time, memory or the parser's life."""
    import onnx  # pylint: disable=import-outside-toplevel
    from onnx import TensorProto, helper  # pylint: disable=import-outside-toplevel

    def model(nodes: Any, outputs: Any, inputs: Any = None) -> bytes:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
        graph = helper.make_graph(nodes, "g", inputs or [x], outputs)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        made.ir_version = 8
        return made.SerializeToString()

    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    adds = [
        helper.make_node("Add", [f"a{i}" if i else "x", "x"], [f"a{i + 1}" if i < 19_999 else "y"])
        for i in range(20_000)
    ]
    bomb = [
        helper.make_node(
            "Constant", [], ["s"], value=helper.make_tensor("v", TensorProto.INT64, [2], [1 << 20, 1 << 22])
        ),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
    ]
    any_y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    good = model([helper.make_node("Relu", ["x"], ["y"])], [y])
    cut = good[: len(good) // 2]
    cycle = model([helper.make_node("Add", ["y", "x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])], [y])
    assert onnx is not None
    return [
        model([helper.make_node("Sum", ["x"] * 1_000_000, ["y"])], [y]),
        model(adds, [y]),
        model(bomb, [any_y]),
        cut,
        cycle,
        os.urandom(100_000),
        b"\x0a\x80" * 50_000,
    ]


def submit_models(address: str, models: List[bytes]) -> None:
    """Submits hostile models, each as a new job."""
    calls = Calls(address)
    for data in models:
        digest = hashlib.sha256(data).hexdigest()
        try:
            calls.upload(digest, data, timeout=20)
            request = request_of(digest, random.randrange(1, 1 << 30), client="hostile")
            request.budget.time_seconds = 2
            calls.optimizer.Optimize(request, timeout=5)
        except grpc.RpcError:
            pass
        count("models that want time, memory or the parser's life")
    calls.close()


def lying_worker(address: str) -> None:
    """Offers the honest device's name in an environment of its own, and sends figures that cannot be.

    Its spec is nonsense, or the honest one.
    """
    calls = Calls(address)
    spec = (served.ROOT / "deploy/devices/small.spec").read_text()
    state = PB["worker"].WorkerState(
        worker_id=f"liar-{random.randrange(1 << 30)}",
        device=random.choice(["sim:small", "sim:other", "\n" * 1000, ""]),
        environment="liar",
        device_spec=random.choice(["nonsense ", "nonsense " * 10_000, spec]),
        health=PB["worker"].WorkerState.SERVING,
        attempt="e1.1",
    )
    result = state.results.add(sequence=1, epoch=1, attempt="e1.1", index=0)
    result.measurement.latency.median_ns = random.choice([float("nan"), -1.0, 1e300])

    def messages() -> Any:
        for _ in range(20):
            yield state
            time.sleep(0.05)

    try:
        for _ in calls.workers.Synchronize(messages(), timeout=3):
            pass
    except grpc.RpcError:
        pass
    calls.close()
    count("workers that lie")


# --- The whole


def memory_mb(pid: int) -> float:
    """Returns the private and shared memory of a process."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def quantile(values: List[float], part: float) -> float:
    """Returns a quantile in ms."""
    ordered = sorted(values)
    return 1e3 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def main() -> int:
    """Runs all of it."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600
    streams = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    service = Service(coordinator_flags=["--transfer-idle", "5"])
    host, port = service.address.rsplit(":", 1)
    model = str(service.zoo("tiny_sru"))
    assert service.coordinator is not None
    pid = service.coordinator.pid
    before = memory_mb(pid)
    words = [sys.executable, __file__, "honest", service.address, model, str(seconds)]
    # A file: a pipe that nobody reads is full after some thousand times.
    answers = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
    honest_process = subprocess.Popen(words, stdout=answers)
    time.sleep(2)
    stalled_uploads(service.address, streams)
    models = hostile_models()
    acts: List[Any] = [
        (lambda: idle_connections(host, int(port)), 1.0),
        (lambda: garbage(host, int(port)), 0.5),
        (lambda: wrong_messages(service.address), 1.0),
        (lambda: many_shapes(service.address), 5.0),
        (lambda: watches(service.address), 2.0),
        (lambda: submit_models(service.address, models), 3.0),
        (lambda: lying_worker(service.address), 0.5),
    ]
    for act, pause in acts:
        threading.Thread(target=repeat, args=(act, pause), daemon=True).start()
    memory: List[float] = []
    while honest_process.poll() is None:
        memory.append(memory_mb(pid))
        time.sleep(1)
    stopping.set()
    answers.seek(0)
    answer = json.loads(answers.read() or "{}")
    times, failed = answer.get("times", {}), answer.get("failed", ["the honest process died"])
    time.sleep(3)
    lives = service.coordinator.poll() is None
    after = memory_mb(pid)
    serves = eventually(lambda: service.at("workers", "list") is not None, 10)
    for what, number in sorted(done.items()):
        print(f"  {number:7d} {what}")
    short, jobs = times.get("short", []), times.get("job", [])
    print(
        f"honest short calls: {len(short)}, p50 {quantile(short, 0.5):.1f} ms, "
        f"p99 {quantile(short, 0.99):.1f} ms, the longest {quantile(short, 1):.0f} ms"
    )
    print(f"honest jobs: {len(jobs)}, p50 {quantile(jobs, 0.5):.0f} ms, the longest {quantile(jobs, 1):.0f} ms")
    print(
        f"coordinator: {before:.0f} MB before, {max(memory):.0f} MB at most, {after:.0f} MB after; "
        f"it {'lives' if lives else 'DIED'} and {'serves' if serves else 'DOES NOT SERVE'}"
    )
    for text in failed[:10]:
        print(f"  failed: {text}")
    good = lives and serves and not failed and bool(short) and bool(jobs)
    good = good and quantile(short, 0.99) < HONEST_P99_MS and max(memory) < MEMORY_MAX_MB
    service.close()
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "honest":
        honest(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    else:
        sys.exit(main())
