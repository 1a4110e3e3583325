"""What the watcher tells of a worker's calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from goalkeeper.core.records import Record
from goalkeeper.ports import ToolEnded, ToolStarted, WorkerEvent
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.watch import Watcher


class NoStamps:
    def tool_started(self, *_: Any) -> None: ...

    def tool_ended(self, *_: Any) -> None: ...


async def test_a_tool_call_names_its_goal_also_when_it_ends_after_a_clear() -> None:
    goal = "goal-1"
    told: list[Record] = []

    class Worker:
        async def events(self) -> AsyncIterator[WorkerEvent]:
            nonlocal goal
            yield ToolStarted("call-1", "bash", "make")
            goal = ""
            yield ToolEnded("call-1", "bash", True, None)
            yield ToolEnded("call-2", "bash", False, 0)  # it began before anybody watched

    worker: Any = Worker()
    watcher = Watcher(
        worker, NoStamps(), clock=SystemClock(), post=lambda _: None, tell=told.append, goal=lambda: goal, leaf=None
    )
    await watcher.run()
    assert [(record.event, record.goal) for record in told] == [("tool", "goal-1"), ("tool", "goal-1"), ("tool", "")]
