"""The one error tree: whose problem it is, what happened, and what to do about it.

Knows nothing of exit codes or terminals; `cli/exit_codes.py` maps these classes to numbers.
"""

from __future__ import annotations


class GoalkeeperError(Exception):
    """A failure that a user can be told about in one sentence.

    Args:
        message: what happened, one sentence, no trailing advice.
        hint: what to do about it, or an empty string.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(GoalkeeperError):
    """The command was given something that it can't take (you)."""


class PrerequisiteError(GoalkeeperError):
    """Something is missing on this machine: no pi, no model, no key (your machine)."""


class SessionHeldError(GoalkeeperError):
    """Another controller holds this session."""


class PeerError(GoalkeeperError):
    """pi, a model provider or another program failed (a peer).

    Args:
        kind: a short stable word for the kind of failure, e.g. "provider_error", "timeout", "malformed".
    """

    def __init__(self, message: str, hint: str = "", *, kind: str = "peer_error") -> None:
        super().__init__(message, hint)
        self.kind = kind
