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

COSTS = (
    "What ours costs beyond the peer's: litellm takes 6 to 10 ms of a call (a bare HTTP client 1.5 to 2.4 ms); the "
    "state is saved durably twice, before the judge is asked and before the message is sent (1 to 2 ms each); the "
    "session is read behind a barrier, once for the run and once for the judge (1 ms each); and the stamp of the last "
    "tool result, a fingerprint of the work tree, runs beside all of it on the same two processors. The peer stores "
    "nothing between judge and message, stamps nothing, and asks its judge in pi's own process. The first cycle of "
    "each goal waits for litellm's import, because this worker answers at once."
)


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
            f"{in_words(ours)}; peer {in_words(peer)}. {COSTS}",
        )
    ]
