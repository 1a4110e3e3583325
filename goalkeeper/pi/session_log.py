"""Reads one session file: the newest part of a branch, backwards from the end, then only what is appended.

Knows nothing of a running pi: the file may be written to, cut short, replaced or missing at any time.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISREG

from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.jsonl import decode
from goalkeeper.pi.session_entries import Line
from goalkeeper.pi.session_lines import (
    FileLine,
    complete_end,
    entry_line,
    ids_of,
    linear_line,
    lines_backwards,
    split_lines,
)
from goalkeeper.pi.session_tail import Demand, Tail

SMALL_FILE = 4 * 1024 * 1024
"""Up to this size in bytes `Transcript.earlier` is counted; above, it is estimated."""

_HEADER_BYTES = 64 * 1024
_PROBE_BYTES = 64


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The first line of a session file.

    Attributes:
        id: the session's id.
        cwd: the folder it belongs to.
        version: version of the format: 1 has no ids, 2 and 3 are trees.
        parent_session: the file that it was forked from, None if there is none.
    """

    id: str
    cwd: str
    version: int = 1
    parent_session: str | None = None


@dataclass(slots=True)
class _Chain:
    """A contiguous part of a branch, newest first, as it was found backwards.

    Attributes:
        lines: the lines.
        offset: where the oldest one begins.
        wanted: the parent that was looked for next, None at a root.
        exhausted: the beginning of the file was reached.
    """

    lines: list[Line]
    offset: int
    wanted: str | None
    exhausted: bool = False


class SessionLog:
    """One session file. A first read costs what the window costs, later ones what was appended.

    Every method raises OSError when what is there can't be read, or is no regular file.

    Args:
        path: the file; it may not exist yet.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._forget()

    def header(self) -> SessionHeader | None:
        """Return the header, None if there is no file or its first line is none."""
        with self._open() as fd:
            return _header(fd) if fd is not None else None

    def last_id(self) -> str | None:
        """Return the id of the last complete line, which is where pi continues when it loads the file."""
        with self._open() as fd:
            if fd is None:
                return None
            self._catch_up(fd)
            return self._last

    def read(self, characters: int, leaf: str | None = None) -> Transcript:
        """Return the newest part of a branch.

        Args:
            characters: how much shown text is wanted at least, where there is so much; each entry counts 4,000 at most.
            leaf: the branch's last entry, by default the last line of the file.
        """
        with self._open() as fd:
            if fd is None:
                return Transcript(())
            self._catch_up(fd)
            end = leaf or self._last
            if end is None:
                return Transcript(())
            view = self._tail.view(end, characters)
            if not view.complete:
                self._load(fd, end, characters)
                view = self._tail.view(end, characters)
            return self._tail.transcript(view, end)

    # ---- following the file -----------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._tail = Tail()
        self._end = 0
        self._last: str | None = None
        self._identity: tuple[int, int] | None = None
        self._probe = b""
        self._linear = False

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        try:
            # What was put in the file's place, such as a pipe, must not keep us waiting.
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            self._forget()
            yield None
            return
        try:
            if not S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", str(self.path))
            yield fd
        finally:
            os.close(fd)

    def _catch_up(self, fd: int) -> None:
        """Read what was appended; begin anew if there is too much of it, or if the file is another one."""
        state = os.fstat(fd)
        identity = (state.st_dev, state.st_ino)
        if identity != self._identity or not self._unchanged(fd):
            self._forget()
            self._identity = identity
            header = _header(fd)
            self._linear = header is not None and header.version < 2
        appended = state.st_size - self._end
        if self._end == 0 or appended > SMALL_FILE:
            self._begin(fd, state.st_size)
        elif appended:
            self._append(os.pread(fd, appended, self._end))
        self._probe = os.pread(fd, _PROBE_BYTES, max(0, self._end - _PROBE_BYTES)) if self._end else b""

    def _unchanged(self, fd: int) -> bool:
        """Say whether what was read last is still there: a file can be cut short, and pi rewrites old ones in place."""
        start = max(0, self._end - _PROBE_BYTES)
        return self._end == 0 or os.pread(fd, self._end - start, start) == self._probe

    def _begin(self, fd: int, size: int) -> None:
        self._tail = Tail()
        self._end = complete_end(fd, size)
        self._last = None
        for line in lines_backwards(fd, self._end):
            ids = self._ids(line)
            if ids is not None:
                self._last = ids[0]
                return

    def _append(self, data: bytes) -> None:
        data = data[: data.rfind(b"\n") + 1]
        for line in split_lines(data, self._end):
            read = linear_line(line, self._last) if self._linear else entry_line(line)
            if read is not None:
                self._tail.add(read)
                self._last = read.id
        self._end += len(data)

    # ---- reading backwards ------------------------------------------------------------------------------------

    def _ids(self, line: FileLine) -> tuple[str, str | None] | None:
        if not self._linear:
            return ids_of(line)
        read = linear_line(line, None)
        return (read.id, None) if read is not None else None

    def _load(self, fd: int, leaf: str, characters: int) -> None:
        demand = Demand(characters)
        chain = self._walk(fd, leaf, lambda line: demand.take(line.entry))
        lines = chain.lines[::-1]
        shown = sum(line.entry is not None for line in lines)
        if chain.exhausted or chain.wanted is None:
            self._tail.fill(lines, before=0, exact=True, broken_at=chain.wanted if lines else None)
        elif self._end <= SMALL_FILE:
            rest = self._walk(fd, chain.wanted, lambda _: False, end=chain.offset)
            before = sum(line.entry is not None for line in rest.lines)
            self._tail.fill(lines, before=before, exact=True)
        else:
            density = max(shown, 1) / max(self._end - chain.offset, 1)
            self._tail.fill(lines, before=max(1, round(chain.offset * density)), exact=False)

    def _walk(self, fd: int, leaf: str | None, enough: Callable[[Line], bool], *, end: int | None = None) -> _Chain:
        """Follow the branch from `leaf` backwards until a line is enough, a root, or the file's beginning."""
        chain = _Chain([], self._end if end is None else end, leaf)
        for line in lines_backwards(fd, chain.offset):
            if chain.wanted is None:
                return chain
            read = self._on_branch(line, chain.wanted)
            if read is None:
                continue
            if self._linear and chain.lines:
                chain.lines[-1] = replace(chain.lines[-1], parent=read.id)
            chain.lines.append(read)
            chain.offset = line.offset
            chain.wanted = f"before-{read.id}" if self._linear else read.parent
            if enough(read):
                return chain
        chain.exhausted = True
        if self._linear and chain.lines:
            chain.lines[-1] = replace(chain.lines[-1], parent=None)
            chain.wanted = None
        return chain

    def _on_branch(self, line: FileLine, wanted: str) -> Line | None:
        if self._linear:
            return linear_line(line, f"before-line-{line.offset}")
        ids = ids_of(line)
        return entry_line(line) if ids is not None and ids[0] == wanted else None


def _header(fd: int) -> SessionHeader | None:
    first = os.pread(fd, _HEADER_BYTES, 0).partition(b"\n")[0]
    try:
        raw = json.loads(decode(first))
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict) or raw.get("type") != "session":
        return None
    version, parent = raw.get("version", 1), raw.get("parentSession")
    return SessionHeader(
        id=str(raw.get("id") or ""),
        cwd=str(raw.get("cwd") or ""),
        version=version if isinstance(version, int) else 1,
        parent_session=parent if isinstance(parent, str) else None,
    )
