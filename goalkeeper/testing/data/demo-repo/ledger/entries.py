"""What a ledger is made of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One line of a ledger: its kind, "deposit" or "withdrawal", and an amount in whole cents."""

    kind: str
    cents: int

    def __post_init__(self):
        """Refuse what is not an entry."""
        if self.kind not in ("deposit", "withdrawal"):
            raise ValueError(f"no such kind of entry: {self.kind}")
        if self.cents < 0:
            raise ValueError("an amount is never negative; use the other kind of entry")
