"""What a screen is, and which one a command gets.

Knows nothing of how a screen looks; each is imported when it is chosen, so that rich is loaded only for a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Protocol

from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.core.records import Record


class Screen(Protocol):
    """Shows how the work on a goal goes on. No method raises when nobody is there to look any more."""

    def start(self) -> None:
        """Take the terminal."""
        ...

    def tell(self, record: Record) -> None:
        """Show a record."""
        ...

    def show_evidence(self, items: Sequence[EvidenceExcerpt]) -> None:
        """Show what the cited entries say."""
        ...

    def stop(self) -> None:
        """Give the terminal back as it was. Idempotent."""
        ...


def open_screen(*, as_json: bool, quiet: bool) -> Screen:
    """Return the screen for this process's standard output.

    Args:
        as_json: one JSON object a record, whatever the output is.
        quiet: only warnings and the outcome.
    """
    if as_json:
        from goalkeeper.cli.json_screen import JsonScreen

        return JsonScreen()
    if quiet:
        from goalkeeper.cli.plain_screen import QuietScreen

        return QuietScreen()
    if is_terminal():
        from goalkeeper.cli.live_screen import LiveScreen

        return LiveScreen()
    from goalkeeper.cli.plain_screen import PlainScreen

    return PlainScreen()


def is_terminal() -> bool:
    """Tell whether standard output is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
