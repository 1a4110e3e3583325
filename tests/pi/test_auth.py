from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goalkeeper.pi.auth import AuthStatus, check_auth, resolve_api_key
from goalkeeper.pi.install import PiCommand, find_pi

SECRET = "sk-planted-secret"
FAKE = f"""
import sys, time
if sys.argv[2] == "print-api-key":
    print("{SECRET} on stderr", file=sys.stderr); sys.exit(1)
if sys.argv[2] == "print-bearer-token":
    print("{SECRET}")
"""


def fake(code: str, version: str = "1.6.0") -> PiCommand:
    return PiCommand((sys.executable, "-c", code), version=version)


@pytest.mark.real_pi
async def test_a_real_pi_tells_the_key_of_a_provider(pi: Path, agent_env: Callable[..., dict[str, str]]) -> None:
    env = agent_env("http://127.0.0.1:9/v1")
    command = find_pi({**env, "GOALKEEPER_PI": str(pi)})
    assert await resolve_api_key(command, "scripted", env=env) == "scripted-key"
    assert await resolve_api_key(command, "no-such-provider", env=env) is None
    assert await check_auth(command, "scripted", env=env) == AuthStatus(True)
    assert await check_auth(command, "no-such-provider", env=env) == AuthStatus(False, "provider_not_found")


async def test_a_bearer_token_stands_in_for_a_key() -> None:
    assert await resolve_api_key(fake(FAKE), "p") == SECRET


async def test_an_answer_that_does_not_come_is_no_key() -> None:
    assert await resolve_api_key(fake("import time; time.sleep(300)"), "p", timeout=0.05) is None


async def test_a_pi_that_can_not_be_started_has_no_key() -> None:
    assert await resolve_api_key(PiCommand(("/no/such/pi",), version="1.6.0"), "p") is None
    assert await check_auth(PiCommand(("/no/such/pi",), version="1.6.0"), "p") == AuthStatus(None, "pi gave no answer")


async def test_a_pi_that_would_take_the_question_for_a_prompt_is_not_asked(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    old = fake(f"open({str(asked)!r}, 'w')", version="0.82.0")
    assert await resolve_api_key(old, "p") is None
    assert (await check_auth(old, "p")).ready is None
    assert not asked.exists()
