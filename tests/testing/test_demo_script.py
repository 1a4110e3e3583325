from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.testing import demo_repo
from goalkeeper.testing.demo_script import CLAIM, GIVING_UP, REPORT, demo_worker
from goalkeeper.testing.model_steps import Calls, RecordedRequest, Text
from goalkeeper.testing.scripted_model import ScriptedModel

Message = dict[str, Any]
MOMENTS = [(step, effect) for step in range(8) for effect in (False, True)]


class Killed(Exception):
    pass


class Session:
    """A conversation with tools that really act on a folder, and that can be killed at any of its calls."""

    def __init__(self, folder: Path, kill_at: int | None = None, after_effect: bool = False) -> None:
        self.folder = folder
        self.messages: list[Message] = []
        self.calls = 0
        self.kill_at = kill_at
        self.after_effect = after_effect

    def run(self, prompt: str) -> str:
        self.messages.append({"role": "user", "content": prompt})
        while True:
            step = demo_worker(RecordedRequest("worker", {"messages": self.messages}, 0, 0.0))
            if isinstance(step, Text):
                self.messages.append({"role": "assistant", "content": step.text})
                return step.text
            assert isinstance(step, Calls)
            self.call(step)

    def call(self, step: Calls) -> None:
        (use,) = step.uses
        assert not isinstance(use.arguments, str)
        self.calls += 1
        function = {"name": use.name, "arguments": json.dumps(dict(use.arguments))}
        calls = [{"id": f"call_{self.calls}", "function": function}]
        self.messages.append({"role": "assistant", "content": step.text, "tool_calls": calls})
        killed = self.calls == self.kill_at
        output = "No result provided" if killed and not self.after_effect else self.act(use.name, dict(use.arguments))
        shown = "No result provided" if killed else output
        self.messages.append({"role": "tool", "tool_call_id": f"call_{self.calls}", "content": shown})
        if killed:
            raise Killed

    def act(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "bash":
            done = subprocess.run(
                [sys.executable, "-m", "unittest", "-q"], cwd=self.folder, capture_output=True, text=True, timeout=60
            )
            assert arguments["command"] == demo_repo.COMMAND
            return done.stderr + (f"\n\nCommand exited with code {done.returncode}" if done.returncode else "")
        path = self.folder / arguments["path"]
        text = path.read_text(encoding="utf-8")
        if name == "read":
            return text
        (edit,) = arguments["edits"]
        if edit["oldText"] not in text:
            return "Could not find the exact text"
        path.write_text(text.replace(edit["oldText"], edit["newText"]), encoding="utf-8")
        return "Successfully replaced 1 block(s)"


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    demo_repo.copy_demo_repo(folder)
    return folder


def test_the_copy_is_a_clean_checkout_in_which_one_test_fails(demo: Path) -> None:
    status = subprocess.run(["git", "status", "--short"], cwd=demo, capture_output=True, text=True, check=True)
    tests = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=demo, capture_output=True, text=True)
    assert status.stdout == ""
    assert "FAILED (failures=1)" in tests.stderr


def test_a_folder_that_is_there_already_is_left_alone(demo: Path) -> None:
    (demo / "ledger" / "balance.py").write_text("mine\n", encoding="utf-8")
    with pytest.raises(FileExistsError):
        demo_repo.copy_demo_repo(demo)
    assert (demo / "ledger" / "balance.py").read_text(encoding="utf-8") == "mine\n"


def test_the_first_run_claims_without_a_test_run_and_the_second_one_proves(demo: Path) -> None:
    session = Session(demo)
    assert session.run(demo_repo.CONDITION) == CLAIM
    assert demo_repo.COMMAND not in json.dumps(session.messages[1:])
    assert session.run("No run is shown.") == REPORT


@pytest.mark.parametrize(("step", "after_effect"), MOMENTS)
def test_a_session_that_was_killed_at_any_call_still_ends_with_a_passing_run(
    demo: Path, step: int, after_effect: bool
) -> None:
    session = Session(demo, step, after_effect)
    answers: list[str] = []
    for _ in range(4):
        try:
            answers.append(session.run(demo_repo.CONDITION))
        except Killed:
            continue
        if answers[-1] == REPORT:
            break
    assert answers[-1] == REPORT


def test_a_session_that_lost_its_beginning_to_compaction_still_ends_with_a_passing_run(demo: Path) -> None:
    session = Session(demo)
    session.run(demo_repo.CONDITION)
    session.messages.clear()
    assert [session.run(demo_repo.CONDITION) for _ in range(2)] == [CLAIM, REPORT]


def test_a_failure_that_is_not_the_known_bug_ends_the_run(demo: Path) -> None:
    (demo / "tests" / "test_more.py").write_text("import no_such_module\n", encoding="utf-8")
    session = Session(demo)
    assert [session.run(demo_repo.CONDITION) for _ in range(2)] == [CLAIM, GIVING_UP]
    assert session.calls == 5  # read, edit; tests, read, tests


@pytest.mark.real_pi
@pytest.mark.parametrize("release", ["pi", "old_pi"])
def test_real_pi_acts_on_the_demo_as_the_script_expects(
    release: str,
    request: pytest.FixtureRequest,
    demo: Path,
    scripted_model: Callable[..., ScriptedModel],
    agent_env: Callable[..., dict[str, str]],
) -> None:
    pi: Path = request.getfixturevalue(release)
    model = scripted_model(worker=demo_worker)
    environment = agent_env(model, pi=pi)
    answers = []
    for prompt, more in ((demo_repo.CONDITION, []), ("No run is shown.", ["--continue"])):
        done = subprocess.run(
            [str(pi), "--print", *more, prompt],
            cwd=demo,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        answers.append(done.stdout.strip())
    assert answers == [CLAIM, REPORT]
    assert len(model.requests) == 5
