"""The words in which people read of goals: durations, costs, budgets, verdicts, and what to do next.

Knows nothing of streams, screens or files; standard library only, for the fast status.
"""

from __future__ import annotations

from typing import Final

VERDICTS: Final = {"met": "met", "not_met": "not met", "unknown": "unknown"}

VERDICT_MARKS: Final = {"met": "✔", "not_met": "✘", "unknown": "?"}

FAILURES: Final = {
    "provider_error": "the evaluator's provider failed",
    "timeout": "the evaluator did not answer in time",
    "malformed": "the evaluator's answer is not one verdict",
    "cut_off": "the evaluator's answer was cut at its length limit",
    "invalid_citation": "the evaluator cited what it can't cite",
    "unavailable": "the evaluator can't start",
}
"""What went wrong, by kind of failure."""

ROLES: Final = {
    "tool_result": "tool result",
    "shell": "shell execution",
    "user": "user message",
    "assistant": "assistant message",
    "summary": "summary",
    "extension": "message of an extension",
    "unreadable": "unreadable entry",
    "unknown": "not in the session",
}

MESSAGES: Final = {
    "condition": "the condition is sent",
    "guidance": "told what is missing",
    "verify": "asked to show it",
    "continue": "asked to go on",
}
"""Why a message is sent to the worker."""

NOT_KEPT: Final = "The session was of memory only, so the goal can't be resumed; set it again."

_NEXT: Final = {
    "question": "Answer it in the session with pi, then `{resume}`.",
    "evaluator_failed": "`goalkeeper doctor` checks model and key; then `{resume}`.",
    "max_cost": "`{resume} --max-cost USD` goes on with more money.",
    "run_failed": "`{resume}` goes on once the provider works again.",
    "not_sent": "`{resume}` tries again.",
}


def duration(seconds: float) -> str:
    """Return a duration in its two largest units: "0.4s", "12s", "2m 10s", "3h 5m", "2d 4h"; an int has no tenths."""
    if seconds < 9.95 and not isinstance(seconds, int):
        return f"{max(seconds, 0.0):.1f}s"
    whole = int(seconds)
    for unit, size, lower, lower_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // lower_size
            return f"{whole // size}{unit} {rest}{lower}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"


def count(number: int, what: str) -> str:
    """Return a number with its noun: "1 run", "3 runs"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def cost(usd: float | None) -> str:
    """Return a price in USD, "cost unknown" for None: unknown is never zero."""
    if usd is None:
        return "cost unknown"
    if usd and usd < 0.0001:
        return "under $0.0001"
    return f"${usd:.4f}" if usd < 1 else f"${usd:.2f}"


def tokens(number: int) -> str:
    """Return a number of tokens: "950 tokens", "12.3k tokens", "1.2M tokens"."""
    if number < 1000:
        return count(number, "token")
    return f"{number / 1000:.1f}k tokens" if number < 999_950 else f"{number / 1_000_000:.1f}M tokens"


def spending(number: int, usd: float | None) -> str:
    """Return tokens and price together, "no tokens" where none were used."""
    return "no tokens" if not number and not usd and usd is not None else f"{tokens(number)} · {cost(usd)}"


def budget(max_runs: int, max_seconds: float, max_cost: float | None) -> str:
    """Return the limits of a goal: "10 runs, 30m" and, if there is one, its price."""
    price = "" if max_cost is None else f", ${max_cost:g}"
    return f"{count(max_runs, 'run')}, {duration(max_seconds)}{price}"


def cited(entry: str, role: str, command: str | None) -> str:
    """Return a cited entry: its id, what it is, and the command behind it."""
    what = ROLES.get(role, role)
    return f"{entry} ({what}, `{command}`)" if command else f"{entry} ({what})"


def next_step(why: str, session: str | None = None) -> str:
    """Return what to do about a paused goal.

    Args:
        why: the stop reason.
        session: named in the command where a folder has several goals.
    """
    resume = f"goal resume --session {session}" if session else "goal resume"
    return _NEXT.get(why, "`{resume}` goes on with a fresh budget.").replace("{resume}", resume)
