"""The typed result of a job: the JSON report of docs/report.md and the result around it."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Optional, Tuple, Union

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
class Ratio:
    """How many times faster: the median of paired ratios and its 99 % interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f}x  ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class FileFacts:
    """The parts of a model file, counted as ONNX's own tools count."""

    file_bytes: int
    parameters: int
    operators: Mapping[str, int]


@dataclass(frozen=True)
class OutputError:
    """The difference of one output of the answer from that of the input.

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
    """A rule, the number of its applications, and their estimated (not measured) gain."""

    rule: str
    count: int
    estimated_gain_ms: float


@dataclass(frozen=True)
class Search:
    """Why the search ended and the counts it reached; with them a replay gives the same plan.

    `state` is "COMPLETE", "STOPPED" or "NOT_SEARCHED" (the budget ended before the first round).
    """

    state: str
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
    """A group of the output's plan (by number): the fastest kernel and the slower ones."""

    group: int
    chosen: Kernel
    alternatives: Tuple[Kernel, ...]


@dataclass(frozen=True)
class Report:
    """The report of a job (docs/report.md).

    Attributes:
        version: of the report's format.
        verdict: "FASTER", "NO_GAIN_FOUND" (measured, not faster) or "NOT_MEASURED".
        request: the request as accepted, defaults filled in.
        environment: device, driver and library versions that the times are of.
        rules_digest: the rules of the search.
        simulated: the device is simulated, so every time is an estimate.
        baseline: what the user runs today: "ONNX Runtime 1.23.2" or "AutoGraph, untuned".
        output_runtime: where the output was timed, "AutoGraph" or "ONNX Runtime 1.23.2".
        input: the input file, in the baseline.
        output: the file handed out, in output_runtime.
        eager: ungrouped, for information.
        speedup: input over output, paired; speedup_low and speedup_high are its 99 % interval.
        over_onnxruntime, over_untuned, over_tuned_input: the output over ONNX Runtime, over our
            untuned session on the input, over the input with the best plan for it; None where it
            could not be measured.
        output_kind: "REWRITTEN", "PLAN_ADDED" (the input's bytes with a plan) or "INPUT".
        input_file, output_file: what the files consist of.
        estimate_ms: what the search predicted for the output.
        errors: one entry per output, of the bytes handed out.
        rewrites, clean_up: rules applied in the output.
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
    baseline: str
    output_runtime: str
    input: Latency
    output: Latency
    eager: Latency
    speedup: float
    speedup_low: float
    speedup_high: float
    over_onnxruntime: Optional[Ratio]
    over_untuned: Optional[Ratio]
    over_tuned_input: Optional[Ratio]
    estimate_ms: float
    output_kind: str
    input_file: FileFacts
    output_file: FileFacts
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
        """Returns the parsed report. Skips members that this version does not know.

        Raises:
            InternalError: the text is no report.
        """
        try:
            return _parse(json.loads(text), text)
        except (KeyError, TypeError, ValueError) as error:
            raise InternalError(Code.DATA_LOSS, f"the report cannot be read: {error!r}") from error


def _latency(doc: Mapping[str, Any]) -> Latency:
    return Latency(float(doc["median_ms"]), float(doc["low_ms"]), float(doc["high_ms"]))


def _ratio(doc: Any) -> Optional[Ratio]:
    if doc is None:
        return None
    return Ratio(float(doc["median"]), float(doc["low"]), float(doc["high"]))


def _facts(doc: Mapping[str, Any]) -> FileFacts:
    return FileFacts(int(doc["file_bytes"]), int(doc["parameters"]), dict(doc["operators"]))


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
        state=str(doc["state"]),
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
        baseline=str(times["baseline"]),
        output_runtime=str(times["output_runtime"]),
        input=_latency(times["input"]),
        output=_latency(times["output"]),
        eager=_latency(times["eager"]),
        speedup=float(times["speedup"]),
        speedup_low=float(times["speedup_low"]),
        speedup_high=float(times["speedup_high"]),
        over_onnxruntime=_ratio(times.get("over_onnxruntime")),
        over_untuned=_ratio(times.get("over_untuned")),
        over_tuned_input=_ratio(times.get("over_tuned_input")),
        estimate_ms=float(times["estimate_ms"]),
        output_kind=str(doc["output"]),
        input_file=_facts(doc["input_file"]),
        output_file=_facts(doc["output_file"]),
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


@dataclass(frozen=True, repr=False)
class Result:
    """The answer of a job.

    Attributes:
        job: its name at the server ("jobs/7").
        model_name: the name that the model was sent with.
        onnx: the bytes of the answer: a standard ONNX model with its plan in the metadata,
            rewritten, or the input's own bytes with the plan behind them.
        report: everything that is known about it.
        cached: the answer was stored; nothing was searched or measured for this call.
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
        """ "FASTER", "NO_GAIN_FOUND" (measured, not faster) or "NOT_MEASURED"."""
        return self.report.verdict

    @property
    def faster(self) -> bool:
        """True when the answer is faster than the baseline, beyond noise."""
        return self.report.verdict == "FASTER"

    @property
    def speedup(self) -> float:
        """The latency of the input in the baseline over that of the output."""
        return self.report.speedup

    @property
    def speedup_interval(self) -> Tuple[float, float]:
        """The 99 % interval of the speedup."""
        return self.report.speedup_low, self.report.speedup_high

    @property
    def device(self) -> str:
        """The device of the measurements."""
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

    def __repr__(self) -> str:
        low, high = self.speedup_interval
        words = self.verdict.replace("_", " ")
        if self.report.baseline:
            words += f" {self.speedup:.3f}x ({low:.3f} to {high:.3f}) over {self.report.baseline}"
        notes = ", cached" * self.cached + ", cancelled" * self.cancelled
        notes += ", simulated" * self.report.simulated
        return f"<autograph.Result {words}: {self.model_name} on {self.device}{notes}>"

    def __str__(self) -> str:
        low, high = self.speedup_interval
        verdict = self.verdict.replace("_", " ")
        over = f"  over {self.report.baseline}" if self.report.baseline else ""
        rules = ", ".join(f"{r.rule} x{r.count}" for r in self.rewrites) or "none"
        search = self.report.search
        rows = {
            "verdict": f"{verdict}  {self.speedup:.3f}x  ({low:.3f} to {high:.3f}){over}",
            "device": self.device + ("  (simulated: an estimate)" * self.report.simulated),
            "input": str(self.report.input),
            "output": f"{self.report.output}  {self.report.output_kind.replace('_', ' ').lower()}",
            "rewrites": rules,
            "search": f"{search.state} (stopped: {search.stop_reason})",
            "cache": "the whole answer" if self.cached else f"{search.cache_hits} hits",
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
