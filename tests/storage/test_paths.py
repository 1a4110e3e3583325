from __future__ import annotations

from pathlib import Path

import pytest

from goalkeeper.storage.paths import StatePaths, controller_lock, ensure_folder, session_id


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("2026-11-30T20-09-44-141Z_01a22e13-dfcc.jsonl", "", "01a22e13-dfcc"),
        ("a_b_c.jsonl", "", "c"),
        ("mine.jsonl", '{"type":"session","id":"abc-1"}\n', "abc-1"),
        ("mine.jsonl", '{"type":"session","id":"../../etc"}\n', "mine"),
        ("mine.jsonl", "garbage", "mine"),
        ("mine.jsonl", "[]", "mine"),
        ("..jsonl", "", "session"),
        ("a b\nc.jsonl", "", "a-b-c"),
    ],
)
def test_a_session_id_is_fit_for_a_file_name(tmp_path: Path, name: str, content: str, expected: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    found = session_id(path)
    assert found == expected
    assert StatePaths(tmp_path).state_of(found).parent == tmp_path / ".pi-goal"


def test_the_folder_is_private_and_does_not_show_in_git(tmp_path: Path) -> None:
    paths = StatePaths(tmp_path)
    ensure_folder(paths)
    assert paths.folder.stat().st_mode & 0o777 == 0o700
    assert (paths.folder / ".gitignore").read_text() == "*\n"


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    paths = StatePaths(tmp_path)
    paths.folder.mkdir(mode=0o755)
    ensure_folder(paths)
    assert list(paths.folder.iterdir()) == []


def test_a_project_that_is_gone_does_not_come_back_as_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ensure_folder(StatePaths(tmp_path / "moved"))
    assert not (tmp_path / "moved").exists()


def test_the_lock_is_beside_the_session_file(tmp_path: Path) -> None:
    assert controller_lock(tmp_path / "s.jsonl") == tmp_path / ".s.jsonl.goalkeeper.lock"
