from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from goalkeeper.errors import PrerequisiteError, SessionHeldError
from goalkeeper.storage import locks
from goalkeeper.storage.holder import HolderInfo, holder, is_held
from goalkeeper.storage.locks import drop_worker_lock, hold_session, state_lock, wait_worker_gone, worker_lock
from goalkeeper.storage.paths import controller_lock, worker_lock_path

HOLD = """
import os, sys
from goalkeeper.storage.locks import hold_session
lock = hold_session(sys.argv[1], {"pid": os.getpid(), "command": "goal 'all tests pass'", "started": 1700000000})
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "2026-11-30T20-09-44-141Z_01a22e13.jsonl"


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    process.send_signal(how)
    process.communicate(timeout=30)


def test_the_second_controller_is_told_who_has_the_session(session: Path) -> None:
    process = start(HOLD, str(session))
    try:
        before = controller_lock(session).read_bytes()
        with pytest.raises(SessionHeldError) as caught:
            hold_session(session, {"pid": 1})
        message = caught.value.message
        assert str(process.pid) in message
        assert "goal 'all tests pass'" in message
        assert "2023-11-1" in message
        assert controller_lock(session).read_bytes() == before
    finally:
        end(process, signal.SIGKILL)


def test_a_session_is_one_by_whatever_path_it_is_named(session: Path, tmp_path: Path) -> None:
    session.parent.mkdir()
    (tmp_path / "link").symlink_to(session.parent)
    lock = hold_session(session, {"pid": os.getpid()})
    with pytest.raises(SessionHeldError):
        hold_session(tmp_path / "link" / session.name, {})
    lock.release()


def test_a_dead_controller_holds_nothing(session: Path) -> None:
    end(start(HOLD, str(session)), signal.SIGKILL)
    assert json.loads(controller_lock(session).read_text())["command"] == "goal 'all tests pass'"
    assert holder(session) is None
    hold_session(session, {"pid": os.getpid()}).release()


@pytest.mark.parametrize(
    "note", [b"", b"garbage\xff", b"[]", b"1", b'{"pid": 1}', b'{"pid": "x", "started": []}', b"[" * 9999]
)
def test_what_a_lock_file_says_does_not_lock(session: Path, note: bytes) -> None:
    session.parent.mkdir()
    controller_lock(session).write_bytes(note)
    assert holder(session) is None
    lock = hold_session(session, {"pid": os.getpid(), "command": "mine"})
    found = holder(session)
    assert found is not None
    assert (found.pid, found.command) == (os.getpid(), "mine")
    lock.release()


def test_a_holder_whose_note_is_garbage_is_still_a_holder(session: Path) -> None:
    lock = hold_session(session, {"pid": os.getpid()})
    controller_lock(session).write_bytes(b"\0\xff")
    assert holder(session) == HolderInfo()
    with pytest.raises(SessionHeldError, match="another process"):
        hold_session(session, {})
    lock.release()


def test_the_note_can_be_changed_and_asking_disturbs_nobody(session: Path) -> None:
    lock = hold_session(session, {"pid": os.getpid(), "command": "c" * 200, "started": 5})
    lock.update(command="short", control="/run/socket")
    found = holder(session)
    assert found is not None
    assert (found.pid, found.command, found.started, found.control) == (os.getpid(), "short", 5.0, "/run/socket")
    for _ in range(50):
        assert holder(session) is not None
    lock.release()
    lock.release()
    assert holder(session) is None


def test_taking_a_session_outlasts_those_who_only_ask(session: Path) -> None:
    hold_session(session, {}).release()
    code = (
        "import sys, fcntl\nfile = open(sys.argv[1])\nfcntl.flock(file, fcntl.LOCK_SH)\nprint('held', flush=True)\n"
        "sys.stdin.readline()\nfcntl.flock(file, fcntl.LOCK_UN)\nsys.stdin.read()"
    )
    process = start(code, str(controller_lock(session)))
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()
    hold_session(session, {}).release()
    end(process, signal.SIGKILL)


def test_a_child_of_the_controller_does_not_inherit_the_session(session: Path) -> None:
    lock = hold_session(session, {"pid": os.getpid()})
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    lock.release()
    try:
        assert holder(session) is None
    finally:
        process.communicate(b"\n", timeout=30)


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_flock_nothing_is_run(session: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_flock(fd: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    hold_session(session, {}).release()
    worker = worker_lock(session)
    monkeypatch.setattr(fcntl, "flock", no_flock)
    with pytest.raises(PrerequisiteError, match="can't be locked"):
        hold_session(session, {})
    with pytest.raises(PrerequisiteError, match="can't be locked"):
        holder(session)
    with pytest.raises(PrerequisiteError, match="can't be locked"):
        worker_lock(session)
    with pytest.raises(PrerequisiteError, match="can't be locked"), state_lock(session.with_name("state")):
        pytest.fail("it ran unlocked")
    os.close(worker)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PrerequisiteError):
        hold_session(tmp_path / "file" / "s.jsonl", {})
    with pytest.raises(PrerequisiteError):
        worker_lock(tmp_path / "file" / "s.jsonl")


WORKER = "import os, sys\nprint('held', flush=True)\nsys.stdin.read()"


async def test_the_lock_of_a_worker_lasts_as_long_as_the_worker(session: Path) -> None:
    assert not is_held(worker_lock_path(session))
    fd = worker_lock(session)
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", WORKER], pass_fds=(fd,), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    os.close(fd)
    try:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        assert is_held(worker_lock_path(session))
        drop_worker_lock(session)
        assert is_held(worker_lock_path(session))
        assert not await wait_worker_gone(session, 0.01)
        with pytest.raises(SessionHeldError, match="still works"):
            worker_lock(session)
    finally:
        end(process, signal.SIGKILL)
    assert await wait_worker_gone(session, 5)
    os.close(worker_lock(session))
    drop_worker_lock(session)
    assert not worker_lock_path(session).exists()


def test_the_note_of_the_controller_before_is_handed_on_until_there_is_another_worker(session: Path) -> None:
    """Else a pi that outlived its controller would be forgotten by the first command that takes the session."""
    first = hold_session(session, {"pid": 1})
    first.update(worker="/run/worker-1", pi=11)
    first.release()
    second = hold_session(session, {"pid": 2})
    assert second.before["worker"] == "/run/worker-1"
    second.release()
    third = hold_session(session, {"pid": 3})
    assert (third.before["worker"], third.before["pi"], third.before["pid"]) == ("/run/worker-1", 11, 2)
    third.update(worker="/run/worker-3", pi=33)
    third.release()
    fourth = hold_session(session, {"pid": 4})
    assert fourth.before["worker"] == "/run/worker-3"
    fourth.release()


def test_the_state_lock_lets_one_in_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_STATE_PATIENCE", 0.05)
    with state_lock(tmp_path / "lock"), pytest.raises(TimeoutError), state_lock(tmp_path / "lock"):
        pytest.fail("two are in")
    with state_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_the_read_side_needs_neither_filelock_nor_pydantic(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom goalkeeper.storage import holder, read_state\n"
        "holder.holder(sys.argv[1])\nread_state.read_states('.')\n"
        "assert not {'filelock', 'pydantic', 'asyncio'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s.jsonl")], check=True, timeout=60)
