"""State files that are damaged, foreign, in the way or can't be written: told, never lost, and the work goes on."""

from __future__ import annotations

import copy
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import (
    ASKED,
    CHECKED,
    entries_of,
    fill,
    mounted,
    needs_mount,
    passing_session,
    paused,
    refused,
    state_of,
    write_session,
)
from e2e.support import GoalProcess, user_texts

from goalkeeper.core.state import SessionState
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.store import StateStore
from goalkeeper.storage.schema import SchemaError, from_document
from goalkeeper.storage.state_file import StateFile
from goalkeeper.testing.judges import say_verdict, yes_man
from goalkeeper.testing.model_steps import Hold, RecordedRequest, Step, Text, bash

COMPAT = Path(__file__).parent.parent / "compat"


def works(request: RecordedRequest) -> Step:
    """Run a command in each run, then say so."""
    return Text("Done.") if request.messages[-1]["role"] == "tool" else bash(f"echo {request.index}")


class Folder:
    """A project with a paused goal in it."""

    def __init__(self, project: Path, first: GoalProcess, env: dict[str, str]) -> None:
        self.project = project
        self.env = env
        self.session = Path(first.last("session")["session_file"])
        self.state = project / ".pi-goal" / "state.json"
        self.whole = self.state.read_bytes()

    def aside(self) -> list[Path]:
        """Return the files that were set aside."""
        return sorted(self.state.parent.glob("*.corrupt-*"))


@pytest.fixture
def folder(scripted_model: Any, agent_env: Any, run_goal: Any, project: Path) -> Folder:
    """A goal that used its one run, paused; what it does next is met."""
    model = scripted_model(worker=works, evaluator=[say_verdict("not_met", "Not yet."), yes_man()])
    env = agent_env(model)
    first = run_goal("it works", *ASKED, "--max-runs", "1", env=env)
    paused(first, "max_runs", "Not yet.")
    return Folder(project, first, env)


def notices(goal: GoalProcess) -> list[str]:
    """Return the warnings of a goal."""
    return [event["text"] for event in goal.events if event["event"] == "notice" and event["level"] == "warning"]


# ---- damaged --------------------------------------------------------------------------------------------------------


@pytest.mark.real_pi
def test_a_state_file_cut_at_any_byte_is_set_aside_and_never_misread(folder: Folder) -> None:
    expected = from_document(json.loads(folder.whole))
    assert expected.goal
    for size in range(len(folder.whole) + 1):
        folder.state.write_bytes(folder.whole[:size])
        warnings: list[str] = []
        file = StateFile(folder.project, folder.session, warnings.append, settle=lambda: None)
        document = file.load()
        if document is not None:
            assert from_document(document) == expected  # only what is white space can be missing
            assert warnings == []
        else:
            assert len(warnings) == 1
            assert "set aside" in warnings[0]
            (aside,) = folder.aside()
            assert aside.read_bytes() == folder.whole[:size]
            aside.unlink()


