"""The driver's store over the state folder: state, journal and stamps of one session.

Knows nothing of effects. An ephemeral session stores nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from goalkeeper.core.records import Record
from goalkeeper.core.state import GoalState, SessionState
from goalkeeper.core.verdict import Stamp
from goalkeeper.runtime.clock import Clock
from goalkeeper.storage.journal import Journal, StampFile
from goalkeeper.storage.paths import StatePaths, ensure_folder, session_id
from goalkeeper.storage.schema import SchemaError, from_document, record_document, to_document
from goalkeeper.storage.seal import Finding, Seal
from goalkeeper.storage.state_file import StateFile


class StateStore:
    """What is kept of one session.

    Args:
        cwd: the session's folder.
        session_file: the owner; None for an ephemeral session, of which nothing is kept.
        clock: for the time of saving.
        warn: told once of each kind of trouble; the work goes on.
    """

    def __init__(self, cwd: str, session_file: str | None, clock: Clock, warn: Callable[[str], None]) -> None:
        self._owner = session_file
        self._paths = StatePaths(Path(cwd))
        self._clock = clock
        self._warn = warn
        self._file = StateFile(cwd, session_file, warn) if session_file else None
        self._journal = Journal(cwd, session_file, self._lesser) if session_file else None
        self._stamps = StampFile(cwd, session_file, self._lesser) if session_file else None
        self._seal = Seal(session_file) if session_file else None
        self._held: list[str] = []
        self._over = False

    def load(self) -> SessionState:
        """Return what is stored of the session, an empty state if there is nothing that can be read."""
        document = self._file.load() if self._file else None
        if document is None or self._file is None:
            return SessionState()
        try:
            return from_document(document)
        except SchemaError as error:
            path = self._file.path
            self._warn(f"The state in {path} can't be used: {error}; it is set aside as {self._file.set_aside()}.")
            return SessionState()

    def save(self, state: SessionState) -> None:
        """Save the state durably; the file goes away when goal and loop are both cleared."""
        if self._file and self._owner:
            document = to_document(state, self._owner, saved_at=self._clock.now())
            self._over = document is None
            if self._seal:
                self._seal.put(state.goal)
            saved = self._file.delete() if document is None else self._file.save(document)
            self.tidy()
            # One cause, one warning: what keeps the state from being saved keeps the journal from being written, too.
            for text in self._held if saved else ():
                self._warn(text)
            self._held.clear()

    def seal_of(self, goal: GoalState) -> Finding:
        """Say whether a loaded goal is as it was saved; see `goalkeeper.storage.seal`."""
        return self._seal.check(goal) if self._seal else "intact"

    def tidy(self) -> None:
        """Remove what goes with the state, if that is gone; a look at the tree that was under way may bring it back."""
        if self._over and self._owner:
            shutil.rmtree(self._paths.trees_of(session_id(self._owner)), ignore_errors=True)

    def trees(self) -> Path | None:
        """Return the folder for the names behind fingerprints, which goes with the state; None if there can be none."""
        if self._owner is None:
            return None
        try:
            ensure_folder(self._paths)
        except OSError:
            return None  # told when the state is saved
        return self._paths.trees_of(session_id(self._owner))

    def _lesser(self, text: str) -> None:
        """Hold a warning about journal or stamps until the next saving tells whether the state has the same trouble."""
        self._held.append(text)

    def journal(self, record: Record) -> None:
        """Append a record to the journal; single tool calls are shown, not kept."""
        if self._journal and record.event != "tool":
            document = record_document(record)
            for cited in document.get("evidence", ()):
                cited.pop("command", None)  # the session holds it; the journal holds no text of the transcript
            self._journal.append(document)

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the stamps that were made in this session so far."""
        return self._stamps.load() if self._stamps else {}

    def add_stamp(self, key: str, stamp: Stamp) -> None:
        """Keep a stamp."""
        if self._stamps:
            self._stamps.append(key, stamp)
