"""The bounded part of a branch that an evaluator is shown: newest entries win, shown oldest first.

Knows nothing of conditions, prompts or rules.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goalkeeper.evidence.text import clean, cut, one_line
from goalkeeper.evidence.transcript import Entry, EntryKind, Transcript

DEFAULT_BUDGET = 20_000
DEFAULT_PER_ENTRY = 4_000
MIN_PER_ENTRY = 1_000  # the frame of the strangest entry is shorter
_FRAME_ROOM = 120  # kept free for the window's own first and last line
_MARK_LENGTH = 9
_MAX_CALLS = 8  # calls of one message that are shown one by one
_ODD_IN_NAME = re.compile(r"[^\w.:/-]")
_ROLES: dict[EntryKind, str] = {
    "user": "user text",
    "assistant": "assistant text",
    "tool_result": "tool result",
    "shell": "direct shell execution",
}


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """One entry as it was sent.

    Attributes:
        id: the session entry's id.
        kind: see `EntryKind`.
        shown: the text of the entry as it was sent, frame included.
        cut: some of the entry's output or text is missing.
    """

    id: str
    kind: EntryKind
    shown: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Window:
    """What an evaluator was sent of a branch.

    Attributes:
        text: the whole window, frame marks included.
        entries: the entries in it, oldest first.
        omitted: how many entries that could be shown are older than the window.
        omitted_exact: False when `omitted` is an estimate.
        digest: sha-256 (hex) of `text`.
        mark: what begins every line of the frame; no content holds it.
    """

    text: str
    entries: tuple[ShownEntry, ...]
    omitted: int
    omitted_exact: bool
    digest: str
    mark: str

    def find(self, entry_id: str) -> ShownEntry | None:
        """Return the entry with this id, None if it was not sent."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the entries, oldest first."""
        return tuple(entry.id for entry in self.entries)


def build_window(
    transcript: Transcript,
    *,
    budget: int = DEFAULT_BUDGET,
    per_entry: int = DEFAULT_PER_ENTRY,
    exit_codes: Mapping[str, int] | None = None,
) -> Window:
    """Return the window of a branch.

    Args:
        transcript: the newest part of the branch.
        budget: characters (code points) that the window may have, frame included.
        per_entry: characters that one entry may have, frame included; at least `MIN_PER_ENTRY`.
        exit_codes: exit codes of tool results by entry id, which the session file does not hold.
    """
    entries = transcript.entries
    per_entry = min(per_entry, budget - _FRAME_ROOM)
    if per_entry < MIN_PER_ENTRY:
        raise ValueError(f"a window needs {MIN_PER_ENTRY} characters for an entry")
    arguments = {(entry.id, call.call_id): call.arguments for entry in entries for call in entry.calls}
    blocks: list[_Block] = []
    left = budget - _FRAME_ROOM
    first = len(entries)
    while first > 0:
        block = _block(entries[first - 1], per_entry, arguments, exit_codes or {}, transcript.edited)
        if block is not None:
            if block.size > left:
                break
            left -= block.size
            blocks.append(block)
        first -= 1
    blocks.reverse()
    omitted = transcript.earlier + sum(1 for entry in entries[:first] if entry.kind == "unreadable" or is_shown(entry))
    return _assemble(blocks, omitted, transcript.earlier_exact)


def is_shown(entry: Entry) -> bool:
    """Whether an entry of this kind and content may be shown to an evaluator at all."""
    if entry.kind not in _ROLES or entry.excluded or not entry.id or one_line(entry.id, 64) != entry.id:
        return False
    if entry.kind in ("tool_result", "shell"):
        return True
    return bool(entry.text.strip() or entry.calls or entry.error_message)


@dataclass(frozen=True, slots=True)
class _Block:
    """An entry ready to be sent; the mark, which begins each frame line, is chosen when all blocks are known.

    Attributes:
        entry: None for a gap.
        parts: frame line without the mark, and the content under it (perhaps empty).
        cut: some of the content is missing.
    """

    entry: Entry | None
    parts: tuple[tuple[str, str], ...]
    cut: bool = False

    @property
    def size(self) -> int:
        return sum(
            _MARK_LENGTH + len(frame) + 1 + (len(content) + 1 if content else 0) for frame, content in self.parts
        )

    def render(self, mark: str) -> str:
        return "".join(f"{mark}{frame}\n" + (f"{content}\n" if content else "") for frame, content in self.parts)


