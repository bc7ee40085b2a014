"""Workers that die, hang, stop, come back, or send what cannot be."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Dict, List, Set

from cluster import (
    PB,
    Calls,
    Cluster,
    Health,
    Job,
    children,
    code_of,
    eventually,
    expect,
    processor_seconds,
    products,
    refused,
    undisturbed,
)


EXTRA = "pattern extra = MatMul Sigmoid layouts plain\n"  # Only plans that use it meet the fault.


def killed_in_each_phase() -> None:
    """A worker is killed while it measures, and the one that checks the output while it does."""
    model = products()
    wanted = undisturbed(model)
    with Cluster("--reconnect", "0.3", workers=["a", "b"]) as cluster:
        cluster.hold("a", "b")
        job = cluster.submit(model)
        first = cluster.holder()
        other = "b" if first == "a" else "a"
        cluster.workers[first].kill()
        killed = time.monotonic()
        expect(
            eventually(lambda: getattr(cluster.seen(other), "attempt", ""), 15),
            "the other worker did not get the work",
        )
        # A lease of 0.3 s, and as much again as the loaded machine may need.
        expect(time.monotonic() - killed < 15, "the work was given away too late")
        cluster.says(f"worker {first} is gone")
        cluster.workers[first].wait()
        cluster.start_worker(first)
        cluster.release(other)
        for state in cluster.watch(job):
            if state.state == Job.CONFIRMING:
                busy = [name for name in ("a", "b") if getattr(cluster.seen(name), "attempt", "")]
                cluster.workers[(busy or [other])[0]].kill()
                break
        expect(cluster.succeeds(job).output_digest == wanted, "another output")


def comes_back_late() -> None:
    """A worker is stopped for longer than its lease, and goes on while another one has its work."""
    model = products()
    wanted = undisturbed(model)
    with Cluster("--worker-expiry", "2", "--reconnect", "1", workers=["a", "b"]) as cluster:
        cluster.hold("a", "b")
        job = cluster.submit(model)
        first = cluster.holder()
        other = "b" if first == "a" else "a"
        cluster.workers[first].send_signal(signal.SIGSTOP)
        cluster.release(first)  # Its executor ends what nobody waits for any more.
        cluster.says(f"worker {first} is gone")
        expect(eventually(lambda: getattr(cluster.seen(other), "attempt", "")), "nobody has the work")
        cluster.workers[first].send_signal(signal.SIGCONT)
        cluster.says(f"from worker {first} refused")
        expect(
            eventually(lambda: cluster.health(first) == Health.SERVING), "it did not register again"
        )
        cluster.release(other)
        expect(cluster.succeeds(job).output_digest == wanted, "another output")


def stopped_with_results_on_the_way() -> None:
    """A worker gets SIGTERM while the coordinator cannot acknowledge what it has measured."""
    model = products()
    wanted = undisturbed(model)
    with Cluster() as cluster:
        assert cluster.coordinator is not None
        cluster.hold("a")
        job = cluster.submit(model)
        cluster.holder()
        cluster.coordinator.send_signal(signal.SIGSTOP)
        cluster.release("a")
        cluster.says(", 0.", "autograph-worker")  # "e1.1: groups, 0.01 s": the item is over.
        worker = cluster.workers["a"]
        worker.send_signal(signal.SIGTERM)
        time.sleep(1)
        expect(worker.poll() is None, "it left before its results were acknowledged")
        cluster.coordinator.send_signal(signal.SIGCONT)
        expect(eventually(lambda: worker.poll() is not None, 9), "it did not leave")
        expect(worker.returncode == 0, f"exit code {worker.returncode}")
        expect("measured again" not in cluster.log("autograph-worker"), "results were dropped")
        cluster.start_worker("a")
        result = cluster.succeeds(job)
        expect(result.output_digest == wanted, "another output")
        expect(result.cache.hits == 0, "a group was measured, lost, and asked for once more")


def one_name_twice() -> None:
    """A second worker takes the name of one that serves."""
    with Cluster() as cluster:
        words = ["--server", cluster.address, "--device", cluster.device, "--id", "a"]
        second = cluster._start("autograph-worker", words)  # pylint: disable=protected-access
        cluster.says("another live worker is called a", "autograph-worker")
        expect(not children(second.pid, "--child=executor"), "it has opened the device")
        expect(cluster.health("a") == Health.SERVING, "the first one serves no more")
        cluster.succeeds(cluster.submit(products()))
        second.kill()
        second.wait()


def killed_for_memory() -> None:
    """An executor gets the signal of the kernel's out-of-memory killer: without work, once, at every try."""
    model = products()
    wanted = undisturbed(model)
    with Cluster(workers=["a", "b"]) as cluster:
        os.kill(cluster.executor("a"), signal.SIGKILL)
        expect(eventually(lambda: cluster.seen("a").executor_restarts == 1), "it was not noticed")
        expect(eventually(lambda: cluster.health("a") == Health.SERVING), "it does not serve again")
        cluster.hold("a", "b")
        job = cluster.submit(model)
        first = cluster.holder()
        os.kill(cluster.executor(first), signal.SIGKILL)
        cluster.release(*{"a", "b"} - {first})
        result = cluster.succeeds(job)
        expect(result.output_digest == wanted, "one kill changed the output")
        expect(result.groups_failed == 0, "one kill was blamed on a group")
    lines = EXTRA + "fault hang extra\n"
    with Cluster("--hang-time", "5", workers=["a", "b"], spec_lines=lines) as cluster:
        job = cluster.submit(products("Sigmoid"))
        kills = 0
        while name := _stuck(cluster, job):
            os.kill(cluster.executor(name), signal.SIGKILL)
            kills += 1
            expect(kills < 20, "it is tried again and again")
        cluster.says("quarantined after 2 crashed executors, the last: executor died: child")
        expect(cluster.succeeds(job).groups_failed > 0, "no group was quarantined")


