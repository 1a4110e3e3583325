"""Foreign text in rows of a terminal: measured, cut and wrapped so that no row runs into the next.

Knows nothing of goals, colours or streams; standard library only.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal

from goalkeeper.evidence.text import clean, cut, fold

Style = Literal["", "good", "bad", "warn", "dim", "head"]

GUTTER: Final = "│ "
"""Stands before every row that others may have begun, so that none of them can pass for a line of ours."""

LONGEST: Final = 4_000
"""Characters of a text that are shown; the journal has all of them."""

MOST_ROWS: Final = 40
"""Rows of a text that are shown."""

_WORD = re.compile(r"\s*\S+")
_WIDE_FROM = 0x1F000
_CIRCLED_NUMBERS = range(0x3248, 0x3250)  # two cells wide in some terminals, though not by their property


@dataclass(frozen=True, slots=True)
class Line:
    """One thing to show.

    Attributes:
        text: what is said; what others wrote in it is made harmless by `rows`.
        mark: one sign before it.
        style: of the mark, or of the whole line when there is no mark.
        indent: cells before it.
        quote: others wrote it: the first row, too, stands behind `GUTTER`.
        one_row: it is cut to one row.
        tail: of one row: what stays when the text is cut.
    """

    text: str
    mark: str = ""
    style: Style = ""
    indent: int = 0
    quote: bool = False
    one_row: bool = False
    tail: str = ""


def rows(line: Line, width: int | None) -> list[str]:
    """Return a line as rows without control characters.

    Args:
        line: what to show.
        width: cells of a row, None where rows may be of any length.
    """
    first = " " * line.indent + (f"{line.mark} " if line.mark else "")
    if line.one_row:
        text = fold(line.text)
        if width is not None:
            text = fit(text, width - cells(first) - cells(line.tail))
            return [fit(first + text + line.tail, width)]
        return [first + fit(text, LONGEST) + line.tail]
    later = " " * cells(first) + GUTTER
    first = later if line.quote else first
    shown = _lines_of(line.text)
    if width is not None:
        shown = [row for text in shown for row in wrap(text, max(width - cells(later), 1))]
    shown = _middle_out(shown or [""])
    return [(later if number else first) + row for number, row in enumerate(shown)]


def cells(text: str) -> int:
    """Return how many cells a text takes at most, whatever terminal shows it."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def fit(text: str, width: int) -> str:
    """Return a text of one row, cut with an ellipsis where it is wider than `width` cells."""
    if cells(text) <= width:
        return text
    return _head(text, width - 1) + "…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """Return one line of text as rows of at most `width` cells, broken between words where that is possible."""
    found: list[str] = []
    row = ""
    for word in _WORD.findall(text):
        if row and cells(row) + cells(word) > width:
            found.append(row)
            row, word = "", word.lstrip()
        while not row and cells(word) > width:
            head = _head(word, width) or word[0]
            found.append(head)
            word = word[len(head) :]
        row += word
    return [*found, row] if row or not found else found


def _lines_of(text: str) -> list[str]:
    text, _ = cut(clean(text).strip("\n"), LONGEST)
    return [line.expandtabs(4).rstrip() for line in text.split("\n")]


def _middle_out(shown: list[str]) -> list[str]:
    if len(shown) <= MOST_ROWS:
        return shown
    half = MOST_ROWS // 2
    return [*shown[:half], f"[… {len(shown) - 2 * half} rows missing here …]", *shown[-half:]]


def _head(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _cells_of(character)
        if used > width:
            return text[:index]
    return text


def _cells_of(character: str) -> int:
    # Terminals disagree about joined emoji and combining signs: counting them all can only leave a gap.
    code = ord(character)
    if code < 0x1100:
        return 1
    wide = unicodedata.east_asian_width(character) in "WF" or code >= _WIDE_FROM or code in _CIRCLED_NUMBERS
    return 2 if wide else 1
