"""The screens for files and pipes: lines with a time, and no control characters at all.

Knows nothing of what a record says: `narration` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.layout import Line, rows
from goalkeeper.cli.narration import Narrator, excerpt_lines, outcome
from goalkeeper.cli.output import Output, local_time
from goalkeeper.core.records import Notice, Record
from goalkeeper.evidence.text import one_line

_NO_TIME = " " * len("00:00:00 ")


class PlainScreen:
    """Writes every record; only the first row of each has the time, so that no other can pass for one.

    Args:
        output: where to, by default standard output.
    """

    def __init__(self, output: Output | None = None) -> None:
        self._output = output or Output()
        self._narrator = Narrator()

    def start(self) -> None:
        """Do nothing."""

    def tell(self, record: Record) -> None:
        """Write a record."""
        self._write(self._narrator.lines(record), f"{local_time(record.at)} ")

    def show_evidence(self, items: Sequence[EvidenceExcerpt]) -> None:
        """Write the excerpts."""
        self._write(excerpt_lines(items), _NO_TIME)

    def stop(self) -> None:
        """Do nothing."""

    def _write(self, lines: Iterable[Line], before: str) -> None:
        for line in lines:
            for row in rows(line, None) if line.text else ():
                self._output.write(f"{before}{row}".rstrip() + "\n")
                before = _NO_TIME
        self._output.flush()


class QuietScreen:
    """Writes the outcome in one line, and warnings to standard error.

    Args:
        output: where the outcome goes, by default standard output.
        warnings: where warnings go, by default standard error.
    """

    def __init__(self, output: Output | None = None, warnings: Output | None = None) -> None:
        self._output = output or Output()
        self._warnings = warnings or Output(sys.stderr)

    def start(self) -> None:
        """Do nothing."""

    def tell(self, record: Record) -> None:
        """Write a record if it is the outcome or a warning."""
        if isinstance(record, Notice) and record.level != "info":
            self._warnings.line(f"{record.level}: {one_line(record.text, 1000)}")
        elif line := outcome(record):
            self._output.line(line)

    def show_evidence(self, items: Sequence[EvidenceExcerpt]) -> None:
        """Write nothing: the outcome names the entries."""

    def stop(self) -> None:
        """Do nothing."""
