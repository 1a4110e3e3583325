from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.pi.install import find_pi
from goalkeeper.ports import Worker
from goalkeeper.testing.conformance import WorkerConformance
from goalkeeper.testing.model_steps import Calls, HttpError, Step, Text, ToolUse
from goalkeeper.testing.scripted_worker import ScriptedRun
from goalkeeper.workers.pi_worker import PiWorker, PiWorkerConfig

pytestmark = pytest.mark.real_pi


def _steps(runs: Sequence[ScriptedRun]) -> list[Step]:
    """Return the model's steps that make a real pi do the same as the double."""
    steps: list[Step] = []
    for run in runs:
        steps += [Calls(ToolUse("bash", {"command": call.command})) for call in run.calls]
        steps.append(Text(run.text) if run.error is None else HttpError(401, run.error))
    return steps


class TestPiWorkerIsAWorker(WorkerConformance):
    pi_fixture = "pi"

    @pytest.fixture(autouse=True)
    def _places(
        self,
        request: pytest.FixtureRequest,
        tmp_path: Path,
        scripted_model: Any,
        agent_env: Callable[..., dict[str, str]],
    ) -> None:
        self._folder = tmp_path / "work"
        self._folder.mkdir()
        self._model = scripted_model
        self._env = agent_env
        self._pi: Path = request.getfixturevalue(self.pi_fixture)

    def make(self, runs: Sequence[ScriptedRun], *, session_file: str | None = None) -> Worker:
        env = self._env(self._model(_steps(runs)))
        config = PiWorkerConfig(
            find_pi({**env, "GOALKEEPER_PI": str(self._pi)}), str(self._folder), session_file or "new", env=env
        )
        return PiWorker(config)

    async def crash(self, worker: Worker, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    @property
    def folder(self) -> Path:
        return self._folder


class TestAnOlderPiIsAWorker(TestPiWorkerIsAWorker):
    pi_fixture = "old_pi"
