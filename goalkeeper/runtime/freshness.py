"""Joins stamps and the work tree into what the rules need to know about freshness.

Knows nothing of claims or goals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from goalkeeper.core.verdict import Freshness, Stamp
from goalkeeper.evidence.transcript import Transcript


class Tree(Protocol):
    """The work tree's fingerprints; see `goalkeeper.worktree.fingerprint.WorkTree`."""

    async def fingerprint(self) -> str | None:
        """Return the fingerprint now, None outside a git checkout."""
        ...

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the names of the files that differ."""
        ...


class Stamps(Protocol):
    """The stamps that were made; see `goalkeeper.worktree.stamps.Stamper`."""

    async def drain(self, timeout: float) -> None:
        """Wait until the stamps under way are made."""
        ...

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the stamps by tool call id or, for a shell execution, by entry id."""
        ...


DRAIN_TIMEOUT = 30.0
"""Seconds to wait for stamps under way before a claim is judged without them."""


class FreshnessSource:
    """What is known of one session's freshness.

    Args:
        tree: the work tree.
        stamps: the stamps of the session.
    """

    def __init__(self, tree: Tree, stamps: Stamps) -> None:
        self._tree = tree
        self._stamps = stamps
        self._changed: dict[tuple[str, str], tuple[str, ...]] = {}

    async def fingerprint(self) -> str | None:
        """Return the tree's fingerprint now."""
        return await self._tree.fingerprint()

    def exit_codes(self, transcript: Transcript) -> dict[str, int]:
        """Return the exit codes that were stamped, by entry id."""
        stamped = self._by_entry(transcript)
        return {entry: stamp.exit_code for entry, stamp in stamped.items() if stamp.exit_code is not None}

    async def of(self, transcript: Transcript, cited: Iterable[str]) -> Freshness:
        """Return what the rules need to know about the cited entries, in the tree as it is now."""
        await self._stamps.drain(DRAIN_TIMEOUT)
        now = await self._tree.fingerprint()
        stamped = self._by_entry(transcript)
        old = {stamped[entry].tree for entry in cited if entry in stamped} - {None, now}
        changed = {tree: await self.changed(tree, now) for tree in old if tree and now}
        return Freshness(now, stamped, changed)

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the names of the files that differ between two fingerprints."""
        if (old, new) not in self._changed:
            self._changed[old, new] = await self._tree.changed(old, new)
        return self._changed[old, new]

    async def changed_since(self, start: str | None) -> tuple[str, ...]:
        """Return the files that changed since `start`, as far as stamps tell: no look of its own is taken."""
        if start is None:
            return ()
        latest = self.latest()
        return await self.changed(start, latest) if latest else ()

    def latest(self) -> str | None:
        """Return the fingerprint of the newest stamp that has one."""
        return next((s.tree for s in reversed(list(self._stamps.stamps().values())) if s.tree), None)

    def _by_entry(self, transcript: Transcript) -> dict[str, Stamp]:
        stamps = dict(self._stamps.stamps())
        found: dict[str, Stamp] = {}
        # Some providers give the same call id again and again: the stamp that is there is of the newest such call.
        for entry in reversed(transcript.entries):
            stamp = stamps.pop(entry.call_id, None) if entry.call_id else None
            stamp = stamp or stamps.get(entry.id)
            if stamp:
                found[entry.id] = stamp
        return found
