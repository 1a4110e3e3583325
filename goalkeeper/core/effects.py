"""What the machine may ask for, in the imperative. Each effect that has a result carries an id.

Knows nothing of who carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goalkeeper.core.records import Record


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a user message; the result is `MessageSent` or `MessageRefused`.

    Attributes:
        id: effect id.
        text: the message.
        steer: deliver it into the run under way.
    """

    id: int
    text: str
    steer: bool


@dataclass(frozen=True, slots=True)
class AbortRun:
    """Abort the run under way and drop queued messages. No result but the run's own end."""


@dataclass(frozen=True, slots=True)
class SettleTerms:
    """Ask the evaluator, from the condition alone, what counts as proof; the result is `TermsSettled`."""

    goal: str
    condition: str


@dataclass(frozen=True, slots=True)
class RunChecks:
    """Run the goal's checks; the result is `ChecksPassed` or `Judged`."""

    id: int
    goal: str


@dataclass(frozen=True, slots=True)
class RequestVerdict:
    """Ask the evaluator; the result is `Judged`.

    Attributes:
        id: effect id.
        goal: the goal.
        want_tree: the result must say the work tree's fingerprint (for the no-progress rule).
    """

    id: int
    goal: str
    want_tree: bool


@dataclass(frozen=True, slots=True)
class CancelEvaluation:
    """End checks and evaluator calls under way; their results are dropped."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Post `TimerFired` after `seconds`."""

    id: int
    goal: str
    name: Literal["compaction", "run_timeout"]
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelTimers:
    """Forget all timers."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Put a record into the journal and before the user."""

    record: Record


Effect = (
    SendMessage
    | AbortRun
    | SettleTerms
    | RunChecks
    | RequestVerdict
    | CancelEvaluation
    | StartTimer
    | CancelTimers
    | Announce
)
