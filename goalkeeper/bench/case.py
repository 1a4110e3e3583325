"""What a benchmark row is, and what a case gets to produce rows.

Knows nothing of any single measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure beside what it is held against.

    Attributes:
        name: what was measured.
        value: the figure.
        unit: its unit, such as "ms", "MB" or "characters".
        reference: the figure it is held against, measured in the same run or a fixed limit; None if there is none.
        reference_name: what that is.
        limit: the largest ratio of value to reference that is fine; None when the row only informs.
        note: sample sizes, spread, and what else a reader must know.
    """

    name: str
    value: float
    unit: str
    reference: float | None = None
    reference_name: str = ""
    limit: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Value over reference, None without a reference."""
        return self.value / self.reference if self.reference else None

    @property
    def ok(self) -> bool:
        """The ratio is within its limit; a row without both is always fine."""
        return self.ratio is None or self.limit is None or self.ratio <= self.limit


@dataclass(frozen=True, slots=True)
class Bench:
    """What a case may use.

    Attributes:
        folder: an empty folder of its own, deleted afterwards.
        quick: run few repetitions on small data, to see that a case works; its figures mean nothing.
    """

    folder: Path
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A named measurement.

    Attributes:
        name: for `--only`.
        run: does it; it may return several rows.
    """

    name: str
    run: Callable[[Bench], Sequence[Row]]


class NotMeasured(Exception):
    """A case can't run here; the message says what is missing."""


def spread(values: Sequence[float], unit: str) -> str:
    """Return sample size, range and 90th percentile in words."""
    ninth = statistics.quantiles(values, n=10)[-1] if len(values) > 1 else values[0]
    return f"n = {len(values)}, {min(values):.1f} to {max(values):.1f} {unit}, p90 {ninth:.1f}"
