"""What a job found out, typed: the JSON report of docs/report.md and the result around it."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Tuple, Union

from .errors import Code, InternalError


@dataclass(frozen=True)
class Latency:
    """A latency in milliseconds: the median and the 95 % interval of the median."""

    median_ms: float
    low_ms: float
    high_ms: float

    def __str__(self) -> str:
        return f"{self.median_ms:.3f} ms  ({self.low_ms:.3f} to {self.high_ms:.3f})"


@dataclass(frozen=True)
class OutputError:
    """How far one output of the answer is from that of the model as it came.

    Attributes:
        output: its name.
        max_abs: max |a-b|.
        max_rel: max |a-b| / max |a|; this is what the tolerance bounds.
        max_elementwise: max of |a-b| / |a| over elements above 1e-3 max |a|.
        nonfinite_differs: Inf or NaN at different places; such an answer is never handed out.
    """

    output: str
    max_abs: float
    max_rel: float
    max_elementwise: float
    nonfinite_differs: bool


@dataclass(frozen=True)
class Rewrite:
    """A rule, how often it was applied, and what that was estimated (not measured) to gain."""

    rule: str
    count: int
    estimated_gain_ms: float


@dataclass(frozen=True)
class Search:
    """Why the search ended and the counts it reached; with them a replay gives the same plan."""

    stop_reason: str
    rounds: int
    expansions: int
    graphs: int
    candidates: int
    groups_failed: int
    cache_hits: int
    cache_misses: int
    seconds: float


@dataclass(frozen=True)
class Kernel:
    """A kernel and its measured time in milliseconds (the median)."""

    name: str
    median_ms: float


@dataclass(frozen=True)
class GroupKernels:
    """A group of the output's plan (its number there): the fastest kernel, and those that lost."""

    group: int
    chosen: Kernel
    alternatives: Tuple[Kernel, ...]


@dataclass(frozen=True)
class Report:
    """The report of a job (docs/report.md).

    Attributes:
        version: of the report's format.
        verdict: "FASTER"; otherwise ("SAME", "SLOWER", "AMBIGUOUS") the answer is the input itself.
        request: the request as accepted, defaults filled in.
        environment: device, driver and library versions that the times are of.
        rules_digest: which rules were searched with.
        simulated: the device is simulated, so every time is an estimate.
        input: the denominator of the speedup: cleaned up and grouped, one stream, no rules.
        output: the answer.
        eager: ungrouped, for information.
        speedup: exactly 1 unless FASTER; speedup_low and speedup_high are its 95 % interval.
        estimate_ms: what the search predicted for the output.
        errors: one entry per output, of the bytes handed out.
        rewrites: applied to the output only; clean_up: applied to the input as well.
        nodes_in, nodes_out: operators before and after. groups, streams: of the output's plan.
        warnings: what a careful reader should know.
        input_plan, output_plan: the plans, one line a launch.
        output_kernels: of each group of the output's plan that was measured.
        json: the whole report as it was written.
    """

    version: int
    verdict: str
    request: Mapping[str, Any]
    environment: str
    rules_digest: str
    simulated: bool
    input: Latency
    output: Latency
    eager: Latency
    speedup: float
    speedup_low: float
    speedup_high: float
    estimate_ms: float
    errors: Tuple[OutputError, ...]
    rewrites: Tuple[Rewrite, ...]
    clean_up: Tuple[Rewrite, ...]
    nodes_in: int
    nodes_out: int
    groups: int
    streams: int
    search: Search
    output_digest: str
    warnings: Tuple[str, ...]
    input_plan: Tuple[str, ...] = field(repr=False)
    output_plan: Tuple[str, ...] = field(repr=False)
    output_kernels: Tuple[GroupKernels, ...] = field(repr=False)
    json: str = field(repr=False)

    @staticmethod
    def parse(text: str) -> Report:
        """Reads a report. Members that this version does not know are skipped.

        Raises:
            InternalError: the text is no report.
        """
        try:
            return _parse(json.loads(text), text)
        except (KeyError, TypeError, ValueError) as error:
            raise InternalError(Code.DATA_LOSS, f"the report cannot be read: {error!r}") from error


def _latency(doc: Mapping[str, Any]) -> Latency:
    return Latency(float(doc["median_ms"]), float(doc["low_ms"]), float(doc["high_ms"]))


def _rewrites(docs: Any) -> Tuple[Rewrite, ...]:
    return tuple(
        Rewrite(str(d["rule"]), int(d["count"]), float(d["estimated_gain_ms"])) for d in docs
    )


def _errors(docs: Any) -> Tuple[OutputError, ...]:
    return tuple(
        OutputError(
            str(d["output"]),
            float(d["max_abs"]),
            float(d["max_rel"]),
            float(d["max_elementwise"]),
            bool(d["nonfinite_differs"]),
        )
        for d in docs
    )


def _kernel(doc: Mapping[str, Any]) -> Kernel:
    return Kernel(str(doc["kernel"]), float(doc["median_ms"]))


