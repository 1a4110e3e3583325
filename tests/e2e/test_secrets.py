"""A key that was given on the command line reaches pi, and no file of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goalkeeper.testing.model_steps import Text

pytestmark = pytest.mark.real_pi

PLANTED = "sk-planted-3f9a"


def test_an_api_key_on_the_command_line_is_stored_nowhere(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    model = scripted_model(worker=Text("Done."))
    checked = ("--evaluator", "checks", "--check", "false", "--max-runs", "1")
    to_pi = ("--", "--model", "scripted/scripted", "--api-key", PLANTED)
    goal = run_goal("it works", *checked, *to_pi, env=agent_env(model))
    assert goal.last("paused")["why"] == "max_runs", goal.stderr
    assert model.requests[0].authorization == f"Bearer {PLANTED}"
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".goalkeeper.lock") for path in kept)
    assert [path for path in kept if PLANTED in path.read_text(encoding="utf-8", errors="replace")] == []
    assert PLANTED not in "".join(goal.lines) + goal.stderr
