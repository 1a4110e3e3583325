"""A work tree whose fingerprints a test gives, when it wants to.

Knows nothing of git or files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping


class ScriptedTree:
    """A double of `goalkeeper.worktree.fingerprint.WorkTree`.

    Args:
        tree: the fingerprint.
        changed: names of changed files by (old, new) fingerprint.
        held: fingerprints are given only when `give` is called.

    Attributes:
        tree: the fingerprint that is given next; a test changes it at will.
        reason: why there is none.
        asked: how many fingerprints were asked for.
    """

    def __init__(
        self,
        tree: str | None = "tree-1",
        changed: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
        *,
        held: bool = False,
    ) -> None:
        self.tree = tree
        self.reason = "" if tree else "scripted"
        self.asked = 0
        self._changed = dict(changed or {})
        self._held = held
        self._waiting: list[asyncio.Future[str | None]] = []

    async def fingerprint(self) -> str | None:
        """Return `tree`, at once or when `give` is called."""
        self.asked += 1
        if not self._held:
            return self.tree
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the names that the test named for this pair."""
        return () if old == new else self._changed.get((old, new), ())

    def give(self) -> None:
        """Answer all who wait with `tree` as it is now."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(self.tree)

    def close(self) -> None:
        """Do nothing: there are no scratch files."""
