"""The tree of session lines: the branch from a leaf, what was edited on it, which result answers which call.

Knows nothing of files or of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from goalkeeper.evidence.transcript import Entry
from goalkeeper.pi.session_entries import Line

SHOWN_PER_ENTRY = 4000


def branch(lines: Mapping[str, Line], leaf: str | None) -> tuple[list[Line], str | None]:
    """Walk from `leaf` towards the root.

    Returns:
        The lines that are there, oldest first, and the id of the first one that is missing (None at a root). A
        broken chain, or one that bites its own tail, ends there.
    """
    found: list[Line] = []
    seen: set[str] = set()
    wanted = leaf
    while wanted is not None and wanted not in seen:
        line = lines.get(wanted)
        if line is None:
            return found[::-1], wanted
        seen.add(wanted)
        found.append(line)
        wanted = line.parent
    return found[::-1], None


def edited(lines: Iterable[Line]) -> frozenset[str]:
    """Return the ids that a context edit among `lines` hides or replaces; what the edit puts there does not matter."""
    return frozenset(line.edits for line in lines if line.edits is not None)


def shown_size(entry: Entry | None) -> int:
    """Return how many characters an entry adds to a window."""
    if entry is None:
        return 0
    calls = sum(len(call.name) + len(call.arguments) for call in entry.calls)
    return min(SHOWN_PER_ENTRY, len(entry.text) + calls + len(entry.command or ""))


def joined(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return `entries`, oldest first, with each result joined to the latest call before it that has its id.

    Of two calls of one message with the same id, nobody can tell which one a result answers: it gets no command.
    """
    calls: dict[str, tuple[str, str | None]] = {}
    result: list[Entry] = []
    for entry in entries:
        ids = [call.call_id for call in entry.calls]
        for call in entry.calls:
            calls[call.call_id] = (entry.id, call.command if ids.count(call.call_id) == 1 else None)
        if entry.kind == "tool_result" and entry.call_id in calls:
            call_entry, command = calls[entry.call_id]
            entry = replace(entry, call_entry=call_entry, command=command)
        result.append(entry)
    return tuple(result)
