from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from goalkeeper.ports import Compacted, QuestionAsked, RunSettled, Worker, WorkerExited
from goalkeeper.testing.conformance import WorkerConformance
from goalkeeper.testing.scripted_worker import ScriptedCall, ScriptedRun, ScriptedWorker


class TestScriptedWorkerIsAWorker(WorkerConformance):
    @pytest.fixture(autouse=True)
    def _places(self, tmp_path: Path) -> None:
        self._folder = tmp_path / "work"
        self._folder.mkdir()

    def make(self, runs: Sequence[ScriptedRun], *, session_file: str | None = None) -> Worker:
        path = Path(session_file) if session_file else self._folder.parent / "sessions" / "one.jsonl"
        return ScriptedWorker(path, self._folder, runs)

    async def crash(self, worker: Worker, pid: int) -> None:
        assert isinstance(worker, ScriptedWorker)
        await worker.crash()

    @property
    def folder(self) -> Path:
        return self._folder


async def _events(worker: ScriptedWorker, text: str) -> list[object]:
    await worker.start()
    await worker.send(text)
    seen: list[object] = []
    async for event in worker.events():
        seen.append(event)
        if isinstance(event, RunSettled | WorkerExited):
            break
    await worker.close()
    return seen


async def test_a_call_may_change_files_and_return_what_the_script_says(tmp_path: Path) -> None:
    target = tmp_path / "made.txt"
    call = ScriptedCall(name="write", arguments={"path": "made.txt"}, output="ok", effect=lambda: _write(target))
    worker = ScriptedWorker(tmp_path / "s.jsonl", tmp_path, [ScriptedRun([call])])
    await _events(worker, "make it")
    assert target.read_text() == "made"
    result = (await worker.transcript(20_000)).entries[-2]
    assert (result.tool_name, result.text) == ("write", "ok")


async def test_a_question_a_compaction_and_an_exit_can_be_scripted(tmp_path: Path) -> None:
    run = ScriptedRun(question="Sure?", compacts=True)
    seen = await _events(ScriptedWorker(tmp_path / "a.jsonl", tmp_path, [run]), "go")
    assert QuestionAsked("Sure?") in seen
    assert Compacted("threshold") in seen
    seen = await _events(ScriptedWorker(tmp_path / "b.jsonl", tmp_path, [ScriptedRun(exits=3)]), "go")
    assert isinstance(seen[-1], WorkerExited)
    assert seen[-1].returncode == 3


async def test_a_held_run_goes_on_when_it_is_released(tmp_path: Path) -> None:
    worker = ScriptedWorker(tmp_path / "s.jsonl", tmp_path, [ScriptedRun(held=True, text="late")])
    worker.release()
    seen = await _events(worker, "go")
    assert isinstance(seen[-1], RunSettled)
    assert (await worker.transcript(1000)).entries[-1].text == "late"


async def test_the_session_file_appears_with_the_first_user_message(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s.jsonl"
    worker = ScriptedWorker(path, tmp_path)
    await worker.start()
    await worker.shell("true", timeout=5)
    assert not path.exists()
    await worker.send("go")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["type"] for line in lines][:3] == ["session", "message", "message"]
    await worker.close()


def _write(target: Path) -> None:
    target.write_text("made")
