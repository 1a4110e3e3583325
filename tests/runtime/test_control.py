"""The control socket: another terminal asks, one answer comes back, nothing else gets in."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.errors import PeerError, PrerequisiteError, UsageError
from goalkeeper.runtime.control import ControlServer, ask, drop_socket, runtime_folder


@pytest.fixture(autouse=True)
def private_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # pytest's own folders can be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="gk-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


async def answering(request: Mapping[str, Any]) -> dict[str, Any]:
    if request.get("do") == "refuse":
        raise UsageError("Not now.", "Later.")
    return {"echo": request.get("do")}


async def test_a_request_gets_its_answer_and_a_refusal_its_words() -> None:
    server = ControlServer(answering)
    await server.start()
    try:
        assert (await asyncio.to_thread(ask, server.path, {"do": "x"}))["echo"] == "x"
        with pytest.raises(UsageError, match="Not now") as refused:
            await asyncio.to_thread(ask, server.path, {"do": "refuse"})
        assert refused.value.hint == "Later."
        assert stat.S_IMODE(Path(server.path).parent.stat().st_mode) == 0o700
    finally:
        await server.close()
    assert not Path(server.path).exists()


async def test_a_controller_that_is_ending_counts_as_gone() -> None:
    async def ending(request: Mapping[str, Any]) -> dict[str, Any]:
        raise PeerError("It is ending.", kind="ending")

    server = ControlServer(ending)
    await server.start()
    try:
        with pytest.raises(PeerError, match="ending") as error:
            await asyncio.to_thread(ask, server.path, {"do": "clear"})
        assert error.value.kind == "unreachable"
    finally:
        await server.close()


async def test_a_folder_whose_name_is_too_long_for_a_socket_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    server = ControlServer(answering)
    await server.start()
    try:
        assert (await asyncio.to_thread(ask, server.path, {"do": "x"}))["echo"] == "x"
        assert list(deep.iterdir()) == []
    finally:
        await server.close()


@pytest.mark.parametrize("line", [b"no json\n", b"[1]\n", b"", b"x" * 2_000_000 + b"\n"])
async def test_nonsense_neither_answers_nor_ends_the_server(line: bytes) -> None:
    server = ControlServer(answering)
    await server.start()
    try:
        reader, writer = await asyncio.open_unix_connection(server.path)
        with contextlib.suppress(ConnectionError):
            writer.write(line)
            writer.write_eof()
            async with asyncio.timeout(10):
                await reader.read()
        writer.close()
        assert (await asyncio.to_thread(ask, server.path, {"do": "x"}))["echo"] == "x"
    finally:
        await server.close()


def test_a_controller_that_is_stopped_is_said_not_to_answer(private_runtime: Path) -> None:
    path = private_runtime / "stopped.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        with pytest.raises(PeerError, match="did not answer") as error:
            ask(str(path), {"do": "clear"}, timeout=0.05)
    assert "stopped" in error.value.hint


def test_a_controller_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(PeerError) as error:
        ask(str(tmp_path / "nobody.sock"), {"do": "clear"})
    assert error.value.kind == "unreachable"


def test_a_folder_that_others_can_open_is_refused(private_runtime: Path) -> None:
    folder = private_runtime / "goalkeeper"
    folder.mkdir(mode=0o700)
    folder.chmod(0o755)
    with pytest.raises(PrerequisiteError, match="not private"):
        runtime_folder()


def test_a_relative_runtime_folder_is_none_at_all(
    tmp_path: Path, private_runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    monkeypatch.setattr("tempfile.tempdir", str(private_runtime / "run"))
    assert runtime_folder().parent == private_runtime / "run"
    assert not (tmp_path / "relative").exists()


async def test_the_socket_of_a_dead_controller_is_removed_and_nothing_else(tmp_path: Path) -> None:
    server = ControlServer(answering)
    await server.start()
    other = tmp_path / "control-0123456789ab.sock"
    other.write_text("no socket")
    link = tmp_path / "other.sock"
    link.symlink_to(server.path)
    for path in (None, 7, str(other), str(link), str(tmp_path / "gone.sock"), "\0"):
        drop_socket(path)
    assert other.exists() and link.is_symlink() and Path(server.path).exists()
    drop_socket(server.path)
    assert not Path(server.path).exists()
    await server.close()
