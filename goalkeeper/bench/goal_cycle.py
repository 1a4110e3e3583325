"""Rows on the goal cycle, beside the peer's in the same run.

Knows nothing of how either side decides; see `goalkeeper.bench.cycle` for what is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from goalkeeper.bench.case import Bench, Row
from goalkeeper.bench.cycle import Cycle, in_words
from goalkeeper.bench.own_cycle import goal_program, run_own_goal
from goalkeeper.bench.peer_cycle import peer_extension, run_peer_goal

GOALS = 8
LIMIT = 1.0


def goal_cycle_rows(bench: Bench) -> Sequence[Row]:
    """Measure the cycles of our goals and of the peer's, in turn."""
    goal_program()
    peer_extension()
    ours: list[Cycle] = []
    peer: list[Cycle] = []
    for goal in range(2 if bench.quick else GOALS):
        ours += run_own_goal(bench.folder / f"own-{goal}")
        peer += run_peer_goal(bench.folder / f"peer-{goal}")
    return [
        Row(
            "goal cycle: worker's last message to its next request, judge included",
            statistics.median(cycle.total for cycle in ours),
            "ms",
            statistics.median(cycle.total for cycle in peer),
            "the peer extension, pi-orchestrate",
            LIMIT,
            f"{in_words(ours)}; peer {in_words(peer)}.",
        )
    ]
