"""Seals what only a user may say of a goal, outside the folder that the worker works in.

Knows nothing of when a goal is resumed. The state file lies where the worker can write; a digest of the user's words,
kept with the user's own data, shows at a resume that they were changed there. It guards against a worker that is
mistaken, not against one that is out to deceive: it runs with the same rights.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from goalkeeper.core.state import GoalState
from goalkeeper.storage.atomic import write_atomic
from goalkeeper.storage.schema import goal_fields

SEALED: Final = (
    "id", "condition", "limits", "evaluator", "model", "terms", "checks", "ignore", "run_timeout", "pi_args",
)  # fmt: skip
"""Fields of a goal that a user settles, or the evaluator from the condition alone."""

Finding = Literal["intact", "broken", "none"]


def seals_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of this user's seals: $XDG_STATE_HOME/goalkeeper, else ~/.local/state/goalkeeper."""
    base = env.get("XDG_STATE_HOME")
    return (Path(base) if base else Path(env.get("HOME") or Path.home()) / ".local" / "state") / "goalkeeper" / "seals"


class Seal:
    """The seal of one session's goal.

    Args:
        session_file: the session that owns the goal.
    """

    def __init__(self, session_file: str) -> None:
        name = hashlib.sha256(session_file.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._path = seals_folder(os.environ) / f"{name}.json"
        self._written: str | None = None  # what stands there is not known yet

    def put(self, goal: GoalState | None) -> None:
        """Seal the goal as it is about to be saved; no goal, no seal.

        The seal before is good beside the new one: a crash may come between this and the saving of the state. Where a
        seal can't be stored, a resume says that there is none.
        """
        digest = _digest(goal) if goal else ""
        if digest == self._written:
            return
        with contextlib.suppress(OSError):
            if goal is None:
                self._path.unlink(missing_ok=True)
            else:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_atomic(self._path, json.dumps([*self._stored()[-1:], digest]).encode())
            self._written = digest

    def check(self, goal: GoalState) -> Finding:
        """Say whether a stored goal is as it was sealed; a goal that somebody else set here has no seal."""
        mine = [seal for seal in self._stored() if seal.startswith(f"{goal.id} ")]
        return "none" if not mine else "intact" if _digest(goal) in mine else "broken"

    def _stored(self) -> list[str]:
        try:
            stored = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return []
        return [digest for digest in stored if isinstance(digest, str)] if isinstance(stored, list) else []


def _digest(goal: GoalState) -> str:
    """Return the goal's id and the digest of what is sealed of it."""
    fields = goal_fields(goal)
    text = json.dumps({name: fields[name] for name in SEALED}, sort_keys=True)
    return f"{goal.id} {hashlib.sha256(text.encode()).hexdigest()}"
