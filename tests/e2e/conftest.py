"""Fixtures of the end-to-end tests: real pi, a scripted model on loopback, `goal` as its users start it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.support import BOUND, GoalProcess

StartGoal = Callable[..., GoalProcess]


@pytest.fixture
def start_goal(project: Path) -> Iterator[StartGoal]:
    """A factory of running `goal` processes in the project; all are ended after the test."""
    started: list[GoalProcess] = []

    def start(*arguments: str, env: dict[str, str], cwd: Path | None = None, as_json: bool = True) -> GoalProcess:
        process = GoalProcess(arguments, cwd or project, env, as_json=as_json)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


RunGoal = Callable[..., GoalProcess]


@pytest.fixture
def run_goal(start_goal: StartGoal) -> RunGoal:
    """As `start_goal`, but waits until the command has ended."""

    def run(*arguments: str, env: dict[str, str], timeout: float = BOUND, **options: Any) -> GoalProcess:
        process = start_goal(*arguments, env=env, **options)
        process.wait(timeout)
        return process

    return run
