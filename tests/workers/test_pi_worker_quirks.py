"""What a real pi does that the port does not show, and what the worker makes of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.pi.install import find_pi
from goalkeeper.ports import (
    Compacted,
    QuestionAsked,
    RetryScheduled,
    RunSettled,
    RunStarted,
    ToolEnded,
    ToolStarted,
    WorkerEvent,
    WorkerExited,
    WorkerNotice,
)
from goalkeeper.testing.model_steps import Calls, Hang, HttpError, Length, Step, Text, Tokens, ToolUse, bash
from goalkeeper.workers.pi_worker import EPHEMERAL, PiWorker, PiWorkerConfig

pytestmark = pytest.mark.real_pi
BOUND = 20.0
Make = Callable[..., PiWorker]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def make(folder: Path, scripted_model: Any, agent_env: Callable[..., dict[str, str]]) -> AsyncIterator[Make]:
    """A factory of workers over real pi with a script for its model; they are closed at the end."""
    workers: list[PiWorker] = []

    def build(
        *steps: Step, home: dict[str, Any] | None = None, env: dict[str, str] | None = None, **fields: Any
    ) -> PiWorker:
        whole = {**agent_env(scripted_model(list(steps)), **(home or {})), **(env or {})}
        worker = PiWorker(PiWorkerConfig(find_pi(whole), str(folder), env=whole, **fields))
        workers.append(worker)
        return worker

    yield build
    for worker in workers:
        await worker.close()


async def until(worker: PiWorker, kind: type[WorkerEvent]) -> list[WorkerEvent]:
    seen: list[WorkerEvent] = []

    async def collect() -> None:
        async for event in worker.events():
            seen.append(event)
            if isinstance(event, kind):
                return

    await asyncio.wait_for(collect(), BOUND)
    return seen


async def run(worker: PiWorker, text: str) -> tuple[list[WorkerEvent], RunSettled]:
    await worker.send(text)
    seen = await until(worker, RunSettled)
    settled = seen[-1]
    assert isinstance(settled, RunSettled)
    return seen, settled


async def test_the_information_names_the_model_and_a_session_file_that_is_not_there_yet(
    make: Make, folder: Path
) -> None:
    prices = {"input": 1.0, "output": 2.0, "cacheRead": 0.5, "cacheWrite": 0.0}
    info = await make(Text("x"), home={"cost": prices}).start()
    assert info.model is not None
    assert (info.model.provider, info.model.model_id, info.model.api) == ("scripted", "scripted", "openai-completions")
    assert info.model.cost == prices
    assert info.model.base_url.startswith("http://127.0.0.1:")
    assert info.session_file is not None and not Path(info.session_file).exists()
    assert info.cwd == str(folder)
    assert info.version.count(".") == 2


async def test_a_price_that_pi_does_not_know_is_unknown_and_not_zero(make: Make) -> None:
    worker = make(Text("x", usage=Tokens(100, 10)))
    info = await worker.start()
    _, settled = await run(worker, "go")
    assert info.model is not None and info.model.cost == {}
    assert (settled.usage.input, settled.usage.output, settled.usage.cost) == (100, 10, None)


async def test_the_usage_of_a_run_sums_its_answers_with_their_price(make: Make) -> None:
    prices = {"input": 1_000_000, "output": 2_000_000, "cacheRead": 500_000, "cacheWrite": 0}
    step = Calls(ToolUse("bash", {"command": "true"}), usage=Tokens(10, 1))
    worker = make(step, Text("x", usage=Tokens(30, 2, cached=20)), home={"cost": prices})
    await worker.start()
    _, settled = await run(worker, "go")
    assert (settled.usage.input, settled.usage.output, settled.usage.cache_read) == (20, 3, 20)
    assert settled.usage.cost == pytest.approx(10 + 2 + 10 + 4 + 10)
    _, second = await run(worker, "again")
    assert second.usage.output == 2


async def test_a_retry_is_reported_and_the_run_that_then_works_has_no_error(make: Make) -> None:
    worker = make(HttpError(500, "upstream broke"), Text("fine"), home={"settings": {"retry": {"baseDelayMs": 10}}})
    await worker.start()
    seen, settled = await run(worker, "go")
    retries = [event for event in seen if isinstance(event, RetryScheduled)]
    assert len(retries) == 1 and retries[0].attempt == 1 and "upstream broke" in retries[0].error
    assert sum(isinstance(event, RunStarted) for event in seen) == 1
    assert settled.error is None
    transcript = await worker.transcript(20_000)
    failed = [entry.id for entry in transcript.entries if entry.stop_reason == "error"]
    assert set(failed) <= transcript.edited and failed


async def test_an_answer_cut_at_its_length_limit_ends_the_run_normally(make: Make) -> None:
    worker = make(Length("half a sent"))
    await worker.start()
    _, settled = await run(worker, "go")
    assert settled.error is None
    assert not settled.aborted


async def test_a_compaction_is_reported_and_its_summary_is_no_tool_result(make: Make) -> None:
    steps = [bash("seq 1 1500"), Text("one"), bash("seq 1 1500"), Text("two")]
    settings = {"compaction": {"enabled": True, "reserveTokens": 1000, "keepRecentTokens": 200}}
    worker = make(*steps, home={"context_window": 4000, "settings": settings})
    await worker.start()
    seen, _ = await run(worker, "count")
    more, _ = await run(worker, "again")
    assert any(isinstance(event, Compacted) for event in seen + more)
    kinds = {entry.kind for entry in (await worker.transcript(100_000)).entries}
    assert {"summary", "tool_result", "user"} <= kinds


async def test_the_text_of_a_command_is_sent_and_not_expanded(make: Make, tmp_path: Path) -> None:
    prompts = tmp_path / "agent" / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "ship.md").write_text("EXPANDED $1")
    worker = make(Text("ok"))
    await worker.start()
    for text, stored in (("/ship it", " /ship it"), ("/unknown it", "/unknown it"), ("- dash @file", "- dash @file")):
        await run(worker, text)
        users = [entry.text for entry in (await worker.transcript(50_000)).entries if entry.kind == "user"]
        assert users[-1] == stored


async def test_a_long_text_with_odd_characters_arrives_whole(make: Make) -> None:
    text = "🙂\u2028\x85 line\r\nnext\t" * 20_000
    worker = make(Text("ok"))
    await worker.start()
    await run(worker, text)
    assert (await worker.transcript(1000)).entries[0].text == text


QUESTION = """
export default function (pi) {
  pi.on("agent_start", async (_event, ctx) => {
    ctx.ui.notify("heads up", "warning");
    const sure = await ctx.ui.confirm("Delete?", "All of it");
    const name = await ctx.ui.input("Whose?", "a name");
    ctx.ui.notify("answers " + sure + " " + name, "info");
  });
}
"""


async def test_a_question_of_an_extension_is_cancelled_after_a_bounded_wait(make: Make, tmp_path: Path) -> None:
    extension = tmp_path / "question.ts"
    extension.write_text(QUESTION)
    worker = make(Text("fine"), pi_args=["-e", str(extension)], dialog_wait=0.05)
    await worker.start()
    seen, settled = await run(worker, "go")
    assert QuestionAsked("Delete? All of it") in seen
    assert WorkerNotice("heads up", "warning") in seen
    assert QuestionAsked("Whose?") in seen
    assert WorkerNotice("answers false undefined", "info") in seen
    assert settled.error is None


async def test_an_ephemeral_session_has_a_transcript_and_no_file(make: Make, tmp_path: Path) -> None:
    worker = make(bash("echo hi"), Text("done"), session=EPHEMERAL)
    info = await worker.start()
    assert info.session_file is None
    await run(worker, "go")
    shell = await worker.shell("echo direct", timeout=BOUND)
    transcript = await worker.transcript(50_000)
    assert [entry.kind for entry in transcript.entries] == ["user", "assistant", "tool_result", "assistant", "shell"]
    assert transcript.entries[2].command == "echo hi"
    assert transcript.entries[-1].id == shell.entry_id
    short = await worker.transcript(1)
    assert short.entries[-1].id == shell.entry_id and short.earlier == 4
    assert (await worker.transcript(50_000)).entries == transcript.entries
    assert not list(tmp_path.rglob("*.jsonl"))


async def test_what_another_process_wrote_into_the_file_is_not_this_sessions_branch(make: Make) -> None:
    worker = make(Text("one"))
    info = await worker.start()
    await run(worker, "first")
    before = await worker.transcript(9000)
    intruder = {
        "type": "message",
        "id": "ffffffff",
        "parentId": before.entries[0].id,
        "timestamp": "2024-12-03T14:00:01.000Z",
    }
    message = {"role": "user", "content": "intruder", "timestamp": 1}
    file = Path(info.session_file or "")
    file.write_text(file.read_text() + json.dumps({**intruder, "message": message}) + "\n")
    assert (await worker.transcript(9000)).entries == before.entries
    await run(worker, "second")
    texts = [entry.text for entry in (await worker.transcript(9000)).entries]
    assert texts == ["first", "one", "second", "one"]


async def test_an_abort_ends_a_hanging_request(make: Make) -> None:
    worker = make(Hang())
    await worker.start()
    await worker.send("go")
    await until(worker, RunStarted)
    await asyncio.wait_for(worker.abort(), BOUND)
    assert (await until(worker, RunSettled))[-1] == RunSettled(aborted=True)


async def test_without_a_model_the_start_fails_with_what_to_do(make: Make, tmp_path: Path) -> None:
    empty = tmp_path / "empty-agent"
    empty.mkdir()
    worker = make(env={"PI_CODING_AGENT_DIR": str(empty)})
    with pytest.raises(PrerequisiteError, match="no model") as caught:
        await worker.start()
    assert "login" in caught.value.hint


async def test_a_pi_that_ends_at_its_start_is_reported_with_its_own_words(make: Make, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.jsonl"
    garbage.write_text("not a session\n")
    with pytest.raises(PeerError, match="ended at its start") as caught:
        await make(session=str(garbage)).start()
    assert caught.value.kind == "exited"
    assert "session" in caught.value.hint.lower()


async def test_a_worker_knows_that_it_is_one_and_holds_what_it_was_handed(make: Make, tmp_path: Path) -> None:
    held = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    command = f'echo "$GOALKEEPER_WORKER"; test -e /proc/$PPID/fd/{held} && echo held'
    worker = make(bash(command), Text("ok"), env={"GOALKEEPER_WORKER": "s1"}, pass_fds=[held])
    await worker.start()
    await run(worker, "go")
    os.close(held)
    results = [entry.text for entry in (await worker.transcript(9000)).entries if entry.kind == "tool_result"]
    assert results == ["s1\nheld\n"]


async def test_what_was_put_into_the_background_on_purpose_outlives_an_orderly_end(make: Make, folder: Path) -> None:
    worker = make(bash("nohup sleep 300 >/dev/null 2>&1 & echo $! > pid"))
    await worker.start()
    await worker.send("go")
    await until(worker, ToolEnded)
    server = int((folder / "pid").read_text())
    await asyncio.wait_for(worker.close(), BOUND)
    try:
        assert _alive(server)
    finally:
        os.kill(server, signal.SIGKILL)


async def test_a_kill_ends_what_the_worker_left_in_the_background(make: Make, folder: Path) -> None:
    worker = make(bash("nohup sleep 300 >/dev/null 2>&1 & echo $! > pid"))
    await worker.start()
    await worker.send("go")
    await until(worker, ToolEnded)
    server = int((folder / "pid").read_text())
    assert _alive(server)
    worker.kill()
    await asyncio.wait_for(worker.close(), BOUND)
    assert not _alive(server)


async def test_closing_ends_the_command_that_survived_a_killed_pi(make: Make, folder: Path) -> None:
    worker = make(bash("echo $$ > pid; sleep 300"))
    info = await worker.start()
    await worker.send("go")
    await until(worker, ToolStarted)
    deadline = time.monotonic() + BOUND
    while not (folder / "pid").exists() or not (folder / "pid").read_text().strip():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
    os.kill(info.pid, signal.SIGKILL)
    exited = (await until(worker, WorkerExited))[-1]
    assert isinstance(exited, WorkerExited) and exited.returncode == -9
    command = int((folder / "pid").read_text())
    assert _alive(command)
    await asyncio.wait_for(worker.close(), BOUND)
    assert not _alive(command)


async def test_closing_ends_a_command_under_way_and_stores_that_it_was_aborted(make: Make) -> None:
    worker = make(bash("sleep 300"))
    info = await worker.start()
    await worker.send("go")
    await until(worker, ToolStarted)
    await asyncio.wait_for(worker.close(), BOUND)
    assert info.session_file is not None
    last = [json.loads(line) for line in Path(info.session_file).read_text().splitlines()][-1]
    assert last["message"]["stopReason"] == "aborted"


async def test_a_shell_execution_beside_a_run_has_no_entry_yet(make: Make, folder: Path) -> None:
    worker = make(bash("while ! test -e gate; do sleep 0.02; done"), Text("done"))
    await worker.start()
    await worker.send("go")
    await until(worker, ToolStarted)
    result = await worker.shell("echo beside", timeout=BOUND)
    assert (result.output, result.entry_id) == ("beside\n", None)
    (folder / "gate").touch()
    await until(worker, RunSettled)
    assert (await worker.transcript(9000)).entries[-1].command == "echo beside"


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
