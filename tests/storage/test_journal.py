from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from goalkeeper.core.verdict import Stamp
from goalkeeper.storage import journal as module
from goalkeeper.storage.journal import Journal, StampFile, read_backwards, read_journal


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def journal(tmp_path: Path, warnings: list[str]) -> Journal:
    return Journal(tmp_path, tmp_path / "2026_mine.jsonl", warnings.append)


def path(tmp_path: Path) -> Path:
    return tmp_path / ".pi-goal" / "journal.jsonl"


def test_records_are_read_newest_first_with_their_session(
    tmp_path: Path, journal: Journal, warnings: list[str]
) -> None:
    assert list(read_journal(tmp_path)) == []
    for number in range(3):
        assert journal.append(
            {"event": "notice", "at": number, "goal": "", "text": "größer\n\ud800"}, durable=number == 2
        )
    found = list(read_journal(tmp_path))
    assert [record["at"] for record in found] == [2, 1, 0]
    assert found[0] == {"event": "notice", "at": 2, "goal": "", "text": "größer\n\ud800", "session_id": "mine"}
    assert path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert path(tmp_path).read_bytes().count(b"\n") == 3
    assert warnings == []


def test_records_are_selected_by_time_goal_and_session(tmp_path: Path, journal: Journal) -> None:
    other = Journal(tmp_path, tmp_path / "2026_other.jsonl", pytest.fail)
    for number in range(6):
        (journal if number % 2 else other).append({"at": number, "goal": f"g{number // 3}"})
    assert [record["at"] for record in read_journal(tmp_path, since=3)] == [5, 4, 3]
    assert [record["at"] for record in read_journal(tmp_path, goal="g0")] == [2, 1, 0]
    assert [record["at"] for record in read_journal(tmp_path, session="mine", goal="g1")] == [5, 3]


@pytest.mark.parametrize("block", [1, 2, 7, 64 * 1024])
def test_a_line_cut_at_any_byte_costs_only_itself(
    tmp_path: Path, journal: Journal, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    journal.append({"at": 1})
    first = path(tmp_path).read_bytes()
    journal.append({"at": 2, "text": "ü"})
    whole = path(tmp_path).read_bytes()
    for length in range(len(first), len(whole) + 1):
        path(tmp_path).write_bytes(whole[:length])
        expected = [2, 1] if length >= len(whole) - 1 else [1]
        assert [record["at"] for record in read_journal(tmp_path)] == expected, length
        journal.append({"at": 3})
        assert [record["at"] for record in read_journal(tmp_path)] == [3, *expected], length


@pytest.mark.parametrize("garbage", [b"", b"\n\n", b"\0\0", b"\xff\n", b"[1]\nnull\n", b"[" * 5000 + b"\n"])
def test_garbage_is_skipped(tmp_path: Path, journal: Journal, garbage: bytes) -> None:
    path(tmp_path).parent.mkdir()
    path(tmp_path).write_bytes(garbage)
    journal.append({"at": 1})
    assert [record["at"] for record in read_journal(tmp_path)] == [1]


def test_a_line_without_end_is_given_up_and_older_ones_are_read(tmp_path: Path, journal: Journal) -> None:
    journal.append({"at": 1})
    with path(tmp_path).open("ab") as file:
        file.write(b"x" * 3_000_000)
    journal.append({"at": 2})
    assert [record["at"] for record in read_journal(tmp_path)] == [2, 1]


def test_the_end_of_a_large_journal_is_read_without_the_rest(tmp_path: Path, journal: Journal) -> None:
    path(tmp_path).parent.mkdir()
    with path(tmp_path).open("wb") as file:
        file.truncate(50_000_000_000)  # a hole: reading it all would take minutes
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"".join(json.dumps({"at": number}).encode() + b"\n" for number in range(1000)))
    assert [record["at"] for record in read_journal(tmp_path, since=900)][:3] == [999, 998, 997]
    assert next(read_journal(tmp_path))["at"] == 999


