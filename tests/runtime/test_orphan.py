"""The pi of a controller that died: waited for, ended by force, and never taken for another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalkeeper.errors import SessionHeldError
from goalkeeper.runtime.orphan import end_orphan, new_worker_key
from goalkeeper.storage.locks import worker_lock
from goalkeeper.storage.paths import worker_lock_path

STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
signal.pause()
"""


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return new_worker_key()


@pytest.fixture
def orphan(key: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the worker's lock, has a group of its own, and takes no notice of TERM."""
    fd = worker_lock(key)
    command = [sys.executable, "-c", STUBBORN]
    process = subprocess.Popen(command, pass_fds=(fd,), stdout=subprocess.PIPE, text=True, start_new_session=True)
    os.close(fd)
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.communicate(timeout=30)


async def test_an_orphan_that_ignores_term_is_killed_and_its_lock_file_removed(
    key: str, orphan: subprocess.Popen[str]
) -> None:
    await end_orphan({"worker": key, "pi": orphan.pid}, patience=0.1)
    assert orphan.wait(30) == -signal.SIGKILL
    assert not worker_lock_path(key).exists()


async def test_an_orphan_of_unknown_number_holds_the_session(key: str, orphan: subprocess.Popen[str]) -> None:
    with pytest.raises(SessionHeldError, match="earlier controller"):
        await end_orphan({"worker": key, "pi": None}, patience=0.05)
    assert orphan.poll() is None


async def test_a_worker_that_is_gone_is_not_looked_for_by_its_number(key: str) -> None:
    """The number belongs to somebody else by now: here, to this test itself."""
    os.close(worker_lock(key))
    await end_orphan({"worker": key, "pi": os.getpid()}, patience=0.05)
    await end_orphan({"pi": os.getpid()}, patience=0.05)
    assert not worker_lock_path(key).exists()
