"""Our half of the goal cycle: the command `goal` as a user runs it, with litellm as the evaluator.

Knows nothing of the peer; it drives nothing but the public command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import NotMeasured
from goalkeeper.bench.cycle import CONDITION, FLAGS, GOAL_SECONDS, RUNS, Cycle, cycles, make_project, worker
from goalkeeper.testing.judges import say_verdict, yes_man
from goalkeeper.testing.model_steps import RecordedRequest, Script
from goalkeeper.testing.pi_home import pi_home
from goalkeeper.testing.scripted_model import ScriptedModel


def goal_program() -> Path:
    """Return the command beside this Python.

    Raises:
        NotMeasured: it is not there.
    """
    program = Path(sys.executable).with_name("goal")
    if not program.exists():
        raise NotMeasured("The command `goal` is not installed beside this Python.")
    return program


def run_own_goal(folder: Path) -> list[Cycle]:
    """Run one goal of `RUNS` runs; return its cycles.

    Raises:
        NotMeasured: the goal was not met.
    """
    return cycles(goal_requests(folder, worker, _judge()))


def goal_requests(folder: Path, worker: Script, evaluator: Script) -> Sequence[RecordedRequest]:
    """Run one goal to its end; return the requests that the model got.

    Raises:
        NotMeasured: the goal was not met.
    """
    project = make_project(folder)
    with ScriptedModel(worker, evaluator) as model:
        environment = {**os.environ, **pi_home(folder / "agent", model.base_url)}
        arguments = [str(goal_program()), CONDITION, "--basis", "tool", "--quiet", "--", *FLAGS]
        ended = _run(arguments, project, environment)
        if ended.returncode != 0:
            said = (ended.stderr or ended.stdout).strip()[-400:]
            raise NotMeasured(f"`goal` ended with {ended.returncode} after {len(model.requests)} requests: {said}")
        return model.requests


def _judge() -> Script:
    return [*[say_verdict("not_met", "Not all of it is shown.")] * (RUNS - 1), yes_man()]


def _run(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=GOAL_SECONDS,
    )
