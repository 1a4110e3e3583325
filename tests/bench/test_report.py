from __future__ import annotations

from goalkeeper.bench.case import Row
from goalkeeper.bench.report import page


def test_the_page_shows_each_row_with_its_reference_ratio_and_target() -> None:
    text = page([Row("reading", 12.34, "ms", 1234.5, "the whole file", 0.05, "n = 5")], [])
    assert "| reading | 12.3 ms | the whole file: 1,234 ms | 0.01 | ≤ 0.05 | yes |" in text
    assert "- reading: n = 5" in text
    assert "Not measured" not in text


def test_a_missed_target_and_a_case_that_could_not_run_are_shown() -> None:
    text = page([Row("reading", 2, "ms", 1, "limit", 1.0)], ["status: no command"])
    assert "**no**" in text
    assert "- status: no command" in text
