from __future__ import annotations

import json
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.pi.session_lines import MAXIMUM_LINE
from goalkeeper.pi.session_log import SMALL_FILE, SessionHeader, SessionLog

HEADER = {"type": "session", "version": 3, "id": "s1", "timestamp": "2024-12-03T14:00:00.000Z", "cwd": "/project"}
ALL = 10_000_000


class Session:
    """Writes a session file line by line, as pi does."""

    def __init__(self, path: Path, header: dict[str, Any] | None = None) -> None:
        self.path = path
        self.leaf: str | None = None
        self.count = 0
        path.write_bytes(b"")
        self.raw(header or HEADER)

    def raw(self, record: dict[str, Any]) -> None:
        self.bytes(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def bytes(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def add(self, kind: str = "message", *, parent: str | None = None, **fields: Any) -> str:
        self.count += 1
        entry_id = f"{self.count:08x}"
        base = {"type": kind, "id": entry_id, "parentId": parent or self.leaf, "timestamp": "2024-12-03T14:00:00.000Z"}
        self.raw({**base, **fields})
        self.leaf = entry_id
        return entry_id

    def user(self, text: str, *, parent: str | None = None) -> str:
        return self.add(parent=parent, message={"role": "user", "content": text, "timestamp": 1})

    def call(self, call_id: str, command: str) -> str:
        block = {"type": "toolCall", "id": call_id, "name": "bash", "arguments": {"command": command}}
        return self.add(message={"role": "assistant", "content": [block], "stopReason": "toolUse"})

    def result(self, call_id: str, text: str = "out") -> str:
        content = [{"type": "text", "text": text}]
        return self.add(message={"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "session.jsonl")


def texts(log: SessionLog, characters: int = ALL, leaf: str | None = None) -> list[str]:
    return [entry.text for entry in log.read(characters, leaf).entries]


def test_a_missing_file_is_an_empty_session_until_it_is_there(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "later.jsonl")
    assert (log.read(100).entries, log.read(100).leaf, log.header(), log.last_id()) == ((), None, None, None)
    Session(tmp_path / "later.jsonl").user("hello")
    assert texts(log) == ["hello"]
    (tmp_path / "later.jsonl").unlink()
    assert texts(log) == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "session.jsonl"
    make(path)
    with pytest.raises(OSError, match="not a regular file"):
        SessionLog(path).last_id()


def test_the_header_names_the_session_and_what_it_was_forked_from(tmp_path: Path) -> None:
    Session(tmp_path / "a.jsonl", {**HEADER, "parentSession": "/x.jsonl"})
    assert SessionLog(tmp_path / "a.jsonl").header() == SessionHeader("s1", "/project", 3, "/x.jsonl")
    (tmp_path / "b.jsonl").write_text("garbage\n")
    assert SessionLog(tmp_path / "b.jsonl").header() is None


def test_the_window_is_the_newest_part_and_says_how_much_is_earlier(session: Session) -> None:
    for number in range(50):
        session.user(f"{number:03d}" + "x" * 97)
    transcript = SessionLog(session.path).read(450)
    assert [entry.text[:3] for entry in transcript.entries] == ["045", "046", "047", "048", "049"]
    assert (transcript.earlier, transcript.earlier_exact, transcript.leaf) == (45, True, session.leaf)


def test_later_reads_go_on_where_the_last_one_ended(session: Session) -> None:
    log = SessionLog(session.path)
    for number in range(50):
        session.user(f"{number:03d}" + "x" * 97)
        transcript = log.read(250)
        assert transcript.entries[-1].text.startswith(f"{number:03d}")
        assert transcript.earlier + len(transcript.entries) == number + 1
    assert transcript == SessionLog(session.path).read(250)
    assert len(log.read(ALL).entries) == 50


def test_a_result_brings_the_call_that_it_answers(session: Session) -> None:
    call = session.call("c1", "pytest -q")
    session.result("c1", "y" * 5000)
    transcript = SessionLog(session.path).read(100)
    assert [entry.id for entry in transcript.entries] == [call, session.leaf]
    assert (transcript.entries[-1].command, transcript.entries[-1].call_entry) == ("pytest -q", call)


def test_only_the_branch_of_the_last_line_is_read(session: Session) -> None:
    root = session.user("root")
    session.user("abandoned")
    session.user("abandoned too")
    session.user("kept", parent=root)
    log = SessionLog(session.path)
    assert texts(log) == ["root", "kept"]
    assert log.read(ALL).earlier == 0


def test_a_leaf_that_is_given_decides_the_branch(session: Session) -> None:
    root = session.user("root")
    mine = session.user("mine")
    session.user("of another process", parent=root)
    log = SessionLog(session.path)
    assert texts(log, leaf=mine) == ["root", "mine"]
    assert texts(log) == ["root", "of another process"]
    more = session.user("more of mine", parent=mine)
    assert texts(log, leaf=more) == ["root", "mine", "more of mine"]
    assert texts(log, leaf="nowhere") == []


def test_a_line_that_branches_off_later_is_followed(session: Session) -> None:
    ids = [session.user(f"u{number}") for number in range(20)]
    log = SessionLog(session.path)
    log.read(4)
    session.user("branched", parent=ids[2])
    assert texts(log) == ["u0", "u1", "u2", "branched"]


def test_context_edits_of_the_branch_mark_their_targets(session: Session) -> None:
    first = session.user("first")
    session.add("context_edit", targetId=first, replacement=None)
    log = SessionLog(session.path)
    assert log.read(ALL).edited == {first}
    second = session.user("second")
    session.add("context_edit", targetId=second, replacement="other")
    transcript = log.read(ALL)
    assert transcript.edited == {first, second}
    assert transcript.leaf == session.leaf
    assert [entry.text for entry in transcript.entries] == ["first", "second"]


def test_a_torn_last_line_is_left_alone_until_it_is_whole(session: Session) -> None:
    session.user("whole")
    log = SessionLog(session.path)
    line = json.dumps(
        {"type": "message", "id": "t1", "parentId": session.leaf, "message": {"role": "user", "content": "torn"}}
    )
    for piece in (line[:20], line[20:]):
        session.bytes(piece.encode())
        assert texts(log) == texts(SessionLog(session.path)) == ["whole"]
    session.bytes(b"\n")
    assert texts(log) == texts(SessionLog(session.path)) == ["whole", "torn"]


def test_a_file_that_was_cut_short_or_replaced_is_read_anew(session: Session, tmp_path: Path) -> None:
    session.user("one")
    size = session.path.stat().st_size
    session.user("two")
    log = SessionLog(session.path)
    assert texts(log) == ["one", "two"]
    with session.path.open("rb+") as file:
        file.truncate(size)
    assert texts(log) == ["one"]
    other = Session(tmp_path / "other.jsonl")
    for _ in range(9):
        other.user("other")
    other.path.replace(session.path)
    assert texts(log) == ["other"] * 9


def test_a_file_that_was_rewritten_in_place_is_read_anew(session: Session) -> None:
    session.user("old text")
    log = SessionLog(session.path)
    assert texts(log) == ["old text"]
    data = session.path.read_bytes().replace(b"old text", b"new text")
    with session.path.open("rb+") as file:
        file.write(data)
    session.user("appended")
    assert texts(log) == ["new text", "appended"]


def test_separators_that_are_not_lf_and_bytes_that_are_not_utf_8_do_no_harm(session: Session) -> None:
    session.user("a\u2028b\u2029c\x85d")
    line = json.dumps(
        {"type": "message", "id": "b1", "parentId": session.leaf, "message": {"role": "user", "content": "?x"}}
    )
    session.bytes(line.encode().replace(b"?", b"\x90\xff") + b"\r\n\n")
    log = SessionLog(session.path)
    assert texts(log) == ["a\u2028b\u2029c\x85d", "\ufffd\ufffdx"]
    assert log.last_id() == "b1"


def test_garbage_between_the_lines_is_passed_over(session: Session) -> None:
    session.user("one")
    session.bytes(b"not json\n[1]\n{}\n")
    session.user("two")
    log = SessionLog(session.path)
    assert texts(log) == ["one", "two"]
    session.bytes(b"{{{\n")
    assert log.last_id() == session.leaf


def test_an_entry_that_is_broken_behind_its_ids_keeps_its_place(session: Session) -> None:
    session.user("one")
    session.bytes(f'{{"type":"message","id":"b1","parentId":"{session.leaf}","timestamp":broken\n'.encode())
    session.user("two", parent="b1")
    assert [(e.kind, e.id) for e in SessionLog(session.path).read(ALL).entries][1] == ("unreadable", "b1")


def test_ids_in_another_order_than_pi_writes_them_are_found(session: Session) -> None:
    session.raw(
        {
            "timestamp": "x",
            "parentId": None,
            "message": {"role": "user", "content": "one"},
            "id": "z1",
            "type": "message",
        }
    )
    session.user("two", parent="z1")
    assert texts(SessionLog(session.path)) == ["one", "two"]


def test_a_parent_that_is_not_there_ends_the_branch(session: Session) -> None:
    session.user("orphan", parent="gone")
    log = SessionLog(session.path)
    assert texts(log) == ["orphan"]
    session.user("child")
    assert texts(log) == ["orphan", "child"]


def test_a_huge_line_is_passed_over_in_bounded_memory(session: Session) -> None:
    session.user("before")
    huge = session.user("H" * 50_000_000)
    session.user("after")
    log = SessionLog(session.path)
    tracemalloc.start()
    entries = log.read(ALL).entries
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(e.kind, e.id == huge) for e in entries] == [("user", False), ("unreadable", True), ("user", False)]
    assert peak < 3 * MAXIMUM_LINE
    session.user("I" * 50_000_000)
    session.user("last")
    assert [e.kind for e in log.read(ALL).entries][-2:] == ["unreadable", "user"]


def test_the_text_that_is_held_is_bounded(session: Session) -> None:
    for _ in range(6):
        session.user("x" * 3_000_000)
    transcript = SessionLog(session.path).read(ALL)
    assert len(transcript.entries) == 3
    assert transcript.earlier == 3 or not transcript.earlier_exact


@pytest.mark.parametrize("role", ["hookMessage", "user"])
def test_a_session_of_version_2_is_a_tree(tmp_path: Path, role: str) -> None:
    session = Session(tmp_path / "v2.jsonl", {**HEADER, "version": 2})
    root = session.add(message={"role": role, "content": "root"})
    session.user("abandoned")
    session.user("kept", parent=root)
    assert texts(SessionLog(session.path)) == ["root", "kept"]


def test_a_session_of_version_1_is_a_line_and_its_ids_are_stable(tmp_path: Path) -> None:
    session = Session(tmp_path / "v1.jsonl", {"type": "session", "id": "s1", "timestamp": "x", "cwd": "/p"})
    for number in range(30):
        session.raw(
            {"type": "message", "timestamp": "x", "message": {"role": "user", "content": f"{number:02d}" + "x" * 98}}
        )
    log = SessionLog(session.path)
    short = log.read(250)
    assert [entry.text[:2] for entry in short.entries] == ["27", "28", "29"]
    assert (short.earlier, short.earlier_exact) == (27, True)
    session.raw({"type": "message", "timestamp": "x", "message": {"role": "user", "content": "new"}})
    grown = log.read(250)
    assert [entry.id for entry in grown.entries][-4:-1] == [entry.id for entry in short.entries]
    assert grown.entries == SessionLog(session.path).read(250).entries
    assert len({entry.id for entry in log.read(ALL).entries}) == 31
    assert log.read(ALL).earlier == 0


def test_a_large_session_costs_no_more_than_its_window(session: Session) -> None:
    with session.path.open("ab") as file:
        for number in range(30_000):
            parent = f'"{number - 1:08x}"' if number else "null"
            head = f'{{"type":"message","id":"{number:08x}","parentId":{parent},"timestamp":"2024-12-03T14:00:00.000Z"'
            message = json.dumps({"role": "user", "content": f"{number:06d}" + "lorem ipsum " * 120})
            file.write(f'{head},"message":{message}}}\n'.encode())
    assert session.path.stat().st_size > 10 * SMALL_FILE
    began = time.perf_counter()
    log = SessionLog(session.path)
    transcript = log.read(20_000)
    window = time.perf_counter() - began
    began = time.perf_counter()
    with session.path.open("rb") as file:
        for line in file:
            json.loads(line)
    whole = time.perf_counter() - began
    assert window < 0.1 * whole
    assert transcript.entries[-1].text.startswith("029999")
    assert not transcript.earlier_exact
    assert transcript.earlier + len(transcript.entries) == pytest.approx(30_000, rel=0.02)
    session.user("more", parent=transcript.leaf)
    grown = log.read(20_000)
    assert grown.earlier + len(grown.entries) == transcript.earlier + len(transcript.entries) + 1


def test_a_large_append_is_read_like_a_large_file(session: Session) -> None:
    session.user("first")
    log = SessionLog(session.path)
    log.read(100)
    for _ in range(6):
        session.user("y" * 1_000_000)
    session.user("last")
    assert texts(log, 10)[-1] == "last"
    assert len(texts(log, 100_000)) >= 6
