"""The coordinator killed at each sync to the disk, and at random points under load.

After each kill it is started anew on the same store. What was acknowledged must be there once: every
request id gives the job that it gave before, and no job fails because of a kill.
usage: kill_points.py [RANDOM_KILLS] [SEED]
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Dict, List, Optional

import served
from served import PB, Calls, Service, eventually, request_of

grpc = served.grpc
KILLER = str(Path(os.environ["AUTOGRAPH_BUILD"]) / "libkill_at.so")
problems: List[str] = []


def bytes_of(service: Service, name: str) -> bytes:
    """Returns the bytes of a network."""
    return service.zoo(name).read_bytes()


class Submitter:
    """Submits jobs with request ids, again until they are acknowledged."""

    def __init__(self, service: Service, model: bytes) -> None:
        self.service, self.model = service, model
        self.digest = hashlib.sha256(model).hexdigest()
        self.jobs: Dict[str, str] = {}  # By request id, as acknowledged.

    def submit(self, calls: Calls, name: str, seed: int, seconds: float) -> Optional[str]:
        """Returns the job's name; None: the server did not answer in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                request = request_of(self.digest, seed, request_id=name)
                job = calls.optimizer.Optimize(request, timeout=2).name
                before = self.jobs.setdefault(name, job)
                if before != job:
                    problems.append(f"{name} was {before} and is {job}")
                return job
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                    try:
                        calls.upload(self.digest, self.model, timeout=2)
                    except grpc.RpcError:
                        pass
                time.sleep(0.02)
        return None

    def check(self, what: str, seconds: float = 120) -> None:
        """Waits for the end of all jobs and compares them with what was acknowledged."""
        calls = Calls(self.service.address)
        for number, (name, job) in enumerate(sorted(self.jobs.items())):
            if self.submit(calls, name, int(name.split("-")[-1]), 20) != job:
                problems.append(f"{what}: {name} does not lead to {job} (the {number}-th)")
        states: Dict[str, str] = {}

        def all_ended() -> bool:
            states.clear()
            token = ""
            while True:
                page = calls.optimizer.ListJobs(
                    PB["optimizer"].ListJobsRequest(page_size=1000, page_token=token), timeout=10
                )
                for job in page.jobs:
                    states[job.name] = PB["optimizer"].Job.State.Name(job.state)
                    if job.state == PB["optimizer"].Job.FAILED:
                        problems.append(f"{what}: {job.name} failed: {job.error.message}")
                token = page.next_page_token
                if not token:
                    break
            return all(state in served.TERMINAL for state in states.values())

        if not eventually(all_ended, seconds):
            counts = Counter(states.values())
            problems.append(f"{what}: not all jobs ended within {seconds} s: {dict(counts)}")
        for job in set(self.jobs.values()) - set(states):
            problems.append(f"{what}: {job} was acknowledged and is lost")
        for job in set(states) - set(self.jobs.values()):
            # Stored, and killed before the answer: nobody asked again.
            problems.append(f"{what}: {job} belongs to no request")
        calls.close()


def start(service: Service, kill_at: str = "") -> None:
    """Starts the coordinator, with the module that kills it where `kill_at` says where."""
    saved = dict(service.variables)
    if kill_at:
        service.variables.update(
            LD_PRELOAD=KILLER,
            AUTOGRAPH_KILL_AT=kill_at,
            AUTOGRAPH_SYNCS=str(service.folder / "syncs"),
        )
    service.start_coordinator()
    service.variables.clear()
    service.variables.update(saved)


def is_dead(service: Service) -> bool:
    """Whether the coordinator has ended."""
    assert service.coordinator is not None
    return service.coordinator.poll() is not None


def one_kill(kill_at: str) -> int:
    """Runs two jobs with a kill; returns how many syncs there were."""
    service = Service()
    service.kill_coordinator()
    submitter = Submitter(service, bytes_of(service, "tiny_sru"))
    start(service, kill_at)
    calls = Calls(service.address)
    for number in range(2):
        submitter.submit(calls, f"r-{number}", number, 3)
    ended = lambda: is_dead(service) or all_done(calls, submitter)  # noqa: E731
    eventually(ended, 10)
    calls.close()
    assert service.coordinator is not None
    if not is_dead(service):
        service.coordinator.terminate()
        service.coordinator.wait()
    path = service.folder / "syncs"
    syncs = int(path.read_text()) if path.exists() else 0
    start(service)
    # A request whose acknowledgement was lost is repeated by its client.
    calls = Calls(service.address)
    for number in range(2):
        if submitter.submit(calls, f"r-{number}", number, 20) is None:
            problems.append(f"{kill_at}: no answer after the start: {service.logs()[-500:]}")
    calls.close()
    submitter.check(kill_at)
    service.close()
    return syncs


def all_done(calls: Calls, submitter: Submitter) -> bool:
    """Whether the jobs have ended."""
    if len(submitter.jobs) < 2:
        return False
    try:
        return all(
            PB["optimizer"].Job.State.Name(
                calls.optimizer.GetJob(PB["optimizer"].GetJobRequest(name=job), timeout=1).state
            )
            in served.TERMINAL
            for job in submitter.jobs.values()
        )
    except grpc.RpcError:
        return False


def each_sync() -> None:
    """A kill before and one after each sync of the same small scenario."""
    syncs = one_kill("0 before")
    print(f"{syncs} syncs in the scenario", flush=True)
    for number in range(1, syncs + 1):
        for side in ("before", "after"):
            one_kill(f"{number} {side}")
    print(f"killed before and after each of {syncs} syncs: {len(problems)} problems", flush=True)


def random_kills(kills: int, seed: int) -> None:
    """Kills at random points, on one store, while four clients submit."""
    random_ = random.Random(seed)
    service = Service(coordinator_flags=["--resumes", "50"])
    submitter = Submitter(service, bytes_of(service, "tiny_sru"))
    stopping = threading.Event()

    def client(number: int) -> None:
        calls, count = Calls(service.address), 0
        while not stopping.is_set():
            submitter.submit(calls, f"r-{number}-{count * 4 + number}", count * 4 + number, 60)
            count += 1
            time.sleep(0.5)  # Most of them end between the kills.
        calls.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    longest = 0.0
    for _ in range(kills):
        time.sleep(random_.uniform(0.05, 1.2))
        service.kill_coordinator()
        begin = time.monotonic()
        service.start_coordinator()
        if not eventually(lambda: _answers(service.address), 30):
            problems.append(f"it does not start: {service.logs()[-500:]}")
            break
        longest = max(longest, time.monotonic() - begin)
    stopping.set()
    for thread in threads:
        thread.join()
    submitter.check("random", 600)
    print(
        f"{kills} kills at random points, {len(submitter.jobs)} requests acknowledged, "
        f"the longest start {longest:.2f} s: {len(problems)} problems",
        flush=True,
    )
    service.close()


def _answers(address: str) -> bool:
    build = os.environ["AUTOGRAPH_BUILD"]
    command = [f"{build}/autograph", "health", "--server", address]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> int:
    """Runs both parts."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    each_sync()
    random_kills(kills, seed)
    for problem in problems[:20]:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
