"""What may be done to foreign text before a person or an evaluator sees it.

Knows nothing of entries, windows or terminals.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"""
    (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)  # titles, links; closed, on one line
  | (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]   # colours, cursor
  | \x1b[ -/]*[0-~]                    # two-character escapes; of an unclosed title only its opening goes
    """,
    re.VERBOSE,
)
# C0 and C1 without \n and \t; what is invisible but changes order, meaning or breaks: bidirectional marks, zero-width
# spaces, separators, byte order mark, tag characters; and surrogates, which in Python stand alone.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    r"""Return the text without escape sequences and control characters; only `\n` and `\t` stay.

    A carriage return before a line feed is dropped, one that stands alone becomes a line feed, so that nothing is
    overwritten. Cleaning twice changes nothing.
    """
    if not _UNSEEN.search(text):
        return text
    text = text.replace("\r\n", "\n")
    text = _ESCAPES.sub("", text)
    text = text.replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _UNSEEN.sub("", text)


def fold(text: str) -> str:
    """Return the cleaned text with every run of white space as one space, trimmed."""
    return _SPACE.sub(" ", clean(text)).strip()


def one_line(text: str, width: int = 120) -> str:
    """Return the folded text, at most `width` code points long; a cut is marked by an ellipsis at the end."""
    line = fold(text)
    if len(line) <= width:
        return line
    return line[: max(width - 1, 0)] + "…" if width > 0 else ""


def cut(text: str, limit: int) -> tuple[str, bool]:
    """Keep head and tail of a text that is too long, with a marker that counts the missing characters.

    Args:
        text: any text.
        limit: code points that the result may have, marker included.

    Returns:
        The text, and whether it was cut.
    """
    if len(text) <= limit:
        return text, False
    marker = f"\n[… {len(text)} characters missing here …]\n"
    keep = limit - len(marker)
    if keep < 2:  # no room for a marker and both ends
        return text[-limit:] if limit > 0 else "", True
    head = keep // 2
    tail = keep - head
    # The number can only be shorter than the one the room was made for.
    marker = f"\n[… {len(text) - keep} characters missing here …]\n"
    return text[:head] + marker + text[-tail:], True
