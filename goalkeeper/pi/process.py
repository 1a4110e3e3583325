"""The one place that starts pi: own process group, pipes, and an end that is bounded.

Knows nothing of the protocol that runs over the pipes.

Order of an end (aborting the run is the caller's job): close stdin, wait, TERM to the group, wait, KILL to the group,
then KILL what pi started and left behind. A pi that ends by itself and leaves nothing that holds its pipes has cleaned
up: what a command of its put into the background on purpose, such as a server, lives on. pi's shell commands run in
groups of their own, so they are found by what they inherited (a marker in the environment) and by descent, not by the
group.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from goalkeeper.errors import PeerError, PrerequisiteError

MARKER = "GOALKEEPER_WORKER_KEY"
_STDERR_TAIL = 8192
_PIPE_GRACE = 0.5
_POLL = 0.005


class PiProcess(asyncio.SubprocessProtocol):
    """A running pi. Make it with `PiProcess.start`.

    Attributes:
        pid: the process id, which is the group id too.
        returncode: exit status, negative for a signal, None while it runs.
    """

    def __init__(self, on_output: Callable[[bytes], None], on_end: Callable[[], None], marker: str) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self._on_output = on_output
        self._on_end = on_end
        self._marker = marker
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._ended = asyncio.Event()
        self._pipe_timer: asyncio.TimerHandle | None = None
        self._stdout_open = True

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        on_output: Callable[[bytes], None],
        on_end: Callable[[], None],
        pass_fds: Sequence[int] = (),
    ) -> PiProcess:
        """Start `argv` and return it.

        Args:
            argv: program and arguments.
            cwd: working folder.
            env: the whole environment; GOALKEEPER_WORKER is set to "1" unless it is there.
            on_output: gets stdout in pieces, as they arrive.
            on_end: called once, when the process has exited and its output was read.
            pass_fds: descriptors that the process inherits.

        Raises:
            PrerequisiteError: the program or the folder is not there.
        """
        marker = secrets.token_hex(16)
        full = {"GOALKEEPER_WORKER": "1", **env, MARKER: marker}
        if not Path(cwd).is_dir():
            raise PrerequisiteError(f"The working folder {cwd} does not exist.")
        try:
            _, process = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(on_output, on_end, marker),
                *map(_encoded, argv),
                cwd=cwd,
                env=full,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
        except OSError as error:
            raise PrerequisiteError(f"pi can't be started: {error}.", "Run `goalkeeper doctor`.") from error
        return process

    # ---- what asyncio tells -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport: a process that exits at once has exited before `start` returns."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport
        self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on stdout; keep the end of stderr for a person."""
        if fd == 1:
            self._on_output(data)
            return
        self._stderr.append(data)
        self._stderr_size += len(data)
        while len(self._stderr) > 1 and self._stderr_size - len(self._stderr[0]) >= _STDERR_TAIL:
            self._stderr_size -= len(self._stderr.popleft())

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note the end of stdout."""
        if fd == 1:
            self._stdout_open = False
            self._end_if_done()

    def process_exited(self) -> None:
        """Note the exit. A child that holds stdout open must not keep us waiting for its end."""
        assert self._transport is not None
        self.returncode = self._transport.get_returncode()
        self._exited.set()
        loop = asyncio.get_running_loop()
        self._pipe_timer = loop.call_later(_PIPE_GRACE, self._end)
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._exited.is_set() and not self._stdout_open:
            self._end()

    def _end(self) -> None:
        if self._pipe_timer is not None:
            self._pipe_timer.cancel()
        if not self._ended.is_set():
            self._ended.set()
            self._on_end()

    # ---- what callers do --------------------------------------------------------------------------------------

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr, for a person; never parsed."""
        return b"".join(self._stderr)[-_STDERR_TAIL:].decode("utf-8", "replace").strip()

    def write(self, data: bytes) -> None:
        """Write to stdin.

        Raises:
            PeerError: kind "exited": there is no process to write to.
        """
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if self._exited.is_set() or not isinstance(pipe, asyncio.WriteTransport) or pipe.is_closing():
            raise PeerError("pi is not running.", kind="exited")
        pipe.write(data)

    async def wait(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the exit; say whether it came."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), timeout)
        return self._exited.is_set()

    async def close(self, *, grace: float = 3.0) -> None:
        """End the process and what it started, waiting at most `grace` seconds for each step. Idempotent."""
        if self._transport is None:
            return
        family = descendants(self.pid, self._marker)
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        if await self.wait(grace) and self.returncode == 0 and await self._released():
            self._transport.close()
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if await self.wait(grace):
                break
            family |= descendants(self.pid, self._marker)
            _signal_group(self.pid, sign)
        await self.wait(grace)
        await self._end_family(family | descendants(self.pid, self._marker), grace)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _PIPE_GRACE * 2)
        self._transport.close()

    async def _released(self) -> bool:
        """Say whether nobody holds the pipes of a pi that has exited."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _PIPE_GRACE * 2)
        return not self._stdout_open

    def kill(self) -> None:
        """End the process and what it started at once, without waiting for anything."""
        if self._transport is not None:
            family = descendants(self.pid, self._marker)
            _signal_group(self.pid, signal.SIGKILL)
            for member in family:
                _kill(member)

    async def _end_family(self, family: set[tuple[int, str]], grace: float) -> None:
        _signal_group(self.pid, signal.SIGKILL)
        for member in family:
            _kill(member)
        waited = 0.0
        while waited < grace and any(_alive(member) for member in family):
            await asyncio.sleep(_POLL)
            waited += _POLL


def _encoded(argument: str) -> bytes:
    """Return an argument as bytes; node reads UTF-8, whatever the locale says of file names."""
    try:
        return os.fsencode(argument)
    except UnicodeEncodeError:
        return argument.encode("utf-8", "surrogateescape")


# ---- what pi left behind ---------------------------------------------------------------------------------------


def descendants(pid: int, marker: str) -> set[tuple[int, str]]:
    """Return what descends from `pid` or carries `marker`, as (pid, start time); empty without a /proc.

    The start time tells a process from a later one that got the same number.
    """
    proc = Path("/proc")
    if not proc.is_dir():
        return set()
    parents: dict[int, int] = {}
    started: dict[int, str] = {}
    marked: set[int] = set()
    needle = f"{MARKER}={marker}".encode()
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = _stat(folder)
            number = int(folder.name)
            parents[number], started[number] = int(fields[_PARENT]), fields[_STARTED]
            if needle in (folder / "environ").read_bytes():
                marked.add(number)
    found = {number for number in parents if number in marked or _descends(number, pid, parents)}
    return {(number, started[number]) for number in found if number != pid}


def _descends(number: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    seen: set[int] = set()
    while number in parents and number not in seen:
        seen.add(number)
        number = parents[number]
        if number == ancestor:
            return True
    return False


def _alive(member: tuple[int, str]) -> bool:
    number, start = member
    try:
        fields = _stat(Path(f"/proc/{number}"))
    except OSError:
        return False
    return fields[_STARTED] == start and fields[_STATE] not in "ZX"


def _kill(member: tuple[int, str]) -> None:
    # Between the look and the signal the number could be given away only after the process ended and was reaped.
    if _alive(member):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member[0], signal.SIGKILL)


def _signal_group(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


# Fields of /proc/PID/stat, counted behind the name in parentheses.
_STATE, _PARENT, _STARTED = 0, 1, 19


def _stat(folder: Path) -> list[str]:
    # The name may hold spaces and parentheses itself: count from the last one.
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
