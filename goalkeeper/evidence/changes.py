"""Whether the work tree changed after a result: by fingerprints where there are some, else by the order of calls.

Knows nothing of claims, windows or git.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from goalkeeper.core.verdict import Freshness, Stamp
from goalkeeper.evidence.text import one_line
from goalkeeper.evidence.transcript import Entry, ToolCall, Transcript

CHANGING_TOOLS = frozenset({"edit", "write"})
_UNRECORDED = "?"
_MAX_NAMES = 5


def changes_after(position: int, entry: Entry, transcript: Transcript, freshness: Freshness) -> str:
    """Say in one sentence what changed after a result, or return an empty string if the result is fresh.

    Args:
        position: where the result is in `transcript.entries`.
        entry: the result.
        transcript: the branch.
        freshness: stamps, and the work tree as it is now.
    """
    stamp = freshness.stamps.get(entry.id)
    if freshness.tree is not None:
        return _changed_since(entry.id, stamp, freshness.tree, freshness)
    if freshness.lost or (stamp is not None and stamp.tree is not None):
        return f"the work tree can't be looked at now, so nobody can tell what changed after {entry.id}"
    files = tuple(dict.fromkeys(_edited_after(position, entry, transcript)))
    return f"files changed after {entry.id}: {_names(files)}" if files else ""


def _changed_since(entry_id: str, stamp: Stamp | None, now: str, freshness: Freshness) -> str:
    """Hold a result's stamp against the tree; where there is a tree, a result that has none is not tied to it."""
    if stamp is None or stamp.tree is None:
        return f"nobody saw which files {entry_id} ran on; run it again"
    if stamp.overlapped:
        return f"another command ran at the same time as {entry_id}, so nobody can tell which files it saw"
    if stamp.tree == now:
        return ""
    return f"files changed after {entry_id}: {_names(freshness.changed.get(stamp.tree, ()))}"


def edits_beside(entry: Entry, transcript: Transcript) -> str:
    """Name what an edit or write called in the same message as this result's call changed; empty if none was."""
    caller = next((other for other in transcript.entries if other.id == entry.call_entry), None)
    if caller is None:
        return ""
    files = [_file(call) for call in caller.calls if call.name in CHANGING_TOOLS and call.call_id != entry.call_id]
    for other in transcript.entries:
        if other.call_entry == caller.id and other.call_id != entry.call_id:
            files += _nested(other)
    return _names(tuple(dict.fromkeys(files))) if files else ""


def _edited_after(position: int, entry: Entry, transcript: Transcript) -> Iterator[str]:
    """Yield the files of edit and write calls after a result.

    A failed call changed nothing; one without a result may have changed something. A shell execution of a busy session
    is put on the branch later than it ran, so for it the time of the edit counts as well.
    """
    # Some providers give the same call id again and again: only with its message it names a call.
    results = {(other.call_entry, other.call_id): other for other in transcript.entries if other.call_id is not None}
    for index, other in enumerate(transcript.entries):
        later = index > position
        if other.kind == "unreadable" and later:
            yield f"perhaps something in {other.id}, which could not be read"
        if other.kind == "tool_result" and _is_later(other, later, entry):
            yield from _nested(other)
        for call in other.calls:
            result = results.get((other.id, call.call_id))
            if call.name not in CHANGING_TOOLS or (result is not None and result.is_error):
                continue
            if _is_later(result or other, later, entry):
                yield _file(call)


def _is_later(change: Entry, later: bool, entry: Entry) -> bool:
    return later or (entry.kind == "shell" and change.at > entry.at)


def _nested(entry: Entry) -> list[str]:
    """What the tools changed that this result's tool called by itself."""
    found = []
    for name in entry.nested_tools:
        if name in CHANGING_TOOLS:
            found.append(f"a file that {one_line(entry.tool_name or 'a tool', 40)} changed")
        elif name == _UNRECORDED:
            found.append(f"perhaps files that {one_line(entry.tool_name or 'a tool', 40)} changed")
    return found


def _file(call: ToolCall) -> str:
    return one_line(call.path, 120) if call.path else f"a file that {call.name} names"


def _names(files: Sequence[str]) -> str:
    if not files:
        return "names not known"
    more = f" and {len(files) - _MAX_NAMES} more" if len(files) > _MAX_NAMES else ""
    return ", ".join(one_line(name, 120) for name in files[:_MAX_NAMES]) + more
