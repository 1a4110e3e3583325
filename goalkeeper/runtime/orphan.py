"""The pi of a controller that died: how a later controller knows of it, waits for its end, and ends it.

Knows nothing of sessions: a worker has a key of its own, which stands in the note of the controller's lock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Mapping
from typing import Any

from goalkeeper.errors import SessionHeldError
from goalkeeper.runtime.control import drop_socket, runtime_folder
from goalkeeper.storage.locks import drop_worker_lock, wait_worker_gone

ORPHAN_PATIENCE = 5.0
"""Seconds that a dead controller's pi has to end by itself: it does so when its standard input closes."""


def new_worker_key() -> str:
    """Return the key of a new worker, for `worker_lock`."""
    return str(runtime_folder() / f"worker-{uuid.uuid4().hex[:12]}")


async def end_orphan(note: Mapping[str, Any], patience: float = ORPHAN_PATIENCE) -> None:
    """See to it that the pi of an earlier controller is gone, and its control socket, too.

    Args:
        note: what that controller wrote beside its lock; `worker` is the key of its pi, `pi` the process id,
            `control` its socket.
        patience: seconds that each step waits: for an end by itself, after TERM, after KILL.

    Raises:
        SessionHeldError: it can't be ended.
    """
    drop_socket(note.get("control"))
    key, pid = note.get("worker"), note.get("pi")
    if not isinstance(key, str):
        return
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        # Its lock is still held, so the process id can't have been given away.
        if number and isinstance(pid, int) and pid > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)
        if await wait_worker_gone(key, patience):
            drop_worker_lock(key)
            return
    raise SessionHeldError(f"A pi (process {pid}) of an earlier controller still works on this session.", "End it.")
