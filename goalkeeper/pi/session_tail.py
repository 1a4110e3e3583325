"""The newest part of a session's branch, kept in memory: grows at the leaf, is cut at the old end.

Knows nothing of files or of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goalkeeper.evidence.transcript import Entry, Transcript
from goalkeeper.pi.session_entries import Line
from goalkeeper.pi.session_tree import branch, edited, joined, shown_size

_JOIN_REACH = 64
_MAXIMUM_TEXT = 8 * 1024 * 1024


class Demand:
    """Says, walking a branch from the leaf, when enough of it was seen.

    Enough is `characters` of shown text and the calls of all results in it; the search for a call that is missing, and
    the text that is held, are bounded.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._shown = 0
        self._held = 0
        self._reach = 0
        self._open: set[str] = set()

    def take(self, entry: Entry | None) -> bool:
        """Count one more line; say whether that is enough."""
        if entry is not None:
            self._shown += shown_size(entry)
            self._held += len(entry.text)
            if entry.call_id is not None:
                self._open.add(entry.call_id)
            self._open.difference_update(call.call_id for call in entry.calls)
        if self._held > _MAXIMUM_TEXT:
            return True
        if self._shown < self._characters:
            return False
        self._reach += 1
        return not self._open or self._reach > _JOIN_REACH


@dataclass(frozen=True, slots=True)
class View:
    """A part of a branch up to its leaf.

    Attributes:
        lines: oldest first.
        complete: there is as much as was asked for, or as the session has.
        earlier: how many shown entries come before.
    """

    lines: Sequence[Line]
    complete: bool
    earlier: int


class Tail:
    """The lines that are held, by id, and how deep in their branch they are."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._depth: dict[str, int] = {}
        self._broken_at: str | None = None
        self._exact = True

    def fill(self, lines: Sequence[Line], *, before: int, exact: bool, broken_at: str | None = None) -> None:
        """Replace what is held.

        Args:
            lines: a contiguous part of one branch, oldest first.
            before: how many shown entries come before it.
            exact: False when `before` is an estimate.
            broken_at: a parent that the session does not hold: the branch begins behind it.
        """
        self._lines = {line.id: line for line in lines}
        self._depth = {}
        self._exact = exact
        self._broken_at = broken_at
        for line in lines:
            before += line.entry is not None
            self._depth[line.id] = before

    def add(self, line: Line) -> None:
        """Add a new line, if it continues what is held or is a root."""
        above = 0 if line.parent is None else self._depth.get(line.parent)
        if above is not None:
            self._lines[line.id] = line
            self._depth[line.id] = above + (line.entry is not None)

    def view(self, leaf: str, characters: int) -> View:
        """Return the newest part of the branch that ends at `leaf`; empty and incomplete if it is not held."""
        lines, missing = branch(self._lines, leaf)
        demand = Demand(characters)
        for index in range(len(lines) - 1, -1, -1):
            if demand.take(lines[index].entry):
                return self._from(lines[index:], complete=True)
        return self._from(lines, complete=missing is None or missing == self._broken_at)

    def _from(self, lines: Sequence[Line], *, complete: bool) -> View:
        earlier = self._depth[lines[0].id] - (lines[0].entry is not None) if lines else 0
        return View(lines, complete, earlier)

    def transcript(self, view: View, leaf: str) -> Transcript:
        """Return a view as a transcript, and drop from memory what is older."""
        self.fill(view.lines, before=view.earlier, exact=self._exact, broken_at=self._broken_at)
        entries = joined([line.entry for line in view.lines if line.entry is not None])
        return Transcript(entries, edited(view.lines), view.earlier, self._exact or view.earlier == 0, leaf)
