from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.pi.process import PiProcess

BOUND = 20.0


class Started:
    def __init__(self) -> None:
        self.output = bytearray()
        self.ends = 0
        self.process: PiProcess

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND
        while not condition():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.005)

    async def start(self, code: str, folder: Path, **fields: object) -> PiProcess:
        def end() -> None:
            self.ends += 1

        self.process = await PiProcess.start(
            [sys.executable, "-c", code],
            cwd=str(folder),
            env=dict(os.environ),
            on_output=self.output.extend,
            on_end=end,
            **fields,  # type: ignore[arg-type]
        )
        return self.process


@pytest.fixture
async def started() -> AsyncIterator[Started]:
    started = Started()
    yield started
    await started.process.close(grace=0.5)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def test_an_orderly_end_is_the_end_of_its_input(started: Started, tmp_path: Path) -> None:
    process = await started.start("import sys; sys.stdin.read(); print('bye'); sys.exit(7)", tmp_path)
    assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
    await process.close(grace=BOUND)
    assert (process.returncode, bytes(started.output), started.ends) == (7, b"bye\n", 1)
    await process.close()
    assert started.ends == 1


async def test_what_ignores_the_end_of_input_gets_term_and_then_kill(started: Started, tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
    )
    process = await started.start(deaf, tmp_path)
    await started.until(lambda: bool(started.output))
    await process.close(grace=0.1)
    assert process.returncode == -9


LEAVES_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(child.pid, flush=True)
"""


async def test_a_child_in_its_own_group_that_holds_the_pipes_keeps_nobody_waiting(
    started: Started, tmp_path: Path
) -> None:
    process = await started.start(LEAVES_CHILD, tmp_path)
    await started.until(lambda: started.ends == 1)
    child = int(bytes(started.output))
    assert process.returncode == 0 and alive(child)
    await asyncio.wait_for(process.close(grace=5), BOUND)
    assert not alive(child)


async def test_a_program_that_was_not_ours_is_left_alone(started: Started, tmp_path: Path) -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    await (await started.start("input()", tmp_path)).close(grace=5)
    assert other.returncode is None and alive(other.pid)
    other.stdin.close()  # type: ignore[union-attr]
    await other.wait()


async def test_the_end_of_stderr_is_kept_for_a_person(started: Started, tmp_path: Path) -> None:
    code = (
        "import sys\nfor i in range(9999): print('noise', file=sys.stderr)\nsys.stderr.buffer.write(b'last \\x90 word')"
    )
    process = await started.start(code, tmp_path)
    await started.until(lambda: started.ends == 1)
    assert process.stderr_tail.endswith("last \ufffd word")
    assert len(process.stderr_tail) <= 8192


async def test_writing_to_a_process_that_ended_says_so(started: Started, tmp_path: Path) -> None:
    process = await started.start("pass", tmp_path)
    await started.until(lambda: started.ends == 1)
    with pytest.raises(PeerError) as caught:
        process.write(b"x\n")
    assert caught.value.kind == "exited"


async def test_the_environment_says_that_this_is_a_worker(started: Started, tmp_path: Path) -> None:
    await started.start("import os; print(os.environ['GOALKEEPER_WORKER'])", tmp_path)
    await started.until(lambda: started.ends == 1)
    assert bytes(started.output) == b"1\n"


async def test_what_can_not_be_started_is_a_prerequisite(tmp_path: Path) -> None:
    for argv, cwd in ((["/no/such/program"], tmp_path), ([sys.executable], tmp_path / "gone")):
        with pytest.raises(PrerequisiteError):
            await PiProcess.start(argv, cwd=str(cwd), env={}, on_output=lambda _: None, on_end=lambda: None)


def test_an_argument_that_the_locale_has_no_letters_for_arrives_as_utf_8(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, sys; from goalkeeper.pi.process import PiProcess\n"
        "async def main():\n"
        "    out = bytearray()\n"
        "    show = 'import os, sys; os.write(1, os.fsencode(sys.argv[1]))'\n"
        "    argv = [sys.executable, '-c', show, '\\u2026 \\u2603']\n"
        "    p = await PiProcess.start(argv, cwd='.', env=os.environ, on_output=out.extend, on_end=lambda: None)\n"
        "    await p.wait(20); await p.close(); os.write(1, out)\n"
        "asyncio.run(main())"
    )
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **locale}, capture_output=True, timeout=60
    )
    assert done.stdout.decode() == "… ☃", done.stderr.decode()
