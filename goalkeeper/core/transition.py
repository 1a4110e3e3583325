"""The building blocks of the rules: a transition, a message, a pause, the budget.

Knows nothing of which event calls for which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from goalkeeper.core.effects import (
    AbortRun,
    Announce,
    CancelEvaluation,
    CancelTimers,
    Effect,
    RequestVerdict,
    RunChecks,
    SendMessage,
    StartTimer,
)
from goalkeeper.core.events import (
    Event,
    ResumeRequested,
    SessionRestored,
)
from goalkeeper.core.limits import Limits, StopReason
from goalkeeper.core.records import (
    Dropped,
    GoalPaused,
    Record,
    RunStart,
)
from goalkeeper.core.state import GoalState, Pause, Sent, SessionState
from goalkeeper.core.verdict import Terms
from goalkeeper.errors import UsageError

Why = Literal["condition", "guidance", "verify", "continue"]


class IllegalCommand(UsageError):
    """A user's command that can't be carried out in this state; nothing has changed."""


@dataclass(frozen=True, slots=True)
class Transition:
    """What follows from an event.

    Attributes:
        state: the new state; it must be saved before any effect is carried out.
        effects: in order.
    """

    state: SessionState
    effects: tuple[Effect, ...] = ()


def age(state: SessionState, event: Event) -> SessionState:
    """Charge the time since the last event to an active goal. A clock that went back charges nothing."""
    goal = state.goal
    if goal and not goal.pause and state.awake is not None:
        goal = replace(goal, seconds=goal.seconds + max(0.0, event.awake - state.awake))
    return replace(state, goal=goal, awake=event.awake)


def announce(*records: Record) -> tuple[Effect, ...]:
    """Return the effects that tell records to journal and user."""
    return tuple(Announce(record) for record in records)


def dropped(state: SessionState, event: Event) -> Transition:
    """Drop a late or foreign result and say so to the journal."""
    goal = state.goal.id if state.goal else ""
    return Transition(state, announce(Dropped(at=event.at, goal=goal, what=type(event).__name__)))


def current_goal(state: SessionState) -> GoalState:
    """Return the goal that the table promises."""
    if state.goal is None:
        raise AssertionError("a rule of the table for a goal was called without one")
    return state.goal


def send(state: SessionState, goal: GoalState, text: str, why: Why, at: int) -> Transition:
    """Store the message, then have it sent: as a steer while the worker works, as a prompt when it is idle."""
    effect = state.next_id
    goal = replace(goal, stage="sending", awaited=effect, sent=Sent(text, state.leaf, effect, at), pause=None)
    effects: tuple[Effect, ...] = announce(
        RunStart(at=at, goal=goal.id, run=goal.turns + 1, max_runs=goal.limits.max_runs, message=why)
    )
    effects += (SendMessage(effect, text, steer=state.busy),)
    if goal.run_timeout is not None:
        effects += (CancelTimers(), StartTimer(effect, goal.id, "run_timeout", goal.run_timeout))
    # A message on its way to an idle worker is a run about to begin: what follows it must steer or abort that run.
    return Transition(replace(state, goal=goal, busy=True, next_id=effect + 1), effects)


def pause(state: SessionState, why: StopReason, text: str, at: int) -> Transition:
    """Pause the goal: stop the loop with it, end what is under way, send nothing more."""
    goal = replace(current_goal(state), pause=Pause(why, text), awaited=None)
    record = GoalPaused(at=at, goal=goal.id, why=why, reason=text, runs=goal.turns, loop_stopped=state.loop is not None)
    effects: tuple[Effect, ...] = (CancelEvaluation(), CancelTimers())
    if state.busy or goal.stage == "sending":
        effects += (AbortRun(),)
    return Transition(replace(state, goal=goal, loop=None), effects + announce(record))


def spent_budget(goal: GoalState) -> tuple[StopReason, str] | None:
    """Return why the budget is spent, None while it is not."""
    limits, cost = goal.limits, goal.usage.cost
    if goal.turns >= limits.max_runs:
        return "max_runs", f"{goal.turns} of {limits.max_runs} runs are used"
    if goal.seconds >= limits.max_seconds:
        return "max_seconds", f"{limits.max_seconds / 60:g} minutes are used"
    if limits.max_cost is not None:
        if cost is None:
            return "max_cost", "the cost of this model is unknown, so --max-cost can't be held"
        if cost >= limits.max_cost:
            return "max_cost", f"${cost:.4f} of ${limits.max_cost:g} are used"
    return None


def renewed(goal: GoalState, event: ResumeRequested | SessionRestored) -> GoalState:
    """Return the goal with what the user gave in place of its limits and its evaluator.

    Raises:
        IllegalCommand: checks alone shall decide, and the goal has none.
    """
    if event.evaluator == "checks" and not goal.checks:
        raise IllegalCommand("This goal has no checks that could decide alone.", "Set it again with --check.")
    old = goal.limits
    limits = Limits(
        old.max_runs if event.max_runs is None else event.max_runs,
        old.max_seconds if event.max_seconds is None else event.max_seconds,
        old.max_cost if event.max_cost is None else event.max_cost,
    )
    evaluator = event.evaluator or goal.evaluator
    # Checks alone decide without a model, so nobody could be asked what counts as proof.
    terms = goal.terms or (Terms("tool", (), "default") if evaluator == "checks" else None)
    # A model's name means something else to another evaluator.
    model = event.model or (None if event.evaluator and event.evaluator != goal.evaluator else goal.model)
    return replace(goal, limits=limits, evaluator=evaluator, model=model, terms=terms)


def examine(state: SessionState, goal: GoalState) -> Transition:
    """Have a completed run examined: by the checks if there are any, then by the evaluator."""
    if not goal.checks:
        return ask(state, goal)
    effect = state.next_id
    goal = replace(goal, stage="checking", awaited=effect)
    return Transition(replace(state, goal=goal, next_id=effect + 1), (RunChecks(effect, goal.id),))


def ask(state: SessionState, goal: GoalState) -> Transition:
    """Have the evaluator asked."""
    effect = state.next_id
    goal = replace(goal, stage="evaluating", awaited=effect)
    request = RequestVerdict(effect, goal.id, want_tree=not goal.results_changed)
    return Transition(replace(state, goal=goal, next_id=effect + 1), (request,))
