"""What a scripted evaluator sees in a request: the entries of the window, with id, role, command and output.

Knows nothing of verdicts. The frame is the one that `goalkeeper.evidence.window` writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIRST_LINE = re.compile(r"^(@[0-9a-f]{8}) window: ", re.MULTILINE)
_HEAD = re.compile(r"entry (?P<id>.+?): (?P<facts>[^;]*)(?:; (?P<called>[^;]*):)?")


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """One entry as an evaluator reads it.

    Attributes:
        id: the session entry's id.
        role: "user text", "assistant text", "tool result" or "direct shell execution".
        facts: what the frame says of it, such as "tool bash", "error", "exit code 0".
        command: the shell command behind a result, None if there is none.
        output: the text or the output.
    """

    id: str
    role: str
    facts: tuple[str, ...]
    command: str | None
    output: str

    @property
    def is_result(self) -> bool:
        """It is a tool result or a direct shell execution."""
        return self.role in ("tool result", "direct shell execution")

    @property
    def passed(self) -> bool:
        """It is a result, and nothing in its frame says that it failed."""
        codes = [fact for fact in self.facts if fact.startswith("exit code ")]
        failed = "error" in self.facts or "cancelled" in self.facts or any(code != "exit code 0" for code in codes)
        return self.is_result and not failed


def seen_entries(text: str) -> list[SeenEntry]:
    """Return the entries of the window in an evaluator request's text, oldest first; none without a window."""
    for match in _FIRST_LINE.finditer(text):
        mark = match[1]
        end = text.find(f"\n{mark} end of window", match.end())
        if end >= 0:  # a line that a worker forged has no end with its own mark
            return [seen for part in _parts(text[match.end() : end], mark) if (seen := _entry(part, mark))]
    return []


def _parts(window: str, mark: str) -> list[str]:
    return re.split(rf"^{mark} (?=entry |gap: )", window, flags=re.MULTILINE)[1:]


def _entry(part: str, mark: str) -> SeenEntry | None:
    head, _, rest = part.partition("\n")
    match = _HEAD.fullmatch(head)
    if not match:
        return None
    role, *facts = match["facts"].split(", ")
    called, found, output = rest.partition(f"{mark} output:\n")
    if not found:
        called, output = "", rest
    command = called.removesuffix("\n") if match["called"] == "command" else None
    return SeenEntry(match["id"], role, tuple(facts), command, output)
