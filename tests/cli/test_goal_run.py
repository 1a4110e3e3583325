"""`goal clear` beside a controller that is just ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.cli.goal_run import clear
from goalkeeper.core.state import GoalState, Pause, SessionState
from goalkeeper.errors import PeerError
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.control import ControlServer
from goalkeeper.runtime.store import StateStore
from goalkeeper.storage.locks import SessionLock, hold_session

PAUSED = GoalState("g1", "it works", 1, pause=Pause("interrupted", "interrupted"))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "s.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    StateStore(str(tmp_path), str(path), SystemClock(), pytest.fail).save(SessionState(goal=PAUSED))
    return path


@pytest.fixture
def ending(session: Path) -> Iterator[SessionLock]:
    """A controller that refuses whatever it is asked, because it is ending, and has given the session back then."""
    lock = hold_session(session, {"pid": 1})

    async def refuse(request: Mapping[str, Any]) -> dict[str, Any]:
        loop.call_soon(lock.release)
        raise PeerError("The controller of this session is ending.", kind="ending")

    loop = asyncio.new_event_loop()
    server = ControlServer(refuse)
    loop.run_until_complete(server.start())
    lock.update(control=server.path)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield lock
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.run_until_complete(server.close())
    loop.close()
    lock.release()


def test_a_clear_waits_for_a_controller_that_is_ending_and_clears_what_it_left(
    ending: SessionLock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clear(str(tmp_path), None, as_json=False) == 0
    assert capsys.readouterr().out == "Goal cleared: it works\n"
    assert not (tmp_path / ".pi-goal" / "state.json").exists()
