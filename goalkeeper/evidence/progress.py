"""What a run's results say, as one digest that is the same when nothing new came out of a run.

Knows nothing of goals or of how many runs in a row may say the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from goalkeeper.evidence.text import fold
from goalkeeper.evidence.transcript import Entry

# What differs between two runs of the same thing though nothing changed; the order matters.
_FOLDED = (
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b(?:\s?[AP]M\b)?"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (
        re.compile(
            r"(?<![\w.])\d+(?:[.,]\d+)?\s?"
            r"(?:ns|[µμu]s|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?|milliseconds?)\b(?![\w-])"
        ),
        "<duration>",
    ),
    (re.compile(r"/tmp/[\w./-]+|\bpi-bash-[0-9a-f]+\.log"), "<temporary>"),
    (re.compile(r"\b(?:pid|PID)[ =:]*\d+"), "<pid>"),
    (re.compile(r"\b\d{13}\b|\b1\d{9}\b"), "<time>"),
)


def evidence_digest_of_run(entries: Iterable[Entry]) -> str:
    """Return a digest (sha-256, hex) of the commands and results of a run, an empty string if it has none.

    Durations, times of day, addresses and temporary names are folded, so that running the same test twice without a
    change gives the same digest. The worker's words do not count: talk is no progress.

    Args:
        entries: the entries of one run.
    """
    digest = hashlib.sha256()
    entries = tuple(entries)
    # Outside a git checkout nothing else tells one edit from another: both answer that it succeeded.
    edits = {call.call_id: call.arguments for entry in entries for call in entry.calls if call.path is not None}
    results = [entry for entry in entries if entry.kind in ("tool_result", "shell") and not entry.excluded]
    for entry in results:
        state = f"{entry.kind} {entry.tool_name} {entry.is_error} {entry.exit_code} {entry.cancelled}"
        for text in (state, fold(entry.command or edits.get(entry.call_id or "", "")), _steady(entry.text)):
            digest.update(text.encode())
            digest.update(b"\0")
    return digest.hexdigest() if results else ""


def _steady(text: str) -> str:
    text = fold(text)
    for pattern, word in _FOLDED:
        text = pattern.sub(word, text)
    return text
