"""The result of a job: the message ``Report`` of docs/report.md, and the answer around it."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Sequence, Tuple, Union

from google.protobuf import json_format

from ._external import PROTOBUF_BYTES_MAX, split
from ._wire.measurement_pb2 import Latency, OutputError, Ratio
from ._wire.optimizer_pb2 import Report, RewriteCount
from ._wire.optimizer_pb2 import Result as WireResult
from .errors import Code, InternalError

__all__ = ["Latency", "OutputError", "Ratio", "Report", "Result", "RewriteCount", "parse_report"]


def parse_report(text: str) -> Report:
    """Returns the report of its JSON text. Skips members that this version does not know.

    Raises:
        InternalError: the text is no report.
    """
    try:
        report: Report = json_format.Parse(text, Report(), ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise InternalError(Code.DATA_LOSS, f"the report cannot be read: {error!r}") from error
    if not report.HasField("result"):
        raise InternalError(Code.DATA_LOSS, "the report cannot be read: it has no result")
    return report


def _latency(latency: Latency) -> str:
    if latency.median_ns <= 0:
        return "not measured"
    return (
        f"{latency.median_ns / 1e6:.3f} ms"
        f"  ({latency.low_ns / 1e6:.3f} to {latency.high_ns / 1e6:.3f})"
    )


@dataclass(frozen=True, repr=False)
class Result:
    """The answer of a job.

    Attributes:
        job: its name at the server ("jobs/7").
        model_name: the name that the model was sent with.
        onnx: the bytes of the answer: a standard ONNX model with its plan in the metadata,
            rewritten, or the input's own bytes with the plan behind them.
        report: everything that is known about it: the message of docs/report.md, whose `result`
            has the times, ratios, errors and counts.
        report_json: the report as it was written.
        cached: the answer was stored; nothing was searched or measured for this call.
        cancelled: the job was cancelled, and this is the best that had been verified by then.
    """

    job: str
    model_name: str
    onnx: bytes = field(repr=False)
    report: Report = field(repr=False)
    report_json: str = field(repr=False)
    cached: bool = False
    cancelled: bool = False

    @property
    def verdict(self) -> str:
        """ "FASTER", "NO_GAIN_FOUND" (measured, not faster) or "NOT_MEASURED"."""
        return WireResult.Verdict.Name(self.report.result.verdict)

    @property
    def faster(self) -> bool:
        """True when the answer is faster than the baseline, beyond noise."""
        return self.report.result.verdict == WireResult.FASTER

    @property
    def speedup(self) -> float:
        """The latency of the input in the baseline over that of the output; 0: not measured."""
        return self.report.result.speedup

    @property
    def speedup_interval(self) -> Tuple[float, float]:
        """The 99 % interval of the speedup."""
        return self.report.result.speedup_low, self.report.result.speedup_high

    @property
    def device(self) -> str:
        """The device of the measurements."""
        return self.report.result.device

    @property
    def rewrites(self) -> Sequence[RewriteCount]:
        """The rules applied to the output."""
        return self.report.result.rewrites

    @property
    def errors(self) -> Sequence[OutputError]:
        """One entry per output: the largest differences from the model as it came."""
        return self.report.result.errors

    @property
    def warnings(self) -> Sequence[str]:
        """What a careful reader should know."""
        return self.report.result.warnings

    def save(self, path: Union[str, os.PathLike[str]]) -> Path:
        """Writes `onnx` to `path`, whole or not at all, and returns the path.

        Above 2 GiB, which no ONNX reader takes in one file, its weights go to `path`.data.
        """
        if len(self.onnx) <= PROTOBUF_BYTES_MAX:
            return write_atomically(path, [self.onnx])
        data_path = Path(f"{os.fspath(path)}.data")
        model, data = split(self.onnx, data_path.name)
        write_atomically(data_path, data)
        return write_atomically(path, model)

    def __repr__(self) -> str:
        result = self.report.result
        low, high = self.speedup_interval
        words = self.verdict.replace("_", " ")
        if result.baseline:
            words += f" {self.speedup:.3f}x ({low:.3f} to {high:.3f}) over {result.baseline}"
        notes = ", cached" * self.cached + ", cancelled" * self.cancelled
        notes += ", simulated" * result.simulated
        return f"<autograph.Result {words}: {self.model_name} on {self.device}{notes}>"

    def __str__(self) -> str:
        result = self.report.result
        low, high = self.speedup_interval
        verdict = self.verdict.replace("_", " ")
        if result.baseline:
            verdict += f"  {self.speedup:.3f}x  ({low:.3f} to {high:.3f})  over {result.baseline}"
        rules = ", ".join(f"{r.rule} x{r.count}" for r in self.rewrites) or "none"
        output = WireResult.Output.Name(result.output).replace("_", " ").lower()
        search = WireResult.SearchState.Name(result.search)
        reason = WireResult.StopReason.Name(result.stop_reason).lower()
        rows = {
            "verdict": verdict,
            "device": self.device + ("  (simulated: an estimate)" * result.simulated),
            "input": _latency(result.input_latency),
            "output": f"{_latency(result.output_latency)}  {output}",
            "rewrites": rules,
            "search": f"{search} (stopped: {reason})",
            "cache": "the whole answer" if self.cached else f"{result.cache.hits} hits",
        }
        lines = [f"{self.model_name}  {self.job}"]
        lines += [f"  {name:<10} {value}" for name, value in rows.items()]
        return "\n".join(lines + [f"  {'warning':<10} {text}" for text in self.warnings])


def write_atomically(
    path: Union[str, os.PathLike[str]], pieces: Iterable[Union[bytes, memoryview]]
) -> Path:
    """Writes a file beside `path` and moves it there, so that no reader sees half of it."""
    target = Path(path)
    if target.exists() and not target.is_file():  # As root, a file would take a device's place.
        raise OSError(f"write {target}: not a regular file")
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        with open(partial, "xb") as file:
            file.writelines(pieces)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target
