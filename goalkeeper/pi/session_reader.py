"""The transcript of a running pi: its session file, made complete by a barrier over RPC.

Knows nothing of goals or windows. An ephemeral session has no file: there pi's own answer is all there is.
"""

from __future__ import annotations

from typing import Any

from goalkeeper.errors import PeerError
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.rpc_client import RpcClient
from goalkeeper.pi.session_entries import Line, read_line
from goalkeeper.pi.session_tree import branch, edited, joined


class SessionReader:
    """Reads the session of the pi behind `client`; `session_file` is None for an ephemeral session."""

    def __init__(self, client: RpcClient, session_file: str | None) -> None:
        self._client = client
        self._session_file = session_file
        self._lines: dict[str, Line] = {}
        self._last: str | None = None
        self._leaf: str | None = None

    async def barrier(self) -> str | None:
        await self._fetch()
        return self._last

    async def _fetch(self) -> list[Any]:
        data = await self._client.request("get_entries", since=self._last)
        for raw in data["entries"]:
            line = read_line(raw)
            self._lines[line.id] = line
            self._last = line.id
        self._leaf = data.get("leafId")
        return data["entries"]

    async def shell_entry(self, command: str, since: str | None) -> str | None:
        for raw in reversed(await self._fetch()):
            message = raw.get("message") or {}
            if message.get("role") == "bashExecution" and message.get("command") == command:
                return raw["id"]
        return None

    async def transcript(self, characters: int) -> Transcript:
        await self._fetch()
        lines, _ = branch(self._lines, self._leaf)
        entries = joined([line.entry for line in lines if line.entry is not None])
        return Transcript(entries, edited(lines), 0, True, self._leaf)

    def close(self) -> None:
        pass
