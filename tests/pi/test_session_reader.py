"""What a running pi no longer knows of its session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.errors import PeerError
from goalkeeper.pi.rpc_client import RpcClient
from goalkeeper.pi.session_reader import SessionReader


class Entries(RpcClient):
    """A pi that holds these entries and answers nothing but a request for them."""

    def __init__(self, *ids: str) -> None:
        super().__init__()
        self.ids = list(ids)

    async def request(self, command: str, /, *, timeout: float | None = None, **fields: Any) -> Any:
        since = fields.get("since")
        if since is not None and since not in self.ids:
            raise PeerError(f"Entry not found: {since}", kind="refused")
        newer = self.ids[self.ids.index(since) + 1 :] if since is not None else self.ids
        return {"entries": [{"id": each} for each in newer], "leafId": self.ids[-1]}


def session(path: Path, *ids: str) -> str:
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"}
    parents = [None, *ids]
    lines = [{"type": "label", "id": each, "parentId": above} for each, above in zip(ids, parents, strict=False)]
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    return str(path)


async def test_a_line_that_somebody_else_wrote_does_not_change_the_leaf(tmp_path: Path) -> None:
    pi = Entries("a", "b")
    reader = SessionReader(pi, session(tmp_path / "s.jsonl", "a", "b"))
    await reader.transcript(100)
    session(tmp_path / "s.jsonl", "a", "b", "foreign")
    assert (await reader.transcript(100)).leaf == "b"


async def test_a_pi_that_took_up_another_session_is_said_to_have_left(tmp_path: Path) -> None:
    pi = Entries("a", "b")
    reader = SessionReader(pi, session(tmp_path / "s.jsonl", "a", "b"))
    await reader.transcript(100)
    pi.ids = ["x"]
    with pytest.raises(PeerError, match=r"pi has left the session .*s\.jsonl") as error:
        await reader.transcript(100)
    assert error.value.kind == "session_moved"
