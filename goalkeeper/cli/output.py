"""A stream to people or programs that may go away at any time, or may not know every character.

Knows nothing of what is written.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TextIO


def open_closed_streams() -> None:
    """Give a process that was started with closed standard streams ones that lead nowhere.

    Else Python has None in their place, and the next file that is opened becomes standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: the closed one
            os.set_inheritable(null, True)
            setattr(sys, name, os.fdopen(null, mode, encoding="utf-8"))


class Output:
    """Writes to a text stream; when nobody reads any more it is silent for good, and the work goes on.

    Args:
        stream: where to, by default standard output as it is now.

    Attributes:
        gone: the reader is gone.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self.encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self.gone = False

    def write(self, text: str) -> int:
        """Write text; what the stream's encoding can't say becomes a question mark."""
        if not self.gone:
            try:
                self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
            except (OSError, ValueError):
                self._give_up()
        return len(text)

    def flush(self) -> None:
        """Hand over what was written."""
        if not self.gone:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self._give_up()

    def isatty(self) -> bool:
        """Tell whether the stream is a terminal."""
        return self._stream.isatty()

    def line(self, text: str = "") -> None:
        """Write one line and hand it over."""
        self.write(text + "\n")
        self.flush()

    def _give_up(self) -> None:
        self.gone = True
        # What is still in the buffer would make Python complain at its end.
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def width_of(output: Output) -> int | None:
    """Return the columns of the terminal behind standard output, None when there is no terminal."""
    if not output.isatty():
        return None
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns or 80, 20)
    except (OSError, ValueError):
        return 80


def local_time(at: int, form: str = "%H:%M:%S") -> str:
    """Return a moment in local time.

    Args:
        at: milliseconds since the epoch.
        form: as for `strftime`.
    """
    try:
        return time.strftime(form, time.localtime(at / 1000))
    except (OverflowError, ValueError, OSError):
        return "?"
