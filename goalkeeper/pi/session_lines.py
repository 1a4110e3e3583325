"""The lines of a session file from its end to its beginning, in bounded memory.

Knows nothing of branches or of what an entry means; of JSON only the ids at a line's beginning.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from goalkeeper.pi.jsonl import HEAD_BYTES, decode
from goalkeeper.pi.session_entries import Line, read_line, unreadable

MAXIMUM_LINE = 8 * 1024 * 1024
_CHUNK = 256 * 1024
# pi writes an entry's type and ids first, so lines of other branches need no parsing.
_HEAD = re.compile(rb'\{"type":"(?!session")[^"\\]+","id":"([^"\\]+)","parentId":(?:null|"([^"\\]*)")')
_ANY_ID = re.compile(rb'"id"\s*:\s*"([^"\\]+)"')
_ANY_PARENT = re.compile(rb'"parentId"\s*:\s*"([^"\\]+)"')


@dataclass(frozen=True, slots=True)
class FileLine:
    """One complete line.

    Attributes:
        offset: where it begins, in bytes.
        length: its length in bytes, without the LF.
        head: its first bytes.
        body: all of it, None if it is longer than `MAXIMUM_LINE`.
    """

    offset: int
    length: int
    head: bytes
    body: bytes | None


def complete_end(fd: int, size: int) -> int:
    """Return the offset behind the last LF: what comes after it is a line that is still being written."""
    position = size
    while position > 0:
        start = max(0, position - _CHUNK)
        at = os.pread(fd, position - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        position = start
    return 0


def lines_backwards(fd: int, end: int) -> Iterator[FileLine]:
    """Yield the lines before `end`, the newest first; `end` is the offset behind an LF."""
    pieces: list[bytes] = []
    length = 0
    position = end - 1
    while position > 0:
        start = max(0, position - _CHUNK)
        data = os.pread(fd, position - start, start)
        cursor = len(data)
        while (at := data.rfind(b"\n", 0, cursor)) >= 0:
            length += cursor - at - 1
            pieces.append(data[at + 1 : cursor])
            if length:
                yield _whole(fd, start + at + 1, length, pieces)
            pieces, length, cursor = [], 0, at
        length += cursor
        # A line above the maximum is passed over without holding it.
        pieces = [*pieces, data[:cursor]] if length <= MAXIMUM_LINE else []
        position = start
    if length:
        yield _whole(fd, 0, length, pieces)


def _whole(fd: int, offset: int, length: int, pieces: list[bytes]) -> FileLine:
    if length > MAXIMUM_LINE:
        return FileLine(offset, length, os.pread(fd, HEAD_BYTES, offset), None)
    body = b"".join(reversed(pieces))
    return FileLine(offset, length, body[:HEAD_BYTES], body)


def split_lines(data: bytes, offset: int) -> list[FileLine]:
    """Return the lines of `data`, which begins at `offset` of the file and ends with an LF, oldest first."""
    lines: list[FileLine] = []
    for body in data.split(b"\n")[:-1]:
        if body:
            lines.append(FileLine(offset, len(body), body[:HEAD_BYTES], body))
        offset += len(body) + 1
    return lines


def ids_of(line: FileLine) -> tuple[str, str | None] | None:
    """Return the id and the parent of a line, None for the header and for what is no entry."""
    match = _HEAD.match(line.head)
    if match is not None:
        return decode(match[1]), decode(match[2]) if match[2] is not None else None
    if line.body is None:
        found, parent = _ANY_ID.search(line.head), _ANY_PARENT.search(line.head)
        return (decode(found[1]), decode(parent[1]) if parent else None) if found else None
    raw = _object(line.body)
    if raw is None or raw.get("type") == "session" or not isinstance(raw.get("id"), str):
        return None
    parent_id = raw.get("parentId")
    return raw["id"], parent_id if isinstance(parent_id, str) else None


def entry_line(line: FileLine) -> Line | None:
    """Read a line of a tree-shaped file (session version 2 and later); None if it is no entry."""
    ids = ids_of(line)
    if ids is None:
        return None
    raw = _object(line.body) if line.body is not None else None
    return unreadable(*ids) if raw is None else read_line(raw)


def linear_line(line: FileLine, parent: str | None) -> Line | None:
    """Read a line of a file without ids (session version 1): its offset is its id, as stable as the file itself."""
    raw = _object(line.body) if line.body is not None else None
    line_id = f"line-{line.offset}"
    if raw is None:
        return unreadable(line_id, parent)
    return None if raw.get("type") == "session" else read_line({**raw, "id": line_id, "parentId": parent})


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        raw = json.loads(decode(body))
    except (ValueError, RecursionError):
        return None
    return raw if isinstance(raw, dict) else None
