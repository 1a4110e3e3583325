"""Asks pi for the credentials that it resolves for a provider.

Knows nothing of what they are used for. A credential is returned and nothing else: it is in no log and no exception.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from goalkeeper.pi.install import PiCommand, version_numbers

TIMEOUT = 15.0
# Older versions would take the words "auth check" for a prompt and ask their model.
_EXPORT_SINCE = (0, 83, 0)
_CHECK_SINCE = (0, 84, 1)


@dataclass(frozen=True, slots=True)
class AuthStatus:
    """Whether pi has credentials for a provider.

    Attributes:
        ready: it has; None when this pi can't tell.
        reason: pi's word for why not, empty otherwise.
    """

    ready: bool | None
    reason: str = ""


async def resolve_api_key(
    pi: PiCommand, provider: str, *, env: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> str | None:
    """Return the API key, else the bearer token, that pi uses for `provider`; None if there is none.

    Args:
        pi: how to run pi.
        provider: pi's provider id.
        env: variables added to this process's environment.
        timeout: seconds for each of the two questions.
    """
    if version_numbers(pi.version) < _EXPORT_SINCE:
        return None
    for question in ("print-api-key", "print-bearer-token"):
        status, output = await _ask(pi, [question, "--provider", provider], env, timeout)
        if status == 0 and output:
            return output
    return None


async def check_auth(
    pi: PiCommand, provider: str, *, env: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> AuthStatus:
    """Say whether pi has credentials for `provider`, without asking the provider."""
    if version_numbers(pi.version) < _CHECK_SINCE:
        return AuthStatus(None, "this version of pi can't tell")
    _, output = await _ask(pi, ["check", "--provider", provider, "--json", "--no-refresh"], env, timeout)
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or "status" not in answer:
        return AuthStatus(None, "pi gave no answer")
    return AuthStatus(answer["status"] == "ready", str(answer.get("reason") or ""))


async def _ask(
    pi: PiCommand, arguments: list[str], env: Mapping[str, str] | None, timeout: float
) -> tuple[int | None, str]:
    """Run `pi auth ...`; return its status, None if it did not end by itself, and its output. stderr is dropped."""
    try:
        process = await asyncio.create_subprocess_exec(
            *pi.argv,
            "auth",
            *arguments,
            env=pi.environment({**os.environ, **(env or {})}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None, ""
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except TimeoutError:
        return None, ""
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode, output.decode("utf-8", "replace").strip()
