from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from goalkeeper.testing.pi_home import pi_home

ELSEWHERE = ("192.0.2.1", 80)  # reserved for documentation: nobody is there


def test_a_connection_to_another_host_fails_the_test() -> None:
    with socket.socket() as connection, pytest.raises(pytest.fail.Exception, match="loopback only"):
        connection.connect(ELSEWHERE)


def test_a_connection_to_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=2).close()


def test_an_agent_folder_names_the_scripted_model_as_the_default(tmp_path: Path) -> None:
    cost = {"input": 1.0, "output": 2.0, "cacheRead": 0.1, "cacheWrite": 0.2}
    environment = pi_home(
        tmp_path / "agent",
        "http://127.0.0.1:1/v1",
        cost=cost,
        context_window=9000,
        settings={"retry": {"enabled": False}},
    )
    folder = Path(environment["PI_CODING_AGENT_DIR"])
    provider = json.loads((folder / "models.json").read_text("utf-8"))["providers"]["scripted"]
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    assert (provider["baseUrl"], provider["api"]) == ("http://127.0.0.1:1/v1", "openai-completions")
    assert (provider["models"][0]["contextWindow"], provider["models"][0]["cost"]) == (9000, cost)
    assert (settings["defaultProvider"], settings["defaultModel"]) == ("scripted", "scripted")
    assert settings["retry"] == {"enabled": False}
    assert environment["PI_OFFLINE"] == "1"


@pytest.mark.real_pi
def test_pi_in_the_test_environment_knows_no_other_model(
    pi: Path, agent_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    environment = agent_env("http://127.0.0.1:1/v1", pi=pi)
    done = subprocess.run(
        [str(pi), "--list-models"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line.split()[:2] for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    assert lines[1:] == [["scripted", "scripted"]]


def test_a_project_is_a_clean_checkout_with_one_commit(project: Path) -> None:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=project, capture_output=True, text=True, check=True).stdout

    assert git("status", "--short") == ""
    assert git("rev-list", "--count", "HEAD") == "1\n"


async def test_a_connection_of_the_event_loop_to_another_host_fails_the_test() -> None:
    with socket.socket() as connection:
        connection.setblocking(False)
        with pytest.raises(pytest.fail.Exception):
            await asyncio.get_running_loop().sock_connect(connection, ELSEWHERE)
