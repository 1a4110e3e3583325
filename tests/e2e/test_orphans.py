"""A pi that outlives its controller: whoever takes the session up ends it first."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from e2e.support import BOUND, session_entries, user_texts

from goalkeeper.storage.holder import read_note
from goalkeeper.storage.paths import controller_lock
from goalkeeper.testing.model_steps import Hold, Text

pytestmark = pytest.mark.real_pi

CHECKED = ("--evaluator", "checks", "--check", "true")


def test_a_pi_that_does_not_follow_its_controller_is_ended_before_the_session_is_taken_up(
    scripted_model: Any, agent_env: Any, start_goal: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[Hold(Text("Late.")), Text("Done.")])
    env = agent_env(model)
    goal = start_goal("it works", *CHECKED, env=env)
    session = goal.wait_for("session")
    model.wait_held(timeout=BOUND)
    pi = read_note(controller_lock(session["session_file"])).note["pi"]
    os.kill(pi, signal.SIGSTOP)
    goal.kill()
    os.kill(pi, 0)
    resumed = run_goal("resume", env=env)
    assert resumed.process.returncode == 0, resumed.stderr
    with pytest.raises(ProcessLookupError):
        os.kill(pi, 0)
    assert user_texts(session_entries(session)).count("it works") == 1
