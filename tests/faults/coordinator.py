"""A coordinator that is killed, started anew again and again, stopped under load, or whose clock jumps."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import Any, Dict, List

import kill_points
from cluster import (
    BUILD,
    PB,
    Calls,
    Cluster,
    Job,
    children,
    code_of,
    descriptors,
    eventually,
    expect,
    grpc,
    memory_mb,
    products,
    reason_of,
    refused,
    undisturbed,
)


def _no_problems() -> None:
    expect(not kill_points.problems, kill_points.problems)


def killed_at_its_syncs() -> None:
    """The coordinator is killed before and after syncs of two jobs' lives: ten of them, evenly spread."""
    syncs = kill_points.one_kill("0 before")
    expect(syncs >= 10, f"only {syncs} syncs")
    points = [(n, side) for n in range(1, syncs + 1) for side in ("before", "after")]
    for number, side in points[:: -(-len(points) // 10)]:
        kill_points.one_kill(f"{number} {side}")
        _no_problems()


def restart_storm() -> None:
    """The coordinator is killed 20 times at random moments while a client submits."""
    random_ = random.Random(5)
    model = products()
    wanted = undisturbed(model)
    with Cluster("--resumes", "50", "--reconnect", "1") as cluster:
        submitter = kill_points.Submitter(cluster, model)
        stopping = threading.Event()

        def client() -> None:
            calls = Calls(cluster.address)
            for seed in range(1, 1000):
                if stopping.wait(0.25):
                    break
                submitter.submit(calls, f"r-{seed}", seed, 30)
            calls.close()

        thread = threading.Thread(target=client)
        thread.start()
        longest = 0.0
        for _ in range(20):
            time.sleep(random_.uniform(0.02, 0.6))
            longest = max(longest, cluster.restart())
        stopping.set()
        thread.join()
        expect(longest < 15, f"a start took {longest} s")
        expect(len(submitter.jobs) >= 5, f"hardly any request got through: {submitter.jobs}")
        submitter.check("storm")
        _no_problems()
        for name in submitter.jobs.values():
            job = cluster.job(name)
            expect(job.resumed <= 20, f"{name} was taken up {job.resumed} times in 20 restarts")
            expect(job.result.output_digest == wanted, f"{name} has another output")


def stopped_with_open_streams() -> None:
    """SIGTERM comes while a job runs, a client watches it and a worker holds its work."""
    model = products()
    wanted = undisturbed(model)
    with Cluster("--grace", "5") as cluster:
        cluster.hold("a")
        job = cluster.submit(model)
        cluster.holder()
        stream = cluster.watch(job)
        next(stream)
        assert cluster.coordinator is not None
        begin = time.monotonic()
        cluster.coordinator.send_signal(signal.SIGTERM)
        error = refused(lambda: [state.state for state in stream])
        expect(code_of(error) == "UNAVAILABLE", error)
        details = reason_of(error)
        expect(b"RetryInfo" in details and b"SERVER_STOPPING" in details, f"no time: {details!r}")
        expect(cluster.coordinator.wait(20) == 0, "it did not stop well")
        expect(time.monotonic() - begin < 5 + 3, "it took longer than its grace")
        cluster.start_coordinator()
        cluster.answers()
        cluster.release("a")
        expect(cluster.succeeds(job).output_digest == wanted, "another output")
        expect(cluster.job(job).resumed == 1, "it was not resumed once")


def many_watchers() -> None:
    """More clients watch than there are places, and hold uploads that stand still."""
    with Cluster("--watchers", "20", "--transfers", "10", "--transfers-per-peer", "10") as cluster:
        cluster.hold("a")
        job = cluster.submit(products())
        cluster.holder()
        watches = [cluster.watch(job) for _ in range(20)]
        for watch in watches:
            next(watch)
        error = refused(lambda: next(cluster.watch(job)))
        expect(code_of(error) == "RESOURCE_EXHAUSTED", error)
        gate = threading.Event()

        def stalled() -> Any:
            yield PB["blobs"].UploadRequest(digest="0" * 64, size_bytes=1 << 20, data=b"x")
            gate.wait(60)

        uploads = [cluster.calls.blobs.Upload.future(stalled(), timeout=60) for _ in range(10)]
        time.sleep(0.5)
        ended = cluster.cli("health", "ready", "--server", cluster.address)
        expect("SERVING" in ended, ended)
        expect(cluster.job(job).name == job, "it does not answer")
        gate.set()
        for upload in uploads:
            upload.cancel()
        for watch in watches:
            watch.cancel()
        expect(eventually(lambda: _watches(cluster, job)), "the places do not come back")
        cluster.release("a")
        cluster.succeeds(job)


def _watches(cluster: Cluster, job: str) -> bool:
    """Whether a watch is let in."""
    stream = cluster.watch(job)
    try:
        return bool(next(stream).name)
    except grpc.RpcError:
        return False
    finally:
        stream.cancel()


def clock_that_jumps() -> None:
    """The clock of the coordinator and the worker goes an hour ahead and two back while a job runs."""
    model = products()
    wanted = undisturbed(model)
    with Cluster(workers=[]) as cluster:
        step = cluster.folder / "step"
        step.write_text("0")
        cluster.variables.update(
            LD_PRELOAD=str(BUILD / "libstep_clock.so"), AUTOGRAPH_CLOCK_STEP=str(step)
        )
        cluster.kill_coordinator()
        cluster.start_coordinator()
        cluster.answers()
        cluster.start_worker("a")
        cluster.hold("a")
        job = cluster.submit(model)
        cluster.holder()
        attempt = cluster.seen("a").attempt
        created = cluster.job(job).created_unix_seconds
        for seconds in (3600, -3600, 0):
            step.write_text(str(seconds))
            time.sleep(1)
            expect(cluster.seen("a").attempt == attempt, f"{seconds} s: the lease was lost")
            expect(cluster.seen("a").seconds_since_seen < 60, f"{seconds} s: the worker is silent")
            expect(cluster.job(job).state != Job.FAILED, f"{seconds} s: the job failed")
            later = cluster.submit(model, 10_000 + seconds)
            apart = cluster.job(later).created_unix_seconds - created
            expect(abs(apart - seconds) < 300, f"the clock did not jump: {apart} s for {seconds}")
        cluster.release("a")
        expect(cluster.succeeds(job).output_digest == wanted, "another output")


def everything_at_once() -> None:
    """Half a minute of kills, stops and cancellations under load, with a look at what is left behind."""
    random_ = random.Random(3)
    model = products()
    wanted = undisturbed(model)
    flags = ("--resumes", "1000", "--losses", "1000", "--attempts", "1000")
    with Cluster(*flags, workers=["a", "b"]) as cluster:
        jobs: List[str] = []
        sizes: List[Dict[str, float]] = []
        end, seed = time.monotonic() + 30, 0
        while time.monotonic() < end:
            seed += 1
            try:
                jobs.append(cluster.submit(model, seed, skip_group_cache=True))
            except grpc.RpcError:
                pass  # It is down, or no worker is there.
            _one_fault(cluster, random_, jobs)
            time.sleep(random_.uniform(0, 0.1))
            assert cluster.coordinator is not None
            sizes.append(
                {
                    "descriptors": descriptors(cluster.coordinator.pid),
                    "memory": memory_mb(cluster.coordinator.pid),
                }
            )
        for name in ("a", "b"):
            if cluster.workers[name].poll() is not None:
                cluster.start_worker(name)
        ended = [cluster.end(job, 120) for job in jobs]
        expect(len(ended) > 20, f"only {len(ended)} jobs")
        for job in ended:
            expect(job.state != Job.FAILED, f"{job.name} failed: {job.error.message}")
            if job.state == Job.SUCCEEDED:
                expect(job.result.output_digest == wanted, f"{job.name} has another output")
        expect(max(size["memory"] for size in sizes) < 100, "the coordinator grows")
        expect(max(size["descriptors"] for size in sizes) < 150, "descriptors are left open")
        left = list((cluster.folder / "served" / "blobs" / "tmp").iterdir())
        expect(not left, f"temporary files are left: {left}")


def _one_fault(cluster: Cluster, random_: random.Random, jobs: List[str]) -> None:
    """Does one thing that goes wrong, or nothing."""
    what = random_.randrange(12)
    name = random_.choice(["a", "b"])
    if what == 0:
        cluster.restart(random_.choice([signal.SIGKILL, signal.SIGTERM]))
    elif what == 1:
        cluster.workers[name].send_signal(random_.choice([signal.SIGKILL, signal.SIGTERM]))
        cluster.workers[name].wait()
        cluster.start_worker(name)
    elif what == 2:
        for pid in children(cluster.workers[name].pid, "--child=executor"):
            os.kill(pid, signal.SIGKILL)
    elif what == 3 and jobs:
        cluster.calls.optimizer.CancelJob(PB["optimizer"].CancelJobRequest(name=jobs[-1]), timeout=10)
    elif what == 4:
        calls = Calls(cluster.address)  # One that leaves in the middle.
        if jobs:
            next(calls.optimizer.WatchJob(PB["optimizer"].WatchJobRequest(name=jobs[-1])), None)
        calls.close()
