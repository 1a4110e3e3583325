"""What a cited entry says, cut for a screen.

Knows nothing of screens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvidenceExcerpt:
    """A cited entry, for the closing panel.

    Attributes:
        entry: the session entry's id.
        title: what it is, e.g. "bash pytest -q".
        text: what it says, in excerpt.
    """

    entry: str
    title: str
    text: str
