"""The locks: one controller per session, one pi per session, one writer per state file. The one filelock import.

Knows nothing of what they protect. All are kernel locks (flock): a dead process holds none, whatever its lock file
says, and where there is no flock nothing is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from goalkeeper.errors import SessionHeldError
from goalkeeper.storage.holder import HolderInfo, is_held, no_flock, read_note, require_flock
from goalkeeper.storage.paths import controller_lock, worker_lock_path

_PROBE_PATIENCE = 0.3  # seconds: someone who only asks who holds a lock has it for an instant
_STATE_PATIENCE = 10.0  # seconds for the short lock of a state file
_WORKER_POLL = 0.05
_OF_A_WORKER = ("worker", "pi")
_NO_FLOCK = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)

with contextlib.suppress(ImportError):  # absent on Windows, where `require_flock` refuses
    import fcntl


class SessionLock:
    """A held session. Give it back with `release`, or by ending the process.

    Attributes:
        before: what the controller before this one had written.
    """

    def __init__(self, lock: FileLock, fd: int, note: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        self.before = before
        self._lock = lock
        self._fd = fd
        # Its pi may still run: whoever comes after this one must know of it, too, until there is another pi.
        self._note = {name: before[name] for name in _OF_A_WORKER if name in before} | dict(note)

    def update(self, **fields: Any) -> None:
        """Change what others read about this controller, e.g. `control="/path/of/socket"`."""
        self._note |= fields
        data = json.dumps(self._note).encode()
        # In place: another file under this name would be another lock. A reader may meet half of it, and copes.
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))

    def release(self) -> None:
        """Give the session back. Idempotent."""
        self._lock.release(force=True)


def hold_session(session_file: str | Path, info: Mapping[str, Any]) -> SessionLock:
    """Become the one controller of a session.

    Args:
        session_file: the session file; it need not exist.
        info: what others shall read: pid, command, started (seconds since the epoch), control (socket path). JSON.

    Raises:
        SessionHeldError: another controller has it; the message says which.
        PrerequisiteError: there is no flock, or the folder is not writable.
    """
    path = controller_lock(session_file)
    opened: list[int] = []
    lock = _kernel_lock(path, opened)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=_PROBE_PATIENCE)
        # Read under the lock: the controller before this one can have written until its very end.
        held = SessionLock(lock, opened[-1], info, read_note(path).note)
        held.update()
    except Timeout:
        raise _held(session_file, read_note(path)) from None
    except OSError as error:
        lock.release(force=True)
        raise no_flock(path, error) from error
    return held


def worker_lock(key: str | Path) -> int:
    """Return an inheritable file descriptor whose lock lasts as long as any process has it open.

    Pass it to pi (`pass_fds`) and close it here: then the lock tells whether that pi still runs.

    Raises:
        SessionHeldError: a pi with this key runs already.
        PrerequisiteError: there is no flock, or the folder is not writable.
    """
    require_flock()
    path = worker_lock_path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise no_flock(path, error) from error
    try:
        _lock_within(fd, _PROBE_PATIENCE)
        os.set_inheritable(fd, True)
    except BlockingIOError:
        os.close(fd)
        raise SessionHeldError(
            f"A pi process still works under {key}.",
            "A controller that is gone started it; wait for it or end it.",
        ) from None
    except OSError as error:
        os.close(fd)
        raise no_flock(path, error) from error
    return fd


async def wait_worker_gone(key: str | Path, timeout: float) -> bool:
    """Wait until the pi that was given this key runs no more.

    Args:
        key: as for `worker_lock`.
        timeout: seconds to wait at most.

    Returns:
        Whether it is gone.
    """
    path = worker_lock_path(key)
    deadline = time.monotonic() + timeout
    while is_held(path):
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_WORKER_POLL)
    return True


def drop_worker_lock(key: str | Path) -> None:
    """Remove the lock file of a worker that is gone for good; one that is still held stays."""
    path = worker_lock_path(key)
    with contextlib.suppress(OSError):
        if not is_held(path):
            path.unlink()


@contextlib.contextmanager
def state_lock(path: Path) -> Iterator[None]:
    """Hold the short lock of a state file.

    Args:
        path: the lock file; its folder must exist.

    Raises:
        OSError: it can't be created, or was held by others for 10 seconds (TimeoutError).
        PrerequisiteError: there is no flock.
    """
    lock = _kernel_lock(path)
    try:
        lock.acquire(timeout=_STATE_PATIENCE, poll_interval=0.005)
    except Timeout as error:
        raise TimeoutError(f"{path} is held by another process") from error
    except OSError as error:
        if error.errno in _NO_FLOCK:
            raise no_flock(path, error) from error
        raise
    try:
        yield
    finally:
        lock.release()


def _kernel_lock(path: Path, opened: list[int] | None = None) -> FileLock:
    """Return a lock that never falls back to a mere lock file, not yet taken; `opened` gets its descriptor."""
    require_flock()
    return FileLock(
        path,
        mode=0o600,
        thread_local=False,
        poll_interval=0.02,
        fallback_to_soft=False,
        on_acquired=None if opened is None else opened.append,
    )


def _lock_within(fd: int, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _held(session_file: str | Path, info: HolderInfo) -> SessionHeldError:
    who = f"process {info.pid}" if info.pid else "another process"
    command = f" ({info.command})" if info.command else ""
    since = f", since {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(info.started))}" if info.started else ""
    return SessionHeldError(
        f"Session {session_file} is controlled by {who}{command}{since}.",
        "Steer it from any terminal with `goal` or `goal clear`; nothing was changed.",
    )
