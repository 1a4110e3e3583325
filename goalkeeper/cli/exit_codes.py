"""The one table of exit codes: what a command ends with, by error and by outcome.

Knows nothing of how a command works or of what it prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal

from goalkeeper.core.limits import StopReason
from goalkeeper.core.verdict import FailureKind, VerdictWord
from goalkeeper.errors import GoalkeeperError, PeerError, PrerequisiteError, SessionHeldError, UsageError


class ExitCode(IntEnum):
    """What a command ends with. Scripts rely on these numbers: none of them ever changes its meaning."""

    MET = 0
    """The goal is met, or the command did what it says."""

    USAGE = 2
    """The command was given something that it can't take; nothing was done."""

    PAUSED = 3
    """The goal is paused, cleared or not met, or pi or a provider failed: not proven, so not 0."""

    MISSING = 4
    """Something is missing on this machine: no pi, no model, no key."""

    HELD = 5
    """Another controller holds the session; nothing was changed."""

    INTERRUPTED = 130
    """Ctrl-C or SIGTERM."""


ERROR_CODES: Mapping[type[GoalkeeperError], ExitCode] = {
    UsageError: ExitCode.USAGE,
    PrerequisiteError: ExitCode.MISSING,
    SessionHeldError: ExitCode.HELD,
    PeerError: ExitCode.PAUSED,
}

Ending = Literal["met", "paused", "cleared"]
"""How the work on a goal ends in the foreground."""

ENDING_CODES: Mapping[Ending, ExitCode] = {
    "met": ExitCode.MET,
    "paused": ExitCode.PAUSED,
    "cleared": ExitCode.PAUSED,  # from another terminal: whoever waits for this command must not take it for met
}


def code_of_error(error: GoalkeeperError) -> ExitCode:
    """Return the exit code for an error, by the nearest class in the table; what can't even start is missing."""
    if isinstance(error, PeerError) and error.kind == "unavailable":
        return ExitCode.MISSING
    for kind in type(error).__mro__:
        if kind in ERROR_CODES:
            return ERROR_CODES[kind]
    return ExitCode.PAUSED


def code_of_ending(ending: Ending, why: StopReason | None = None) -> ExitCode:
    """Return the exit code for the end of the work on a goal.

    Args:
        ending: how it ended.
        why: the reason of a pause.
    """
    return ExitCode.INTERRUPTED if why == "interrupted" else ENDING_CODES[ending]


def code_of_evaluation(verdict: VerdictWord | None, failure: FailureKind | None = None) -> ExitCode:
    """Return the exit code for one evaluation.

    Args:
        verdict: what stands after the rules, None when the evaluator failed.
        failure: how it failed. An evaluator that could not even start lacks a model, a key or a library.
    """
    if failure == "unavailable":
        return ExitCode.MISSING
    return ExitCode.MET if verdict == "met" else ExitCode.PAUSED
