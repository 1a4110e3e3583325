"""The control socket: how another terminal asks and steers a running controller.

Knows nothing of goals: it carries one JSON line there and one back.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import stat
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from goalkeeper.errors import GoalkeeperError, PeerError, PrerequisiteError, UsageError

Answer = dict[str, Any]
Answerer = Callable[[Mapping[str, Any]], Awaitable[Answer]]

MAX_REQUEST = 1_000_000
"""Bytes of one request; a condition of 8,000 characters is far below it."""

MAX_FOLDER = 72
"""Bytes of a folder's path in which a socket's path still is below the 104 that every system takes."""

_SOCKET_NAME = re.compile(r"control-[0-9a-f]{12}\.sock")

ANSWER_TIMEOUT = 10.0
"""Seconds that a terminal waits for a controller's answer."""


def runtime_folder() -> Path:
    """Return this user's private folder for sockets and worker locks, made if need be.

    Raises:
        PrerequisiteError: the folder belongs to somebody else or can't be made.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    uid = os.getuid()
    # A relative one is invalid by its specification: it would be made in the user's project.
    folder = base / "goalkeeper" if base.is_absolute() else Path(tempfile.gettempdir()) / f"goalkeeper-{uid}"
    if len(os.fsencode(folder)) > MAX_FOLDER:
        folder = Path("/tmp") / f"goalkeeper-{uid}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise PrerequisiteError(f"{folder} can't be made: {error.strerror}.", "Set XDG_RUNTIME_DIR.") from error
    if found.st_uid != uid or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        raise PrerequisiteError(f"{folder} is not private to this user.", "Remove it, or set XDG_RUNTIME_DIR.")
    return folder


def drop_socket(path: object) -> None:
    """Remove the socket of a controller that died without doing so; anything else of that name stays."""
    if not isinstance(path, str) or not _SOCKET_NAME.fullmatch(Path(path).name):
        return
    with contextlib.suppress(OSError, ValueError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            Path(path).unlink()


class ControlServer:
    """Listens for other terminals of the same user.

    Args:
        answer: called with each request; its result goes back. A `GoalkeeperError` goes back as a refusal.
    """

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self.path = ""

    async def start(self) -> None:
        """Listen; `path` is the socket then.

        Raises:
            PrerequisiteError: no socket can be made in the runtime folder.
        """
        path = runtime_folder() / f"control-{uuid.uuid4().hex[:12]}.sock"
        try:
            self._server = await asyncio.start_unix_server(self._serve, path=path, limit=MAX_REQUEST)
        except OSError as error:  # a path of more than about 100 bytes is too long for a socket
            raise PrerequisiteError(f"{path} can't be listened on: {error}.", "Set XDG_RUNTIME_DIR.") from error
        self.path = str(path)

    async def close(self) -> None:
        """Stop listening and remove the socket. Idempotent."""
        if self._server:
            self._server.close()
            self._server = None
            Path(self.path).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            line = await reader.readuntil(b"\n")
            writer.write(json.dumps(await self._reply(line)).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _reply(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise UsageError("A request is one JSON object.")
            return {"ok": True, **await self._answer(request)}
        except ValueError as error:
            return {"ok": False, "error": f"The request can't be read: {error}", "hint": ""}
        except GoalkeeperError as error:
            again = isinstance(error, PeerError)
            return {"ok": False, "error": error.message, "hint": error.hint, "again": again}


def ask(path: str, request: Mapping[str, Any], timeout: float = ANSWER_TIMEOUT) -> Answer:
    """Ask the controller that listens on `path`; blocking.

    Raises:
        UsageError: it refused, with its own words.
        PeerError: kind "unreachable" when nobody answers, or when the one who does is ending.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(path)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as file:
                answer = json.loads(file.readline())
    except TimeoutError as error:
        raise PeerError(
            f"The controller of this session did not answer within {timeout:g} s.",
            "It may be stopped (Ctrl-Z); it then does what it was asked for when it goes on.",
            kind="unreachable",
        ) from error
    except (OSError, ValueError) as error:
        raise PeerError(f"The controller of this session does not answer: {error}.", kind="unreachable") from error
    if answer.get("again"):
        raise PeerError(str(answer.get("error")), str(answer.get("hint") or ""), kind="unreachable")
    if not answer.get("ok"):
        raise UsageError(str(answer.get("error")), str(answer.get("hint") or ""))
    return dict(answer)
