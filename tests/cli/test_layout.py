"""Whatever a text holds, its rows hold no control characters, stay within their width and never look like ours."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalkeeper.cli.layout import GUTTER, LONGEST, MOST_ROWS, Line, cells, fit, rows, wrap

ALARMING = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from("\x1b\r\n\t\x07\x08\x9b\u2028\u202e\u200d\ufe0f\u0301│✔◎ []0123456789;JKHm表🏳👩🏽"),
    )
)
WIDTHS = st.integers(min_value=20, max_value=120)


def harmless(row: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in "\u202e\u2066\u200f" for c in row)


@given(ALARMING, WIDTHS, st.booleans(), st.integers(0, 4), st.sampled_from(["", "✓"]))
def test_rows_stay_within_their_width_and_hold_nothing_that_moves(
    text: str, width: int, quote: bool, indent: int, mark: str
) -> None:
    for row in rows(Line(text, mark, indent=indent, quote=quote), width):
        assert harmless(row)
        assert cells(row) <= width


@given(ALARMING, WIDTHS, st.sampled_from(["", " · exit 0 · 2.1s"]))
def test_one_row_is_one_row_and_keeps_its_tail(text: str, width: int, tail: str) -> None:
    found = rows(Line(text, "✓", indent=2, one_row=True, tail=tail), width)
    assert len(found) == 1
    assert harmless(found[0])
    assert cells(found[0]) <= width
    assert found[0].startswith("  ✓ ")
    assert found[0].endswith(tail)


@given(ALARMING, WIDTHS | st.none())
def test_only_the_first_row_of_a_line_stands_without_a_gutter(text: str, width: int | None) -> None:
    first, *later = rows(Line(text, "!", indent=2), width)
    assert first.startswith("  ! ")
    assert all(row.startswith(f"    {GUTTER}") for row in later)
    assert all(row.startswith(f"  {GUTTER}") for row in rows(Line(text, indent=2, quote=True), width))


@given(ALARMING)
def test_without_a_width_a_text_keeps_its_lines(text: str) -> None:
    assert all(harmless(row) for row in rows(Line(text, quote=True), None))


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" ")), WIDTHS)
def test_wrapping_loses_nothing_but_white_space(text: str, width: int) -> None:
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


def test_words_are_kept_whole_where_they_fit() -> None:
    assert wrap("    one two three", 9) == ["    one", "two three"]
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert wrap("", 10) == [""]


@pytest.mark.parametrize(
    ("text", "width"), [("表表", 4), ("e\u0301", 2), ("👩🏽", 4), ("🏳\ufe0f", 3), ("㉈", 2), ("✔·", 2)]
)
def test_cells_are_never_counted_too_low(text: str, width: int) -> None:
    assert cells(text) == width


def test_a_wide_sign_is_never_cut_in_half() -> None:
    assert fit("表表表", 6) == "表表表"
    assert fit("表表表", 5) == "表表…"
    assert fit("表表表", 4) == "表…"
    assert fit("anything", 0) == ""


def test_a_long_text_keeps_its_head_and_its_tail() -> None:
    found = rows(Line("\n".join(str(n) for n in range(500)), quote=True), 80)
    assert len(found) == MOST_ROWS + 1
    assert found[0] == f"{GUTTER}0"
    assert found[-1] == f"{GUTTER}499"
    assert "rows missing here" in found[MOST_ROWS // 2]
    longest = rows(Line("x" * 3 * LONGEST, quote=True), None)
    assert sum(map(len, longest)) < LONGEST + 200


def test_tabs_become_spaces() -> None:
    assert rows(Line("a\tb", quote=True), None) == [f"{GUTTER}a   b"]
