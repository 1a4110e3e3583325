"""What a session file says about a goal's last message, after its controller died.

Knows nothing of how the session was read; pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goalkeeper.core.state import Sent
from goalkeeper.evidence.progress import evidence_digest_of_run
from goalkeeper.evidence.transcript import Entry, Transcript


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The trace of the goal's last message.

    Attributes:
        run: see `goalkeeper.core.events.SessionRestored.run`.
        digest: digest of the run's tool results, empty when there is no run.
    """

    run: Literal["not_sent", "interrupted", "finished"]
    digest: str = ""


def trace_run(transcript: Transcript, sent: Sent | None) -> RunTrace:
    """Find the last message in the session and say how its run ended.

    Args:
        transcript: the newest part of the branch. Where it does not reach back to the message, all of it is the run.
        sent: the message that was stored before the crash, None when there was none.
    """
    if sent is None:
        return RunTrace("not_sent")
    entries = entries_after(transcript, sent.after, sent.at)
    starts = [i for i, entry in enumerate(entries) if entry.kind == "user" and _is_message(entry.text, sent.text)]
    if starts:
        run = entries[starts[-1] + 1 :]
    elif entries and not _reaches_back(transcript, sent):
        # A long run fills more than what was read, and it can only have begun with the message.
        run = entries
    else:
        return RunTrace("not_sent")
    return RunTrace("finished" if _ended_normally(run) else "interrupted", evidence_digest_of_run(run))


def entries_after(transcript: Transcript, entry_id: str | None, at: int) -> tuple[Entry, ...]:
    """Return the entries behind `entry_id`, or made since `at` where that entry is not among those that were read.

    Args:
        transcript: where to look.
        entry_id: the session's leaf at some moment.
        at: that moment, milliseconds since the epoch.
    """
    for index, entry in enumerate(transcript.entries):
        if entry.id == entry_id:
            return transcript.entries[index + 1 :]
    return tuple(entry for entry in transcript.entries if entry.at >= at)


def _reaches_back(transcript: Transcript, sent: Sent) -> bool:
    """Whether the moment before the message was sent is in what was read."""
    return not transcript.earlier or any(e.id == sent.after or 0 < e.at < sent.at for e in transcript.entries)


def _is_message(text: str, sent: str) -> bool:
    # A leading blank may stand before a text that pi would otherwise take for one of its commands.
    return text.strip() == sent.strip()


def _ended_normally(run: tuple[Entry, ...]) -> bool:
    last = next((entry for entry in reversed(run) if entry.kind in ("assistant", "tool_result")), None)
    return last is not None and last.kind == "assistant" and last.stop_reason in ("stop", "length") and not last.calls