def _kernels(docs: Any) -> Tuple[GroupKernels, ...]:
    return tuple(
        GroupKernels(int(d["group"]), _kernel(d), tuple(map(_kernel, d["alternatives"])))
        for d in docs
    )


def _search(doc: Mapping[str, Any]) -> Search:
    return Search(
        stop_reason=str(doc["stop_reason"]),
        rounds=int(doc["rounds"]),
        expansions=int(doc["expansions"]),
        graphs=int(doc["graphs"]),
        candidates=int(doc["candidates"]),
        groups_failed=int(doc["groups_failed"]),
        cache_hits=int(doc["cache_hits"]),
        cache_misses=int(doc["cache_misses"]),
        seconds=float(doc["seconds"]),
    )


def _parse(doc: Mapping[str, Any], text: str) -> Report:
    times, graph = doc["times"], doc["graph"]
    return Report(
        version=int(doc["report_version"]),
        verdict=str(doc["verdict"]),
        request=dict(doc["request"]),
        environment=str(doc["environment"]),
        rules_digest=str(doc["rules_digest"]),
        simulated=bool(times["simulated"]),
        input=_latency(times["input"]),
        output=_latency(times["output"]),
        eager=_latency(times["eager"]),
        speedup=float(times["speedup"]),
        speedup_low=float(times["speedup_low"]),
        speedup_high=float(times["speedup_high"]),
        estimate_ms=float(times["estimate_ms"]),
        errors=_errors(doc["equivalence"]),
        rewrites=_rewrites(doc["rewrites"]),
        clean_up=_rewrites(doc["clean_up"]),
        nodes_in=int(graph["nodes_in"]),
        nodes_out=int(graph["nodes_out"]),
        groups=int(graph["groups"]),
        streams=int(graph["streams"]),
        search=_search(doc["search"]),
        output_digest=str(doc["output_digest"]),
        warnings=tuple(map(str, doc["warnings"])),
        input_plan=tuple(map(str, doc["input_plan"])),
        output_plan=tuple(map(str, doc["output_plan"])),
        output_kernels=_kernels(doc.get("output_kernels", [])),
        json=text,
    )


@dataclass(frozen=True)
class Result:
    """The answer of a job.

    Attributes:
        job: its name at the server ("jobs/7").
        model_name: the name that the model was sent with.
        onnx: the bytes of the answer: a standard ONNX model with its plan in the metadata.
        report: everything that is known about it.
        cached: the answer was remembered; nothing was searched or measured for this call.
        cancelled: the job was cancelled, and this is the best that had been verified by then.
    """

    job: str
    model_name: str
    onnx: bytes = field(repr=False)
    report: Report = field(repr=False)
    cached: bool = False
    cancelled: bool = False

    @property
    def verdict(self) -> str:
        """ "FASTER"; otherwise ("SAME", "SLOWER", "AMBIGUOUS") `onnx` is the input's own bytes."""
        return self.report.verdict

    @property
    def faster(self) -> bool:
        """Whether the answer is faster than the input beyond noise."""
        return self.report.verdict == "FASTER"

    @property
    def speedup(self) -> float:
        """Latency of the input over that of the output; exactly 1 unless FASTER."""
        return self.report.speedup

    @property
    def speedup_interval(self) -> Tuple[float, float]:
        """The 95 % interval of the speedup."""
        return self.report.speedup_low, self.report.speedup_high

    @property
    def device(self) -> str:
        """The device that it was measured on."""
        return str(self.report.request["device"])

    @property
    def rewrites(self) -> Tuple[Rewrite, ...]:
        """The rules applied to the output."""
        return self.report.rewrites

    @property
    def errors(self) -> Tuple[OutputError, ...]:
        """One entry per output: the largest differences from the model as it came."""
        return self.report.errors

    @property
    def warnings(self) -> Tuple[str, ...]:
        """What a careful reader should know."""
        return self.report.warnings

    def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        """Writes `onnx` to `path`, whole or not at all, and returns the path."""
        return write_atomically(path, self.onnx)

    def __str__(self) -> str:
        low, high = self.speedup_interval
        won = f"{self.verdict}  {self.speedup:.3f}x  ({low:.3f} to {high:.3f})"
        rules = ", ".join(f"{r.rule} x{r.count}" for r in self.rewrites) or "none"
        rows = {
            "verdict": won if self.faster else f"{self.verdict}: the output is the input itself",
            "device": self.device + ("  (simulated: an estimate)" * self.report.simulated),
            "input": str(self.report.input),
            "output": str(self.report.output),
            "rewrites": rules,
            "search": f"stopped: {self.report.search.stop_reason}",
            "cache": "the whole answer" if self.cached else f"{self.report.search.cache_hits} hits",
        }
        lines = [f"{self.model_name}  {self.job}"]
        lines += [f"  {name:<10} {value}" for name, value in rows.items()]
        return "\n".join(lines + [f"  {'warning':<10} {text}" for text in self.warnings])


def write_atomically(path: Union[str, os.PathLike[str]], data: bytes) -> Path:
    """Writes a file beside `path` and moves it there, so that no reader sees half of it."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        with open(partial, "xb") as file:
            file.write(data)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target
