"""A pi that outlives its controller: whoever takes the session up ends it first."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest
from e2e.support import BOUND, session_entries, user_texts

from goalkeeper.storage.holder import is_held, read_note
from goalkeeper.storage.paths import controller_lock, worker_lock_path
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
    note = read_note(controller_lock(session["session_file"])).note
    lock = worker_lock_path(note["worker"])
    os.kill(note["pi"], signal.SIGSTOP)
    try:
        goal.kill()
        assert is_held(lock)
        resumed = run_goal("resume", env=env)
        assert resumed.process.returncode == 0, resumed.stderr
        assert not is_held(lock)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(note["pi"], signal.SIGKILL)
    assert user_texts(session_entries(session)).count("it works") == 1
