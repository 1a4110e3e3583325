from __future__ import annotations

import json
from pathlib import Path

from goalkeeper.bench.session_file import append_run, write_session
from goalkeeper.evidence.window import build_window
from goalkeeper.pi.session_log import SessionLog


def test_the_file_has_the_size_that_was_asked_for_and_one_chain_of_entries(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    runs = write_session(path, 50_000)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert 50_000 <= path.stat().st_size < 53_000
    assert len(lines) == 1 + runs * 4
    parents = [line["parentId"] for line in lines[1:]]
    assert parents == [None, *(line["id"] for line in lines[1:-1])]


def test_a_reader_finds_the_run_that_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    runs = write_session(path, 50_000)
    log = SessionLog(path)
    before = build_window(log.read(20_000))
    append_run(path, runs)
    after = build_window(log.read(20_000))
    assert f"Part {runs} passes." not in before.text
    assert f"Part {runs} passes." in after.text
