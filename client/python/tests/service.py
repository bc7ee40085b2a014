"""A whole service of real processes for tests: coordinator, worker and command line.

Everything is in one folder, which is removed at the end; the processes end then, too. The variable
AUTOGRAPH_BUILD names the folder with the programs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

BUILD = Path(os.environ["AUTOGRAPH_BUILD"])
ROOT = Path(__file__).resolve().parents[3]
DEVICE = "sim:small"  # Deterministic and quick.
# A search of several minutes, in rounds so short that a first gain comes soon.
LONG: Dict[str, Any] = {
    "device": DEVICE,
    "rounds": 100_000,
    "graphs": 1_000_000,
    "expansions": 100_000,
    "time_seconds": 600.0,
}


def eventually(what: Callable[[], object], seconds: float = 20.0) -> bool:
    """Returns True once `what` is true, False when it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def stop(pid: int) -> None:
    """Stops a process; on return none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)

    def stopped() -> bool:
        stats = Path(f"/proc/{pid}/task").glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in stats)

    assert eventually(stopped)


class Place:
    """A folder, and the variables that keep programs inside it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="autograph-python-"))
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith("AUTOGRAPH_")}
        self.variables.update(
            HOME=str(self.folder),
            AUTOGRAPH_DATA=str(self.folder / "data"),
            AUTOGRAPH_MEASURING_LOCK=str(self.folder / "lock"),
        )

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def cli(self, *words: str) -> str:
        """Runs `autograph`, which must succeed; returns its output."""
        command = [str(BUILD / "autograph"), *words]
        return subprocess.run(
            command, env=self.variables, check=True, capture_output=True, text=True
        ).stdout

    def zoo(self, name: str) -> Path:
        """Writes a network; returns its path."""
        path = self.folder / f"{name}.onnx"
        if not path.exists():
            self.cli("zoo", name, "-o", str(path))
        return path


class Service(Place):
    """A coordinator and a worker that serves."""

    def __init__(
        self,
        device: str = DEVICE,
        coordinator_flags: Sequence[str] = (),
        variables: Optional[Dict[str, str]] = None,
    ) -> None:
        super().__init__()
        self._flags = list(coordinator_flags)
        self.variables.update(variables or {})
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{taken.getsockname()[1]}"
        self.device = device
        self.coordinator: Optional[subprocess.Popen[bytes]] = None
        self.start_coordinator()
        self.worker = self._start_worker()

    def start_coordinator(self, delay: float = 0) -> None:
        """Starts the coordinator after `delay` seconds, at the same address and on the same data.

        It ends with the calling thread.
        """
        words = ["--listen", self.address, "--data", str(self.folder / "served")]
        self.coordinator = self._start("autographd", words + self._flags, delay)

    def kill_coordinator(self) -> None:
        """Kills the coordinator with SIGKILL."""
        if self.coordinator is not None:
            self.coordinator.kill()
            self.coordinator.wait()

    def close(self) -> None:
        """Ends coordinator and worker."""
        for process in (self.worker, self.coordinator):
            if process is not None:
                process.kill()
                process.wait()
        super().close()

    def logs(self) -> str:
        """Returns the logs of both."""
        return "".join(path.read_text() for path in self.folder.glob("*.log"))

    def at(self, *words: str) -> Any:
        """Runs the command line against this server and returns its JSON."""
        return json.loads(self.cli(*words, "--server", self.address, "--json"))

    def _start_worker(self) -> subprocess.Popen[bytes]:
        words = ["--server", self.address, "--device", self.device]
        worker = self._start("autograph-worker", words)
        if not eventually(self._serves):
            raise AssertionError(self.logs())
        return worker

    def _serves(self) -> bool:
        try:
            return any(worker["health"] == "SERVING" for worker in self.at("workers", "list"))
        except subprocess.CalledProcessError:
            return False

    def _start(self, name: str, words: List[str], delay: float = 0) -> subprocess.Popen[bytes]:
        later = ["/bin/sh", "-c", 'sleep "$0"; exec "$@"', str(delay)] if delay else []
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *later, str(BUILD / name), *words],
                env=self.variables,
                stdout=log,
                stderr=log,
            )
