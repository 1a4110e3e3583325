"""The state file of one session in a folder that it shares with others: load, save, delete.

Knows nothing of what goal and loop mean: it moves documents whose owner, goal and loop are at the top. Trouble with the
disk is told once and never stops the work; the newest document is kept in memory and written with the next save.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goalkeeper.storage.atomic import Replace, sync_folder, write_atomic
from goalkeeper.storage.locks import state_lock
from goalkeeper.storage.paths import StatePaths, ensure_folder, session_id
from goalkeeper.storage.read_state import StateDocument, read_one, read_states, same_session

Document = dict[str, Any]
Warn = Callable[[str], None]

KNOWN_FIELDS = {
    "": frozenset({"owner", "goal", "loop", "goalkeeper"}),
    "goal": frozenset(
        {"condition", "startedAt", "turns", "unknowns", "lastReason", "lastEvalAt", "lastVerdict", "evidence"}
        | {"pausedReason", "goalkeeper"}
    ),
    "loop": frozenset({"prompt", "intervalMs", "iterations", "lastTickAt", "goalkeeper"}),
}
"""Fields that the pi extension or we write. Others in the file are somebody's, and are kept."""

_IDENTITY = {"goal": "condition", "loop": "prompt"}  # another goal does not inherit the fields of the one before
_SETTLE_SECONDS = 0.05  # the pi extension writes in place: half a document may be one that is being written


