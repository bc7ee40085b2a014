"""Real processes for the scenarios: a coordinator, workers by name, and what is asked of them."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

import served
from served import PB, Calls, Service, eventually, request_of  # noqa: F401

grpc = served.grpc
BUILD = Path(os.environ["AUTOGRAPH_BUILD"])
Job = PB["optimizer"].Job
Health = PB["worker"].WorkerState


def expect(condition: Any, text: Any) -> None:
    """Raises AssertionError with the text unless the condition is true."""
    if not condition:
        raise AssertionError(str(text))


def children(parent: int, word: str) -> List[int]:
    """Returns the pids of a process's children whose command line contains `word`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text(errors="replace").rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if int(stat[1]) == parent and word in words:
            found.append(int(path.parent.name))
    return found


def processor_seconds(pid: int) -> float:
    """Returns the processor time that a process has used."""
    stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, what: str = "VmRSS") -> float:
    """Returns the memory of a process: VmRSS now, VmHWM at most."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{what}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def descriptors(pid: int) -> int:
    """Returns how many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def products(activation: str = "Relu", size: int = 4) -> bytes:
    """Returns a model of two products with constants: merging them is a sure gain, found at once."""
    import numpy  # pylint: disable=import-outside-toplevel
    from onnx import TensorProto, helper, numpy_helper  # pylint: disable=import-outside-toplevel

    values = numpy.arange(size * size, dtype=numpy.float32).reshape(size, size) % 5
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, size])  # noqa: E731
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "v"], ["p"]),
            helper.make_node("MatMul", ["p", "w"], ["q"]),
            helper.make_node(activation, ["q"], ["y"]),
        ],
        "products",
        [value("x")],
        [value("y")],
        [numpy_helper.from_array(values, "v"), numpy_helper.from_array(values.T.copy(), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


class Cluster(Service):
    """A coordinator, and workers "a", "b", ... of one device; a context that ends all of them."""

    def __init__(
        self,
        *flags: str,
        workers: Sequence[str] = ("a",),
        device: str = "sim:small",
        spec: str = "",
        spec_lines: str = "",
        variables: Optional[Dict[str, str]] = None,
    ) -> None:
        self.workers: Dict[str, subprocess.Popen[bytes]] = {}
        small = (served.ROOT / "deploy" / "devices" / "small.spec").read_text()
        self._spec, self._names = spec or (small + spec_lines if spec_lines else ""), list(workers)
        super().__init__(device, flags, variables)
        self.calls = Calls(self.address)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            print(self.logs()[-4000:], flush=True)
        self.close()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        if self._spec:
            path = self.folder / "own.spec"
            path.write_text(self._spec)
            self.device = f"sim:{path}"
        for name in self._names:
            self.start_worker(name)
        if not self._names:
            self.answers()
        return next(iter(self.workers.values()), None)  # type: ignore[return-value]

    def start_worker(self, name: str, *flags: str, server: str = "") -> None:
        """Starts a worker of this name and waits until it serves; `server`: not the coordinator itself."""
        words = ["--server", server or self.address, "--device", self.device, "--id", name, *flags]
        self.workers[name] = self._start("autograph-worker", words)
        expect(eventually(lambda: self.health(name) == Health.SERVING), self.logs())

    def seen(self, name: str) -> Any:
        """Returns what the coordinator says of a worker; None: it does not know it."""
        calls = Calls(self.address)
        try:
            found = calls.workers.ListWorkers(PB["worker"].ListWorkersRequest(), timeout=5).workers
        except grpc.RpcError:
            return None
        finally:
            calls.close()
        return next((worker for worker in found if worker.worker_id == name), None)

    def health(self, name: str) -> int:
        """Returns a worker's health."""
        seen = self.seen(name)
        return seen.health if seen is not None else Health.HEALTH_UNSPECIFIED

    def executor(self, name: str) -> int:
        """Returns the pid of a worker's executor."""
        found: List[int] = []

        def look() -> bool:
            found[:] = children(self.workers[name].pid, "--child=executor")
            return len(found) == 1

        expect(eventually(look), f"worker {name} has no executor: {self.logs()}")
        return found[0]

    def hold(self, *names: str) -> None:
        """Stops the executors of workers, so that the next work item stays in hand."""
        for name in names:
            served.stop(self.executor(name))

    def release(self, *names: str) -> None:
        """Lets executors go on."""
        for name in names:
            os.kill(self.executor(name), signal.SIGCONT)

    def holder(self) -> str:
        """Waits until a worker has a work item in hand; returns its name."""
        found: List[str] = []

        def look() -> bool:
            found[:] = [name for name in self.workers if getattr(self.seen(name), "attempt", "")]
            return bool(found)

        expect(eventually(look), f"no worker has work: {self.logs()}")
        return found[0]

    def submit(self, model: bytes, seed: int = 1, **fields: Any) -> str:
        """Uploads a model and submits it; returns the job's name."""
        digest = hashlib.sha256(model).hexdigest()
        self.calls.upload(digest, model)
        request = request_of(digest, seed, **fields)
        request.device = self.device
        return self.calls.optimizer.Optimize(request, timeout=20).name

    def job(self, name: str) -> Any:
        """Returns a job."""
        return self.calls.optimizer.GetJob(PB["optimizer"].GetJobRequest(name=name), timeout=20)

    def watch(self, name: str) -> Any:
        """Opens a stream of a job's states."""
        request = PB["optimizer"].WatchJobRequest(name=name)
        return self.calls.optimizer.WatchJob(request, timeout=120)

    def reaches(self, name: str, *states: int, seconds: float = 60) -> Any:
        """Waits until a job is in one of these states; returns it."""
        if not eventually(lambda: self.job(name).state in states, seconds):
            raise AssertionError(f"{name} is not there yet: {self.job(name)}")
        return self.job(name)

    def end(self, name: str, seconds: float = 60) -> Any:
        """Waits for a job's end; returns it."""
        return self.reaches(name, Job.SUCCEEDED, Job.FAILED, Job.CANCELLED, seconds=seconds)

    def succeeds(self, name: str, seconds: float = 60) -> Any:
        """Waits for a job's end, which must be a success; returns its result."""
        job = self.end(name, seconds)
        expect(job.state == Job.SUCCEEDED, f"{name} is {Job.State.Name(job.state)}: {job.error.message}")
        return job.result

    def log(self, program: str = "autographd") -> str:
        """Returns what a program has logged."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def says(self, text: str, program: str = "autographd", seconds: float = 20) -> None:
        """Waits until a program's log contains the text."""
        expect(
            eventually(lambda: text in self.log(program), seconds),
            f'{program} did not say "{text}"',
        )

    def restart(self, signal_number: int = signal.SIGKILL) -> float:
        """Ends the coordinator by a signal and starts it; returns the seconds until it answers."""
        assert self.coordinator is not None
        self.coordinator.send_signal(signal_number)
        self.coordinator.wait()
        begin = time.monotonic()
        self.start_coordinator()
        self.answers()
        return time.monotonic() - begin

    def answers_now(self, timeout: float = 5) -> bool:
        """Whether the coordinator answers within `timeout` seconds."""
        calls = Calls(self.address)
        try:
            calls.optimizer.ListJobs(PB["optimizer"].ListJobsRequest(page_size=1), timeout=timeout)
            return True
        except grpc.RpcError:
            return False
        finally:
            calls.close()

    def answers(self) -> None:
        """Waits until the coordinator answers."""
        expect(eventually(self.answers_now, 30), self.logs())

    def close(self) -> None:
        """Ends all processes."""
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        super().close()


_UNDISTURBED: Dict[str, str] = {}


def undisturbed(model: bytes) -> str:
    """Returns the digest of what a model becomes when nothing goes wrong."""
    key = hashlib.sha256(model).hexdigest()
    if key not in _UNDISTURBED:
        with Cluster() as cluster:
            _UNDISTURBED[key] = cluster.succeeds(cluster.submit(model)).output_digest
    return _UNDISTURBED[key]


def refused(act: Callable[[], Any]) -> Any:
    """Returns the error of a call, which must fail."""
    try:
        answer = act()
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"not refused: {answer}")


def code_of(error: Any) -> str:
    """Returns the name of an error's code."""
    return error.code().name


def reason_of(error: Any) -> bytes:
    """Returns the details of an error, which have its reason."""
    return dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
