"""The driver: save, then act; illegal commands change nothing; faults of ours end it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from goalkeeper.core.effects import Effect
from goalkeeper.core.events import GoalSet, MessageSent, ResumeRequested, TimePassed
from goalkeeper.core.machine import IllegalCommand
from goalkeeper.core.records import Record
from goalkeeper.core.state import GoalState, SessionState
from goalkeeper.core.verdict import Terms
from goalkeeper.errors import PeerError
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.driver import Driver, durable


class Log:
    """A store, a runner and a listener that write down the order of what they were asked for."""

    def __init__(self, *, full: bool = False) -> None:
        self.order: list[str] = []
        self.states: list[SessionState] = []
        self._full = full

    def save(self, state: SessionState) -> None:
        if self._full:
            raise OSError("no space left")
        self.order.append("save")
        self.states.append(state)

    def start(self, effect: Effect, state: SessionState) -> None:
        self.order.append(type(effect).__name__)

    def tell(self, record: Record) -> None:
        self.order.append(record.event)


def goal_set() -> GoalSet:
    return GoalSet(goal="g", condition="it works", at=1, awake=1.0)


def driver_of(log: Log, state: SessionState | None = None) -> Driver:
    return Driver(state or SessionState(), log, log.tell, SystemClock())


def test_the_state_is_saved_before_any_effect() -> None:
    log = Log()
    driver_of(log).begin(goal_set(), log)
    assert log.order == ["save", "goal_set", "run_started", "SendMessage", "SettleTerms"]


def test_a_store_that_fails_sees_no_effect() -> None:
    log = Log(full=True)
    driver = driver_of(log)
    with pytest.raises(OSError, match="no space"):
        driver.begin(goal_set(), log)
    assert log.order == []
    assert driver.state == SessionState()


def test_what_the_session_file_tells_is_not_saved_again() -> None:
    log = Log()
    driver = driver_of(log)
    driver.begin(goal_set(), log)
    assert driver.state.goal is not None
    awaited = driver.state.goal.awaited or 0
    driver.begin(MessageSent(effect=awaited, at=2, awake=2.0), log)
    assert driver.state.goal.stage == "running"
    assert log.order.count("save") == 1
    assert durable(driver.state) == durable(log.states[0])


def test_the_heartbeat_saves_the_time_that_was_spent() -> None:
    log = Log()
    driver = driver_of(log)
    driver.begin(goal_set(), log)
    driver.begin(TimePassed(at=9_001, awake=10.0), log)
    assert log.states[-1].goal is not None
    assert log.states[-1].goal.seconds == 9.0


@pytest.mark.parametrize("change", [{"turns": 1}, {"unknowns": 1}, {"stage": "evaluating"}, {"terms": Terms("tool")}])
def test_what_a_crash_must_not_lose_is_saved_at_once(change: dict[str, Any]) -> None:
    before = SessionState(goal=GoalState("g", "it works", 1, stage="running"))
    assert before.goal is not None
    assert durable(before) != durable(replace(before, goal=replace(before.goal, **change)))


def test_another_question_to_the_evaluator_is_saved_at_once() -> None:
    asked = [SessionState(goal=GoalState("g", "it works", 1, stage="evaluating", awaited=number)) for number in (1, 2)]
    assert durable(asked[0]) != durable(asked[1])


async def test_the_heart_beats_while_nothing_happens() -> None:
    log = Log()
    driver = Driver(SessionState(goal=GoalState("g", "it works", 1)), log, log.tell, SystemClock(), heartbeat=0.01)
    await asyncio.wait_for(driver.run(log, lambda state: len(log.states) >= 2), 10)
    assert log.states[-1].goal is not None


async def test_an_illegal_command_is_refused_to_its_asker_alone() -> None:
    log = Log()
    driver = driver_of(log)
    running = asyncio.create_task(driver.run(log, lambda state: state.goal is not None))
    with pytest.raises(IllegalCommand):
        await driver.submit(ResumeRequested(at=1, awake=1.0))
    driver.post(ResumeRequested(at=1, awake=1.0))
    await driver.submit(goal_set())
    state = await asyncio.wait_for(running, 10)
    assert state.goal is not None


async def test_a_fault_in_the_background_ends_the_driver() -> None:
    log = Log()
    driver = driver_of(log)
    running = asyncio.create_task(driver.run(log, lambda state: False))
    driver.fail(ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(running, 10)
    nothing: Any = log.order
    assert nothing == []


async def test_a_command_that_comes_too_late_is_refused_and_does_not_wait_for_ever() -> None:
    log = Log()
    driver = driver_of(log)
    queued = asyncio.create_task(driver.submit(goal_set()))
    await asyncio.wait_for(driver.run(log, lambda state: True), 10)
    for command in (queued, driver.submit(goal_set())):
        with pytest.raises(PeerError) as caught:
            await asyncio.wait_for(command, 10)
        assert caught.value.kind == "ending"
    assert log.order == []


async def test_a_command_that_is_queued_when_the_driver_ends_is_refused() -> None:
    log = Log()
    driver = driver_of(log)
    running = asyncio.create_task(driver.run(log, lambda state: state.goal is not None))
    set_first, set_second = (asyncio.create_task(driver.submit(goal_set())) for _ in range(2))
    await asyncio.wait_for(running, 10)
    await asyncio.wait_for(set_first, 10)
    with pytest.raises(PeerError):
        await asyncio.wait_for(set_second, 10)
