"""What can happen to a session, in the past tense. Time arrives here and nowhere else.

Knows nothing of where an event came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.state import EvaluatorName
from goalkeeper.core.verdict import Judgement, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries.

    Attributes:
        at: wall clock, milliseconds since the epoch.
        awake: seconds on a clock that stands still while the machine sleeps and the controller is not attached.
    """

    at: int
    awake: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSet(Event):
    """A user set a condition. Fields as in `GoalState`."""

    goal: str
    condition: str
    leaf: str | None = None
    limits: Limits = field(default_factory=Limits)
    evaluator: EvaluatorName = "litellm"
    model: str | None = None
    terms: Terms | None = None
    checks: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    run_timeout: float | None = None
    pi_args: tuple[str, ...] = ()
    tree: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested(Event):
    """A user wants a paused goal to go on with a fresh budget; what is given replaces what was there."""

    leaf: str | None = None
    max_runs: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    evaluator: EvaluatorName | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRestored(Event):
    """A controller has taken up a session whose goal was active when the last controller died.

    Attributes:
        run: what the session file says of the goal's last message: "not_sent" (it is not there), "interrupted" (it
            is there, its run did not end by itself), "finished" (its run ended normally).
        leaf: the session's leaf now.
        digest: digest of that run's tool results.
        usage: usage of that run as the file records it.
        max_runs: a new budget by the user's word; likewise `max_seconds` and `max_cost`.
        evaluator: another evaluator by the user's word; likewise `model`.
    """

    run: Literal["not_sent", "interrupted", "finished"]
    leaf: str | None = None
    digest: str = ""
    usage: Usage = field(default_factory=Usage)
    max_runs: int | None = None
    max_seconds: float | None = None
    max_cost: float | None = None
    evaluator: EvaluatorName | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRequested(Event):
    """A user wants goal and loop gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    """Ctrl-C or SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(Event):
    """The worker took the message of effect `effect`."""

    effect: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRefused(Event):
    """The worker did not take the message of effect `effect`."""

    effect: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegan(Event):
    """A run is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The worker settled.

    Attributes:
        aborted: somebody aborted the run.
        error: the provider's words if it died of an error.
        leaf: the session's leaf now.
        digest: digest of the run's tool results, empty when there were none.
        usage: tokens and cost of the run.
    """

    aborted: bool = False
    error: str | None = None
    leaf: str | None = None
    digest: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsSettled(Event):
    """The evaluator said, from the condition alone, what counts as proof."""

    goal: str
    terms: Terms
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksPassed(Event):
    """Every check exited 0 in the tree as it is now."""

    effect: int
    goal: str
    leaf: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Event):
    """A verdict after the rules, or the evaluator's failure, or a failed check.

    Attributes:
        effect: the effect that asked.
        goal: the goal that it speaks of.
        judgement: what stands.
        usage: tokens and cost of the evaluator.
        tree: the work tree's fingerprint, None when nobody needed it or there is none.
        leaf: the last entry that the judgement saw.
        window: digest of the window that the evaluator saw, empty if it was not asked.
        changed: files changed since the goal was set that are tests or proof, as "name (mark)".
    """

    effect: int
    goal: str
    judgement: Judgement
    usage: Usage = field(default_factory=Usage)
    tree: str | None = None
    leaf: str | None = None
    window: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCompacted(Event):
    """pi compacted the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired(Event):
    """A timer of effect `effect` went off.

    Attributes:
        effect: the effect that started it.
        goal: the goal it was started for.
        name: what it is for.
    """

    effect: int
    goal: str
    name: Literal["compaction", "run_timeout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLost(Event):
    """pi ended though nobody asked it to."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionUnanswered(Event):
    """pi asked something, nobody was there, and it was cancelled after a bounded wait."""

    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePassed(Event):
    """Nothing happened but time; keeps the stored seconds close to the truth."""


EVENT_TYPES: tuple[type[Event], ...] = (
    GoalSet,
    ResumeRequested,
    SessionRestored,
    ClearRequested,
    Interrupted,
    MessageSent,
    MessageRefused,
    RunBegan,
    RunEnded,
    TermsSettled,
    ChecksPassed,
    Judged,
    SessionCompacted,
    TimerFired,
    WorkerLost,
    QuestionUnanswered,
    TimePassed,
)
