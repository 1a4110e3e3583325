"""Everything about one session's goal and loop that is saved.

Knows nothing of files, processes or clocks; only `core/machine.py` builds a changed `SessionState`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from goalkeeper.core.limits import Limits, StopReason, Usage
from goalkeeper.core.verdict import CitedEntry, FailureKind, RuleFinding, Terms, VerdictWord

EvaluatorName = Literal["litellm", "pi", "checks"]

Stage = Literal[
    "sending",  # a message is stored and on its way to the worker
    "running",  # the worker has it; a run is under way
    "checking",  # the controller runs the goal's checks
    "evaluating",  # the evaluator is asked
]

Phase = Literal["none", "sending", "running", "checking", "evaluating", "paused"]


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a goal is paused.

    Attributes:
        why: the stop reason, a word for programs.
        text: the reason, a sentence for people.
    """

    why: StopReason
    text: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The last message of this goal, stored before it is sent so that it is never sent twice.

    Attributes:
        text: the message, verbatim.
        after: the session's leaf when it was decided; the message can only stand behind it.
        effect: id of the effect that sends it.
        at: when it was decided, milliseconds since the epoch.
    """

    text: str
    after: str | None
    effect: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """The last verdict, or the last failure to give one.

    Attributes:
        verdict: the verdict after the rules, None when the evaluator failed.
        reason: one sentence or more.
        at: milliseconds since the epoch.
        evidence: the cited entries.
        findings: rules that refused the claim.
        claimed: the evaluator's own word.
        failure: the kind of failure, None when there is a verdict.
    """

    verdict: VerdictWord | None
    reason: str
    at: int
    evidence: tuple[CitedEntry, ...] = ()
    findings: tuple[RuleFinding, ...] = ()
    claimed: VerdictWord | None = None
    failure: FailureKind | None = None


@dataclass(frozen=True, slots=True)
class GoalState:
    """One goal.

    Attributes:
        id: made anew for each goal that is set; results that carry another id are dropped.
        condition: the user's words, never changed.
        started_at: when it was set, milliseconds since the epoch.
        set_after: the session's leaf at that moment; entries up to it are older than the goal.
        limits: its budget.
        evaluator: who gives the verdict.
        model: the evaluator's model by the user's word, None for the session's current model.
        terms: what counts as proof, None until it is settled.
        checks: commands that the controller runs after each run.
        ignore: globs that freshness leaves out.
        run_timeout: seconds after which a run is aborted, None for never.
        pi_args: further arguments that pi was started with, so that a resume starts it the same way.
        tree_at_start: the work tree's fingerprint when the goal was set, None outside a git checkout.
        stage: what an active goal waits for.
        pause: set when the goal is paused.
        turns: completed runs in this budget.
        seconds: awake and attached seconds in this budget.
        unknowns: unknown verdicts in a row.
        still: runs in a row that changed neither the work tree nor the tool results.
        results_digest: digest of the tool results of the last run that had any.
        results_changed: the last run's tool results differ from the run's before.
        last_tree: the fingerprint that the last comparison saw.
        awaited: id of the effect whose result the goal waits for.
        sent: the last message.
        last_verdict: what the evaluator or a check said last.
        worker_usage: tokens and cost of the worker since the goal was set, across resumes.
        evaluator_usage: the same of the evaluator.
    """

    id: str
    condition: str
    started_at: int
    set_after: str | None = None
    limits: Limits = field(default_factory=Limits)
    evaluator: EvaluatorName = "litellm"
    model: str | None = None
    terms: Terms | None = None
    checks: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    run_timeout: float | None = None
    pi_args: tuple[str, ...] = ()
    tree_at_start: str | None = None
    stage: Stage = "sending"
    pause: Pause | None = None
    turns: int = 0
    seconds: float = 0.0
    unknowns: int = 0
    still: int = 0
    results_digest: str = ""
    results_changed: bool = True
    last_tree: str | None = None
    awaited: int | None = None
    sent: Sent | None = None
    last_verdict: LastVerdict | None = None
    worker_usage: Usage = field(default_factory=Usage)
    evaluator_usage: Usage = field(default_factory=Usage)

    @property
    def phase(self) -> Phase:
        """Return the phase for the transition table: the stage while active, else "paused"."""
        return "paused" if self.pause else self.stage

    @property
    def usage(self) -> Usage:
        """Return worker and evaluator together."""
        return self.worker_usage.plus(self.evaluator_usage)


@dataclass(frozen=True, slots=True)
class LoopState:
    """One loop.

    Attributes:
        prompt: what is sent at each tick.
        interval_ms: milliseconds between ticks, None for self-paced.
        iterations: ticks so far.
        last_tick_at: milliseconds since the epoch, 0 before the first tick.
    """

    prompt: str
    interval_ms: int | None = None
    iterations: int = 0
    last_tick_at: int = 0


@dataclass(frozen=True, slots=True)
class SessionState:
    """The goal and the loop of one session.

    Attributes:
        goal: the goal, None when none is set.
        loop: the loop, None when none runs.
        busy: a run is under way in the worker, or about to begin because a message is on its way to an idle one (false
            in a restored state: its worker is gone).
        leaf: the session's last entry as far as it is known.
        next_id: the next effect id.
        awake: the awake clock's reading at the last event, None before the first event of a process.
    """

    goal: GoalState | None = None
    loop: LoopState | None = None
    busy: bool = False
    leaf: str | None = None
    next_id: int = 1
    awake: float | None = None

    @property
    def phase(self) -> Phase:
        """Return the phase for the transition table."""
        return self.goal.phase if self.goal else "none"
