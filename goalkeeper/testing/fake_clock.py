"""A clock that moves only when told: wall time and awake time, set apart.

Knows nothing of events; `scenario.py` stamps them with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class FakeClock:
    """Wall clock and awake clock.

    Attributes:
        at: wall clock, milliseconds since the epoch.
        awake: seconds on the clock that stands still while the machine sleeps.
    """

    at: int = 0
    awake: float = 0.0

    def work(self, seconds: float) -> None:
        """Let time pass while the controller is awake."""
        self.at += round(seconds * 1000)
        self.awake += seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass with a closed lid: only the wall clock moves."""
        self.at += round(seconds * 1000)

    def restart(self) -> None:
        """Begin the awake clock anew, as a new process does."""
        self.awake = 0.0
