from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import ModelFactory

from goalkeeper.cli.main import run
from goalkeeper.storage.locks import hold_session
from goalkeeper.storage.state_file import StateFile
from goalkeeper.testing.pi_home import pi_home

Lines = dict[str, dict[str, str]]


def doctor(cwd: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Lines]:
    code = run(["doctor", "--json", "-C", str(cwd)])
    return code, {line["name"]: line for line in json.loads(capsys.readouterr().out)["lines"]}


@pytest.fixture
def without_pi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOALKEEPER_PI", str(tmp_path / "no-pi"))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))


@pytest.mark.real_pi
def test_a_machine_with_everything_is_fine(
    pi: Path,
    scripted_model: ModelFactory,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = scripted_model()
    for name, value in {**pi_home(tmp_path / "agent", model.base_url), "GOALKEEPER_PI": str(pi)}.items():
        monkeypatch.setenv(name, value)
    before = sorted(project.rglob("*"))

    code, lines = doctor(project, capsys)

    assert {name: line["status"] for name, line in lines.items()} == dict.fromkeys(lines, "ok")
    assert code == 0
    assert lines["model"]["found"] == "scripted/scripted"
    assert sorted(project.rglob("*")) == before
    assert model.requests == []


@pytest.mark.real_pi
def test_no_model_is_a_problem_with_a_fix(
    pi: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOALKEEPER_PI", str(pi))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)

    code, lines = doctor(project, capsys)

    assert code == 4
    assert lines["model"]["status"] == "problem" and "/login" in lines["model"]["fix"]


@pytest.mark.usefixtures("without_pi")
def test_no_pi_is_a_problem_and_the_rest_is_still_looked_at(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = doctor(project, capsys)

    assert code == 4
    assert lines["pi"]["status"] == "problem" and "goalkeeper setup" in lines["pi"]["fix"]
    assert lines["git"]["status"] == lines["folder"]["status"] == lines["lock"]["status"] == "ok"


def test_a_pi_that_is_too_old_is_named(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "pi"
    old.write_text("#!/bin/sh\necho 0.58.3\n")
    old.chmod(0o755)
    monkeypatch.setenv("GOALKEEPER_PI", str(old))

    code, lines = doctor(project, capsys)

    assert code == 4
    assert "0.58.3" in lines["pi"]["found"] and "0.80.4" in lines["pi"]["found"]


@pytest.mark.usefixtures("without_pi")
def test_a_folder_without_git_works_less_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = doctor(tmp_path, capsys)

    assert lines["git"]["status"] == "note" and "git init" in lines["git"]["fix"]


@pytest.mark.usefixtures("without_pi")
def test_a_session_that_is_held_is_told_with_its_holder(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = tmp_path / "session.jsonl"
    session.write_text("{}\n")
    StateFile(project, session, pytest.fail).save({"goal": {"condition": "x", "startedAt": 0}, "loop": None})
    lock = hold_session(session, {"pid": os.getpid(), "command": "goal x"})

    _, held = doctor(project, capsys)
    lock.release()
    _, free = doctor(project, capsys)

    assert held["lock"]["status"] == "note" and str(os.getpid()) in held["lock"]["found"]
    assert free["lock"]["status"] == "ok" and str(session) in free["lock"]["found"]


@pytest.mark.usefixtures("without_pi")
def test_a_state_file_that_can_not_be_read_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".pi-goal").mkdir()
    (project / ".pi-goal" / "state.json").write_text("{")

    _, lines = doctor(project, capsys)

    assert lines["state"]["status"] == "note"


@pytest.mark.usefixtures("without_pi")
def test_for_a_person_each_fix_stands_below_its_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "-C", str(project)]) == 4

    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("problem  pi ")
    assert shown[1].lstrip().startswith("fix: ")


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    assert run(["doctor", "-C", str(tmp_path / "nowhere")]) == 2
