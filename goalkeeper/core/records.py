"""What is told to users and written to the journal: one record a fact, the JSON events of `--json`.

Knows nothing of terminals and files. `docs/events.schema.json` is generated from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from goalkeeper.core.limits import Limits, StopReason, Usage
from goalkeeper.core.verdict import Basis, CitedEntry, FailureKind, RuleFinding, Terms, VerdictWord


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRecord:
    """What every record carries.

    Attributes:
        at: milliseconds since the epoch.
        goal: the goal's id, empty when no goal is concerned.
    """

    at: int
    goal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(BaseRecord):
    """A controller holds a session and its worker is up.

    Attributes:
        session_file: absolute path of the session file, null for an ephemeral session.
        session_id: pi's session id.
        cwd: the folder it works in.
        model: provider and model of the worker, "provider/model".
        pi: pi's version.
    """

    event: Literal["session"] = "session"
    session_file: str | None
    session_id: str
    cwd: str
    model: str
    pi: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalWasSet(BaseRecord):
    """A goal was set.

    Attributes:
        condition: the user's words.
        limits: its budget.
        evaluator: who gives the verdict.
        checks: commands that the controller runs after each run.
        replaced: the condition that it replaced.
    """

    event: Literal["goal_set"] = "goal_set"
    condition: str
    limits: Limits
    evaluator: str
    checks: tuple[str, ...] = ()
    replaced: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsWereSettled(BaseRecord):
    """It is settled what counts as proof."""

    event: Literal["terms"] = "terms"
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart(BaseRecord):
    """A message is on its way to the worker.

    Attributes:
        run: number of the run in this budget, from 1.
        max_runs: the budget.
        message: why it is sent.
    """

    event: Literal["run_started"] = "run_started"
    run: int
    max_runs: int
    message: Literal["condition", "guidance", "verify", "continue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed(BaseRecord):
    """A tool call of the worker began or ended.

    Attributes:
        status: "started" or "ended".
        call: pi's tool call id.
        name: the tool.
        summary: command, path or arguments in one line.
        is_error: pi's error flag, null while it runs.
        exit_code: null when the tool has none.
    """

    event: Literal["tool"] = "tool"
    status: Literal["started", "ended"]
    call: str
    name: str
    summary: str = ""
    is_error: bool | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettledRecord(BaseRecord):
    """A run ended.

    Attributes:
        run: completed runs in this budget.
        max_runs: the budget.
        aborted: somebody aborted it.
        error: the provider's words if it died of an error.
        usage: tokens and cost of the run.
        seconds: awake and attached seconds in this budget.
    """

    event: Literal["run_settled"] = "run_settled"
    run: int
    max_runs: int
    aborted: bool
    error: str | None
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRan(BaseRecord):
    """The controller ran a check.

    Attributes:
        command: the check.
        exit_code: null when it was cancelled or timed out.
        entry: the session entry that records it.
    """

    event: Literal["check"] = "check"
    command: str
    exit_code: int | None
    entry: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord(BaseRecord):
    """A verdict after the rules.

    Attributes:
        verdict: what stands.
        reason: why.
        claimed: the evaluator's own word, null if it was not asked.
        basis: tool or answer.
        evidence: the cited entries.
        findings: the rules that refused the claim.
        window: digest of what the evaluator saw.
        usage: tokens and cost of the evaluator.
        changed: files changed since the goal was set that are tests or proof, as "name (mark)".
    """

    event: Literal["verdict"] = "verdict"
    verdict: VerdictWord
    reason: str
    claimed: VerdictWord | None
    basis: Basis
    evidence: tuple[CitedEntry, ...] = ()
    findings: tuple[RuleFinding, ...] = ()
    window: str = ""
    usage: Usage = field(default_factory=Usage)
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorFailed(BaseRecord):
    """The evaluator gave no verdict.

    Attributes:
        kind: the kind of failure.
        reason: one sentence.
        claimed: the evaluator's own word, if it gave one.
        evidence: what it cited.
        findings: the rules that refused it.
        window: digest of what the evaluator saw.
        usage: tokens and cost of the evaluator.
    """

    event: Literal["evaluator_failed"] = "evaluator_failed"
    kind: FailureKind
    reason: str
    claimed: VerdictWord | None = None
    evidence: tuple[CitedEntry, ...] = ()
    findings: tuple[RuleFinding, ...] = ()
    window: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalPaused(BaseRecord):
    """The goal is paused.

    Attributes:
        why: a word for programs.
        reason: a sentence for people.
        runs: completed runs in this budget.
        loop_stopped: a loop was stopped with it.
    """

    event: Literal["paused"] = "paused"
    why: StopReason
    reason: str
    runs: int
    loop_stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalResumed(BaseRecord):
    """The goal goes on.

    Attributes:
        condition: the user's words.
        run: completed runs in this budget.
        limits: its budget.
        fresh: the budget was renewed (after a pause); false after a crash.
    """

    event: Literal["resumed"] = "resumed"
    condition: str
    run: int
    limits: Limits
    fresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalMet(BaseRecord):
    """The goal is met and removed.

    Attributes:
        condition: the user's words.
        reason: why.
        evidence: the cited entries.
        runs: completed runs in this budget.
        seconds: awake and attached seconds in this budget.
        worker: tokens and cost of the worker, across resumes.
        evaluator: tokens and cost of the evaluator, across resumes.
    """

    event: Literal["met"] = "met"
    condition: str
    reason: str
    evidence: tuple[CitedEntry, ...]
    runs: int
    seconds: float
    worker: Usage
    evaluator: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared(BaseRecord):
    """A user cleared goal and loop.

    Attributes:
        condition: the goal that was cleared, null when none was set.
        loop_stopped: a loop was stopped.
    """

    event: Literal["cleared"] = "cleared"
    condition: str | None
    loop_stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(BaseRecord):
    """A late or foreign result was dropped.

    Attributes:
        what: the kind of result.
    """

    event: Literal["dropped"] = "dropped"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(BaseRecord):
    """Something a person should know.

    Attributes:
        level: info, warning or error.
        text: a sentence.
    """

    event: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"]
    text: str


Record = (
    SessionOpened
    | GoalWasSet
    | TermsWereSettled
    | RunStart
    | ToolUsed
    | RunSettledRecord
    | CheckRan
    | VerdictRecord
    | EvaluatorFailed
    | GoalPaused
    | GoalResumed
    | GoalMet
    | Cleared
    | Dropped
    | Notice
)
