from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench import runner
from goalkeeper.bench.case import Bench, Case, NotMeasured, Row
from goalkeeper.bench.probe import probe


def measured(bench: Bench) -> Sequence[Row]:
    assert not list(bench.folder.iterdir())
    return [Row("fine", 1, "ms", 2, "limit", 1.0)]


def absent(bench: Bench) -> Sequence[Row]:
    raise NotMeasured("no such program")


def test_a_case_that_can_not_run_does_not_stop_the_others() -> None:
    rows, missing = runner.measure([Case("gone", absent), Case("there", measured)])
    assert [row.name for row in rows] == ["fine"]
    assert missing == ["gone: no such program"]


def test_the_page_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    output = tmp_path / "page.md"
    assert runner.main(["--only", "evaluator", "--output", str(output)]) == 0
    assert "evaluator request after" in output.read_text(encoding="utf-8")


def test_a_probe_measures_time_and_memory_of_the_code_alone() -> None:
    probed = probe("data = b'x' * given['size']\nresult['length'] = len(data)", setup="import decimal", size=30_000_000)
    assert probed.result == {"length": 30_000_000}
    assert 25 < probed.grown_mib < 60
    assert probed.seconds < probe("sum(range(5_000_000))").seconds
