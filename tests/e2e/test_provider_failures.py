"""A provider that fails pauses the goal with its own words; the session stays whole and the goal can be resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import (
    ASKED,
    CHECKED,
    FAST_RETRIES,
    entries_of,
    passing_session,
    paused,
    refused,
    run_goalkeeper,
    state_of,
    write_session,
)
from e2e.support import user_texts, wait_until, worker_requests

from goalkeeper.storage.holder import holder
from goalkeeper.testing.judges import yes_man
from goalkeeper.testing.model_steps import CutStream, HttpError, MalformedSse, Step, Text, bash

pytestmark = pytest.mark.real_pi

KEY = "Incorrect API key provided."

WORKER_FAILURES = {
    "a wrong key": (HttpError(401, KEY), 1, ("401", KEY)),
    "too many requests": (HttpError(429, "Rate limit reached"), 4, ("429", "Rate limit reached")),
    "a broken provider": (HttpError(500, "upstream broke"), 4, ("500", "upstream broke")),
    "a cut connection": (CutStream("Half an ans"), 4, ("closed",)),
    "a stream that is not JSON": (MalformedSse("Half an ans"), 1, ("malformed",)),
}


@pytest.mark.parametrize("name", WORKER_FAILURES)
def test_a_run_that_dies_pauses_after_pis_own_retries_and_resume_goes_on(
    name: str, scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    step, requests, words = WORKER_FAILURES[name]
    healed: list[Step] = []
    model = scripted_model(worker=lambda request: healed[0] if healed else step)
    env = agent_env(model, settings=FAST_RETRIES)
    goal = run_goal("it works", *CHECKED, env=env)

    paused(goal, "run_failed", *words)
    assert worker_requests(model) == requests
    assert state_of(goal.last("session"))["goal"]["turns"] == 0  # a run that died is no completed run
    assert "check" not in goal.names()
    retries = [event for event in goal.events if event["event"] == "notice"]
    assert len(retries) == requests - 1
    assert all("pi tries again in" in event["text"] for event in retries)

    if name == "a broken provider":
        healed.append(Text("Done."))
        resumed = run_goal("resume", env=env)
        assert resumed.process.returncode == 0, resumed.stderr
        assert resumed.last("session")["session_file"] == goal.last("session")["session_file"]
        assert user_texts(entries_of(goal.last("session")["session_file"])) == ["it works", "it works"]


EVALUATOR_FAILURES = {
    "a wrong key": (HttpError(401, KEY), ("401", KEY)),
    "too many requests": (HttpError(429, "Rate limit reached"), ("429", "Rate limit reached")),
    "a broken provider": (HttpError(500, "upstream broke"), ("500", "upstream broke")),
}


@pytest.mark.parametrize("name", EVALUATOR_FAILURES)
def test_an_evaluators_provider_that_fails_is_asked_once_and_pauses(
    name: str, scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    step, words = EVALUATOR_FAILURES[name]
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=step)
    goal = run_goal("it works", *ASKED, env=agent_env(model, settings=FAST_RETRIES))

    paused(goal, "evaluator_failed", "The evaluator's provider failed", *words)
    assert goal.last("evaluator_failed")["kind"] == "provider_error"
    assert len(model.of("evaluator")) == 1
    assert state_of(goal.last("session"))["goal"]["turns"] == 1  # the run itself was completed


def test_litellm_tells_a_wrong_key_in_the_providers_words(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=[HttpError(401, KEY), yes_man()])
    env = agent_env(model)
    goal = run_goal("it works", "--evaluator", "litellm", "--basis", "tool", env=env)

    paused(goal, "evaluator_failed", "The evaluator's provider failed: HTTP 401", KEY)
    assert len(model.of("evaluator")) == 1
    assert "scripted-key" not in "".join(goal.lines)


def test_a_provider_that_needs_a_key_that_is_not_there_is_told_so(
    agent_env: Any, project: Path, tmp_path: Path
) -> None:
    session = write_session(tmp_path / "s.jsonl", passing_session(project))
    done = run_goalkeeper(
        "evaluate", str(session), "it works", "--basis", "tool", "--model", "openai/gpt-4o",
        env=agent_env("http://127.0.0.1:9/v1"), cwd=project,
    )  # fmt: skip

    assert done.returncode == 4, done
    assert "OPENAI_API_KEY" in done.stdout
    assert "500" not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_pi_that_is_killed_in_a_run_pauses_and_resume_goes_on(
    scripted_model: Any, agent_env: Any, start_goal: Any, run_goal: Any, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    first = [bash(f"echo $$ > {alive}; exec sleep 60"), Text("Done.")]
    model = scripted_model(worker=[*first, Text("Done now.")])
    env = agent_env(model)
    goal = start_goal("it works", *CHECKED, env=env)
    goal.wait_for("tool", status="started")
    wait_until(lambda: alive.exists() and alive.read_text(encoding="utf-8").strip() != "", "the command runs")
    session = goal.last("session")
    live = holder(session["session_file"])
    assert live
    os.kill(live.note["pi"], signal.SIGKILL)
    goal.wait()

    paused(goal, "worker_exited", "pi ended in the middle of the work", "killed by signal 9")
    child = int(alive.read_text(encoding="utf-8"))
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the command that pi left behind is ended")
    assert holder(session["session_file"]) is None

    resumed = run_goal("resume", env=env)
    assert resumed.process.returncode == 0, (resumed.stderr, resumed.lines)
    assert resumed.last("session")["session_file"] == session["session_file"]
    assert user_texts(entries_of(session["session_file"])) == ["it works", "it works"]


def test_a_pi_that_dies_while_it_is_started_is_told_at_once(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path, project: Path
) -> None:
    dying = tmp_path / "dying-pi"
    dying.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1.6.0 && exit\nkill -9 $$\n', encoding="utf-8")
    dying.chmod(0o755)
    goal = run_goal("it works", *CHECKED, env={**agent_env("http://127.0.0.1:9/v1"), "GOALKEEPER_PI": str(dying)})

    refused(goal, 3, "pi ended at its start")
    assert not (project / ".pi-goal").exists()
