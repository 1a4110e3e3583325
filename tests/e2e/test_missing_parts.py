"""What is not on this machine is named, with what to do about it, and exit code 4; nothing is left behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import ASKED, CHECKED, paused, refused, state_of
from e2e.support import session_entries, user_texts

from goalkeeper.pi.install import MINIMUM_PI, PACKAGE
from goalkeeper.testing.judges import yes_man
from goalkeeper.testing.model_steps import Text, bash

pytestmark = pytest.mark.real_pi

WORKER = [bash("echo hi"), Text("Done.")]


@pytest.fixture
def env(scripted_model: Any, agent_env: Any) -> dict[str, str]:
    """The environment of a goal that would be met."""
    made: dict[str, str] = agent_env(scripted_model(worker=WORKER, evaluator=yes_man()))
    return made


def npm_pi(folder: Path, version: str) -> Path:
    """Lay out a pi as npm does, of another version; return what lies in `.bin`."""
    package = folder / "node_modules" / PACKAGE
    script = package / "dist" / "cli.js"
    script.parent.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": PACKAGE, "version": version}), encoding="utf-8")
    script.write_text("#!/usr/bin/env node\nprocess.exit(70);\n", encoding="utf-8")
    script.chmod(0o755)
    link = folder / "node_modules" / ".bin" / "pi"
    link.parent.mkdir()
    link.symlink_to(Path("..") / PACKAGE / "dist" / "cli.js")
    return link


def own_pi(folder: Path, script: str) -> Path:
    """Write a pi that is no npm package."""
    path = folder / "own-pi"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_without_pi_the_way_to_get_one_is_named(env: dict[str, str], run_goal: Any, project: Path) -> None:
    del env["GOALKEEPER_PI"]
    goal = run_goal("it works", *CHECKED, env={**env, "PATH": "/usr/bin:/bin"})

    refused(goal, 4, "pi was not found", "goalkeeper setup", "GOALKEEPER_PI")
    assert goal.lines == []
    assert not (project / ".pi-goal").exists()


def test_a_pi_that_is_named_but_not_there_is_told_by_its_name(env: dict[str, str], run_goal: Any) -> None:
    goal = run_goal("it works", *CHECKED, env={**env, "GOALKEEPER_PI": "/no/such/pi"})

    refused(goal, 4, "GOALKEEPER_PI names /no/such/pi, which is not there")


@pytest.mark.parametrize("kind", ["npm", "own"])
def test_a_pi_that_is_too_old_is_refused_by_its_version(
    kind: str, env: dict[str, str], run_goal: Any, tmp_path: Path, project: Path
) -> None:
    old = npm_pi(tmp_path / "old", "0.80.3") if kind == "npm" else own_pi(tmp_path, "echo 0.80.3")
    goal = run_goal("it works", *CHECKED, env={**env, "GOALKEEPER_PI": str(old)})

    refused(goal, 4, "pi 0.80.3 is too old", f"at least {MINIMUM_PI} is needed", "goalkeeper setup")
    assert not (project / ".pi-goal").exists()


def test_a_pi_that_can_not_tell_its_version_is_quoted(env: dict[str, str], run_goal: Any, tmp_path: Path) -> None:
    broken = own_pi(tmp_path, "echo 'cannot find module x' >&2; exit 3")
    goal = run_goal("it works", *CHECKED, env={**env, "GOALKEEPER_PI": str(broken)})

    refused(goal, 4, str(broken), "cannot find module x")


def test_a_node_that_is_too_old_for_pi_is_told_by_its_version(
    env: dict[str, str], run_goal: Any, tmp_path: Path
) -> None:
    pi = npm_pi(tmp_path / "new", "1.6.0")
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\necho v20.20.2\n", encoding="utf-8")
    node.chmod(0o755)
    goal = run_goal("it works", *CHECKED, env={**env, "GOALKEEPER_PI": str(pi), "PATH": str(node.parent)})

    refused(goal, 4, "Node 20.20.2 is too old for pi", "goalkeeper setup")


def test_without_a_model_nothing_is_started(env: dict[str, str], run_goal: Any, tmp_path: Path, project: Path) -> None:
    empty = tmp_path / "empty-agent"
    empty.mkdir()
    goal = run_goal("it works", *CHECKED, env={**env, "PI_CODING_AGENT_DIR": str(empty)})

    # goal's own --model is the evaluator's, so the advice must say where pi's goes.
    refused(goal, 4, "pi has no model to work with", "/login", "-- --model")
    assert goal.lines == []
    assert not (project / ".pi-goal").exists()


def test_what_pi_says_against_its_own_arguments_is_shown(env: dict[str, str], run_goal: Any, project: Path) -> None:
    goal = run_goal("it works", *CHECKED, "--", "--model", "nobody/nothing", env=env)

    refused(goal, 3, "pi ended at its start", 'Model "nobody/nothing" not found')
    assert not (project / ".pi-goal").exists()


def test_an_evaluator_whose_model_is_not_there_pauses_with_the_name(env: dict[str, str], run_goal: Any) -> None:
    goal = run_goal("it works", *ASKED, "--model", "nobody/nothing", env=env)

    paused(goal, "evaluator_failed", "The evaluator can't start", "nobody")
    assert goal.last("evaluator_failed")["kind"] == "unavailable"


def test_a_folder_that_is_no_checkout_is_worked_in_all_the_same(
    env: dict[str, str], run_goal: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "plain folder"
    folder.mkdir()
    goal = run_goal("it works", *ASKED, env=env, cwd=folder)

    assert goal.process.returncode == 0, goal.stderr
    assert user_texts(session_entries(goal.last("session"))) == ["it works"]


def test_without_git_a_checkout_is_a_plain_folder(env: dict[str, str], run_goal: Any, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "true"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    node = shutil.which("node", path=env["PATH"])
    assert node
    (tools / "node").symlink_to(node)
    goal = run_goal("it works", *CHECKED, env={**env, "PATH": str(tools)})

    assert goal.process.returncode == 0, goal.stderr


def test_a_folder_that_is_not_there_is_a_usage_error(env: dict[str, str], run_goal: Any) -> None:
    goal = run_goal("it works", *CHECKED, "-C", "no/such/folder", env=env)

    refused(goal, 2, "no/such/folder is no folder")


def test_a_paused_goal_outlives_a_missing_pi(env: dict[str, str], run_goal: Any) -> None:
    first = run_goal("it works", "--max-runs", "1", "--evaluator", "checks", "--check", "false", env=env)
    paused(first, "max_runs", "1 of 1 runs are used")
    before = state_of(first.last("session"))

    refused(run_goal("resume", env={**env, "GOALKEEPER_PI": "/no/such/pi"}), 4, "/no/such/pi")
    assert state_of(first.last("session")) == before