def _attempt(cluster: Cluster, name: str) -> str:
    """Returns the work item that a worker has in hand, or ""."""
    return getattr(cluster.seen(name), "attempt", "")


def _stuck(cluster: Cluster, job: str) -> str:
    """Waits until a worker's executor hangs in its own work; returns its name, or "" at the job's end."""
    since: Dict[str, float] = {}
    while cluster.job(job).state not in (Job.SUCCEEDED, Job.FAILED):
        for name in cluster.workers:
            executors = children(cluster.workers[name].pid, "--child=executor")
            attempt = _attempt(cluster, name)
            if not attempt or len(executors) != 1 or children(executors[0], ""):
                continue
            if time.monotonic() - since.setdefault(attempt, time.monotonic()) > 1.5:
                return name
        time.sleep(0.05)
    return ""


def device_that_sticks() -> None:
    """A group breaks its device for good, as a sticky error of a GPU does."""
    with Cluster(workers=["a", "b"], spec_lines=EXTRA + "fault sticky extra\n") as cluster:
        reasons: Set[str] = set()
        stopping = threading.Event()

        def look() -> None:
            calls = Calls(cluster.address)
            while not stopping.is_set():
                for seen in calls.workers.ListWorkers(PB["worker"].ListWorkersRequest()).workers:
                    if seen.health == Health.NOT_SERVING:
                        reasons.add(seen.reason)
                time.sleep(0.002)
            calls.close()

        looker = threading.Thread(target=look)
        looker.start()
        try:
            result = cluster.succeeds(cluster.submit(products("Sigmoid")))
        finally:
            stopping.set()
            looker.join()
        expect(any("device lost" in reason for reason in reasons), f"always SERVING: {reasons}")
        expect(result.groups_failed > 0, "no group was quarantined")
        restarts = {name: cluster.seen(name).executor_restarts for name in ("a", "b")}
        expect(min(restarts.values()) > 0, f"tried on one worker only: {restarts}")
        expect(
            eventually(lambda: {cluster.health(n) for n in ("a", "b")} == {Health.SERVING}),
            "the workers do not serve again",
        )


def device_that_is_gone() -> None:
    """A device cannot be opened any more, as a GPU that fell off its bus, and comes back."""
    model = products()
    wanted = undisturbed(model)
    with Cluster(workers=["a", "b"], spec_lines="# The same device.\n") as cluster:
        spec = cluster.folder / "own.spec"
        cluster.hold("a", "b")
        job = cluster.submit(model)
        first = cluster.holder()
        other = "b" if first == "a" else "a"
        spec.rename(cluster.folder / "away")
        os.kill(cluster.executor(first), signal.SIGKILL)
        expect(
            eventually(lambda: "own.spec" in getattr(cluster.seen(first), "reason", "")),
            f"no reason: {cluster.seen(first)}",
        )
        expect(cluster.health(first) == Health.NOT_SERVING, "it still serves")
        expect(eventually(lambda: _attempt(cluster, other)), "the other worker has no work")
        pid = cluster.workers[first].pid
        before = processor_seconds(pid)
        time.sleep(2)
        expect(processor_seconds(pid) - before < 1, "it spins")
        (cluster.folder / "away").rename(spec)
        expect(eventually(lambda: cluster.health(first) == Health.SERVING), "it does not come back")
        cluster.release(other)
        expect(cluster.succeeds(job).output_digest == wanted, "another output")


def scaled_to_none_and_back() -> None:
    """Workers come and go by SIGTERM, as an autoscaler makes them, while jobs run."""
    model = products()
    wanted = undisturbed(model)
    with Cluster("--other-environment", "60") as cluster:
        jobs: List[str] = []
        for turn in range(3):
            jobs += [cluster.submit(model, seed, skip_group_cache=True)
                     for seed in range(10 * turn + 1, 10 * turn + 5)]
            for name in ("b", "c"):
                cluster.start_worker(name)
            time.sleep(0.3 * turn)
            for name in list(cluster.workers):
                cluster.workers[name].send_signal(signal.SIGTERM)
            for name in list(cluster.workers):
                worker = cluster.workers.pop(name)
                expect(worker.wait(15) == 0, f"worker {name} left with {worker.returncode}")
            expect(all(cluster.job(job).state != Job.FAILED for job in jobs), "a job failed")
            error = refused(lambda: cluster.submit(model, 100))
            expect(code_of(error) == "UNAVAILABLE", error)
            cluster.start_worker("a")
        digests = {cluster.succeeds(job).output_digest for job in jobs}
        expect(digests == {wanted}, f"other outputs: {digests}")
        expect("measured again" not in cluster.log("autograph-worker"), "results were dropped")
        expect(" lost: " not in cluster.log(), "a worker left its work behind")
