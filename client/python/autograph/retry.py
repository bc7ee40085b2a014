"""The rules for repeating calls that are UNAVAILABLE."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Retry:
    """Calls again after UNAVAILABLE (and after nothing else), with growing pauses.

    Every call of the service is idempotent, so that this is always safe.

    Attributes:
        seconds: how long one call is repeated; 0: not at all.
        watch_seconds: how long a watch that was cut tries to attach again, seeing nothing.
        first_pause, last_pause: seconds; each pause is twice the one before, up to the last, give
            or take a fifth, so that many clients do not come back at one moment.
    """

    seconds: float = 5.0
    watch_seconds: float = 30.0
    first_pause: float = 0.1
    last_pause: float = 2.0


class Backoff:
    """The pauses of one call."""

    def __init__(self, retry: Retry, seconds: float) -> None:
        """Counts `seconds` from the first failure in a row."""
        self._retry = retry
        self._seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Begins anew after an attempt that made progress."""
        self._pause = self._retry.first_pause
        self._began: Optional[float] = None

    def next_pause(self) -> Optional[float]:
        """Returns the seconds to wait before the next attempt; None: give up."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        pause = self._pause * random.uniform(0.8, 1.2)
        self._pause = min(2 * self._pause, self._retry.last_pause)
        return pause if now + pause <= self._began + self._seconds else None


class Deadline:
    """The end of a time limit; None: no limit."""

    def __init__(self, timeout: Optional[float]) -> None:
        self.timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> Optional[float]:
        """Returns the seconds that are left, at least 0; None: no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def shorten(self, pause: float) -> float:
        """Returns `pause`, or the time left when that is less."""
        left = self.left()
        return pause if left is None else min(pause, left)
