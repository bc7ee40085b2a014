"""An older client, worker and store with the coordinator of this commit.

usage: upgrades.py OLD_BUILD NEW_BUILD   (folders with autograph, autographd and autograph-worker)
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

OLD, NEW = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
QUICK = ["--rounds", "1", "--candidates", "2", "--budget", "20s"]
SECONDS = 120
problems: List[str] = []


def expect(condition: bool, what: str) -> None:
    """Prints what was looked at, and keeps what does not hold."""
    print(f"  {'ok' if condition else 'PROBLEM'}: {what}", flush=True)
    if not condition:
        problems.append(what)


class Place:
    """A folder with a store, and the processes on it."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="autograph-upgrades-")
        self.path = Path(self.folder.name)
        self.processes: Dict[str, subprocess.Popen[bytes]] = {}
        self.address = ""
        self.variables = {
            **{k: v for k, v in os.environ.items() if not k.startswith("AUTOGRAPH_")},
            "HOME": str(self.path / "home"),
            "AUTOGRAPH_DATA": str(self.path / "own"),
            "AUTOGRAPH_MEASURING_LOCK": str(self.path / "lock"),
        }

    def start(self, name: str, command: List[str]) -> None:
        """Starts a process with its log in the folder."""
        log = open(self.path / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            command, env=self.variables, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )

    def serve(self, build: Path) -> None:
        """Starts a coordinator on the store and waits until it answers."""
        log = self.path / "coordinator.log"
        log.write_bytes(b"")
        # The flag's port is free: the one of the coordinator before, or the system's choice.
        port = self.address.rsplit(":", 1)[-1] or free_port()
        self.address = f"127.0.0.1:{port}"
        self.start(
            "coordinator",
            [str(build / "autographd"), "--data", str(self.path / "data"), "--listen", self.address],
        )
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.cli(NEW, "workers", "list").returncode == 0:
                return
            time.sleep(0.1)
        raise SystemExit(f"{build}: the coordinator does not answer: {log.read_text()[-2000:]}")

    def work(self, build: Path, device: str) -> None:
        """Starts a worker and waits until it serves."""
        self.start(
            f"worker {device}",
            [str(build / "autograph-worker"), "--server", self.address, "--device", device],
        )
        end = time.monotonic() + 30
        while time.monotonic() < end:
            listed = self.cli(NEW, "workers", "list", "--json")
            if listed.returncode == 0 and any(
                row.get("device") == device and row.get("health") == "SERVING"
                for row in json.loads(listed.stdout)
            ):
                return
            time.sleep(0.1)
        log = (self.path / f"worker {device}.log").read_text()
        raise SystemExit(f"{build}: no worker of {device}: {listed.stdout} {log[-2000:]}")

    def stop(self, name: str) -> None:
        """Ends a process as a planned restart does."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            expect(False, f"{name} ends at SIGTERM")

    def cli(self, build: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a verb of the command line against the coordinator."""
        server = ["--server", self.address] if words[0] not in ("zoo", "verify") else []
        return subprocess.run(
            [str(build / "autograph"), *words, *server],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def zoo(self, name: str) -> str:
        """Returns the path of a network's file."""
        path = self.path / f"{name}.onnx"
        if not path.exists():
            self.cli(NEW, "zoo", name, "-o", str(path))
        return str(path)

    def optimize(self, build: Path, model: str, device: str, *more: str) -> Optional[Dict[str, Any]]:
        """Optimizes through the service; checks the file that comes back."""
        out = str(self.path / f"out-{time.monotonic_ns()}.onnx")
        done = self.cli(
            build, "optimize", self.zoo(model), "-o", out, "--device", device, "--json", *QUICK, *more
        )
        what = f"{build.parent.name}/{build.name}: optimize {model} on {device}"
        expect(done.returncode == 0, f"{what}: exit code {done.returncode} {done.stderr[-300:]}")
        if done.returncode != 0:
            return None
        same = self.cli(NEW, "verify", self.zoo(model), "--against", out)
        expect(same.returncode == 0, f"{what}: same results {same.stderr[-300:]}")
        result: Dict[str, Any] = json.loads(done.stdout)
        expect(
            result["result"]["verdict"] in ("FASTER", "NO_GAIN_FOUND"),
            f"{what}: {result['result']['verdict']} {result['result']['speedup']:.3f}",
        )
        return result

    def job(self, name: str) -> Dict[str, Any]:
        """Returns a job as the new command line shows it."""
        shown = self.cli(NEW, "jobs", "show", name, "--json")
        return dict(json.loads(shown.stdout)) if shown.stdout else {}

    def close(self) -> None:
        """Ends everything."""
        for name in list(self.processes):
            self.stop(name)
        self.folder.cleanup()


def free_port() -> str:
    """Returns a port that nobody listens on."""
    import socket  # pylint: disable=import-outside-toplevel

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def old_client() -> None:
    """The old command line against new processes."""
    print("an old client:")
    place = Place()
    place.serve(NEW)
    place.work(NEW, "sim:small")
    job = place.optimize(OLD, "tiny_cnn", "sim:small")
    again = place.optimize(OLD, "tiny_cnn", "sim:small")
    if job and again:
        expect(again["result"]["cache"]["model_hit"], "the second answer is remembered")
    for words in (["jobs", "list"], ["workers", "list"], ["cache", "stats"], ["cache", "list"]):
        done = place.cli(OLD, *words)
        expect(done.returncode == 0, f"{' '.join(words)}: {done.stderr[-200:] or 'answers'}")
    if job:
        done = place.cli(OLD, "jobs", "show", job["name"], "--json")
        expect(done.returncode == 0 and '"SUCCEEDED"' in done.stdout, "jobs show")
    wrong = place.cli(OLD, "jobs", "show", "jobs/999")
    expect(wrong.returncode == 3 or "999" in wrong.stderr, f"a job that is not: {wrong.stderr.strip()}")
    place.close()


def old_worker() -> None:
    """Old workers for a new coordinator."""
    print("an old worker:")
    place = Place()
    place.serve(NEW)
    place.work(OLD, "sim:small")
    place.work(OLD, "cpu:1")
    place.optimize(NEW, "tiny_cnn", "sim:small")
    place.optimize(NEW, "tiny_sru", "cpu:1")
    place.stop("coordinator")
    place.serve(NEW)
    place.optimize(NEW, "tiny_resnet", "sim:small")
    place.close()


def old_store() -> None:
    """A store of old processes, opened by the new coordinator."""
    print("an old store:")
    place = Place()
    place.serve(OLD)
    place.work(OLD, "sim:small")
    first = place.optimize(OLD, "tiny_cnn", "sim:small")
    place.processes["worker sim:small"].send_signal(signal.SIGSTOP)
    queued = place.cli(
        OLD, "optimize", place.zoo("tiny_sru"), "--detach", "--device", "sim:small", *QUICK
    ).stdout.strip()
    expect(queued.startswith("jobs/"), f"a job waits: {queued}")
    records = place.cli(OLD, "cache", "list", "--json").stdout.count('"environment"')
    place.stop("coordinator")
    place.stop("worker sim:small")
    place.serve(NEW)
    if first:
        shown = place.job(first["name"])
        expect(shown.get("state") == "SUCCEEDED", f"{first['name']} is there")
        out = str(place.path / "fetched.onnx")
        done = place.cli(NEW, "jobs", "fetch", first["name"], "-o", out)
        expect(done.returncode == 0, f"its file is there {done.stderr[-200:]}")
        if done.returncode == 0:
            same = place.cli(NEW, "verify", place.zoo("tiny_cnn"), "--against", out)
            expect(same.returncode == 0, "and computes the same")
    expect(place.job(queued).get("state") == "QUEUED", f"{queued} waits still")
    now = place.cli(NEW, "cache", "list", "--json").stdout.count('"environment"')
    expect(0 < records <= now, f"{records} measurements before, {now} now")
    place.work(NEW, "sim:small")
    done = place.cli(NEW, "jobs", "watch", queued)
    expect(done.returncode == 0, f"{queued} ends {done.stderr[-200:]}")
    expect(place.job(queued).get("state") == "SUCCEEDED", "with a result")
    place.optimize(NEW, "tiny_cnn", "sim:small")
    place.close()


def main() -> int:
    """Runs the three; 1: something does not hold."""
    for part in (old_client, old_worker, old_store):
        part()
    print(f"upgrades from {OLD.parent.name}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
