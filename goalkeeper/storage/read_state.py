"""Reads the state files of a folder and tells whose they are: the fast read side, standard library only.

Knows nothing of locks or of the meaning of goal and loop; changes nothing.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from goalkeeper.storage.holder import is_held
from goalkeeper.storage.paths import StatePaths, controller_lock, session_id

Problem = Literal[
    "",  # none
    "corrupt",  # not one JSON object, or parts of it have the wrong type
    "unreadable",  # not a regular file, or the system refuses to read it
]

_SIZE_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class StateDocument:
    """One state file.

    Attributes:
        path: where it is.
        owner: absolute path of the session file that it names, None when it names none.
        document: the whole document, None when there is a problem.
        problem: see `Problem`.
        detail: the problem in words.
    """

    path: Path
    owner: str | None = None
    document: dict[str, Any] | None = None
    problem: Problem = ""
    detail: str = ""

    @property
    def orphaned(self) -> bool:
        """The owning session file is gone, and no controller is about to create it."""
        if self.owner is None or not Path(self.owner).is_absolute():
            return False
        try:
            Path(self.owner).lstat()
        except (FileNotFoundError, NotADirectoryError):
            # pi creates the file with the first message; the state of a goal is saved before that.
            return not is_held(controller_lock(self.owner))
        except OSError:
            return False  # it may well be there
        return False


def read_states(cwd: str | Path) -> list[StateDocument]:
    """Return every state file of a folder, `state.json` first, then the others by name; empty when there is none."""
    paths = StatePaths(Path(cwd))
    try:
        names = sorted(path.name for path in paths.folder.iterdir())
    except OSError:
        return []
    others = [paths.folder / name for name in names if name.startswith("state-") and name.endswith(".json")]
    found = (read_one(path) for path in (paths.state, *others))
    return [state for state in found if state is not None]


def read_one(path: Path) -> StateDocument | None:
    """Return a state file, None when it is not there."""
    try:
        raw = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return StateDocument(path, problem="unreadable", detail=error.strerror or str(error))
    try:
        document = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return StateDocument(path, problem="corrupt", detail=str(error))
    fault = _fault(document)
    if fault:
        return StateDocument(path, problem="corrupt", detail=fault)
    return StateDocument(path, owner=document.get("owner") or None, document=document)


def state_for(session_file: str | Path, states: Sequence[StateDocument]) -> StateDocument | None:
    """Return the state that a session owns, None when it owns none."""
    mine = [state for state in states if state.owner is not None and same_session(state.owner, session_file)]
    own_name = f"state-{session_id(session_file)}.json"
    # After a crash between two moves there may be two: the session's own file is the one it wrote last.
    return next((state for state in mine if state.path.name == own_name), mine[0] if mine else None)


def same_session(one: str | Path, other: str | Path) -> bool:
    """Tell whether two absolute paths name one session file, as they stand or behind symbolic links."""
    first, second = Path(one), Path(other)
    if not (first.is_absolute() and second.is_absolute()):
        return False
    return first == second or os.path.realpath(first) == os.path.realpath(second)


def _read(path: Path) -> bytes:
    # Not through a link: what the worker can point elsewhere is not ours. Not from a pipe either, which would block.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as file:
        if not path.is_file():
            raise OSError(errno.EINVAL, "not a regular file")
        raw = file.read(_SIZE_LIMIT + 1)
    if len(raw) > _SIZE_LIMIT:
        raise OSError(errno.EFBIG, f"larger than {_SIZE_LIMIT} bytes")
    return raw


def _fault(document: object) -> str:
    if not isinstance(document, dict):
        return "not a JSON object"
    if not isinstance(document.get("owner"), str | None):
        return "owner is not a text"
    for part in ("goal", "loop"):
        if not isinstance(document.get(part), dict | None):
            return f"{part} is not an object"
    return ""
