"""The rules for checks and verdicts.

Knows nothing of how a verdict comes about. `core/machine.py` says which rule applies when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from goalkeeper.core import messages
from goalkeeper.core.effects import (
    CancelTimers,
)
from goalkeeper.core.events import (
    ChecksPassed,
    Judged,
    TermsSettled,
)
from goalkeeper.core.records import (
    EvaluatorFailed,
    GoalMet,
    Record,
    TermsWereSettled,
    VerdictRecord,
)
from goalkeeper.core.state import GoalState, LastVerdict, SessionState
from goalkeeper.core.transition import (
    Transition,
    announce,
    ask,
    current_goal,
    dropped,
    pause,
    send,
    spent_budget,
)
from goalkeeper.core.verdict import EvaluatorFailure, Verdict

STILL_RUNS: Final = 3
"""Runs in a row without progress that pause a goal (spec, section 2)."""


def terms_rule(state: SessionState, event: TermsSettled) -> Transition:
    """Fix what counts as proof, once."""
    goal = current_goal(state)
    if event.goal != goal.id or goal.terms:
        return dropped(state, event)
    goal = replace(goal, terms=event.terms, evaluator_usage=goal.evaluator_usage.plus(event.usage))
    return Transition(
        replace(state, goal=goal), announce(TermsWereSettled(at=event.at, goal=goal.id, terms=event.terms))
    )


def checks_passed(state: SessionState, event: ChecksPassed) -> Transition:
    """Ask the evaluator once every check has passed."""
    goal = current_goal(state)
    if event.goal != goal.id or event.effect != goal.awaited:
        return dropped(state, event)
    return ask(replace(state, leaf=event.leaf), goal)


def judged(state: SessionState, event: Judged) -> Transition:
    """Apply a verdict: met ends the goal; else budget and counters decide between one message and a pause."""
    goal = current_goal(state)
    if event.goal != goal.id or event.effect != goal.awaited:
        return dropped(state, event)
    goal = replace(_judge_noted(goal, event), awaited=None)
    state = replace(state, goal=goal, leaf=event.leaf or state.leaf)
    record = _judge_record(goal, event)
    after = _after_verdict(state, goal, event)
    return Transition(after.state, announce(record) + after.effects)


def _after_verdict(state: SessionState, goal: GoalState, event: Judged) -> Transition:
    judgement = event.judgement
    if isinstance(judgement, EvaluatorFailure):
        return pause(state, "evaluator_failed", judgement.reason, event.at)
    if judgement.verdict == "met":
        return _met(state, goal, judgement, event.at)
    if goal.unknowns >= 2:
        return pause(state, "unverified", f"unable to verify completion twice: {judgement.reason}", event.at)
    if goal.still >= STILL_RUNS:
        return pause(state, "no_progress", f"no progress in {goal.still} runs: {judgement.reason}", event.at)
    if spent := spent_budget(goal):
        return pause(state, spent[0], f"{spent[1]}; the last verdict: {judgement.reason}", event.at)
    if judgement.verdict == "unknown":
        text = messages.verification(goal.condition, judgement.reason, goal.terms, goal.checks)
        return send(state, goal, text, "verify", event.at)
    return send(state, goal, messages.guidance(goal.condition, judgement.reason), "guidance", event.at)


def _judge_noted(goal: GoalState, event: Judged) -> GoalState:
    judgement = event.judgement
    failed = isinstance(judgement, EvaluatorFailure)
    last = LastVerdict(
        verdict=None if isinstance(judgement, EvaluatorFailure) else judgement.verdict,
        reason=judgement.reason,
        at=event.at,
        evidence=judgement.evidence,
        findings=judgement.findings,
        claimed=judgement.claimed,
        failure=judgement.kind if isinstance(judgement, EvaluatorFailure) else None,
    )
    tree_changed = event.tree is not None and goal.last_tree is not None and event.tree != goal.last_tree
    unknown = isinstance(judgement, Verdict) and judgement.verdict == "unknown"
    return replace(
        goal,
        last_verdict=last,
        evaluator_usage=goal.evaluator_usage.plus(event.usage),
        unknowns=goal.unknowns + 1 if unknown else (goal.unknowns if failed else 0),
        still=0 if goal.results_changed or tree_changed else goal.still + 1,
        last_tree=event.tree or goal.last_tree,
    )


def _judge_record(goal: GoalState, event: Judged) -> Record:
    judgement = event.judgement
    shared: dict[str, Any] = {
        "at": event.at,
        "goal": goal.id,
        "reason": judgement.reason,
        "claimed": judgement.claimed,
        "evidence": judgement.evidence,
        "findings": judgement.findings,
        "window": event.window,
        "usage": event.usage,
    }
    if isinstance(judgement, EvaluatorFailure):
        return EvaluatorFailed(kind=judgement.kind, **shared)
    return VerdictRecord(verdict=judgement.verdict, basis=judgement.basis, changed=event.changed, **shared)


def _met(state: SessionState, goal: GoalState, verdict: Verdict, at: int) -> Transition:
    record = GoalMet(
        at=at,
        goal=goal.id,
        condition=goal.condition,
        reason=verdict.reason,
        evidence=verdict.evidence,
        runs=goal.turns,
        seconds=goal.seconds,
        worker=goal.worker_usage,
        evaluator=goal.evaluator_usage,
    )
    return Transition(replace(state, goal=None), (CancelTimers(), *announce(record)))
