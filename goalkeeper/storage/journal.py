"""Append-only files of one JSON object a line: the journal of a folder and the stamps of a session.

Knows nothing of what the records mean. A record is one write to a file opened for appending, so several processes can
append; a line that a crash cut short is skipped by readers and ended by the next writer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any

from goalkeeper.core.verdict import Stamp
from goalkeeper.storage.paths import StatePaths, ensure_folder, session_id

Record = dict[str, Any]
Warn = Callable[[str], None]

STAMPS_KEPT = 5000
"""Stamps that are read back: older results are no longer in an evaluator's window."""

_BLOCK = 64 * 1024
_LINE_LIMIT = 1024 * 1024


class Journal:
    """The journal of a folder, as one session writes it.

    Args:
        cwd: the session's folder.
        session_file: the session; its id stands in every record. None for an ephemeral one: nothing is written.
        warn: told once when a record can't be written; the work goes on.
    """

    def __init__(self, cwd: str | Path, session_file: str | Path | None, warn: Warn) -> None:
        paths = StatePaths(Path(cwd))
        self._session = None if session_file is None else session_id(session_file)
        self._appender = _Appender(paths, paths.journal, warn)

    def append(self, record: Mapping[str, Any], *, durable: bool = False) -> bool:
        """Append a record and return whether it was written.

        Args:
            record: JSON values; `at` (milliseconds) and `goal` (id) are what `read_journal` selects by.
            durable: wait until the disk has it.
        """
        if self._session is None:
            return False
        return self._appender.append({**record, "session_id": self._session}, durable=durable)


class StampFile:
    """The stamps of one session's results; they survive a restart.

    Args:
        cwd: the session's folder.
        session_file: the session; None for an ephemeral one: nothing is read or written.
        warn: told once when a stamp can't be written.
    """

    def __init__(self, cwd: str | Path, session_file: str | Path | None, warn: Warn) -> None:
        paths = StatePaths(Path(cwd))
        self._path = None if session_file is None else paths.stamps_of(session_id(session_file))
        self._appender = None if self._path is None else _Appender(paths, self._path, warn)

    def append(self, key: str, stamp: Stamp) -> bool:
        """Keep a stamp under a tool call id or entry id, and return whether it was written."""
        if self._appender is None:
            return False
        record = {"key": key, "tree": stamp.tree, "exit_code": stamp.exit_code, "overlapped": stamp.overlapped}
        return self._appender.append(record, durable=False)

    def load(self) -> dict[str, Stamp]:
        """Return the newest stamps, at most `STAMPS_KEPT`, oldest first; the last one of a key counts."""
        newest: dict[str, Stamp] = {}
        for record in read_backwards(self._path) if self._path else ():
            key, tree, exit_code = record.get("key"), record.get("tree"), record.get("exit_code")
            if isinstance(key, str) and isinstance(tree, str | None) and isinstance(exit_code, int | None):
                newest.setdefault(key, Stamp(tree, exit_code, record.get("overlapped") is not False))
            if len(newest) >= STAMPS_KEPT:
                break
        return dict(reversed(newest.items()))


def read_journal(
    cwd: str | Path, *, since: int | None = None, goal: str | None = None, session: str | None = None
) -> Iterator[Record]:
    """Yield the journal's records, newest first, reading the file from its end.

    Args:
        cwd: the folder.
        since: only records whose `at` is not before this (milliseconds since the epoch); reading stops at the first
            older one.
        goal: only records of the goal with this id.
        session: only records of the session with this id.
    """
    for record in read_backwards(StatePaths(Path(cwd)).journal):
        at = record.get("at")
        if since is not None and isinstance(at, int) and at < since:
            return
        if goal is not None and record.get("goal") != goal:
            continue
        if session is not None and record.get("session_id") != session:
            continue
        yield record


def read_backwards(path: Path) -> Iterator[Record]:
    """Yield the objects of a file of JSON lines, last first; what is no object is skipped, no file is empty."""
    for line in _lines_backwards(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _lines_backwards(path: Path) -> Iterator[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    if not S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return
    with os.fdopen(fd, "rb") as file:
        position = file.seek(0, os.SEEK_END)
        rest = b""
        while position > 0:
            begin = max(0, position - _BLOCK)
            file.seek(begin)
            rest = file.read(position - begin) + rest
            position = begin
            head, *lines = rest.split(b"\n")
            yield from reversed(lines)
            rest = head if len(head) <= _LINE_LIMIT else b""
        yield rest


class _Appender:
    def __init__(self, paths: StatePaths, path: Path, warn: Warn) -> None:
        self._paths = paths
        self._path = path
        self._warn = warn
        self._warned = False

    def append(self, record: Mapping[str, Any], *, durable: bool) -> bool:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        try:
            ensure_folder(self._paths)
            self._write(line, durable)
        except OSError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"{self._path} can't be written, and the work goes on: {error.strerror or error}.")
            return False
        self._warned = False
        return True

    def _write(self, line: bytes, durable: bool) -> None:
        # Opened anew each time: the file may have been removed, and a record must not go to a removed file.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        try:
            stat = os.fstat(fd)
            if not S_ISREG(stat.st_mode):
                raise OSError("not a regular file")
            size = stat.st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line
            if os.write(fd, line) != len(line):
                raise OSError("only a part was written")
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