class StateFile:
    """What is stored of one session.

    Args:
        cwd: the session's folder.
        session_file: absolute path of the session file, the owner; None for an ephemeral session, of which nothing is
            read or written.
        warn: told of trouble in one sentence, once until a save succeeds again.
        replace: puts a finished file in place, see `write_atomic`.
        settle: waits a moment before a document that can't be parsed is read again and then set aside.
    """

    def __init__(
        self,
        cwd: str | Path,
        session_file: str | Path | None,
        warn: Warn,
        *,
        replace: Replace = os.replace,
        settle: Callable[[], None] = lambda: time.sleep(_SETTLE_SECONDS),
    ) -> None:
        self._paths = StatePaths(Path(cwd))
        self._owner = None if session_file is None else str(Path(session_file).absolute())
        self._own = None if session_file is None else self._paths.state_of(session_id(session_file))
        self._warn = warn
        self._replace = replace
        self._settle = settle
        self._warned: set[str] = set()
        self._document: Document | None = None

    @property
    def document(self) -> Document | None:
        """The newest document, whether or not it could be written; None when there is none."""
        return self._document

    @property
    def path(self) -> Path:
        """The file that the session's state is in, or goes to."""
        return self._target(self._mine())

    def load(self) -> Document | None:
        """Return the session's document, None if it has none.

        State of others is left alone, except that of sessions whose file is gone: that is removed. A file that can't
        be parsed is set aside.

        Raises:
            PrerequisiteError: the file system can't lock.
        """
        self._document = None
        if self._owner is None or not self._paths.folder.is_dir():
            return None
        # What keeps it from being tidied is told when it keeps the state from being saved, too.
        with contextlib.suppress(OSError), state_lock(self._paths.state_lock):
            self._tidy()
        mine = self._mine()
        self._document = mine[0].document if mine else None
        return self._document

    def save(self, document: Document) -> bool:
        """Store a document durably and return whether it is on disk; unknown fields of the stored one stay.

        Raises:
            PrerequisiteError: the file system can't lock.
        """
        self._document = {"owner": self._owner} | document | {"owner": self._owner}
        return self._owner is not None and self._guarded("stored", self._save)

    def delete(self) -> bool:
        """Remove the session's state and return whether it is gone; that of others stays.

        Raises:
            PrerequisiteError: the file system can't lock.
        """
        self._document = None
        if self._owner is None or not self._paths.folder.is_dir():
            return True
        return self._guarded("removed", self._remove_mine)

    def set_aside(self) -> Path | None:
        """Move the session's state out of the way, for content that can't be understood; return where it is now."""
        moved: list[Path | None] = []
        with self._told("set aside"), state_lock(self._paths.state_lock):
            moved = [self._quarantine(state.path) for state in self._mine()]
        self._document = None
        return next((path for path in moved if path), None)

    # ---- under the lock -----------------------------------------------------------------------------------------

    def _save(self) -> None:
        assert self._document is not None
        mine = self._mine()
        target = self._target(mine)
        document = _merged(self._document, next((s.document for s in mine if s.path == target), None))
        content = json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
        write_atomic(target, content, replace=self._replace)
        for state in mine:
            if state.path != target:
                state.path.unlink(missing_ok=True)

    def _remove_mine(self) -> None:
        for state in self._mine():
            state.path.unlink(missing_ok=True)
        sync_folder(self._paths.folder)

    def _tidy(self) -> None:
        for state in read_states(self._paths.cwd):
            if state.problem == "corrupt" and state.path in (self._paths.state, self._own):
                self._set_corrupt_aside(state)
            elif state.problem == "unreadable" and state.path in (self._paths.state, self._own):
                self._tell(f"{state.path} can't be read and is left alone: {state.detail}.")
            elif state.orphaned and not self._owns(state):
                state.path.unlink(missing_ok=True)

    def _set_corrupt_aside(self, state: StateDocument) -> None:
        self._settle()
        again = read_one(state.path)
        if again is not None and again.problem == "corrupt":
            aside = self._quarantine(state.path)
            self._tell(f"{state.path} can't be parsed ({again.detail}); it is set aside as {aside}.")

    def _quarantine(self, path: Path) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%S")
        aside = path.with_name(f"{path.name}.corrupt-{stamp}")
        number = 1
        while os.path.lexists(aside):
            number += 1
            aside = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
        path.rename(aside)
        return aside

    # ---- whose is what ------------------------------------------------------------------------------------------

    def _owns(self, state: StateDocument) -> bool:
        return self._owner is not None and state.owner is not None and same_session(state.owner, self._owner)

    def _mine(self) -> list[StateDocument]:
        """Return the session's documents; the one in its own file first, which was written last if there are two."""
        mine = [state for state in read_states(self._paths.cwd) if self._owns(state)]
        return sorted(mine, key=lambda state: state.path != self._own)

    def _target(self, mine: list[StateDocument]) -> Path:
        assert self._own is not None
        if mine:
            return mine[0].path
        taken = read_one(self._paths.state)
        # Whatever is there and not ours to take stays: no owner, another one, or something that can't be read.
        return self._paths.state if taken is None or taken.orphaned else self._own

    # ---- trouble ------------------------------------------------------------------------------------------------

    def _guarded(self, what: str, action: Callable[[], None]) -> bool:
        done = False
        with self._told(what):
            ensure_folder(self._paths)
            with state_lock(self._paths.state_lock):
                action()
            self._warned.clear()
            done = True
        return done

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._tell(f"The state could not be {what} in {self._paths.folder}, and the work goes on: {_words(error)}.")

    def _tell(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)


def _merged(new: Document, old: Document | None) -> Document:
    """Return the new document with the unknown fields of the old one."""
    if old is None:
        return new
    merged = _with_unknown(new, old, KNOWN_FIELDS[""])
    for part, identity in _IDENTITY.items():
        ours, theirs = new.get(part), old.get(part)
        if isinstance(ours, dict) and isinstance(theirs, dict) and ours.get(identity) == theirs.get(identity):
            merged[part] = _with_unknown(ours, theirs, KNOWN_FIELDS[part])
    return merged


def _with_unknown(new: Document, old: Document, known: frozenset[str]) -> Document:
    return {**new, **{key: value for key, value in old.items() if key not in known and key not in new}}


def _words(error: OSError) -> str:
    return error.strerror or str(error)
