"""A whole controller without pi: the real driver, handlers, watcher and evaluator over the shipped doubles."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.core.events import ClearRequested, GoalSet, Interrupted, ResumeRequested
from goalkeeper.core.records import Record
from goalkeeper.core.state import SessionState
from goalkeeper.core.verdict import Terms
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.driver import Driver
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.runtime.handlers import Handlers
from goalkeeper.runtime.watch import Watcher
from goalkeeper.testing.scripted_evaluator import Held, ScriptedEvaluator, ScriptedReply
from goalkeeper.testing.scripted_tree import ScriptedTree
from goalkeeper.testing.scripted_worker import ScriptedRun, ScriptedWorker
from goalkeeper.worktree.stamps import Stamper

BOUND = 20.0


class Stage:
    """A running controller over doubles.

    Attributes:
        worker: the scripted worker.
        client: the scripted model behind the evaluator.
        tree: the scripted work tree.
        records: what was told, in order.
        saved: the states that were saved, in order.
    """

    def __init__(self, worker: ScriptedWorker, client: ScriptedEvaluator, tree: ScriptedTree, timeout: float) -> None:
        self.worker = worker
        self.client = client
        self.tree = tree
        self.records: list[Record] = []
        self.saved: list[SessionState] = []
        self.clock = SystemClock()
        self.stamper = Stamper(tree)
        self.driver = Driver(SessionState(), self, self._tell, self.clock)
        self._told = asyncio.Event()
        self._evaluator = LlmEvaluator(client, timeout=timeout)
        self._tasks: list[asyncio.Task[Any]] = []

    def save(self, state: SessionState) -> None:
        self.saved.append(state)

    def _tell(self, record: Record) -> None:
        self.records.append(record)
        self._told.set()

    async def start(self) -> None:
        info = await self.worker.start()
        self.handlers = Handlers(
            self.worker,
            self._evaluator,
            FreshnessSource(self.tree, self.stamper),
            self.stamper,
            clock=self.clock,
            cwd=info.cwd,
            post=self.driver.post,
            tell=self._tell,
            fail=self.driver.fail,
        )
        watcher = Watcher(
            self.worker,
            self.stamper,
            clock=self.clock,
            post=self.driver.post,
            tell=self._tell,
            goal=lambda: self.driver.state.goal.id if self.driver.state.goal else "",
            leaf=None,
        )
        self._tasks = [
            asyncio.create_task(watcher.run()),
            asyncio.create_task(self.driver.run(self.handlers, lambda state: False)),
        ]

    async def set_goal(self, condition: str = "all tests pass", **fields: Any) -> None:
        fields.setdefault("terms", Terms("tool", (), "user"))
        goal = f"goal-{len(self.names('goal_set')) + 1}"
        await self.driver.submit(GoalSet(goal=goal, condition=condition, **fields, **self.times()))

    async def resume(self) -> None:
        await self.driver.submit(ResumeRequested(**self.times()))

    async def clear(self) -> None:
        await self.driver.submit(ClearRequested(**self.times()))

    async def interrupt(self) -> None:
        await self.driver.submit(Interrupted(**self.times()))

    def times(self) -> dict[str, Any]:
        return {"at": self.clock.now(), "awake": self.clock.awake()}

    def names(self, name: str) -> list[Record]:
        return [record for record in self.records if record.event == name]

    async def until(self, name: str, count: int = 1) -> Any:
        """Wait until so many records of a name were told; return the last of them."""
        async with asyncio.timeout(BOUND):
            while len(self.names(name)) < count:
                if self._tasks[1].done():
                    await self._tasks[1]
                self._told.clear()
                await self._told.wait()
        return self.names(name)[count - 1]

    async def idle(self) -> None:
        """Wait until all that is due without further events has been done."""
        await asyncio.wait_for(self.handlers.finish(), BOUND)

    async def close(self) -> None:
        await self.worker.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.stamper.close()


MakeStage = Callable[..., Any]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[MakeStage]:
    """A factory of running controllers; all are closed after the test."""
    stages: list[Stage] = []

    async def make(
        runs: Sequence[ScriptedRun] = (ScriptedRun(),),
        replies: Sequence[ScriptedReply | Held] = ("no answer",),
        *,
        tree: ScriptedTree | None = None,
        timeout: float = 60.0,
    ) -> Stage:
        worker = ScriptedWorker(tmp_path / "session.jsonl", tmp_path, runs)
        made = Stage(worker, ScriptedEvaluator(replies), tree or ScriptedTree(), timeout)
        stages.append(made)
        await made.start()
        return made

    yield make
    for made in stages:
        await made.close()
