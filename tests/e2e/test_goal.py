"""A goal from set to its end, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from e2e.support import session_entries, user_texts, worker_requests

from goalkeeper.testing.demo_repo import CONDITION, copy_demo_repo
from goalkeeper.testing.demo_script import demo_worker
from goalkeeper.testing.judges import judge_unittest, say_verdict, yes_man
from goalkeeper.testing.model_steps import Text, bash

pytestmark = pytest.mark.real_pi


@pytest.mark.parametrize("which", ["pi", "old_pi"])
def test_the_demo_goal_is_met_with_a_cited_passing_run(
    which: str, request: Any, scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    executable = request.getfixturevalue(which)
    repo = tmp_path / "demo"
    copy_demo_repo(repo)
    model = scripted_model(worker=demo_worker, evaluator=judge_unittest())
    goal = run_goal(CONDITION, "--evaluator", "litellm", env=agent_env(model, pi=executable), cwd=repo)

    assert goal.process.returncode == 0, goal.stderr
    assert goal.names() == [
        "session", "goal_set", "run_started", "run_settled", "terms", "verdict", "run_started", "run_settled",
        "verdict", "met",
    ] or sorted(goal.names()) == sorted(
        ["session", "goal_set", "run_started", "run_settled", "terms", "verdict", "run_started", "run_settled",
         "verdict", "met"]
    )  # fmt: skip
    met = goal.last("met")
    entries = {entry.get("id"): entry for entry in session_entries(goal.last("session"))}
    (cited,) = met["evidence"]
    assert entries[cited["id"]]["message"]["role"] == "toolResult"
    assert user_texts(list(entries.values()))[0] == CONDITION
    assert not (repo / ".pi-goal" / "state.json").exists()


def test_a_goal_that_is_never_met_pauses_when_its_runs_are_used(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    steps = iter(range(1000))

    def worker(request: Any) -> Any:
        return Text("Trying.") if request.body["messages"][-1]["role"] == "tool" else bash(f"echo {next(steps)}")

    model = scripted_model(worker=worker, evaluator=[say_verdict("not_met", "The output is missing.")])
    goal = run_goal("it works", "--basis", "tool", "--max-runs", "3", env=agent_env(model))

    assert goal.process.returncode == 3
    assert goal.names().count("run_settled") == 3
    assert goal.last("paused")["why"] == "max_runs"
    state = json.loads((project / ".pi-goal" / "state.json").read_text())
    assert state["goal"]["turns"] == 3
    assert state["goal"]["lastReason"] == "The output is missing."
    assert "max" not in state["goal"]["pausedReason"]
    assert worker_requests(model) == 6


def test_an_assurance_without_a_run_never_completes_a_goal(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(
        worker=[Text("I verified everything, all tests pass.")],
        evaluator=yes_man(),
    )
    goal = run_goal("all tests pass", "--basis", "tool", env=agent_env(model))

    assert goal.process.returncode == 3
    assert "met" not in goal.names()
    assert goal.last("paused")["why"] == "evaluator_failed"
