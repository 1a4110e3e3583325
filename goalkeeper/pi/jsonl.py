"""Records of a JSONL byte stream: split on LF only, whatever the sizes of the pieces that arrive.

Knows nothing of JSON or of pi: a record is bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAXIMUM = 64 * 1024 * 1024
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Overlong:
    """A record above the maximum: dropped, but reported.

    Attributes:
        length: its length in bytes, without the LF.
        head: its first bytes, at most `HEAD_BYTES`.
    """

    length: int
    head: bytes


class RecordSplitter:
    """Turns pieces of a stream into records.

    Args:
        maximum: longest record in bytes; a longer one is dropped while it arrives, so memory stays bounded.
    """

    def __init__(self, maximum: int = DEFAULT_MAXIMUM) -> None:
        self._maximum = maximum
        self._pieces: list[bytes] = []
        self._length = 0
        self._head = b""

    @property
    def pending(self) -> int:
        """Bytes of the record that has no LF yet."""
        return self._length

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        """Return the records that `data` completes, each without its LF and without a CR before it.

        U+2028, NEL and the like stay inside a record: only the byte 0x0A ends one. Blank records are left out.
        """
        records: list[bytes | Overlong] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._hold(data[start:end])
            record = self._take()
            if record:
                records.append(record)
            start = end + 1
        self._hold(data[start:] if start else data)
        return records

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._length += len(piece)
        if len(self._head) < HEAD_BYTES:
            self._head += piece[: HEAD_BYTES - len(self._head)]
        if self._length <= self._maximum:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def _take(self) -> bytes | Overlong:
        length, head = self._length, self._head
        record = b"".join(self._pieces)
        self._pieces.clear()
        self._length, self._head = 0, b""
        if length > self._maximum:
            return Overlong(length, head)
        return record.removesuffix(b"\r")


def decode(record: bytes) -> str:
    """Return the record as text; bytes that are not UTF-8 become U+FFFD."""
    return record.decode("utf-8", "replace")
