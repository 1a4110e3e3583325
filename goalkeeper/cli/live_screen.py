"""The screen for a terminal: lines that stay, and below them one status line that does not.

Knows nothing of what a record says: `narration` does. Text reaches rich as plain `Text`, in rows that fit the terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from goalkeeper.cli import words
from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.layout import Line, fit, rows
from goalkeeper.cli.narration import Narrator, excerpt_lines
from goalkeeper.cli.output import Output
from goalkeeper.core import records
from goalkeeper.core.records import Record
from goalkeeper.evidence.text import one_line

REFRESHES: Final = 4
"""Status lines a second, at most."""

_STYLES: Final = {"": "", "good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "head": "bold"}
_NARROWEST: Final = 20
_STATUS_WIDTH: Final = 100


class LiveScreen:
    """A terminal.

    Args:
        output: where to, by default standard output.
        clock: seconds that pass while the machine is awake.
    """

    def __init__(self, output: Output | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        # rich asks a stream for no more than these methods.
        file = cast(Any, output or Output())
        self._console = Console(file=file, force_terminal=True, highlight=False, markup=False, emoji=False)
        self._narrator = Narrator()
        self._status = Status(clock)
        self._live: Live | None = None

    def start(self) -> None:
        """Show the status line."""
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=REFRESHES,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),
        )
        self._live.start()
        # A cursor that is hidden stays hidden in a shell after Ctrl-Z or kill -9.
        self._console.show_cursor(True)

    def tell(self, record: Record) -> None:
        """Print a record's lines above the status line."""
        self._status.note(record)
        self._print(self._narrator.lines(record))

    def show_evidence(self, items: Sequence[EvidenceExcerpt]) -> None:
        """Print the excerpts."""
        self._print(excerpt_lines(items))

    def stop(self) -> None:
        """Remove the status line and give the terminal back. Idempotent."""
        live, self._live = self._live, None
        if live:
            live.stop()

    @property
    def _width(self) -> int:
        # The last column stays free: some terminals wrap when it is written to.
        return max(self._console.width, _NARROWEST) - 1

    def _print(self, lines: Iterable[Line]) -> None:
        shown = [_styled(line, row, number) for line in lines for number, row in enumerate(rows(line, self._width))]
        if shown:
            self._console.print(Text("\n").join(shown), soft_wrap=True)

    def _render(self) -> Text:
        text = fit(self._status.text(), min(self._width, _STATUS_WIDTH))
        return Text(text, style="dim" if self._status.over else "cyan", no_wrap=True, overflow="crop")


class Status:
    """What the status line says.

    Args:
        clock: seconds that pass while the machine is awake.

    Attributes:
        over: the goal is met, paused or cleared.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._state = ""
        self._run = ""
        self._doing = "starting pi"
        self._tools: dict[str, str] = {}
        self._seconds = 0.0
        self._since: float | None = None
        self.over = False

    def text(self) -> str:
        """Return the line, in one row of any width."""
        parts = [self._state, self._time(), self._run, self._activity()]
        return "◎ " + " · ".join(part for part in parts if part)

    def note(self, record: Record) -> None:
        """Take in a record."""
        match record:
            case records.SessionOpened():
                self._doing = "pi is up"
            case records.GoalWasSet() | records.GoalResumed():
                self._state, self.over = "goal active", False
                self._seconds, self._since = 0.0, self._clock()
            case records.RunStart():
                self._run, self._doing = f"run {record.run}/{record.max_runs}", "working"
            case records.ToolUsed():
                self._note_tool(record)
            case records.RunSettledRecord():
                self._tools.clear()
                self._seconds, self._since = record.seconds, self._clock()
                self._doing = "looking at the evidence"
            case records.GoalMet() | records.GoalPaused() | records.Cleared():
                self._seconds, self._since = self._elapsed(), None
                self._state, self.over = _ENDS[record.event], True
                self._tools.clear()
                self._doing = "ending"
            case _:
                pass

    def _note_tool(self, record: records.ToolUsed) -> None:
        if record.status == "started":
            self._tools[record.call] = one_line(f"{record.name} {record.summary}", 80)
        else:
            self._tools.pop(record.call, None)

    def _activity(self) -> str:
        running = list(self._tools.copy().values())
        if not running:
            return self._doing
        others = f" (and {len(running) - 1} more)" if len(running) > 1 else ""
        return running[-1] + others

    def _elapsed(self) -> float:
        return self._seconds + (0.0 if self._since is None else self._clock() - self._since)

    def _time(self) -> str:
        return words.duration(int(self._elapsed())) if self._state else ""


_ENDS: Final = {"met": "goal met", "paused": "goal paused", "cleared": "goal cleared"}


def _styled(line: Line, row: str, number: int) -> Text:
    style = _STYLES[line.style]
    if not line.mark:
        return Text(row, style=style)
    text = Text(row)
    if number == 0:
        text.stylize(style, line.indent, len(row) if line.style == "head" else line.indent + len(line.mark))
    return text
