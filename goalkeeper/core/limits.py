"""What a goal may use, what it has used, and why it stops.

Knows nothing of clocks: durations are seconds that somebody else measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_MAX_RUNS = 10
DEFAULT_MAX_SECONDS = 30 * 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of a goal, checked at run boundaries.

    Attributes:
        max_runs: completed runs.
        max_seconds: seconds that the controller was awake and attached.
        max_cost: USD of worker and evaluator together, None for no limit.
    """

    max_runs: int = DEFAULT_MAX_RUNS
    max_seconds: float = DEFAULT_MAX_SECONDS
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of every class and their price.

    Attributes:
        input: prompt tokens that were not read from a cache.
        output: generated tokens, reasoning included.
        cache_read: prompt tokens read from a cache.
        cache_write: prompt tokens written to a cache.
        cost: USD, None when the price of any part is unknown (unknown is never zero).
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = 0.0

    def plus(self, other: Usage) -> Usage:
        """Return the sum; an unknown cost makes the sum's cost unknown."""
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            cost,
        )


StopReason = Literal[
    "user",  # a person asked for it
    "interrupted",  # Ctrl-C, SIGTERM
    "aborted",  # the run was aborted in pi
    "run_failed",  # the run ended in a provider error
    "worker_exited",  # pi died in the middle of a run
    "run_timeout",  # --run-timeout
    "question",  # pi asked something and nobody was there
    "evaluator_failed",  # provider error, time-out, malformed answer, invalid citation
    "unverified",  # two unknown verdicts in a row
    "no_progress",  # three runs changed nothing
    "max_runs",
    "max_seconds",
    "max_cost",
    "not_sent",  # pi refused the message
]
