"""The two clocks that events carry.

Knows nothing of timers.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people, awake time for budgets."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        ...

    def awake(self) -> float:
        """Return seconds on a clock that stands still while the machine sleeps."""
        ...


class SystemClock:
    """The machine's clocks. Linux's and macOS's monotonic clocks stand still while the machine sleeps."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def awake(self) -> float:
        """Return seconds on the monotonic clock."""
        return time.monotonic()
