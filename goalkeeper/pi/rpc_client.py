"""An RPC conversation with one running pi: ask, get the answer; events arrive in a queue.

Knows nothing of runs or goals: it does not interpret events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from goalkeeper.errors import PeerError
from goalkeeper.pi.process import PiProcess
from goalkeeper.pi.rpc_protocol import Answer, Malformed, PeerEvent, RpcProtocol, encode

DEFAULT_TIMEOUT = 30.0


class RpcClient:
    """One conversation. Start it with `start`, end it with `close`.

    Attributes:
        events: everything that is not an answer, in order; None when the process has ended.
        malformed: how many records could not be used, and the last of them in `last_malformed`.
    """

    def __init__(self) -> None:
        self.events: asyncio.Queue[PeerEvent | None] = asyncio.Queue()
        self.malformed = 0
        self.last_malformed: Malformed | None = None
        self._protocol = RpcProtocol()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._process: PiProcess | None = None

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> None:
        """Start the process; see `PiProcess.start` for arguments and errors."""
        self._process = await PiProcess.start(
            argv, cwd=cwd, env=env, on_output=self._receive, on_end=self._end, pass_fds=pass_fds
        )

    @property
    def process(self) -> PiProcess:
        """The process behind the conversation.

        Raises:
            PeerError: kind "exited": it was never started.
        """
        if self._process is None:
            raise PeerError("pi is not running.", kind="exited")
        return self._process

    async def request(self, command: str, /, *, timeout: float | None = DEFAULT_TIMEOUT, **fields: Any) -> Any:
        """Ask pi for `command` and return the data of its answer.

        Args:
            command: pi's name of the command.
            timeout: seconds until the answer is given up, None to wait as long as the process lives.
            fields: the command's fields; those that are None are left out.

        Raises:
            PeerError: kind "refused" with pi's words, "timeout", or "exited".
        """
        present = {name: value for name, value in fields.items() if value is not None}
        request_id, data = self._protocol.request(command, present)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            self.process.write(data)
            answer = await asyncio.wait_for(future, timeout)
        except TimeoutError:
            raise PeerError(f"pi did not answer {command!r} within {timeout:g} s.", kind="timeout") from None
        finally:
            self._waiting.pop(request_id, None)
            self._protocol.forget(request_id)
        if not answer.success:
            raise PeerError(answer.error or f"pi refused {command!r}.", kind="refused")
        return answer.data

    def tell(self, record: dict[str, Any]) -> None:
        """Send a record that has no answer.

        Raises:
            PeerError: kind "exited".
        """
        self.process.write(encode(record))

    async def close(self, *, grace: float = 3.0) -> None:
        """End the process and all it started, bounded. Idempotent."""
        if self._process is not None:
            await self._process.close(grace=grace)

    def kill(self) -> None:
        """End the process and all it started at once."""
        if self._process is not None:
            self._process.kill()

    def _receive(self, data: bytes) -> None:
        for message in self._protocol.receive(data):
            if isinstance(message, PeerEvent):
                self.events.put_nowait(message)
            elif isinstance(message, Malformed):
                self.malformed += 1
                self.last_malformed = message
            else:
                future = self._waiting.get(message.id)
                if future is not None and not future.done():
                    future.set_result(message)

    def _end(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerError("pi ended before it answered.", kind="exited"))
        self.events.put_nowait(None)
