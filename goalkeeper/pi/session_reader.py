"""The transcript of a running pi: its session file, made complete by a barrier over RPC.

Knows nothing of goals or windows. Where there is no file (an ephemeral session, or one without a user message yet) what
pi holds in memory is all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.rpc_client import RpcClient
from goalkeeper.pi.run_events import usage_of
from goalkeeper.pi.session_entries import read_line
from goalkeeper.pi.session_log import SessionLog
from goalkeeper.pi.session_tail import Tail

_FILE_WAIT = 0.5
_FILE_STEP = 0.01


class SessionReader:
    """Reads the session of one running pi.

    Args:
        client: the conversation with it.
        session_file: its session file, which may not exist yet; None for an ephemeral session.
    """

    def __init__(self, client: RpcClient, session_file: str | None) -> None:
        self._client = client
        self._log = SessionLog(session_file) if session_file else None
        self._known: str | None = None  # the last entry that pi is known to hold
        self._memory = Tail()
        self._fetched: str | None = None  # the last entry in `_memory`

    async def cursor(self) -> str | None:
        """Return the id of the newest entry, None for an empty session; `shell_entry` takes it."""
        log = self._file()
        if log is None:
            await self._fetch()
            return self._fetched
        with _unreadable(log):
            entries, _ = await self._since_file()
        return str(entries[-1].get("id")) if entries else self._known

    async def shell_entry(self, command: str, since: str | None) -> str | None:
        """Return the id of the newest direct shell execution of `command` after `since`, None if pi has not stored it.

        pi stores one that ran beside a run only after the run.
        """
        entries, _ = await self._ask(since)
        for raw in reversed(entries):
            message = raw.get("message")
            if not isinstance(message, dict) or message.get("role") != "bashExecution":
                continue
            if message.get("command") == command:
                return str(raw.get("id"))
        return None

    async def usage_since(self, entry_id: str | None) -> Usage:
        """Return what the entries behind `entry_id` record as used: answers, summaries, other model calls."""
        entries, _ = await self._ask(entry_id)
        total = Usage()
        for raw in entries:
            message = raw.get("message")
            total = total.plus(usage_of(message.get("usage") if isinstance(message, dict) else raw.get("usage")))
        return total

    async def transcript(self, characters: int) -> Transcript:
        """Return the newest part of the branch; see `SessionLog.read`.

        Raises:
            PeerError: pi did not answer, or (kind "unreadable") its session file can't be read.
        """
        log = self._file()
        if log is None:
            return await self._from_memory(characters)
        with _unreadable(log):
            _, leaf = await self._since_file()
            return log.read(characters, leaf) if leaf is not None else Transcript(())

    # ---- what pi says -----------------------------------------------------------------------------------------

    async def _ask(self, since: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """Return the entries after `since` and the leaf. By the answer all of them have been appended to the file."""
        data = await self._client.request("get_entries", since=since)
        answer = data if isinstance(data, dict) else {}
        found, leaf = answer.get("entries"), answer.get("leafId")
        entries = [raw for raw in found if isinstance(raw, dict)] if isinstance(found, list) else []
        if entries:
            self._known = str(entries[-1].get("id"))
        elif since is not None:
            self._known = since
        return entries, leaf if isinstance(leaf, str) else None

    # ---- with a file ------------------------------------------------------------------------------------------

    def _file(self) -> SessionLog | None:
        return self._log if self._log is not None and Path(self._log.path).exists() else None

    async def _since_file(self) -> tuple[list[dict[str, Any]], str | None]:
        """Return what pi holds beyond the file's last line, and the leaf, once the file holds it too."""
        assert self._log is not None
        last = self._log.last_id()
        try:
            entries, leaf = await self._ask(last)
        except PeerError as error:
            if error.kind != "refused":
                raise
            # Somebody else wrote the last line: pi does not know it.
            return await self._ask_again(error)
        waited = 0.0
        while entries and self._log.last_id() != self._known and waited < _FILE_WAIT:
            await asyncio.sleep(_FILE_STEP)
            waited += _FILE_STEP
        return entries, leaf

    async def _ask_again(self, refusal: PeerError) -> tuple[list[dict[str, Any]], str | None]:
        try:
            return await self._ask(self._known)
        except PeerError as error:
            if error.kind != "refused" or self._known is None or self._log is None:
                raise
            # It held that entry before, and no event announces a change of session.
            words = (
                f"pi has left the session {self._log.path}: an extension or another client of it took up another one."
            )
            raise PeerError(words, kind="session_moved") from refusal

    # ---- without one ------------------------------------------------------------------------------------------

    async def _fetch(self) -> str | None:
        entries, leaf = await self._ask(self._fetched)
        for raw in entries:
            line = read_line(raw)
            self._memory.add(line)
            self._fetched = line.id
        return leaf

    async def _from_memory(self, characters: int) -> Transcript:
        leaf = await self._fetch()
        if leaf is None:
            return Transcript(())
        view = self._memory.view(leaf, characters)
        if not view.complete:
            # More than was kept, or another branch: take the whole session again.
            self._memory, self._fetched = Tail(), None
            await self._fetch()
            view = self._memory.view(leaf, characters)
        return self._memory.transcript(view, leaf)


@contextlib.contextmanager
def _unreadable(log: SessionLog) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = f"The session file {log.path} can't be read: {error.strerror or error}."
        raise PeerError(words, kind="unreadable") from error
