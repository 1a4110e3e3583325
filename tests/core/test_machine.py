"""The table of the goal machine: total, honest about its targets, deaf to what is late."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import goalkeeper.core
from goalkeeper.core import effects as do
from goalkeeper.core import events as ev
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.machine import IGNORED, PHASES, TABLE, Illegal, IllegalCommand, Rule, diagram, step
from goalkeeper.core.records import Dropped
from goalkeeper.core.state import SessionState
from goalkeeper.core.transition import current_goal
from goalkeeper.core.verdict import EvaluatorFailure, Terms, Verdict
from goalkeeper.testing.scenario import Scenario

SCENARIOS = Path(__file__).parent.parent / "scenarios"
CORE = Path(goalkeeper.core.__file__).parent
NOW: dict[str, Any] = {"at": 1_900_000_000_000, "awake": 1.0}
OUTSIDERS = (ev.MessageSent, ev.MessageRefused, ev.TermsSettled, ev.ChecksPassed, ev.Judged, ev.TimerFired)


def _states() -> Iterator[SessionState]:
    yield SessionState()
    for path in SCENARIOS.glob("*.txt"):
        scenario = Scenario()
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("> "):
                scenario.run(line[2:])
                yield scenario.state


STATES = list(dict.fromkeys(_states()))
"""Every state that a scenario passes through."""


def _results(goal: str, effect: int) -> list[ev.Event]:
    """Every result that can come from outside for an effect of a goal."""
    judgements = (
        Verdict("met", "5 passed"),
        Verdict("not_met", "1 failed"),
        Verdict("unknown", "no check"),
        EvaluatorFailure("timeout", "no answer in 60 s"),
    )
    return [
        ev.MessageSent(effect=effect, **NOW),
        ev.MessageRefused(effect=effect, reason="no model", **NOW),
        ev.TermsSettled(goal=goal, terms=Terms("tool"), **NOW),
        ev.ChecksPassed(effect=effect, goal=goal, leaf="e90", **NOW),
        *(ev.Judged(effect=effect, goal=goal, judgement=judgement, **NOW) for judgement in judgements),
        ev.TimerFired(effect=effect, goal=goal, name="compaction", **NOW),
        ev.TimerFired(effect=effect, goal=goal, name="run_timeout", **NOW),
    ]


def _everything(state: SessionState) -> list[ev.Event]:
    """One of each event, and of results those that fit and those that don't."""
    goal = state.goal
    fitting = {goal.awaited, goal.sent.effect if goal.sent else None} - {None} if goal else set()
    return [
        ev.GoalSet(goal="g90", condition="another", **NOW),
        ev.ResumeRequested(**NOW),
        ev.ResumeRequested(max_runs=20, max_seconds=60.0, max_cost=9.0, **NOW),
        ev.SessionRestored(run="not_sent", **NOW),
        ev.SessionRestored(run="interrupted", **NOW),
        ev.SessionRestored(run="finished", **NOW),
        ev.SessionRestored(run="interrupted", max_runs=0, **NOW),
        ev.ClearRequested(**NOW),
        ev.Interrupted(**NOW),
        ev.RunBegan(**NOW),
        ev.RunEnded(**NOW),
        ev.RunEnded(aborted=True, **NOW),
        ev.RunEnded(error="401", usage=Usage(cost=None), **NOW),
        ev.SessionCompacted(**NOW),
        ev.WorkerLost(detail="exit status 1", **NOW),
        ev.QuestionUnanswered(question="Overwrite?", **NOW),
        ev.TimePassed(**NOW),
        *_results(goal.id if goal else "g1", 0),
        *(event for effect in fitting for event in _results(goal.id if goal else "", effect or 0)),
    ]


def _timeless(state: SessionState) -> SessionState:
    return replace(state, awake=None, goal=replace(state.goal, seconds=0.0) if state.goal else None)


def test_the_table_answers_every_event_in_every_phase() -> None:
    assert set(TABLE) == {(phase, event) for phase in PHASES for event in ev.EVENT_TYPES}


def test_every_event_class_is_in_the_list_of_event_types() -> None:
    classes = {value for value in vars(ev).values() if isinstance(value, type) and issubclass(value, ev.Event)}
    assert set(ev.EVENT_TYPES) == classes - {ev.Event}


def test_the_table_names_every_phase_that_can_follow_and_no_other() -> None:
    seen: dict[tuple[str, type], set[str]] = defaultdict(set)
    for state in STATES:
        for event in _everything(state):
            try:
                seen[state.phase, type(event)].add(step(state, event).state.phase)
            except IllegalCommand:
                continue
    declared = {pair: set(cell.to) for pair, cell in TABLE.items() if isinstance(cell, Rule)}
    assert {pair: seen[pair] for pair in declared} == declared


def test_an_ignored_event_changes_only_the_time() -> None:
    for state in STATES:
        for event in _everything(state):
            if TABLE[state.phase, type(event)] is IGNORED:
                transition = step(state, event)
                assert transition.effects == ()
                assert _timeless(transition.state) == _timeless(state)


@pytest.mark.parametrize("pair", [pair for pair, cell in TABLE.items() if isinstance(cell, Illegal)], ids=str)
def test_an_illegal_command_raises_with_a_sentence(pair: tuple[str, type[ev.Event]]) -> None:
    phase, event = pair
    tried = [state for state in STATES if state.phase == phase]
    assert tried
    for state in tried:
        with pytest.raises(IllegalCommand) as caught:
            step(state, event(**NOW))
        assert caught.value.message.endswith(".")


def test_only_commands_of_a_user_are_illegal() -> None:
    illegal = {event for (_, event), cell in TABLE.items() if isinstance(cell, Illegal)}
    assert illegal == {ev.ResumeRequested}


