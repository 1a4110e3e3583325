"""Runs a goal's check commands in the session, so that their results are entries which can be cited.

Knows nothing of verdicts beyond "a check failed".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from goalkeeper.ports import ShellResult, Worker

CHECK_TIMEOUT = 600.0
"""Seconds until a check is ended; it has failed then."""


class CheckStamper(Protocol):
    """Stamps a check's result; see `goalkeeper.worktree.stamps.Stamper`."""

    def shell_stamp(self, entry_id: str, exit_code: int | None, tree: str | None) -> None:
        """Note the exit code and the tree's fingerprint after a shell execution."""
        ...


class Fingerprints(Protocol):
    """The work tree; see `goalkeeper.runtime.freshness.Tree`."""

    async def fingerprint(self) -> str | None:
        """Return the fingerprint now."""
        ...


@dataclass(frozen=True, slots=True)
class CheckRound:
    """What came of running the checks.

    Attributes:
        results: one for each check that ran, the failed one last.
        failed: the check that did not exit 0, None when all did.
        tree: the tree's fingerprint when all had exited 0; if it changed between them, one that it had before.
    """

    results: tuple[ShellResult, ...]
    failed: ShellResult | None = None
    tree: str | None = None


async def run_checks(
    worker: Worker,
    tree: Fingerprints,
    stamper: CheckStamper,
    commands: Sequence[str],
    told: Callable[[ShellResult], None],
) -> CheckRound:
    """Run the commands one after the other until one fails.

    All must have exited 0 in the tree as it is now. Where the checks themselves changed it (a build, a report), they
    are run once more: what they write is there by then. If the tree still changes, the round's tree is that of the
    earliest one, which is not the tree of now, whichever of them is cited.

    Args:
        worker: whose session the commands run in.
        tree: the work tree.
        stamper: told of each result.
        commands: the checks.
        told: called with each result.
    """
    before = await tree.fingerprint()
    for attempt in range(2):
        results: list[ShellResult] = []
        trees: list[str | None] = []
        for command in commands:
            result = await worker.shell(command, timeout=CHECK_TIMEOUT)
            after = await tree.fingerprint()
            trees.append(after)
            if result.entry_id:
                stamper.shell_stamp(result.entry_id, result.exit_code, after)
            results.append(result)
            told(result)
            if result.exit_code != 0:
                return CheckRound(tuple(results), failed=result)
        if after == before or attempt:
            break
        before = after
    return CheckRound(tuple(results), tree=next((seen for seen in trees if seen != after), after))
