"""The messages that the controller sends to the worker.

Knows nothing of when they are sent. The goal's full condition is in each of them: a compaction may have dropped it.
"""

from __future__ import annotations

from goalkeeper.core.verdict import Terms


def guidance(condition: str, reason: str) -> str:
    """Return the message after a not_met verdict."""
    return f"The goal is not met yet: {reason}\n\nKeep working on the goal:\n{condition}"


def verification(condition: str, reason: str, terms: Terms | None, checks: tuple[str, ...]) -> str:
    """Return the message after a first unknown verdict: it asks for evidence, not for more work."""
    commands = (terms.proofs if terms else ()) + checks
    named = "".join(f"\n- {command}" for command in dict.fromkeys(commands))
    ask = (
        f"Run exactly these commands now, each as its own tool call, after your last change:{named}"
        if named
        else "Run the checks that show it now, each as its own tool call, after your last change."
    )
    return (
        f"The goal could not be verified: {reason}\n\n{ask}\n"
        "Keep the output short enough to be shown whole, and hide no exit status. "
        f"If something fails, fix it first.\n\nThe goal:\n{condition}"
    )


def continuation(condition: str) -> str:
    """Return the message that takes up work which was cut off by a restart or a compaction."""
    return f"Your work on the goal was interrupted. Look at where things stand and continue.\n\nThe goal:\n{condition}"
