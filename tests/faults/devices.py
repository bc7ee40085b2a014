"""Devices that are slow, noisy, shared, too small, that change under a job, or whose figures cannot be."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
import time
from typing import Any, Callable, List

import served
from cluster import (
    PB,
    Cluster,
    Health,
    Job,
    eventually,
    expect,
    products,
    undisturbed,
)
from network import Forger

SMALL = (served.ROOT / "deploy" / "devices" / "small.spec").read_text()
Result = PB["optimizer"].Result


def without_gain() -> bytes:
    """Returns a model with nothing to gain: what becomes of it takes as long."""
    from models import model_of  # pylint: disable=import-outside-toplevel
    from onnx import helper  # pylint: disable=import-outside-toplevel

    return model_of([helper.make_node("Relu", ["x"], ["y"])])


def _behind(cluster: Cluster, name: str, forge: Callable[[Any], None]) -> Forger:
    """Starts a worker whose results are changed on their way."""
    forger = Forger(cluster.address, forge)
    cluster.start_worker(name, "--tick", "0.5", server=forger.address)
    return forger


def worker_that_slows_down() -> None:
    """A worker takes ten times as long as it should, and longer and longer while files are timed."""

    def slow(result: Any) -> None:
        for times in (result.measurement.latency, result.timing.latency):
            for field in ("median_ns", "low_ns", "high_ns"):
                setattr(times, field, 10 * getattr(times, field))
        for number, block in enumerate(result.file_times.blocks):
            block.ns[:] = [10 * (1 + number) * ns for ns in block.ns]

    with Cluster(workers=[]) as cluster:
        forger = _behind(cluster, "far", slow)
        gain = cluster.succeeds(cluster.submit(products()))
        expect(gain.verdict == Result.FASTER, f"a gain is not seen: {gain.speedup_low}")
        none = cluster.succeeds(cluster.submit(without_gain()))
        expect(none.verdict == Result.NO_GAIN_FOUND, f"a gain of {none.speedup_low} that is none")
        forger.close()


def figures_that_cannot_be() -> None:
    """Five workers send times of 0, below 0, of no number, without end, and far too small."""
    model = products()
    wanted = undisturbed(model)
    bad = [0.0, -5.0, math.nan, math.inf, 5e-324]
    forgers: List[Forger] = []
    with Cluster("--losses", "20", workers=[]) as cluster:
        for number, time_ns in enumerate(bad):

            def forge(result: Any, value: float = time_ns) -> None:
                if result.HasField("measurement"):
                    result.measurement.latency.median_ns = value

            forgers.append(_behind(cluster, f"bad-{number}", forge))
        cluster.start_worker("good")
        for seed in range(1, 20):
            result = cluster.succeeds(cluster.submit(model, seed, skip_group_cache=True))
            expect(result.output_digest == wanted, "another output")
            if sum(cluster.health(f"bad-{n}") == Health.DRAINING for n in range(len(bad))) == len(bad):
                break
        for number, time_ns in enumerate(bad):
            seen = cluster.seen(f"bad-{number}")
            expect(seen.health == Health.DRAINING and "cannot be" in seen.reason, f"{time_ns}: {seen}")
        rows = cluster.at("cache", "list")
        expect(bool(rows), "nothing was measured")
        workers = {row.get("worker") for row in rows}
        expect(workers == {"good"}, f"rows of workers {workers}")
        for forger in forgers:
            forger.close()


def clocks_that_drift() -> None:
    """The device's times grow a hundredfold during its first second, and its canary's with them."""
    model = products(size=64)
    with Cluster(spec_lines="drift 100\n") as cluster:
        gain = cluster.succeeds(cluster.submit(model))
        expect(gain.verdict == Result.FASTER, f"a gain is not seen: {gain.speedup_low}")
        none = cluster.succeeds(cluster.submit(without_gain()))
        expect(none.verdict == Result.NO_GAIN_FOUND, f"a gain of {none.speedup_low} that is none")
        expect(_discarded(cluster) > 0, "no sample was thrown away")
    with Cluster() as cluster:
        cluster.succeeds(cluster.submit(model))
        expect(_discarded(cluster) == 0, "samples of a quiet device were thrown away")


def _discarded(cluster: Cluster) -> int:
    """Returns how many samples the measurements of the cache threw away."""
    path = cluster.folder / "recording"
    cluster.cli("cache", "export", str(path), "--server", cluster.address)
    words = [word for line in path.read_text().splitlines() for word in line.split(" ")]
    return sum(int(word.split("=")[1]) for word in words if word.startswith("discarded="))


def heavy_tails() -> None:
    """Times of files scatter by 30 % and one in twenty takes up to five times as long."""
    noise = {"sigma": 0.3, "seed": 0}

    def disturb(result: Any) -> None:
        random_ = random.Random(noise["seed"])  # Block by block the same, however many there are.
        for block in result.file_times.blocks:
            block.ns[:] = [ns * _heavy_tail(random_, noise["sigma"]) for ns in block.ns]

    with Cluster(workers=[]) as cluster:
        forger = _behind(cluster, "far", disturb)
        medians = []
        for seed in range(1, 9):
            noise["seed"] = seed
            none = cluster.succeeds(cluster.submit(without_gain(), seed))
            expect(none.verdict == Result.NO_GAIN_FOUND, f"seed {seed}: a gain of {none.speedup_low}")
            medians.append(none.speedup)
        expect(max(medians) > 1.01, f"the noise was too small to say anything: {medians}")
        noise["sigma"] = 0.02
        gain = cluster.succeeds(cluster.submit(products()))
        expect(gain.verdict == Result.FASTER, f"a gain is not seen: {gain.speedup_low}")
        forger.close()


def _heavy_tail(random_: random.Random, sigma: float) -> float:
    """Returns a factor of a time."""
    factor = math.exp(sigma * random_.gauss(0, 1))
    return factor * (1 + 4 * random_.random()) if random_.random() < 0.05 else factor


def _burn(stop: Any) -> None:
    while not stop.is_set():
        for _ in range(100_000):
            pass


def others_on_the_device() -> None:
    """Other processes use all processors while a `cpu` worker measures."""
    stop = multiprocessing.Event()
    burners = [multiprocessing.Process(target=_burn, args=(stop,)) for _ in range(os.cpu_count() or 1)]
    for burner in burners:
        burner.start()
    try:
        with Cluster(device="cpu:1") as cluster:
            request = {"onnxruntime": PB["optimizer"].OptimizeRequest.OFF}
            none = cluster.succeeds(cluster.submit(without_gain(), **request), 200)
            expect(none.verdict != Result.FASTER, f"a gain of {none.speedup_low} that is none")
            expect("others" in " ".join(none.warnings), f"it does not say so: {list(none.warnings)}")
    finally:
        stop.set()
        for burner in burners:
            burner.join()


def memory_of_the_device() -> None:
    """A model needs more memory than the device has, and then one comes that fits."""
    text = SMALL.replace("memory_bytes 1073741824", "memory_bytes 100000")
    with Cluster(spec=text) as cluster:
        ended = cluster.end(cluster.submit(products(size=256)), 120)
        said = ended.error.message
        expect(ended.state == Job.FAILED and ended.error.code == 8, f"not refused: {ended}")
        expect("262144 bytes" in said and "has 100000" in said, f"it does not say how much: {said}")
        expect(cluster.seen("a").executor_restarts == 0, "the executor was given up")
        expect(cluster.seen("a").health == Health.SERVING, "it serves no more")
        expect(cluster.succeeds(cluster.submit(products())).verdict == Result.FASTER, "no gain")
        expect(cluster.seen("a").executor_restarts == 0, "the executor was given up")


def device_that_is_cut_up() -> None:
    """The device has half of its cores when its executor is opened anew, in the middle of a job."""
    flags = ("--other-environment", "0.3", "--reconnect", "0.2")
    with Cluster(*flags, spec=SMALL) as cluster:
        before = cluster.seen("a").environment
        cluster.hold("a")
        job = cluster.submit(products())
        cluster.holder()
        spec = cluster.folder / "own.spec"
        spec.write_text(spec.read_text().replace("cores 4", "cores 2"))
        os.kill(cluster.executor("a"), signal.SIGKILL)
        expect(eventually(lambda: cluster.seen("a").environment not in ("", before)), "the same environment")
        after = cluster.seen("a").environment
        result = cluster.succeeds(job)
        expect(result.environment == after, f"measured in {result.environment}")
        cluster.says("planned anew for another one")
        rows = {row["environment"] for row in cluster.at("cache", "list")}
        expect(rows == {after}, f"times of {rows}")


def hang_and_a_wrong_device() -> None:
    """A device never returns from a group, and computes wrongly when it is opened anew."""
    with Cluster("--hang-time", "2", spec=SMALL) as cluster:
        cluster.hold("a")  # As a kernel that never ends: nothing of the process goes on.
        job = cluster.submit(products())
        cluster.holder()
        spec = cluster.folder / "own.spec"
        spec.write_text(SMALL + "fault wrong Conv\n")
        cluster.says("no progress for 2.0 s", "autograph-worker")
        expect(
            eventually(lambda: "qualify" in getattr(cluster.seen("a"), "reason", "")),
            f"it serves with a wrong device: {cluster.seen('a')}",
        )
        time.sleep(1)
        seen = cluster.seen("a")
        expect(seen.health == Health.NOT_SERVING and not seen.attempt, f"it has work: {seen}")
        spec.write_text(SMALL)
        expect(eventually(lambda: cluster.health("a") == Health.SERVING), "it does not come back")
        expect(cluster.succeeds(job).verdict == Result.FASTER, "no gain")
