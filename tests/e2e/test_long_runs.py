"""A run that fills more than one window, on real pi: a crash in it neither repeats its message nor forgets the run."""

from __future__ import annotations

from typing import Any

import pytest
from e2e.support import BOUND, session_entries, user_texts

from goalkeeper.testing.model_steps import Hold, Text, bash

pytestmark = pytest.mark.real_pi

LOUD = "seq 1 1200"
"""Prints more than an entry counts for; so many of them hide the message from whoever reads the newest part."""

CHECKED = ("--evaluator", "checks", "--check", "true", "--basis", "tool")


def test_a_message_that_a_long_run_has_hidden_is_not_sent_again(
    scripted_model: Any, agent_env: Any, start_goal: Any
) -> None:
    model = scripted_model(worker=[*[bash(f"{LOUD}; echo {n}") for n in range(14)], Hold(Text("Late.")), Text("Done.")])
    env = agent_env(model)
    goal = start_goal("it works", *CHECKED, env=env)
    session = goal.wait_for("session")
    goal.wait_for("tool", 14, status="ended")
    model.wait_held(timeout=BOUND)
    goal.kill()
    resumed = start_goal("resume", env=env)
    assert resumed.wait() == 0, resumed.stderr
    texts = user_texts(session_entries(session))
    assert texts[0] == "it works"
    assert texts.count("it works") == 1
    assert len(texts) == 2
