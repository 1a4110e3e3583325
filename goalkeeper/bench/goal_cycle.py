"""Rows on the goal cycle, beside the peer's in the same run.

Knows nothing of how either side decides; see `goalkeeper.bench.cycle` for what is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from goalkeeper.bench.case import Bench, Row, spread
from goalkeeper.bench.peer_cycle import peer_extension, run_peer_goal

GOALS = 8


def goal_cycle_rows(bench: Bench) -> Sequence[Row]:
    """Measure the cycles of the peer's goals."""
    peer_extension()
    goals = 2 if bench.quick else GOALS
    peer = [time for goal in range(goals) for time in run_peer_goal(bench.folder / f"peer-{goal}")]
    name = "goal cycle of the peer extension, judge included"
    return [Row(name, statistics.median(peer), "ms", note=spread(peer, "ms") + ".")]
