"""A job as the service shows it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from .errors import AutoGraphError, Cancelled, Code, error_of


class State(str, enum.Enum):
    """A job's state. A restarted coordinator sets the jobs that ran back to QUEUED."""

    QUEUED = "queued"
    IMPORTING = "importing"
    SEARCHING = "searching"
    CONFIRMING = "confirming"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    def __str__(self) -> str:
        return self.value


_ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED)


@dataclass(frozen=True)
class Progress:
    """The progress of the search.

    Attributes:
        stage: for people: "measuring groups".
        round: of the outer loop. graphs: scored so far. candidates: whole graphs measured so far.
        best_speedup: of the measured candidates so far; 1 before any.
        groups_measured, cache_hits: group measurements made, and taken from the cache.
        fraction: of the budget that is used, 0 to 1; it only grows. elapsed_seconds: since it ran.
        waits_for: "the measuring lock, held by process 123"; "" when it does not wait.
        chosen_sizes: the sizes that were chosen where the model leaves some open; "" for none.
    """

    stage: str
    round: int
    graphs: int
    candidates: int
    best_speedup: float
    groups_measured: int
    cache_hits: int
    fraction: float
    elapsed_seconds: float = 0.0
    waits_for: str = ""
    chosen_sizes: str = ""


@dataclass(frozen=True)
class Job:
    """A job as it was at one moment.

    Attributes:
        name: "jobs/7", permanent.
        state: where it is. progress: how far the search is.
        model_name, model_digest, device: of the request.
        created, finished: seconds since 1970; `finished` is 0 while it runs.
        resumed: how often a restarted coordinator took it up again.
        version: grows with every change.
        error: why it failed, else None.
        verdict, speedup: of the result; "" and 1 while there is none, 0: NOT_MEASURED.
        cached: the whole answer came from the cache.
        output_digest, report_digest: SHA-256 of the result's blobs; "" while there is none.
        best_version: grows when the best so far was asked for and came. best_error: why it did
            not. best_output_digest, best_report_digest: as those of the result.
    """

    name: str
    state: State
    progress: Progress
    model_name: str
    model_digest: str
    device: str
    created: int
    finished: int
    resumed: int
    version: int
    error: Optional[AutoGraphError] = None
    verdict: str = ""
    speedup: float = 1.0
    cached: bool = False
    output_digest: str = field(default="", repr=False)
    report_digest: str = field(default="", repr=False)
    best_version: int = field(default=0, repr=False)
    best_error: Optional[AutoGraphError] = field(default=None, repr=False)
    best_output_digest: str = field(default="", repr=False)
    best_report_digest: str = field(default="", repr=False)

    @property
    def done(self) -> bool:
        """True when the job has ended."""
        return self.state in _ENDS


def job_of(message: Any) -> Job:
    """Returns the job of an ``autograph.v1.Job`` message."""
    progress, request, result = message.progress, message.request, message.result
    best = message.best_so_far

    def error_in(name: str) -> Optional[AutoGraphError]:
        error = getattr(message, name)
        if not message.HasField(name):
            return None
        return error_of(error.code, error.message, job=message.name, reason=error.reason)

    return Job(
        name=message.name,
        state=State(type(message).State.Name(message.state).lower()),
        progress=Progress(
            stage=progress.stage,
            round=progress.round,
            graphs=progress.graphs,
            candidates=progress.candidates,
            best_speedup=progress.best_speedup,
            groups_measured=progress.groups_measured,
            cache_hits=progress.cache_hits,
            fraction=progress.fraction,
            elapsed_seconds=progress.elapsed_seconds,
            waits_for=progress.waits_for,
            chosen_sizes=progress.chosen_sizes,
        ),
        model_name=request.model_name,
        model_digest=request.model_digest,
        device=request.device,
        created=int(message.created_unix_seconds),
        finished=int(message.finished_unix_seconds),
        resumed=message.resumed,
        version=message.version,
        error=error_in("error"),
        verdict=type(result).Verdict.Name(result.verdict) if message.HasField("result") else "",
        speedup=result.speedup if message.HasField("result") else 1.0,
        cached=result.cache.model_hit,
        output_digest=result.output_digest,
        report_digest=result.report_digest,
        best_version=message.best_version,
        best_error=error_in("best_error"),
        best_output_digest=best.output_digest,
        best_report_digest=best.report_digest,
    )


def best_of(job: Job) -> Job:
    """Returns `job` with its best so far as its result; raises `best_error`."""
    if job.best_error is not None:
        raise job.best_error
    return replace(
        job, output_digest=job.best_output_digest, report_digest=job.best_report_digest
    )


def raise_unless_answered(job: Job) -> None:
    """Raises the error of a `job` that ended without a result.

    Raises:
        AutoGraphError: of the class that belongs to the job's own error, with `job` set.
        Cancelled: it was cancelled before anything had been verified.
    """
    if job.error is not None:
        raise job.error
    if not job.output_digest:
        raise Cancelled(
            Code.CANCELLED, "it was cancelled before anything had been verified", job=job.name
        )
