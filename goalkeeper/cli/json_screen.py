"""The screen for programs: each record as one JSON object a line, as docs/events.schema.json describes them.

Knows nothing of terminals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.output import Output
from goalkeeper.core.records import Record
from goalkeeper.storage.schema import record_document


class JsonScreen:
    """Writes JSON lines in ASCII, so that nothing in them can steer a terminal; each is handed over at once.

    Args:
        output: where to, by default standard output.
    """

    def __init__(self, output: Output | None = None) -> None:
        self._output = output or Output()

    def start(self) -> None:
        """Do nothing."""

    def tell(self, record: Record) -> None:
        """Write a record."""
        self._output.line(json.dumps(record_document(record), separators=(",", ":")))

    def show_evidence(self, items: Sequence[EvidenceExcerpt]) -> None:
        """Write nothing: the ids stand in the record, and `goal explain --json` has the entries."""

    def stop(self) -> None:
        """Do nothing."""
