"""Stores that are damaged, of another version, in use or without files; disks that keep nothing."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, List, Tuple

import kill_points
import served
from cluster import (
    BUILD,
    PB,
    Calls,
    Cluster,
    Job,
    children,
    code_of,
    eventually,
    expect,
    products,
    reason_of,
    refused,
)

DAMAGES: List[Tuple[str, Callable[[Path], None]]] = []


def _damage(name: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def add(act: Callable[[Path], None]) -> Callable[[Path], None]:
        DAMAGES.append((name, act))
        return act

    return add


@_damage("another header")
def _header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[:16] = b"no SQLite at all"
    path.write_bytes(data)


@_damage("cut short")
def _cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 100])


@_damage("a page of zeros")
def _zeros(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 : 2 * 4096] = bytes(4096)
    path.write_bytes(data)


@_damage("flipped bits")
def _bits(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(100, 4096, 3):
        data[at] ^= 0x55
    path.write_bytes(data)


def _stopped(cluster: Cluster) -> Path:
    """Stops the coordinator as planned, so that its files have no log; returns its data folder."""
    assert cluster.coordinator is not None
    cluster.coordinator.send_signal(signal.SIGTERM)
    expect(cluster.coordinator.wait(20) == 0, "it did not stop well")
    return cluster.folder / "served"


def _start_fails(cluster: Cluster, data: Path) -> str:
    """Starts a coordinator on a folder, which must refuse; returns what it says."""
    words = [str(BUILD / "autographd"), "--listen", "127.0.0.1:0", "--data", str(data)]
    ended = subprocess.run(
        words, env=cluster.variables, capture_output=True, text=True, timeout=30, check=False
    )
    expect(ended.returncode != 0, f"it started: {ended.stdout}")
    return ended.stderr


def cache_file_is_damaged() -> None:
    """The file of the cache is damaged in several ways, each while the coordinator is down."""
    model = products()
    with Cluster() as cluster:
        jobs = [cluster.submit(model)]
        wanted = cluster.succeeds(jobs[0]).output_digest
        for number, (name, damage) in enumerate(DAMAGES, 1):
            data = _stopped(cluster)
            damage(data / "cache.db")
            cluster.start_coordinator()
            cluster.answers()
            cluster.says(f"cache.db.corrupt-{number}")
            expect((data / f"cache.db.corrupt-{number}").exists(), f"{name}: it was not set aside")
            cluster.reaches(jobs[0], Job.SUCCEEDED)
            expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
            jobs.append(cluster.submit(model, 10 + number))
            expect(cluster.succeeds(jobs[-1]).output_digest == wanted, f"{name}: another output")
            expect(all(cluster.job(job).state == Job.SUCCEEDED for job in jobs), f"{name}: lost jobs")


def row_of_the_cache_is_damaged() -> None:
    """A bit of each row of the cache is flipped: rows that are wrong are not answers."""
    model = products()
    with Cluster() as cluster:
        result = cluster.succeeds(cluster.submit(model))
        data = _stopped(cluster)
        with sqlite3.connect(data / "cache.db") as db:
            db.execute(
                "UPDATE measurements SET measurement = CAST(replace(hex(measurement), '0', '1') AS BLOB)"
            )
            db.execute("UPDATE model_answers SET result = result || x'00'")
        db.close()
        cluster.start_coordinator()
        cluster.answers()
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        again = cluster.succeeds(cluster.submit(model))
        expect(not again.cache.model_hit and again.cache.hits == 0, f"damaged rows were used: {again.cache}")
        expect(again.output_digest == result.output_digest, "another output")


def jobs_file_is_damaged() -> None:
    """The file of the jobs is damaged in several ways: the start says so, and a copy is as good as before."""
    with Cluster() as cluster:
        job = cluster.submit(products())
        cluster.succeeds(job)
        data = _stopped(cluster)
        path, good = data / "jobs.db", cluster.folder / "good.db"
        shutil.copy(path, good)
        for name, damage in DAMAGES:
            shutil.copy(good, path)
            damage(path)
            before = hashlib.sha256(path.read_bytes()).hexdigest()
            said = _start_fails(cluster, data)
            expect("jobs file is corrupt" in said and "restore" in said, f"{name}: {said}")
            expect(hashlib.sha256(path.read_bytes()).hexdigest() == before, f"{name}: it was changed")
        shutil.copy(good, path)
        cluster.start_coordinator()
        cluster.answers()
        expect(cluster.job(job).state == Job.SUCCEEDED, "the job is lost")


def _schema() -> Tuple[int, str, int]:
    """Returns the oldest version of jobs.db, what creates it, and the newest, from the source."""
    text = (served.ROOT / "server" / "store" / "schemas.cc").read_text()
    text = text[text.index("& JobsSchema() {") : text.index("& CacheSchema() {")]
    pieces = re.findall(r'R"sql\((.*?)\)sql"', text, re.DOTALL)
    found = re.search(r"\.oldest = (\d+)", text)
    assert found is not None
    return int(found[1]), pieces[0], int(found[1]) + len(pieces) - 1


def _old_store(data: Path) -> None:
    """Makes a store with a jobs.db of the oldest version, and one cancelled job in it."""
    oldest, create, _ = _schema()
    (data / "blobs").mkdir(parents=True)
    data.chmod(0o700)
    with sqlite3.connect(data / "jobs.db") as db:
        db.executescript(create)
        db.execute(
            "INSERT INTO jobs VALUES(7, 'CANCELLED', 1, 'sim:small', x'', x'', 0, '', 1, 2, 3, 0, 1, 'k')"
        )
        db.execute(f"PRAGMA user_version={oldest}")
    db.close()


def jobs_file_of_another_version() -> None:
    """A newer file is refused and untouched; the upgrade of an old one is killed at each of its syncs."""
    newest = _schema()[2]
    with Cluster() as cluster:
        data = _stopped(cluster)
        with sqlite3.connect(data / "jobs.db") as db:
            db.execute(f"PRAGMA user_version={newest + 1}")
        db.close()
        before = (data / "jobs.db").read_bytes()
        said = _start_fails(cluster, data)
        expect(f"version {newest + 1} is newer than this program's {newest}" in said, said)
        expect((data / "jobs.db").read_bytes() == before, "it was changed")
        kills = 0
        for sync in range(1, 40):
            shutil.rmtree(data)
            _old_store(data)
            kill_points.start(cluster, f"{sync} {'before' if sync % 2 else 'after'}")
            assert cluster.coordinator is not None
            lives = eventually(lambda: cluster.answers_now(1) or kill_points.is_dead(cluster), 20)
            expect(lives, cluster.logs()[-1000:])
            ended = kill_points.is_dead(cluster)
            cluster.kill_coordinator()
            cluster.start_coordinator()
            cluster.answers()
            expect(cluster.job("jobs/7").state == Job.CANCELLED, f"sync {sync}: the job is lost")
            cluster.kill_coordinator()
            with sqlite3.connect(data / "jobs.db") as db:
                version = db.execute("PRAGMA user_version").fetchone()[0]
            db.close()
            expect(version == newest, f"sync {sync}: the file is of version {version}")
            if not ended:
                break
            kills += 1
        expect(kills >= 5, f"only {kills} syncs were met")


def two_coordinators() -> None:
    """A second coordinator is started on the folder of one that runs, and after a kill -9 of it."""
    model = products()
    with Cluster() as cluster:
        said = _start_fails(cluster, cluster.folder / "served")
        assert cluster.coordinator is not None
        expect(str(cluster.coordinator.pid) in said, f"it does not say who has the folder: {said}")
        cluster.succeeds(cluster.submit(model))
        cluster.restart()
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        cluster.succeeds(cluster.submit(model, 2))


def reader_of_the_files() -> None:
    """Somebody reads the databases of a coordinator that works, for as long as it works."""
    model = products()
    with Cluster() as cluster:
        data = cluster.folder / "served"
        readers = [sqlite3.connect(data / name, timeout=0.1) for name in ("jobs.db", "cache.db")]
        for seed in range(1, 16):
            job = cluster.submit(model, seed, skip_group_cache=True)
            for db in readers:
                try:
                    db.execute("BEGIN")
                    db.execute("SELECT count(*) FROM sqlite_master").fetchall()
                except sqlite3.OperationalError as error:
                    expect("locked" in str(error), error)
                else:
                    raise AssertionError("a reader holds a transaction in a file that is written")
                finally:
                    db.rollback()
            cluster.succeeds(job)
        sizes = {path.name: path.stat().st_size for path in data.glob("*.db-wal")}
        # A checkpoint follows 1,000 pages of 4 KiB; a transaction may be longer.
        expect(max(sizes.values(), default=0) < 8 << 20, f"the logs grow: {sizes}")
        for db in readers:
            db.close()


def _blob(cluster: Cluster, digest: str) -> Path:
    """Returns the path of a blob."""
    return cluster.folder / "served" / "blobs" / digest[:2] / digest


def blobs_are_gone_or_rotten() -> None:
    """An output is deleted, a model under its job, and a bit of an output is flipped before a reboot."""
    model = products()
    digest = hashlib.sha256(model).hexdigest()
    with Cluster() as cluster:
        result = cluster.succeeds(cluster.submit(model))
        output = result.output_digest
        _blob(cluster, output).unlink()
        again = cluster.succeeds(cluster.submit(model))
        expect(not again.cache.model_hit, "an answer without its bytes was given")
        expect(again.output_digest == output and _blob(cluster, output).exists(), "it was not made anew")
        # Rotten: found by the look at all blobs after a reboot.
        data = _stopped(cluster)
        path = _blob(cluster, output)
        bad = bytearray(path.read_bytes())
        bad[len(bad) // 2] ^= 1
        path.chmod(0o600)
        path.write_bytes(bad)
        (data / "boot").write_text("another boot\n")
        cluster.start_coordinator()
        cluster.answers()
        expect(not path.exists(), "the rotten blob is still there")
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        third = cluster.succeeds(cluster.submit(model))
        expect(third.output_digest == output and not third.cache.model_hit, "a rotten answer was given")
        # The input of a job that waits for its turn.
        cluster.hold("a")
        cluster.submit(model, 50)
        cluster.holder()
        other = products("Tanh")
        waiting = cluster.submit(other, 51)
        _blob(cluster, hashlib.sha256(other).hexdigest()).unlink()
        cluster.release("a")
        ended = cluster.end(waiting)
        expect(ended.state == Job.FAILED and "No such file" in ended.error.message, ended)
        error = refused(lambda: _ask_again(cluster, hashlib.sha256(other).hexdigest()))
        expect(code_of(error) == "FAILED_PRECONDITION", error)
        expect(digest != output, "the model has no gain")


class _Disk:
    """The module that makes a coordinator's disk fail, or notes what a loss of power leaves of it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fault = cluster.folder / "fault"
        self.kept = cluster.folder / "kept"
        self.kept.mkdir()
        self.works()
        self._variables = {
            "LD_PRELOAD": str(BUILD / "libdisk.so"),
            "AUTOGRAPH_DISK": str(cluster.folder / "served"),
            "AUTOGRAPH_DISK_FAULT": str(self._fault),
            "AUTOGRAPH_DISK_KEPT": str(self.kept),
        }

    def start(self) -> None:
        """Starts the coordinator on this disk."""
        saved = dict(self._cluster.variables)
        self._cluster.variables.update(self._variables)
        self._cluster.start_coordinator()
        self._cluster.variables.clear()
        self._cluster.variables.update(saved)
        self._cluster.answers()

    def is_full(self) -> None:
        """From now on nothing can be written."""
        self._fault.write_text("full")

    def fails_to_sync(self) -> None:
        """From now on no sync succeeds."""
        self._fault.write_text("sync")

    def works(self) -> None:
        """From now on all is well."""
        self._fault.write_text("works")

    def loses_power(self) -> None:
        """Kills the coordinator and its jobs, and leaves what was synced of their files alone."""
        cluster = self._cluster
        assert cluster.coordinator is not None
        pids = [cluster.coordinator.pid, *children(cluster.coordinator.pid, "--child=job")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        cluster.coordinator.wait()
        root = cluster.folder / "served"
        shutil.rmtree(root)
        root.mkdir(mode=0o700)
        for path in sorted(self.kept.glob("folder-*"), key=lambda p: len(p.read_text().split("\n")[0])):
            folder, *names = path.read_text().splitlines()
            Path(folder).mkdir(parents=True, exist_ok=True)
            for line in names:
                name, inode = line.rsplit(" ", 1)
                if name.endswith("/"):
                    (Path(folder) / name).mkdir(exist_ok=True)
                elif (self.kept / f"file-{inode}").exists():
                    shutil.copy(self.kept / f"file-{inode}", Path(folder) / name)
                else:
                    (Path(folder) / name).touch()  # Its name is there, and nothing of its bytes.
        (root / "boot").write_text("another boot\n")
        self._note()

    def _note(self) -> None:
        """Notes what is on the disk now, as the module does at syncs, instead of what was noted before."""
        for path in self.kept.iterdir():
            path.unlink()
        root = self._cluster.folder / "served"
        for path in [root, *root.rglob("*")]:
            inode = path.stat().st_ino
            if path.is_file():
                shutil.copy(path, self.kept / f"file-{inode}")
                continue
            lines = [f"{p.name}{'/' if p.is_dir() else ''} {p.stat().st_ino}" for p in path.iterdir()]
            (self.kept / f"folder-{inode}").write_text("\n".join([str(path), *lines]) + "\n")


def loss_of_power() -> None:
    """The power goes at random moments while a client submits: what was not synced is gone."""
    random_ = random.Random(17)
    model = products()
    with Cluster("--resumes", "50", "--reconnect", "1") as cluster:
        cluster.kill_coordinator()
        shutil.rmtree(cluster.folder / "served")
        disk = _Disk(cluster)
        disk.start()
        submitter = kill_points.Submitter(cluster, model)
        seed = 0
        for _ in range(6):
            expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
            calls = Calls(cluster.address)
            for _ in range(random_.randint(1, 5)):
                submitter.submit(calls, f"r-{seed}", seed, 20)
                seed += 1
                time.sleep(random_.uniform(0, 0.3))
            calls.close()
            disk.loses_power()
            disk.start()
        submitter.check("power")
        expect(not kill_points.problems, kill_points.problems)
        for name in submitter.jobs.values():
            digest = cluster.job(name).result.output_digest
            expect(hashlib.sha256(_blob(cluster, digest).read_bytes()).hexdigest() == digest, "other bytes")


def disk_is_full() -> None:
    """The disk becomes full while a job runs and clients upload and ask, and has space again."""
    model = products()
    with Cluster() as cluster:
        cluster.kill_coordinator()
        disk = _Disk(cluster)
        disk.start()
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        known = cluster.succeeds(cluster.submit(model))
        cluster.hold("a")
        running = cluster.submit(model, 2, skip_group_cache=True)
        cluster.holder()
        disk.is_full()
        cluster.release("a")
        other = products("Tanh")
        error = refused(lambda: cluster.calls.upload(hashlib.sha256(other).hexdigest(), other))
        expect(code_of(error) == "RESOURCE_EXHAUSTED", error)
        error = refused(lambda: cluster.submit(model, 3))
        expect(code_of(error) == "RESOURCE_EXHAUSTED" and b"HOST_FAULT" in reason_of(error), error)
        # What is known is answered, and what is stored can be read.
        request = served.request_of(hashlib.sha256(model).hexdigest(), 1)
        again = cluster.calls.optimizer.Optimize(request, timeout=20)
        expect(again.result.output_digest == known.output_digest, "a known answer is not given")
        expect("SERVING" in cluster.cli("health", "ready", "--server", cluster.address), "not ready")
        time.sleep(2)
        expect(cluster.job(running).state not in (Job.FAILED, Job.SUCCEEDED), cluster.job(running))
        expect(not list((cluster.folder / "served" / "blobs" / "tmp").iterdir()), "half a blob is left")
        disk.works()
        expect(cluster.succeeds(running).output_digest == known.output_digest, "another output")
        cluster.succeeds(cluster.submit(other, 4))


def syncs_fail() -> None:
    """Every sync of the disk fails for a while: nothing is acknowledged that is not on it."""
    model = products()
    with Cluster("--resumes", "50", "--reconnect", "1") as cluster:
        cluster.kill_coordinator()
        shutil.rmtree(cluster.folder / "served")
        disk = _Disk(cluster)
        disk.start()
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        first = cluster.submit(model)
        cluster.succeeds(first)
        disk.fails_to_sync()
        for seed in range(2, 5):
            refused(lambda s=seed: cluster.submit(model, s, request_id=f"r-{s}"))
        expect(cluster.job(first).state == Job.SUCCEEDED, "what is stored is not told")
        disk.loses_power()
        disk.works()
        disk.start()
        expect(cluster.job(first).state == Job.SUCCEEDED, "an acknowledged job is lost")
        expect(eventually(lambda: cluster.seen("a") is not None), "no worker")
        cluster.succeeds(cluster.submit(model, 2, request_id="r-2"))


def _ask_again(cluster: Cluster, digest: str) -> Any:
    """Asks for a model without sending it."""
    request = served.request_of(digest, 99)
    return cluster.calls.optimizer.Optimize(request, timeout=10)
