"""Ties results to the work tree that they were of, in the background, without delaying the worker.

Knows nothing of git or of session entries: it is told when calls begin and end, and asks for fingerprints.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from goalkeeper.core.verdict import Stamp

READ_ONLY_TOOLS = frozenset({"read", "grep", "find", "ls"})
"""pi's tools that can't change a file. Every other tool may, also one that nobody here has heard of."""

GRACE = 0.25
"""Seconds that a stamp waits after its fingerprint for word of a call that had begun meanwhile; the word comes through
a pipe, the change does not."""

CLOSE_TIMEOUT = 5.0
"""Seconds that `Stamper.close` waits for stamps under way."""


class Fingerprints(Protocol):
    """What a stamper needs of the work tree; see `goalkeeper.worktree.fingerprint.WorkTree`."""

    async def fingerprint(self) -> str | None:
        """Return the fingerprint of the content, from a look that begins after this call."""
        ...


@dataclass(slots=True, eq=False)
class _Call:
    """A call whose stamp is not made yet, or that may still change files.

    Attributes:
        name: the tool.
        overlapped: another call that may change files ran since it began.
    """

    name: str
    overlapped: bool = False
    changes: bool = field(init=False)

    def __post_init__(self) -> None:
        self.changes = self.name not in READ_ONLY_TOOLS


class Stamper:
    """Makes a stamp for each completed call of one session.

    Args:
        tree: gives the fingerprints.
        known: stamps of earlier, by tool call id or entry id.
        made: given each new stamp, to keep it.
    """

    def __init__(
        self,
        tree: Fingerprints,
        *,
        known: Mapping[str, Stamp] | None = None,
        made: Callable[[str, Stamp], None] = lambda key, stamp: None,
    ) -> None:
        self._tree = tree
        self._made = made
        self._stamps: dict[str, Stamp] = dict(known or {})
        self._running: dict[str, _Call] = {}
        self._waiting: dict[asyncio.Task[None], _Call] = {}
        self._all_told = asyncio.Event()

    def tool_started(self, call_id: str, name: str) -> None:
        """Note that a call began."""
        self._all_told.clear()
        call = _Call(name, overlapped=any(other.changes for other in self._running.values()))
        if call.changes:
            self._mark_others()
        self._running[call_id] = call

    def tool_ended(self, call_id: str, name: str, exit_code: int | None) -> None:
        """Note that a call ended; its stamp is made in the background.

        Of a call whose beginning was not told, nobody knows what ran beside it: its stamp says overlapped.
        """
        call = self._running.pop(call_id, None) or _Call(name, overlapped=True)
        if call.changes:
            # Also for a call that this one was not told to have begun before: it ran until now.
            self._mark_others()
        task = asyncio.get_running_loop().create_task(self._stamp(call_id, call, exit_code))
        self._waiting[task] = call
        task.add_done_callback(self._waiting.pop)

    def shell_stamp(self, entry_id: str, exit_code: int | None, tree: str | None) -> None:
        """Stamp a shell execution of the controller's own, whose fingerprint was taken when it ended."""
        self._keep(entry_id, Stamp(tree, exit_code, any(call.changes for call in self._running.values())))

    def all_told(self) -> None:
        """Note that no word of a call is on its way, as after a settled run: a stamp need not wait for more."""
        self._all_told.set()

    async def drain(self, timeout: float) -> None:
        """Wait until the stamps under way are made, at most `timeout` seconds.

        Call it when the worker's events up to now were told, as after a settled run: then no stamp waits for more.
        """
        self.all_told()
        if self._waiting:
            await asyncio.wait(set(self._waiting), timeout=timeout)

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the stamps by tool call id or, for a shell execution, by entry id; newest last."""
        return self._stamps

    async def close(self) -> None:
        """Wait (bounded) for the stamps under way and give the others up. Idempotent."""
        await self.drain(CLOSE_TIMEOUT)
        for task in list(self._waiting):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _mark_others(self) -> None:
        """A call that may change files runs now: nothing that runs or waits for its stamp is sure of its tree."""
        for call in (*self._running.values(), *self._waiting.values()):
            call.overlapped = True

    async def _stamp(self, key: str, call: _Call, exit_code: int | None) -> None:
        tree = await self._tree.fingerprint()
        if not call.overlapped:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_told.wait(), GRACE)
        self._keep(key, Stamp(tree, exit_code, call.overlapped))

    def _keep(self, key: str, stamp: Stamp) -> None:
        self._stamps.pop(key, None)  # newest last
        self._stamps[key] = stamp
        self._made(key, stamp)
