import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalkeeper.evidence.text import clean, cut, fold, one_line

ANY_TEXT = st.text(
    st.one_of(
        st.sampled_from("\x1b[];m\r\n\t\x07\x9b\x9d\x9c\\0\u202e\u2066\ufeff\u200b\U000e0041"),
        st.characters(),
        st.characters(categories=["Cs"]),
    ),
    max_size=300,
)


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2K\x1b[1Gdone", "done"),
        ("\x1b]8;;https://example.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x9b31mred", "red"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("dos\r\nlines", "dos\nlines"),
        ("10%\r20%\r100%", "10%\n20%\n100%"),
        ("bell\x07, back\x08space, null\x00", "bell, backspace, null"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("hidden\U000e0069\U000e0067 words", "hidden words"),
        ("lone \ud83d surrogate", "lone  surrogate"),
        ("one\u2028two\u2029three", "one\ntwo\nthree"),
        ("👩\u200d💻 ünïcode", "👩\u200d💻 ünïcode"),
    ],
)
def test_only_what_a_reader_can_see_is_left(given_text: str, cleaned: str) -> None:
    assert clean(given_text) == cleaned


def test_an_unclosed_escape_hides_nothing() -> None:
    assert "1 failed" in clean("\x1b]0;all fine\n1 failed\n")
    assert "1 failed" in clean("\x1bP1 failed")


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode("utf-8")
    assert not set(once) & (set(map(chr, range(32))) - {"\n", "\t"})


@given(st.text(string.printable, max_size=200))
def test_a_folded_text_is_one_trimmed_line(text: str) -> None:
    folded = fold(text)
    assert folded == " ".join(folded.split())


def test_one_line_marks_what_is_missing() -> None:
    assert one_line("a\n b\tc", 10) == "a b c"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abc", 0) == ""


def test_a_cut_text_keeps_both_ends_and_counts_what_is_missing() -> None:
    text = "HEAD" + "x" * 10_000 + "TAIL"
    short, was_cut = cut(text, 1_000)
    assert was_cut
    assert short.startswith("HEAD") and short.endswith("TAIL")
    head, marker, tail = short.partition("\n[… ")
    missing = int(tail.split(" ")[0])
    kept = len(head) + len(tail.split("…]\n", 1)[1])
    assert marker and missing == len(text) - kept


def test_a_text_that_fits_exactly_is_not_cut() -> None:
    assert cut("abc", 3) == ("abc", False)
    assert cut("abcd", 3) == ("bcd", True)
    assert cut("abcd", 0) == ("", True)


@given(st.text(max_size=400), st.integers(0, 400))
def test_a_cut_never_exceeds_its_limit_nor_splits_a_code_point(text: str, limit: int) -> None:
    short, was_cut = cut(text, limit)
    assert len(short) <= max(limit, 0) or not was_cut
    assert was_cut == (len(text) > limit)
    if was_cut and "characters missing" not in short:
        assert text.endswith(short)