def _block(
    entry: Entry,
    limit: int,
    arguments: Mapping[tuple[str, str], str],
    exit_codes: Mapping[str, int],
    edited: frozenset[str],
) -> _Block | None:
    if entry.kind == "unreadable":
        return _Block(None, ((" gap: something here could not be read", ""),))
    if not is_shown(entry):
        return None
    facts = [_ROLES[entry.kind], *_facts(entry, exit_codes.get(entry.id))]
    if entry.id in edited:
        facts.append("later edited out of the worker's own context")
    parts = _parts(entry, arguments.get((entry.call_entry or "", entry.call_id or "")))
    parts[0] = (f" entry {entry.id}: {', '.join(facts)}{parts[0][0]}", parts[0][1])
    cleaned = [(frame, clean(content).strip("\n")) for frame, content in parts]
    frames = sum(_MARK_LENGTH + len(frame) + 2 for frame, _ in cleaned)
    rooms = _share([len(content) for _, content in cleaned], limit - frames)
    fitted = [(frame, *cut(content, room)) for (frame, content), room in zip(cleaned, rooms, strict=True)]
    return _Block(entry, tuple((frame, text) for frame, text, _ in fitted), any(was_cut for *_, was_cut in fitted))


def _parts(entry: Entry, arguments: str | None) -> list[tuple[str, str]]:
    """The frame lines (the first without its facts) and contents of an entry."""
    if entry.kind == "shell":
        return [("; command:", entry.command or ""), (" output:", entry.text)]
    if entry.kind == "tool_result":
        if entry.command is not None:
            return [("; command:", entry.command), (" output:", entry.text)]
        return [("; called with:", arguments or "(not known)"), (" output:", entry.text)]
    parts = [("", entry.text)]
    for call in entry.calls[:_MAX_CALLS]:
        name = _name(call.name)
        shell = call.command is not None
        parts.append((f" calls {name}, command:" if shell else f" calls {name} with:", call.command or call.arguments))
    if len(entry.calls) > _MAX_CALLS:
        parts.append((f" calls {len(entry.calls) - _MAX_CALLS} more tools", ""))
    if entry.error_message:
        parts.append((" provider error:", entry.error_message))
    return parts


def _facts(entry: Entry, exit_code: int | None) -> list[str]:
    if entry.kind == "assistant":
        return [f"stopped by: {entry.stop_reason}"] if entry.stop_reason in ("length", "error", "aborted") else []
    facts = []
    if entry.kind == "tool_result":
        facts += [f"tool {_name(entry.tool_name or 'unknown')}", "error" if entry.is_error else "no error flag"]
    code = entry.exit_code if entry.exit_code is not None else exit_code
    if code is not None:
        facts.append(f"exit code {code}")
    elif entry.kind == "shell":
        facts.append("no exit code")
    if entry.cancelled:
        facts.append("cancelled")
    if entry.truncated:
        facts.append("output was cut before it was stored")
    return facts


def _name(name: str) -> str:
    """Return a tool's name for the frame. The worker's model chose it, so it must not read like facts of the frame."""
    return _ODD_IN_NAME.sub("_", one_line(name, 40))


def _share(sizes: Sequence[int], room: int) -> list[int]:
    """Share room among contents: the short ones get all they need, the long ones the same part of the rest."""
    rooms = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for done, index in enumerate(order):
        rooms[index] = min(sizes[index], max(room, 0) // (len(order) - done))
        room -= rooms[index]
    return rooms


def _assemble(blocks: Sequence[_Block], omitted: int, exact: bool) -> Window:
    contents = [text for block in blocks for part in block.parts for text in part]
    # Seeded with all that is shown, so that nobody can write the mark beforehand.
    mark = choose_mark(contents, hashlib.sha256("\0".join(contents).encode()).hexdigest())
    rendered = [(block, block.render(mark)) for block in blocks]
    shown = tuple(ShownEntry(b.entry.id, b.entry.kind, text, b.cut) for b, text in rendered if b.entry is not None)
    text = ""
    if shown:
        about = "" if exact else "about "
        text = f"{mark} window: {about}{omitted} earlier entries of this session are not shown\n"
        text += "".join(text for _, text in rendered) + f"{mark} end of window\n"
    return Window(text, shown, omitted, exact, hashlib.sha256(text.encode()).hexdigest(), mark)


def choose_mark(texts: Sequence[str], seed: str) -> str:
    """Return a frame mark that none of the texts holds; the same for the same texts and seed."""
    counter = 0
    while True:
        mark = "@" + hashlib.sha256(f"{seed}{counter}".encode()).hexdigest()[: _MARK_LENGTH - 1]
        if not any(mark in text for text in texts):
            return mark
        counter += 1
