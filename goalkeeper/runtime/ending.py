"""When the work of a foreground controller is over.

Knows nothing of how it is ended.
"""

from __future__ import annotations

from collections.abc import Callable

from goalkeeper.core.state import SessionState

IDLE_PATIENCE = 35.0
"""Seconds to wait for the end of an aborted run before pi is ended."""


class Ended:
    """Tells when a controller's work is over: no active goal, and the worker idle, or not within a bound.

    Args:
        awake: the awake clock.
    """

    def __init__(self, awake: Callable[[], float]) -> None:
        self._awake = awake
        self._since: float | None = None

    def __call__(self, state: SessionState) -> bool:
        """Say whether the work is over in this state."""
        if state.goal and not state.goal.pause:
            self._since = None
            return False
        now = self._awake()
        self._since = now if self._since is None else self._since
        return not state.busy or now - self._since > IDLE_PATIENCE