def test_writers_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom goalkeeper.storage.journal import Journal\n"
        "journal = Journal(sys.argv[1], sys.argv[2], sys.exit)\n"
        "for number in range(300):\n    journal.append({'at': number, 'text': sys.argv[2] * 50})\n"
    )
    names = ["x_a.jsonl", "x_b.jsonl", "x_c.jsonl"]
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in names]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for session in "abc":
        assert [record["at"] for record in read_journal(tmp_path, session=session)] == list(reversed(range(300)))
    # A writer that meets a line before its end is visible begins a fresh one: an empty line does no harm.
    assert len(path(tmp_path).read_bytes().split()) == 900


def test_a_removed_folder_is_made_again(tmp_path: Path, journal: Journal, warnings: list[str]) -> None:
    journal.append({"at": 1})
    path(tmp_path).unlink()
    for left in path(tmp_path).parent.iterdir():
        left.unlink()
    path(tmp_path).parent.rmdir()
    assert journal.append({"at": 2})
    assert [record["at"] for record in read_journal(tmp_path)] == [2]


def test_failures_are_told_once_until_it_works_again(tmp_path: Path, journal: Journal, warnings: list[str]) -> None:
    path(tmp_path).mkdir(parents=True)
    assert [journal.append({"at": 1}) for _ in range(3)] == [False] * 3
    assert len(warnings) == 1
    assert list(read_journal(tmp_path)) == []
    path(tmp_path).rmdir()
    assert journal.append({"at": 2})
    path(tmp_path).unlink()
    path(tmp_path).symlink_to("/dev/full")
    assert not journal.append({"at": 3})
    assert len(warnings) == 2


def test_an_ephemeral_session_writes_nothing(tmp_path: Path) -> None:
    assert not Journal(tmp_path, None, pytest.fail).append({"at": 1})
    stamps = StampFile(tmp_path, None, pytest.fail)
    assert not stamps.append("c", Stamp("t"))
    assert stamps.load() == {}
    assert list(tmp_path.iterdir()) == []


def test_stamps_survive_a_restart_the_last_one_of_a_key_counts(tmp_path: Path) -> None:
    session = tmp_path / "2026_mine.jsonl"
    stamps = StampFile(tmp_path, session, pytest.fail)
    assert stamps.load() == {}
    stamps.append("c1", Stamp("t1", 0))
    stamps.append("c2", Stamp(None, None, True))
    stamps.append("c1", Stamp("t2", 1))
    StampFile(tmp_path, tmp_path / "2026_other.jsonl", pytest.fail).append("c3", Stamp("t3"))
    loaded = StampFile(tmp_path, session, pytest.fail).load()
    assert list(loaded.items()) == [("c2", Stamp(None, None, True)), ("c1", Stamp("t2", 1))]


def test_only_the_newest_stamps_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAMPS_KEPT", 3)
    stamps = StampFile(tmp_path, tmp_path / "2026_mine.jsonl", pytest.fail)
    for number in range(5):
        stamps.append(str(number), Stamp(f"t{number}"))
    assert list(stamps.load()) == ["2", "3", "4"]


@pytest.mark.parametrize(
    "record", [{}, {"key": 1}, {"key": "c", "tree": 1}, {"key": "c", "tree": "t", "exit_code": "0"}]
)
def test_a_stamp_of_the_wrong_shape_is_none(tmp_path: Path, record: dict[str, object]) -> None:
    stamps = StampFile(tmp_path, tmp_path / "2026_mine.jsonl", pytest.fail)
    stamps.append("good", Stamp("t"))
    with (tmp_path / ".pi-goal" / "stamps-mine.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert stamps.load() == {"good": Stamp("t")}


def test_a_stamp_that_does_not_say_whether_it_overlapped_did(tmp_path: Path) -> None:
    stamps = StampFile(tmp_path, tmp_path / "2026_mine.jsonl", pytest.fail)
    stamps.append("good", Stamp("t"))
    with (tmp_path / ".pi-goal" / "stamps-mine.jsonl").open("a") as file:
        file.write('{"key": "c", "tree": "t", "exit_code": 0}\n')
    assert stamps.load()["c"] == Stamp("t", 0, True)


def test_a_pipe_in_place_of_the_journal_blocks_nobody(tmp_path: Path, journal: Journal, warnings: list[str]) -> None:
    path(tmp_path).parent.mkdir()
    os.mkfifo(path(tmp_path))
    assert list(read_backwards(path(tmp_path))) == []
    assert not journal.append({"at": 1})
    assert len(warnings) == 1
