"""A session file that is damaged, huge, old or strange: read as far as it goes, never changed, or refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import (
    ASKED,
    CHECKED,
    answer,
    as_line,
    entries_of,
    passing_session,
    paused,
    refused,
    run_goalkeeper,
    state_of,
    text,
    write_session,
)
from e2e.support import Event, user_texts, worker_requests

from goalkeeper.testing.judges import say_verdict, yes_man
from goalkeeper.testing.model_steps import RecordedRequest, Text, bash
from goalkeeper.testing.seen_window import seen_entries

pytestmark = pytest.mark.real_pi

Lines = list[Event]
HUGE = 50_000_000


def joined(lines: Lines) -> bytes:
    return b"".join(as_line(line) for line in lines)


def torn(lines: Lines) -> bytes:
    return joined([*lines, answer("00000006", "00000005", text("And more."))])[:-40]


def without_the_last_newline(lines: Lines) -> bytes:
    return joined(lines)[:-1]


def broken_in_the_middle(lines: Lines) -> bytes:
    return joined(lines[:3]) + b'{"type":"message","id":"0000\n\x00\x00\n' + joined(lines[3:])


def custom(entry: str, parent: str, kind: str, **fields: Any) -> Event:
    return {"type": kind, "id": entry, "parentId": parent, "timestamp": "2026-11-30T20:09:44.141Z", **fields}


def huge(lines: Lines) -> bytes:
    ballast = custom("0000000a", "00000002", "custom", customType="ballast", data="x" * HUGE)
    return joined([*lines[:3], ballast, {**lines[3], "parentId": "0000000a"}, *lines[4:]])


def unknown_types(lines: Lines) -> bytes:
    return joined([*lines, custom("00000006", "00000005", "from_the_future", value=[1, {"deep": None}])])


def line_separators(lines: Lines) -> bytes:
    changed = json.loads(json.dumps(lines))
    changed[4]["message"]["content"][0]["text"] = "all 3\u2028tests\u2029pass\x85ed\n"
    return joined(changed)


def version_1(lines: Lines) -> bytes:
    header = {key: lines[0][key] for key in lines[0] if key != "version"}
    return joined([header, *({key: line[key] for key in line if key not in ("id", "parentId")} for line in lines[1:])])


def version_2(lines: Lines) -> bytes:
    return joined([{**lines[0], "version": 2}, *lines[1:]])


READABLE: Mapping[str, Callable[[Lines], bytes]] = {
    "a torn last line": torn,
    "no newline at the end": without_the_last_newline,
    "a broken line in the middle": broken_in_the_middle,
    "a line of 50 MB": huge,
    "unknown types": unknown_types,
    "line separators": line_separators,
    "version 1": version_1,
    "version 2": version_2,
}


def cites_the_old_result(request: RecordedRequest) -> Text:
    """Return a met that cites the result which stood in the file before the goal was set."""
    found = [entry for entry in seen_entries(request.text) if entry.command == "run-tests"]
    if not found:
        return say_verdict("unknown", "The result is not shown.")
    return say_verdict("met", "It passed.", evidence=[found[0].id])


@pytest.mark.parametrize("name", READABLE)
def test_a_strange_session_file_is_judged_and_worked_on_as_far_as_it_goes(
    name: str, scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    data = READABLE[name](passing_session(project))
    session = tmp_path / "session.jsonl"
    session.write_bytes(data)
    model = scripted_model(worker=[Text("Done.")], evaluator=cites_the_old_result)
    env = agent_env(model)

    done = run_goalkeeper(
        "evaluate", str(session), "it works", "--basis", "tool", "--evaluator", "pi", "--json", env=env, cwd=project
    )
    assert done.returncode == 0, done
    judged = json.loads(done.stdout)
    assert judged["verdict"] == "met"
    assert [cited["command"] for cited in judged["evidence"]] == ["run-tests"]
    assert session.read_bytes() == data

    # For a new goal in the same session the same result is too old, and nobody saw which files it ran on.
    goal = run_goal("it works still", *ASKED, "--max-runs", "1", "--session", str(session), env=env)
    assert goal.process.returncode == 3, (goal.stderr, goal.lines)
    assert [finding["rule"] for finding in goal.last("verdict")["findings"]] == ["before_goal", "later_change"]
    assert goal.last("paused")["why"] == "max_runs"
    assert state_of(goal.last("session"))["owner"] == str(session)
    assert goal.last("session")["session_file"] == str(session)
    assert user_texts([line for line in readable(session) if line]) == ["it works", "it works still"]
    if not name.startswith("version"):  # pi rewrites files of older versions as version 3
        assert session.read_bytes().startswith(data)


def readable(session: Path) -> list[Event]:
    """Return the lines of a session that are JSON; the broken ones stay where they are."""
    found = []
    for line in session.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@pytest.mark.parametrize("which", ["pi", "old_pi"])
def test_what_follows_a_torn_line_stands_on_lines_of_its_own(
    which: str, request: Any, scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session.jsonl"
    session.write_bytes(torn(passing_session(project)))
    env = agent_env(scripted_model(worker=[Text("Done.")]), pi=request.getfixturevalue(which))
    goal = run_goal("it works still", *CHECKED, "--session", str(session), env=env)

    assert goal.process.returncode == 0, (goal.stderr, goal.lines)
    lines = readable(session)
    assert user_texts(lines) == ["it works", "it works still"]
    ids = {line["id"] for line in lines}
    assert all(line["parentId"] in ids for line in lines[2:])


def test_what_stands_behind_a_line_of_50_mb_may_have_changed_files(
    scripted_model: Any, agent_env: Any, project: Path, tmp_path: Path
) -> None:
    lines = passing_session(project)
    ballast = custom("00000006", "00000005", "custom", customType="ballast", data="x" * HUGE)
    session = write_session(tmp_path / "session.jsonl", [*lines, ballast])
    env = agent_env(scripted_model(evaluator=cites_the_old_result))

    done = run_goalkeeper(
        "evaluate", str(session), "it works", "--basis", "tool", "--evaluator", "pi", "--json", env=env, cwd=project
    )
    assert done.returncode == 3, done
    judged = json.loads(done.stdout)
    assert judged["rules"] == ["later_change"]
    assert "00000006, which could not be read" in judged["reason"]


NO_SESSIONS: Mapping[str, bytes] = {
    "a torn header": b'{"type":"session","version":3,"id":"01a2',
    "something else": b"\x00\xff\x00 not a session\n" * 3,
    "JSON of another kind": b'{"name": "a package", "version": "1"}\n',
}


@pytest.mark.parametrize("name", NO_SESSIONS)
def test_what_is_no_session_is_refused_and_stays_as_it_is(
    name: str, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    session = tmp_path / "session.jsonl"
    session.write_bytes(NO_SESSIONS[name])
    env = agent_env("http://127.0.0.1:9/v1")

    done = run_goalkeeper("evaluate", str(session), "it works", env=env, cwd=project)
    assert done.returncode == 2
    assert f"{session} is no session file of pi" in done.stderr
    refused(run_goal("it works", *CHECKED, "--session", str(session), env=env), 3, "not a valid pi session")
    assert session.read_bytes() == NO_SESSIONS[name]
    assert not (project / ".pi-goal").exists()


def test_a_folder_in_place_of_a_session_is_refused(
    agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "session.jsonl"
    folder.mkdir()
    env = agent_env("http://127.0.0.1:9/v1")

    done = run_goalkeeper("evaluate", str(folder), "it works", env=env, cwd=project)
    assert done.returncode == 2
    assert str(folder) in done.stderr
    refused(run_goal("it works", *CHECKED, "--session", str(folder), env=env), 2, str(folder), "can't be read")
    assert list(tmp_path.glob(".session*")) == []


def test_a_session_whose_folder_is_gone_is_refused_with_the_folders_name(
    agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    session = write_session(tmp_path / "session.jsonl", passing_session(gone))
    before = session.read_bytes()
    goal = run_goal("it works", *CHECKED, "--session", str(session), env=agent_env("http://127.0.0.1:9/v1"))

    refused(goal, 4, f"The session belongs to the folder {gone}, which is not there")
    assert session.read_bytes() == before


def test_an_id_that_no_session_has_is_told_in_pis_words(agent_env: Any, run_goal: Any, project: Path) -> None:
    goal = run_goal("it works", *CHECKED, "--session", "deadbeef", env=agent_env("http://127.0.0.1:9/v1"))

    refused(goal, 3, "No session found matching 'deadbeef'")
    assert not (project / ".pi-goal").exists()


@pytest.mark.parametrize("damage", ["a torn last line", "cut short", "gone"])
def test_a_paused_goal_goes_on_whatever_became_of_its_session_file(
    damage: str, scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(
        worker=[bash("echo hi"), Text("Done.")], evaluator=[say_verdict("not_met", "Not yet."), yes_man()]
    )
    env = agent_env(model)
    first = run_goal("it works", *ASKED, "--max-runs", "1", env=env)
    paused(first, "max_runs", "Not yet.")
    session = Path(first.last("session")["session_file"])
    data = session.read_bytes()
    if damage == "gone":
        session.unlink()  # pi begins a new one under the same name
    else:
        session.write_bytes(data[:-40] if damage == "a torn last line" else data[: len(data) // 2])
    resumed = run_goal("resume", "--max-runs", "1", env=env)

    assert resumed.process.returncode in (0, 3), resumed.stderr
    assert resumed.last("session")["session_file"] == str(session)
    assert resumed.last("resumed")["condition"] == "it works"
    assert resumed.last("run_settled")["run"] == 1
    if damage == "a torn last line":
        assert resumed.process.returncode == 0, resumed.lines


def test_a_session_file_that_can_not_be_read_any_more_pauses_the_goal(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    worker = [bash("while ! test -e gate; do sleep 0.05; done"), Text("Done.")]
    model = scripted_model(worker=worker, evaluator=yes_man())
    goal = start_goal("it works", *ASKED, env=agent_env(model))
    goal.wait_for("tool", status="started")
    session = Path(goal.last("session")["session_file"])
    session.unlink()
    session.mkdir()
    (project / "gate").touch()

    assert goal.wait() == 3
    assert "Traceback" not in goal.stderr
    assert "met" not in goal.names()


def test_a_message_of_200_kb_reaches_pi_whole(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    """Read what a person pasted into the session before: pi, our reader and the window take it."""
    long = "".join(f"{number:06d} ü🚀\n" for number in range(15_000))
    assert len(long.encode("utf-8")) > 200_000
    lines = passing_session(project)
    lines.append({**lines[2], "id": "00000006", "parentId": "00000005"})
    lines[-1] = json.loads(json.dumps(lines[-1]))
    lines[-1]["message"]["content"][0]["text"] = long
    session = write_session(tmp_path / "session.jsonl", lines)
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=yes_man())
    goal = run_goal("it works", *ASKED, "--session", str(session), env=agent_env(model))

    assert goal.process.returncode == 0, (goal.stderr, goal.lines)
    assert worker_requests(model) == 2
    assert user_texts(entries_of(session)) == ["it works", long, "it works"]
    (asked,) = model.of("evaluator")
    assert asked.characters < 24_000
    assert "000000 ü🚀" in asked.text
    assert "014999 ü🚀" in asked.text
