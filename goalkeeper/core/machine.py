"""step(): the goal machine, as a table of every phase and every event.

Knows nothing of processes, files, clocks or terminals.

Theory of operation. A goal is in one of six phases (`state.Phase`). `TABLE` lists every pair of phase and event: a
`Rule` carries it out and says which phases can follow; `IGNORED` changes nothing but the time spent; `Illegal` is a
user's command that can't be carried out here: it raises `IllegalCommand` and nothing changes. Late, duplicate or
foreign results from outside are dropped and said to the journal, never raised. The host saves the new state before it
carries out any effect. A message to the worker is part of the saved state before it is sent (`GoalState.sent`), and a
run is counted before anything else is done about it, so a crash neither repeats a message nor loses or doubles a run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from goalkeeper.core import rules, verdict_rules
from goalkeeper.core.events import (
    EVENT_TYPES,
    ChecksPassed,
    ClearRequested,
    Event,
    GoalSet,
    Interrupted,
    Judged,
    MessageRefused,
    MessageSent,
    QuestionUnanswered,
    ResumeRequested,
    RunBegan,
    RunEnded,
    SessionCompacted,
    SessionRestored,
    TermsSettled,
    TimePassed,
    TimerFired,
    WorkerLost,
)
from goalkeeper.core.state import Phase, SessionState
from goalkeeper.core.transition import IllegalCommand, Transition, age, dropped

__all__ = ["ACTIVE", "IGNORED", "PHASES", "TABLE", "IllegalCommand", "Illegal", "Rule", "Transition", "step"]

PHASES: Final[tuple[Phase, ...]] = ("none", "sending", "running", "checking", "evaluating", "paused")
ACTIVE: Final[tuple[Phase, ...]] = ("sending", "running", "checking", "evaluating")


@dataclass(frozen=True, slots=True)
class Rule:
    """A pair that is carried out.

    Attributes:
        act: the rule.
        to: every phase that can follow.
    """

    act: Callable[[SessionState, Any], Transition]
    to: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A pair that changes nothing but the time spent."""


@dataclass(frozen=True, slots=True)
class Illegal:
    """A user's command that can't be carried out.

    Attributes:
        message: one sentence.
        hint: what to do instead.
    """

    message: str
    hint: str = ""


Cell = Rule | Ignored | Illegal

IGNORED: Final = Ignored()
_NO_GOAL: Final = Illegal("No goal is set in this session.", 'Set one: goal "the tests pass"')
_ALREADY_ACTIVE: Final = Illegal("The goal is active already.")


def _row(
    event: type[Event], none: Cell, active: Cell | dict[Phase, Cell], paused: Cell
) -> dict[tuple[Phase, type[Event]], Cell]:
    cells = active if isinstance(active, dict) else dict.fromkeys(ACTIVE, active)
    return {("none", event): none, ("paused", event): paused, **{(phase, event): cell for phase, cell in cells.items()}}


def _keeps(act: Callable[[SessionState, Any], Transition]) -> dict[Phase, Cell]:
    """Return a cell for each active phase whose rule keeps the phase."""
    return {phase: Rule(act, (phase,)) for phase in ACTIVE}


_EXAMINED: Final[tuple[Phase, ...]] = ("checking", "evaluating", "paused")
_DROP_NONE: Final = Rule(dropped, ("none",))
_DROP_PAUSED: Final = Rule(dropped, ("paused",))
_DROPS: Final = _keeps(dropped)
_PAUSES: Final[tuple[Phase, ...]] = ("paused",)

