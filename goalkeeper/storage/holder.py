"""Tells who holds a session, without holding it: the read side of the locks, standard library only.

Knows nothing of filelock, so that a status command stays fast. A lock is the kernel's (flock) and ends with its
process; what stands in a lock file is a note for people and for the control socket, believed only while it is held.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goalkeeper.errors import PrerequisiteError
from goalkeeper.storage.paths import controller_lock

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    _HAS_FLOCK = False
else:
    _HAS_FLOCK = hasattr(fcntl, "flock")

_NOTE_LIMIT = 65536
_CONTENTION = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK)


@dataclass(frozen=True, slots=True)
class HolderInfo:
    """What a live controller says of itself.

    Attributes:
        pid: its process id, 0 when it did not say (yet).
        command: its command line, empty when unknown.
        started: when it took the session, seconds since the epoch, 0 when unknown.
        control: path of its control socket, empty when there is none (yet).
        note: all that it wrote, with these fields in it.
    """

    pid: int = 0
    command: str = ""
    started: float = 0.0
    control: str = ""
    note: Mapping[str, Any] = field(default_factory=dict)


def holder(session_file: str | Path) -> HolderInfo | None:
    """Return what the live controller of a session says of itself, None when there is no live controller.

    Raises:
        PrerequisiteError: the file system or platform has no flock.
    """
    path = controller_lock(session_file)
    return read_note(path) if is_held(path) else None


def is_held(path: Path) -> bool:
    """Tell whether another open file holds the lock, by a shared try-lock that is given back at once.

    Raises:
        PrerequisiteError: the file system or platform has no flock.
    """
    require_flock()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _CONTENTION:
            return True
        raise no_flock(path, error) from error
    finally:
        os.close(fd)
    return False


def read_note(path: Path) -> HolderInfo:
    """Return what stands in a lock file; whatever can't be read is left at its default."""
    try:
        with path.open("rb") as file:
            note = json.loads(file.read(_NOTE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return HolderInfo()
    if not isinstance(note, dict):
        return HolderInfo()
    pid, command, started, control = (note.get(key) for key in ("pid", "command", "started", "control"))
    return HolderInfo(
        pid=pid if isinstance(pid, int) else 0,
        command=command if isinstance(command, str) else "",
        started=float(started) if isinstance(started, int | float) else 0.0,
        control=control if isinstance(control, str) else "",
        note=note,
    )


def require_flock() -> None:
    """Check the platform.

    Raises:
        PrerequisiteError: it has no flock.
    """
    if not _HAS_FLOCK:  # pragma: no cover - Windows
        raise PrerequisiteError(
            "This platform has no flock, so two controllers could run one session.", "Use Linux, macOS or WSL."
        )


def no_flock(path: Path, error: OSError) -> PrerequisiteError:
    """Return the refusal for a file system that can't lock."""
    return PrerequisiteError(
        f"{path} can't be locked: {error.strerror or error}.",
        "The sessions' folder must be writable and on a file system with flock; without a lock nothing is run.",
    )
