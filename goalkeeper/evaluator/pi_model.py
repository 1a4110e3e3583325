"""A model client over a throwaway pi process: for providers that only pi can reach with its credentials.

Knows nothing of evaluators. No tool can ever be on: there are none, and nothing is loaded that could register one.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.pi.install import PiCommand
from goalkeeper.pi.rpc_client import RpcClient
from goalkeeper.pi.run_events import usage_of
from goalkeeper.ports import ModelReply, ModelRequest

_BARE = (
    "--mode", "rpc",
    "--no-session",
    "--no-tools",
    "--no-extensions",  # tools of extensions survive --no-tools
    "--no-skills",
    "--no-prompt-templates",
    "--no-themes",
    "--no-context-files",
    "--no-approve",
    "--thinking", "minimal",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PiModelConfig:
    """Which pi, and which of its models.

    Attributes:
        pi: how to run pi.
        provider: pi's provider id.
        model_id: the model's id.
        env: variables added to this process's environment.
        close_grace: seconds that each step of the end waits for the process.
    """

    pi: PiCommand
    provider: str
    model_id: str
    env: Mapping[str, str] = field(default_factory=dict)
    close_grace: float = 2.0

    def argv(self, system: str) -> list[str]:
        """Return the whole command line for a question with this system text."""
        named = ["--provider", self.provider, "--model", self.model_id]
        return [*self.pi.argv, *_BARE, *named, "--system-prompt", system, "--append-system-prompt", ""]


class PiModel:
    """Asks one model through pi, in a process of its own for each question: no tools, no retries, no session file.

    Args:
        config: which pi, and which model.
    """

    def __init__(self, config: PiModelConfig) -> None:
        self._config = config
        self._running: set[RpcClient] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the model's answer; see `ModelClient`. pi has no way to pass a schema on."""
        client = RpcClient()
        self._running.add(client)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._ask(client, request)
        except TimeoutError:
            raise PeerError(f"No answer within {request.timeout:g} s.", kind="timeout") from None
        finally:
            await client.close(grace=self._config.close_grace)
            self._running.discard(client)

    async def close(self) -> None:
        """End the processes of questions that are still open. Idempotent."""
        await asyncio.gather(*(client.close(grace=self._config.close_grace) for client in list(self._running)))

    async def _ask(self, client: RpcClient, request: ModelRequest) -> ModelReply:
        await self._start(client, request.system)
        await client.request("set_auto_retry", enabled=False, timeout=None)
        # pi takes a text whose first character is a slash for a command; the model takes no notice of a blank there.
        text = f" {request.user}" if request.user.startswith("/") else request.user
        await client.request("prompt", message=text, timeout=None)
        answer: Mapping[str, Any] | None = None
        usage = Usage()
        while (event := await client.events.get()) is not None:
            if event.type == "message_end":
                message = event.body.get("message")
                if isinstance(message, dict) and message.get("role") == "assistant":
                    answer = message
                    usage = usage.plus(usage_of(message.get("usage")))
            elif event.type == "agent_settled":
                return _reply(answer, usage)
        raise PeerError("pi ended before it answered.", client.process.stderr_tail, kind="provider_error")

    async def _start(self, client: RpcClient, system: str) -> None:
        """Start pi in an empty folder, where no project can have a say."""
        env = self._config.pi.environment({**os.environ, **self._config.env})
        try:
            with tempfile.TemporaryDirectory(prefix="goalkeeper-evaluator-") as folder:
                await client.start(self._config.argv(system), cwd=folder, env=env)
                await client.request("get_state", timeout=None)
        except PrerequisiteError as error:
            raise PeerError(error.message, error.hint, kind="unavailable") from error
        except PeerError as error:
            raise PeerError(
                f"pi did not start: {error.message}", client.process.stderr_tail, kind="unavailable"
            ) from error


def _reply(message: Mapping[str, Any] | None, usage: Usage) -> ModelReply:
    if message is None:
        raise PeerError("pi settled without an answer.", kind="provider_error")
    reason = message.get("stopReason")
    if reason in ("error", "aborted"):
        raise PeerError(str(message.get("errorMessage") or f"The answer ended with {reason!r}."), kind="provider_error")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    return ModelReply(text, "length" if reason == "length" else "stop", usage)
