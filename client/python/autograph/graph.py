"""An optimized graph that a server remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Graph:
    """A remembered answer.

    Attributes:
        key: what an equal request finds it by.
        model_digest: SHA-256 of the model's file. device, environment: what it was made for.
        made: seconds since 1970.
        verdict, speedup: of the result; 0: NOT_MEASURED.
        output_digest, report_digest: SHA-256 of the files; `Client.download` has them.
    """

    key: str
    model_digest: str
    device: str
    environment: str
    made: int
    verdict: str
    speedup: float
    output_digest: str
    report_digest: str


def graph_of(message: Any) -> Graph:
    """Returns the graph of an ``autograph.v1.CachedGraph`` message."""
    result = message.result
    return Graph(
        key=message.key,
        model_digest=message.model_digest,
        device=message.device,
        environment=message.environment,
        made=int(message.made_unix_seconds),
        verdict=type(result).Verdict.Name(result.verdict),
        speedup=result.speedup,
        output_digest=result.output_digest,
        report_digest=result.report_digest,
    )
