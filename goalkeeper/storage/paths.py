"""Where goal and loop state, its history and its locks live.

Knows nothing of what is in those files; creates nothing but the state folder.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

STATE_FOLDER = ".pi-goal"

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEADER_LIMIT = 65536


@dataclass(frozen=True, slots=True)
class StatePaths:
    """The files of one working folder.

    Attributes:
        cwd: the working folder of the session.
    """

    cwd: Path

    @property
    def folder(self) -> Path:
        """The state folder."""
        return self.cwd / STATE_FOLDER

    @property
    def state(self) -> Path:
        """The state file that the pi extension reads, too."""
        return self.folder / "state.json"

    @property
    def state_lock(self) -> Path:
        """The lock that is held while a state file is read and replaced."""
        return self.folder / ".state.lock"

    @property
    def journal(self) -> Path:
        """The append-only history."""
        return self.folder / "journal.jsonl"

    def state_of(self, session: str) -> Path:
        """The state file of a session that can't have `state`."""
        return self.folder / f"state-{session}.json"

    def stamps_of(self, session: str) -> Path:
        """The stamps of a session's results."""
        return self.folder / f"stamps-{session}.jsonl"

    def trees_of(self, session: str) -> Path:
        """The folder with the file names behind the fingerprints of a session's goal."""
        return self.folder / f"trees-{session}"


def ensure_folder(paths: StatePaths) -> None:
    """Create the state folder, private to the user and invisible to git; leave an existing one as it is.

    Raises:
        OSError: it can't be created.
    """
    if paths.folder.is_dir():
        return
    # Without its parents: a project that was moved or deleted meanwhile must not come back as an empty folder.
    paths.folder.mkdir(mode=0o700, exist_ok=True)
    # Advisory: without it the folder merely shows up in the user's git status.
    with contextlib.suppress(OSError):
        (paths.folder / ".gitignore").write_text("*\n")


def session_id(session_file: str | Path) -> str:
    """Return a session's id, fit for a file name.

    pi names session files `<timestamp>_<id>.jsonl`. For another name the header's id is used, and for a file without a
    readable header its name.
    """
    path = Path(session_file)
    _, separator, tail = path.stem.rpartition("_")
    for candidate in (tail if separator else "", _header_id(path)):
        if _SAFE_ID.fullmatch(candidate):
            return candidate
    return re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)[:128].lstrip(".-") or "session"


def controller_lock(session_file: str | Path) -> Path:
    """The lock of the one controller of a session, beside the session file."""
    path = _real(session_file)
    return path.with_name(f".{path.name}.goalkeeper.lock")


def session_files(session_file: str | Path | None) -> tuple[Path, ...]:
    """The files that a session that is worked on writes beside the work: its own and its lock. None has none."""
    return () if session_file is None else (Path(session_file), controller_lock(session_file))


def worker_lock_path(key: str | Path) -> Path:
    """The lock that a pi process holds for as long as it lives, by the key that its controller gave it."""
    path = _real(key)
    return path.with_name(f".{path.name}.worker.lock")


def _real(session_file: str | Path) -> Path:
    # One session, one lock, by whatever path it is named.
    return Path(session_file).resolve()


def _header_id(path: Path) -> str:
    try:
        with path.open("rb") as file:
            header = json.loads(file.readline(_HEADER_LIMIT))
    except (OSError, ValueError):
        return ""
    found = header.get("id") if isinstance(header, dict) else None
    return found if isinstance(found, str) else ""
