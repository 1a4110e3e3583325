"""`goalkeeper demo`: a goal from start to end in a copy of a small project, on the same code path as `goal`.

Knows nothing of how a goal is pursued. pi is real and so is everything else; only the model behind it is scripted.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from goalkeeper.cli.goal_run import set_goal
from goalkeeper.config import GoalConfig, WorkerChoice
from goalkeeper.errors import PeerError
from goalkeeper.evidence.text import clean
from goalkeeper.pi.install import find_pi, run_quietly
from goalkeeper.testing.demo_repo import COMMAND, CONDITION, copy_demo_repo
from goalkeeper.testing.pi_home import pi_home

MODEL_SECONDS = 30.0
"""Seconds until the scripted model must serve."""

GIT_SECONDS = 30.0

INTRODUCTION = f"""\
A small project with a failing test, and this goal: {CONDITION}
pi {{version}} is real, and so are its tools, the session, the test runs and the rules. The model is not: a script on
this machine answers in place of a paid one, for pi and for the evaluator. Nothing leaves this machine.
First the worker will claim to be done without having run the tests. Watch what becomes of that claim.
"""


def run_demo(*, keep: bool) -> int:
    """Run the demo and return its exit code: 0 when the goal was met.

    Args:
        keep: leave the project, the session and the journal where they are.

    Raises:
        PrerequisiteError: there is no pi that can be used.
    """
    pi = find_pi()
    folder = Path(tempfile.mkdtemp(prefix="goalkeeper-demo-"))
    try:
        project = folder / "ledger"
        copy_demo_repo(project)
        print(INTRODUCTION.format(version=pi.version), flush=True)
        with _scripted_model() as base_url, _environment(pi_home(folder / "agent", base_url)):
            code = set_goal(GoalConfig(CONDITION), WorkerChoice(str(project)), as_json=False, quiet=False)
        _show_diff(project)
        if keep:
            print(f"\nKept: {project} (the project, and .pi-goal with its journal), {folder / 'agent'} (the session)")
        return code
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _scripted_model() -> Iterator[str]:
    """Serve the demo's script in a process of its own and yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "goalkeeper.testing.scripted_model", "--script", "demo"],
        stdin=subprocess.PIPE,  # it ends when this closes, also when we are killed
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,  # a Ctrl-C is for the goal; the model is needed until the goal is paused
    )
    with process:
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], MODEL_SECONDS)
    line = process.stdout.readline() if ready else ""
    if not line:
        raise PeerError("The scripted model did not start.", kind="exited")
    return str(json.loads(line)["base_url"])


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Lay variables over this process's own: pi and the evaluator's library read them there."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _show_diff(project: Path) -> None:
    if shutil.which("git") is None:
        return
    done = run_quietly(["git", "-C", str(project), "--no-pager", "diff", "--no-color", "--no-ext-diff"], GIT_SECONDS)
    print(f"\nWhat the worker changed, so that `{COMMAND}` passes:\n")
    print(clean(done.stdout).strip() or "nothing")