@pytest.mark.parametrize("goal", ["the goal's own", "another"])
def test_a_late_or_foreign_result_changes_nothing_and_is_said_to_the_journal(goal: str) -> None:
    for state in STATES:
        own = state.goal.id if state.goal else ""
        for event in _results("g90" if goal == "another" else own, 10_000):
            if goal != "another" and (
                isinstance(event, ev.TermsSettled) or (isinstance(event, ev.TimerFired) and event.name == "compaction")
            ):
                continue  # these carry a goal only: they are the goal's own
            transition = step(state, event)
            assert _timeless(transition.state) == _timeless(state)
            assert transition.effects == (do.Announce(Dropped(at=NOW["at"], goal=own, what=type(event).__name__)),)


def test_a_result_that_came_once_is_dropped_the_second_time() -> None:
    for state in STATES:
        goal = state.goal
        if goal is None or goal.pause or goal.awaited is None:
            continue
        for event in _results(goal.id, goal.awaited):
            after = step(state, event).state
            if not isinstance(event, ev.TimerFired) and after.goal != state.goal:
                again = step(after, event)
                assert _timeless(again.state) == _timeless(after)
                assert [type(effect) for effect in again.effects] == [do.Announce]


def test_every_kind_of_result_is_tried_above() -> None:
    assert {type(event) for event in _results("g1", 1)} == set(OUTSIDERS)


def test_the_machine_is_deterministic_and_leaves_its_input_alone() -> None:
    for state in STATES:
        for event in _everything(state):
            before = repr(state)
            try:
                first, second = step(state, event), step(state, event)
            except IllegalCommand:
                continue
            assert first == second
            assert repr(state) == before


def test_a_restored_state_never_counts_as_busy_before_its_first_message() -> None:
    for state in STATES:
        transition = step(state, ev.SessionRestored(run="not_sent", **NOW))
        assert not any(isinstance(effect, do.SendMessage) and effect.steer for effect in transition.effects)


def test_a_lost_worker_is_never_steered() -> None:
    for state in STATES:
        lost = step(state, ev.WorkerLost(detail="signal 9", **NOW)).state
        assert not lost.busy
        if lost.phase == "paused":
            again = step(lost, ev.GoalSet(goal="g90", condition="another", **NOW))
            assert [effect.steer for effect in again.effects if isinstance(effect, do.SendMessage)] == [False]


def test_a_clock_that_goes_back_charges_nothing() -> None:
    state = step(SessionState(), ev.GoalSet(goal="g1", condition="c", at=0, awake=100.0)).state
    state = step(state, ev.TimePassed(at=0, awake=40.0)).state
    state = step(state, ev.TimePassed(at=0, awake=45.0)).state
    assert state.goal and state.goal.seconds == 5.0


def test_the_time_before_the_first_event_of_a_process_is_free() -> None:
    state = step(SessionState(), ev.GoalSet(goal="g1", condition="c", at=0, awake=100.0)).state
    state = step(replace(state, awake=None), ev.TimePassed(at=0, awake=900.0)).state
    assert state.goal and state.goal.seconds == 0.0


@pytest.mark.parametrize("limits", [Limits(max_runs=0), Limits(max_seconds=0.0), Limits(max_cost=0.0)], ids=str)
def test_a_budget_of_nothing_is_spent_at_the_first_boundary(limits: Limits) -> None:
    state = step(SessionState(), ev.GoalSet(goal="g1", condition="c", limits=limits, terms=Terms("tool"), **NOW)).state
    restored = step(state, ev.SessionRestored(run="not_sent", **NOW))
    assert restored.state.phase == "paused"


def test_the_diagram_shows_each_way_between_two_phases() -> None:
    text = diagram()
    assert text.startswith("stateDiagram-v2\n    [*] --> none\n")
    assert "    none --> sending: GoalSet" in text
    assert "    running --> sending: GoalSet, SessionRestored, TimerFired" in text
    assert "    checking --> paused: Interrupted, Judged, WorkerLost, QuestionUnanswered" in text


def test_a_rule_that_is_called_without_its_goal_is_a_fault() -> None:
    with pytest.raises(AssertionError):
        current_goal(SessionState())


def _calls(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def test_only_the_rules_build_a_changed_state() -> None:
    builders = {"replace", "SessionState", "GoalState"}
    found = {path.name for path in CORE.glob("*.py") if _calls(path) & builders}
    assert found == {"rules.py", "verdict_rules.py", "transition.py"}


def test_nobody_who_drives_the_machine_makes_a_goal() -> None:
    package = CORE.parent
    found = {path.relative_to(package).parts[0] for path in package.rglob("*.py") if "GoalState" in _calls(path)}
    assert found <= {"core", "storage", "bench", "testing"}


@pytest.mark.parametrize(
    ("given", "evaluator", "model"),
    [
        ({}, "litellm", "big"),
        ({"model": "small"}, "litellm", "small"),
        ({"evaluator": "pi"}, "pi", None),
        ({"evaluator": "pi", "model": "small"}, "pi", "small"),
        ({"evaluator": "litellm"}, "litellm", "big"),
    ],
    ids=str,
)
def test_a_model_belongs_to_the_evaluator_that_it_was_named_for(
    given: dict[str, Any], evaluator: str, model: str | None
) -> None:
    state = step(SessionState(), ev.GoalSet(goal="g1", condition="c", model="big", **NOW)).state
    restored = step(state, ev.SessionRestored(run="not_sent", **given, **NOW)).state
    resumed = step(step(state, ev.Interrupted(**NOW)).state, ev.ResumeRequested(**given, **NOW)).state
    for after in (restored, resumed):
        assert after.goal and (after.goal.evaluator, after.goal.model) == (evaluator, model)