@pytest.mark.real_pi
def test_a_damaged_state_file_is_told_and_kept_and_a_new_goal_can_be_set(folder: Folder, run_goal: Any) -> None:
    half = folder.whole[: len(folder.whole) // 2]
    folder.state.write_bytes(half)
    status = run_goal("status", env=folder.env, as_json=False)
    assert status.process.returncode == 0
    assert "can't be parsed" in "".join(status.lines)
    refused(run_goal("resume", env=folder.env), 2, "no goal to resume", f"{folder.state} can't be read")
    assert folder.state.read_bytes() == half

    goal = run_goal("it works", *ASKED, "--session", str(folder.session), env=folder.env)
    assert goal.process.returncode == 0, (goal.stderr, goal.lines)
    (warning,) = notices(goal)
    (aside,) = folder.aside()
    assert str(folder.state) in warning
    assert aside.name in warning
    assert aside.read_bytes() == half
    assert user_texts(entries_of(folder.session)) == ["it works", "it works"]


def changed(document: Any, value: Any) -> Iterator[Any]:
    """Yield copies of a document in each of which another field, at any depth, has this value."""

    def places(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield path
        if isinstance(part, dict):
            for key, inner in part.items():
                yield from places(inner, (*path, key))

    for path in list(places(document, ()))[1:]:
        made = copy.deepcopy(document)
        inner = made
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        yield made


STRANGE = [None, True, -1, 10**30, 1.5, float("inf"), float("nan"), "", "x", "\ud800", [], [None], {}, {"x": 1}]


@pytest.mark.real_pi
def test_a_state_with_any_field_of_another_type_is_read_or_refused_as_a_whole(folder: Folder) -> None:
    document = json.loads(folder.whole)
    refusals = 0
    for value in STRANGE:
        for made in changed(document, value):
            try:
                assert isinstance(from_document(made), SessionState)
            except SchemaError:
                refusals += 1
    assert refusals > 100


@pytest.mark.real_pi
def test_a_state_that_can_not_be_understood_is_set_aside_with_the_fields_name(folder: Folder) -> None:
    for field, named in (
        ("goal.turns", "'ten'"),
        ("goal.goalkeeper.limits", "limits"),
        ("goalkeeper.version", "'ten'"),
        ("goalkeeper.next_id", "'ten'"),
    ):
        document = json.loads(folder.whole)
        inner = document
        *path, last = field.split(".")
        for key in path:
            inner = inner[key]
        inner[last] = "ten"
        folder.state.write_text(json.dumps(document), encoding="utf-8")
        warnings: list[str] = []
        store = StateStore(str(folder.project), str(folder.session), SystemClock(), warnings.append)

        assert store.load() == SessionState()
        (warning,) = warnings
        (aside,) = folder.aside()
        assert str(folder.state) in warning
        assert str(aside) in warning
        assert named in warning
        assert json.loads(aside.read_text(encoding="utf-8")) == document
        aside.unlink()


# ---- in the way -----------------------------------------------------------------------------------------------------


@pytest.mark.real_pi
def test_a_folder_in_place_of_the_state_file_is_left_alone(folder: Folder, run_goal: Any) -> None:
    folder.state.unlink()
    folder.state.mkdir()
    (folder.state / "mine.txt").write_text("somebody's", encoding="utf-8")
    goal = run_goal("it works", *ASKED, "--max-runs", "1", "--session", str(folder.session), env=folder.env)

    assert goal.process.returncode == 0, (goal.stderr, goal.lines)
    assert any(str(folder.state) in warning and "left alone" in warning for warning in notices(goal))
    assert (folder.state / "mine.txt").read_text(encoding="utf-8") == "somebody's"


@pytest.mark.real_pi
def test_a_read_only_state_file_is_replaced_as_a_whole(folder: Folder, run_goal: Any) -> None:
    folder.state.chmod(0o400)
    goal = run_goal("resume", "--max-runs", "1", env=folder.env)

    assert goal.process.returncode == 0, (goal.stderr, goal.lines)
    assert not folder.state.exists()


@needs_mount
@pytest.mark.real_pi
def test_a_read_only_state_folder_is_told_once_and_the_work_goes_on(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=say_verdict("not_met", "Not yet."))
    with mounted(project / ".pi-goal", "size=64k,ro"):
        goal = run_goal("it works", *ASKED, "--max-runs", "3", env=agent_env(model))

        assert goal.process.returncode == 3, (goal.stderr, goal.lines)
        assert goal.last("paused")["why"] in ("max_runs", "no_progress")
        told = notices(goal)
        assert all("Read-only file system" in warning for warning in told)
        assert len([warning for warning in told if "The state could not be stored" in warning]) == 1
        assert len(told) == 1, told


# ---- somebody else's ------------------------------------------------------------------------------------------------


def foreign(project: Path, name: str, owner: str | None) -> bytes:
    """Put a state file of the pi extension into a project, owned by a session; return its content."""
    document = json.loads((COMPAT / name).read_text(encoding="utf-8"))
    document["owner"] = owner
    content = json.dumps(document, indent=2).encode("utf-8")
    (project / ".pi-goal").mkdir(exist_ok=True)
    (project / ".pi-goal" / "state.json").write_bytes(content)
    return content


@pytest.mark.real_pi
@pytest.mark.parametrize("owner", ["another session", "nobody"])
def test_state_that_is_not_ours_is_neither_adopted_nor_touched(
    owner: str, scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    other = write_session(tmp_path / "other.jsonl", passing_session(project))
    content = foreign(project, "extension_goal.json", str(other) if owner == "another session" else None)
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=say_verdict("not_met", "Not yet."))
    env = agent_env(model)
    goal = run_goal("it works", *ASKED, "--max-runs", "1", env=env)

    paused(goal, "max_runs", "Not yet.")
    assert (project / ".pi-goal" / "state.json").read_bytes() == content
    own = project / ".pi-goal" / f"state-{goal.last('session')['session_id']}.json"
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    if owner == "another session":
        refused(run_goal("resume", env=env), 2, "2 goals", str(other), goal.last("session")["session_file"])
    assert run_goal("clear", "--session", goal.last("session")["session_id"], env=env).process.returncode == 0
    assert not own.exists()
    assert (project / ".pi-goal" / "state.json").read_bytes() == content


@pytest.mark.real_pi
@pytest.mark.parametrize("name", ["extension_goal.json", "extension_legacy.json", "extension_verified_goal.json"])
def test_a_goal_of_the_pi_extension_is_shown_and_resumed(
    name: str, scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    session = write_session(tmp_path / "s.jsonl", passing_session(project))
    document = json.loads(foreign(project, name, str(session)))
    condition = document["goal"]["condition"]
    # The extension knows no terms and no other evaluator, so the usual one settles both.
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=yes_man())
    env = agent_env(model)
    status = run_goal("status", env=env, as_json=False)
    assert condition in "".join(status.lines)

    resumed = run_goal("resume", "--evaluator", "pi", "--max-runs", "5", env=env)
    assert resumed.process.returncode == 0, (resumed.stderr, resumed.lines)
    assert resumed.last("met")["condition"] == condition
    assert condition in user_texts(entries_of(session))[1]


# ---- a full disk ----------------------------------------------------------------------------------------------------


@needs_mount
@pytest.mark.real_pi
def test_a_full_project_disk_is_told_once_and_the_goal_is_met(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=yes_man())
    with mounted(tmp_path / "small", "size=128k") as small:
        fill(small)
        goal = run_goal("it works", *ASKED, env=agent_env(model), cwd=small)

        assert goal.process.returncode == 0, (goal.stderr, goal.lines)
        told = notices(goal)
        assert len([warning for warning in told if "The state could not be stored" in warning]) == 1
        assert all("No space left" in warning for warning in told)
        assert user_texts(entries_of(goal.last("session")["session_file"])) == ["it works"]


@needs_mount
@pytest.mark.real_pi
def test_a_disk_that_fills_up_during_a_goal_keeps_the_last_state_and_the_goal_can_be_resumed(
    scripted_model: Any, agent_env: Any, start_goal: Any, run_goal: Any, tmp_path: Path
) -> None:
    model = scripted_model(
        worker=[Hold(bash("echo hi")), Text("Done.")], evaluator=[say_verdict("not_met", "Not yet."), yes_man()]
    )
    env = agent_env(model)
    with mounted(tmp_path / "small", "size=256k") as small:
        goal = start_goal("it works", *ASKED, "--max-runs", "1", env=env, cwd=small)
        model.wait_held()
        before = state_of(goal.last("session"))
        ballast = fill(small)
        model.release()
        goal.wait()

        assert goal.process.returncode == 3, (goal.stderr, goal.lines)
        assert len([warning for warning in notices(goal) if "No space left" in warning]) >= 1
        assert state_of(goal.last("session")) == before
        ballast.unlink()
        resumed = run_goal("resume", env=env, cwd=small)
        assert resumed.process.returncode == 0, (resumed.stderr, resumed.lines)
        assert not (small / ".pi-goal" / "state.json").exists()


@needs_mount
@pytest.mark.real_pi
def test_a_full_session_disk_ends_in_a_pause_and_resume_goes_on(
    scripted_model: Any, agent_env: Any, start_goal: Any, run_goal: Any, tmp_path: Path
) -> None:
    def worker(request: RecordedRequest) -> Step:
        # More than what is left of the file's last block.
        return Hold(bash("seq 5000")) if request.index == 0 else works(request)

    model = scripted_model(worker=worker, evaluator=yes_man())
    env = agent_env(model)
    with mounted(tmp_path / "agent" / "sessions", "size=256k") as sessions:
        goal = start_goal("it works", *ASKED, env=env)
        model.wait_held()
        ballast = fill(sessions)
        model.release()
        goal.wait()

        assert goal.process.returncode == 3, (goal.stderr, goal.lines)
        assert goal.last("paused")["why"] == "run_failed"
        assert "no space left on device" in goal.last("paused")["reason"]
        session = Path(goal.last("session")["session_file"])
        torn = session.read_bytes()
        assert not torn.endswith(b"\n")  # pi wrote what there was room for
        ballast.unlink()
        resumed = run_goal("resume", env=env)
        assert resumed.process.returncode == 0, (resumed.stderr, resumed.lines)
        assert session.read_bytes().startswith(torn)


# ---- two at once ----------------------------------------------------------------------------------------------------


@pytest.mark.real_pi
def test_a_second_controller_of_a_session_names_the_first_and_changes_nothing(
    scripted_model: Any, agent_env: Any, start_goal: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    session = write_session(tmp_path / "session.jsonl", passing_session(project))
    model = scripted_model(worker=[Hold(Text("Done."))])
    env = agent_env(model)
    first = start_goal("it works", *CHECKED, "--session", str(session), env=env)
    model.wait_held()
    before = (session.read_bytes(), state_of(first.last("session"))["goal"]["goalkeeper"]["id"])

    for arguments in (["something else", *CHECKED, "--session", str(session)], ["resume"]):
        second = run_goal(*arguments, env=env)
        refused(second, 5, str(first.process.pid), str(session))
        assert second.lines == []
    after = (session.read_bytes(), state_of(first.last("session"))["goal"]["goalkeeper"]["id"])
    assert after == before
    model.release()
    assert first.wait() == 0
    assert user_texts(entries_of(session)) == ["it works", "it works"]


@pytest.mark.real_pi
def test_two_new_goals_in_one_folder_do_not_touch_each_other(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    def worker(request: RecordedRequest) -> Step:
        return Text("Done.")

    def judge(request: RecordedRequest) -> Step:
        return say_verdict("not_met", "The first fails." if "the first thing" in request.text else "The second fails.")

    model = scripted_model(worker=worker, evaluator=judge)
    env = agent_env(model)
    names = ("the first thing", "the second thing")
    goals = [start_goal(name, *ASKED, "--max-runs", "2", env=env) for name in names]
    for goal in goals:
        goal.wait()

    sessions = [goal.last("session") for goal in goals]
    assert sessions[0]["session_file"] != sessions[1]["session_file"]
    for name, word, goal, session in zip(names, ("first", "second"), goals, sessions, strict=True):
        paused(goal, "max_runs", f"The {word} fails.")
        stored = state_of(session)
        assert stored["goal"]["condition"] == name
        assert stored["goal"]["lastReason"] == f"The {word} fails."
        texts = user_texts(entries_of(session["session_file"]))
        assert texts[0] == name
        assert len(texts) == 2
        assert f"The {word} fails." in texts[1]
    assert len(list((project / ".pi-goal").glob("state*.json"))) == 2


def test_a_goal_that_was_changed_in_its_state_file_is_not_resumed(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=[Text("Hm.")], evaluator=[say_verdict("not_met")])
    env = agent_env(model)
    run_goal("it works", "--basis", "tool", "--check", "false", "--max-runs", "1", env=env)
    path = project / ".pi-goal" / "state.json"
    document = json.loads(path.read_text())
    document["goal"]["goalkeeper"]["checks"] = ["true"]
    path.write_text(json.dumps(document))
    asked = len(model.requests)
    refused = run_goal("resume", env=env)
    assert refused.process.returncode == 2
    assert "not the one that was set" in refused.stderr
    assert len(model.requests) == asked
    document["goal"]["goalkeeper"]["checks"] = ["false"]
    path.write_text(json.dumps(document))
    resumed = run_goal("resume", env=env)
    assert resumed.last("paused")["why"] in ("max_runs", "no_progress")
    assert resumed.names().count("resumed") == 1