TABLE: Final[dict[tuple[Phase, type[Event]], Cell]] = {
    # a user's commands
    **_row(
        GoalSet,
        none=Rule(rules.set_rule, ("sending",)),
        active=Rule(rules.set_rule, ("sending",)),
        paused=Rule(rules.set_rule, ("sending",)),
    ),
    **_row(ResumeRequested, none=_NO_GOAL, active=_ALREADY_ACTIVE, paused=Rule(rules.resume, ("sending",))),
    **_row(
        ClearRequested,
        none=Rule(rules.clear, ("none",)),
        active=Rule(rules.clear, ("none",)),
        paused=Rule(rules.clear, ("none",)),
    ),
    **_row(Interrupted, none=IGNORED, active=Rule(rules.interrupt, _PAUSES), paused=IGNORED),
    # a new controller
    **_row(
        SessionRestored,
        none=IGNORED,
        active={
            "sending": Rule(rules.restore, ("sending", *_EXAMINED)),
            "running": Rule(rules.restore, ("sending", *_EXAMINED)),
            "checking": Rule(rules.restore, ("checking",)),
            "evaluating": Rule(rules.restore, ("checking", "evaluating")),
        },
        paused=IGNORED,
    ),
    # the worker
    **_row(
        MessageSent,
        none=_DROP_NONE,
        active=_DROPS | {"sending": Rule(rules.message_sent, ("sending", "running"))},
        paused=_DROP_PAUSED,
    ),
    **_row(
        MessageRefused,
        none=Rule(rules.late_refusal, ("none",)),
        active=_DROPS | {"sending": Rule(rules.message_refused, ("sending", "paused"))},
        paused=Rule(rules.late_refusal, ("paused",)),
    ),
    **_row(
        RunBegan,
        none=Rule(rules.run_began, ("none",)),
        active=_keeps(rules.run_began),
        paused=Rule(rules.run_began, ("paused",)),
    ),
    **_row(
        RunEnded,
        none=Rule(rules.foreign_run_ended, ("none",)),
        active=_keeps(rules.foreign_run_ended) | {"running": Rule(rules.run_ended, _EXAMINED)},
        paused=Rule(rules.late_run_ended, ("paused",)),
    ),
    **_row(
        SessionCompacted,
        none=IGNORED,
        active=_keeps(rules.compacted),
        paused=IGNORED,
    ),
    **_row(
        TimerFired,
        none=_DROP_NONE,
        active=_keeps(rules.timer)
        | {
            "sending": Rule(rules.timer, ("sending", "paused")),
            "running": Rule(rules.timer, ("running", "sending", "paused")),
        },
        paused=_DROP_PAUSED,
    ),
    **_row(
        WorkerLost,
        none=Rule(rules.idle_worker_lost, ("none",)),
        active=Rule(rules.worker_lost, _PAUSES),
        paused=Rule(rules.idle_worker_lost, ("paused",)),
    ),
    **_row(QuestionUnanswered, none=IGNORED, active=Rule(rules.question, _PAUSES), paused=IGNORED),
    # checks and evaluator
    **_row(
        TermsSettled,
        none=_DROP_NONE,
        active=_keeps(verdict_rules.terms_rule),
        paused=Rule(verdict_rules.terms_rule, ("paused",)),
    ),
    **_row(
        ChecksPassed,
        none=_DROP_NONE,
        active=_DROPS | {"checking": Rule(verdict_rules.checks_passed, ("checking", "evaluating"))},
        paused=_DROP_PAUSED,
    ),
    **_row(
        Judged,
        none=_DROP_NONE,
        active=_DROPS
        | {
            "checking": Rule(verdict_rules.judged, ("none", "checking", "sending", "paused")),
            "evaluating": Rule(verdict_rules.judged, ("none", "evaluating", "sending", "paused")),
        },
        paused=_DROP_PAUSED,
    ),
    # time
    **_row(TimePassed, none=IGNORED, active=IGNORED, paused=IGNORED),
}


def step(state: SessionState, event: Event) -> Transition:
    """Return the state after an event and what is to be done about it.

    Args:
        state: the state before.
        event: what happened.

    Raises:
        IllegalCommand: a user's command that can't be carried out in this state.
    """
    cell = TABLE[state.phase, type(event)]
    if isinstance(cell, Illegal):
        raise IllegalCommand(cell.message, cell.hint)
    aged = age(state, event)
    if isinstance(cell, Ignored):
        return Transition(aged)
    return cell.act(aged, event)


def diagram() -> str:
    """Return the table's transitions between phases as a Mermaid state diagram, for docs/architecture.md."""
    edges: dict[tuple[Phase, Phase], list[str]] = {}
    for phase in PHASES:
        for event in EVENT_TYPES:
            cell = TABLE[phase, event]
            for target in cell.to if isinstance(cell, Rule) else ():
                if target != phase:
                    edges.setdefault((phase, target), []).append(event.__name__)
    lines = [f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in edges.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> none", *lines])
