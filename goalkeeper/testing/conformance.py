"""One suite of checks per port, to be run on the real adapter and on its double.

Knows no implementation: a test module subclasses a suite and says how to make what is checked.
"""

# ruff: noqa: D102 - the names of the checks say what they check

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar

from goalkeeper.errors import PeerError
from goalkeeper.evidence.transcript import Entry
from goalkeeper.ports import RunSettled, RunStarted, ToolEnded, ToolStarted, Worker, WorkerEvent, WorkerExited
from goalkeeper.testing.scripted_worker import ScriptedCall, ScriptedRun

BOUND = 20.0
"""Seconds that a check waits at most for what must happen."""

_Kind = TypeVar("_Kind", bound=WorkerEvent)

ALL = 1_000_000
"""More characters than any session of a check holds."""


class WorkerConformance(abc.ABC):
    """The worker port. A subclass is a pytest class; its methods are the tests."""

    @abc.abstractmethod
    def make(self, runs: Sequence[ScriptedRun], *, session_file: str | None = None) -> Worker:
        """Return a worker, not started, that does `runs`, in a new session or in that of `session_file`."""

    @abc.abstractmethod
    async def crash(self, worker: Worker, pid: int) -> None:
        """End the process of `worker`, whose number is `pid`, from outside."""

    @property
    @abc.abstractmethod
    def folder(self) -> Path:
        """The folder that workers work in."""

    async def test_a_run_is_reported_from_its_start_to_the_moment_it_settled(self) -> None:
        worker = self.make([ScriptedRun([ScriptedCall("echo hi")], "All good.")])
        async with _Started(worker) as events:
            await worker.send("say hi")
            run = await events.run()
        started, ended = _one(run, ToolStarted), _one(run, ToolEnded)
        assert isinstance(run[0], RunStarted) and isinstance(run[-1], RunSettled)
        assert started.summary == "echo hi" and started.name == "bash"
        assert ended.call_id == started.call_id and not ended.is_error
        assert events.settled.error is None and not events.settled.aborted
        assert events.settled.usage.input > 0

    async def test_the_session_records_what_the_runs_behind_an_entry_used(self) -> None:
        worker = self.make([ScriptedRun([], "One."), ScriptedRun([ScriptedCall("echo hi")], "Two.")])
        async with _Started(worker) as events:
            await worker.send("first")
            await events.run()
            before = (await worker.transcript(ALL)).leaf
            first = events.settled.usage
            await worker.send("second")
            await events.run()
            second = events.settled.usage
            assert await worker.usage_since(before) == second
            whole = await worker.usage_since(None)
            assert (whole.input, whole.output) == (first.input + second.input, first.output + second.output)
            try:
                await worker.usage_since("deadbeef")
            except PeerError:
                return
            raise AssertionError("an unknown entry was accepted")

    async def test_the_transcript_holds_the_run_with_each_result_joined_to_its_call(self) -> None:
        worker = self.make([ScriptedRun([ScriptedCall("echo hi")], "All good.")])
        async with _Started(worker) as events:
            await worker.send("say hi")
            await events.run()
            transcript = await worker.transcript(ALL)
        user, call, result, answer = transcript.entries[-4:]
        assert (user.kind, user.text) == ("user", "say hi")
        assert call.calls[0].command == "echo hi"
        assert (result.kind, result.text, result.command) == ("tool_result", "hi\n", "echo hi")
        assert result.call_entry == call.id and not result.is_error
        assert (answer.kind, answer.text, answer.stop_reason) == ("assistant", "All good.", "stop")
        assert transcript.leaf == answer.id
        assert (transcript.earlier, transcript.earlier_exact) == (0, True)

    async def test_a_command_that_fails_is_an_error_in_the_event_and_in_the_entry(self) -> None:
        worker = self.make([ScriptedRun([ScriptedCall("echo broken; exit 3")])])
        async with _Started(worker) as events:
            await worker.send("try")
            run = await events.run()
            transcript = await worker.transcript(ALL)
        assert _one(run, ToolEnded).is_error
        assert _one(run, ToolEnded).exit_code in (3, None)
        result = _last(transcript.entries, "tool_result")
        assert result.is_error and "broken" in result.text and "code 3" in result.text

    async def test_a_text_that_begins_with_a_slash_is_sent_as_it_is(self) -> None:
        worker = self.make([ScriptedRun()])
        async with _Started(worker) as events:
            await worker.send("/usr/bin/env exists")
            await events.run()
            transcript = await worker.transcript(ALL)
        assert _last(transcript.entries, "user").text == "/usr/bin/env exists"

    async def test_a_steer_lands_in_the_run_under_way(self) -> None:
        worker = self.make([ScriptedRun([self._gate()], "one"), ScriptedRun(text="two")])
        async with _Started(worker) as events:
            await worker.send("first")
            await events.until(ToolStarted)
            await worker.send("second", steer=True)
            self._open_gate()
            run = await events.run()
            transcript = await worker.transcript(ALL)
        assert sum(isinstance(event, RunSettled) for event in run) == 1
        texts = [e.text for e in transcript.entries if e.kind in ("user", "assistant") and e.text]
        assert texts == ["first", "second", "one"]

    async def test_a_message_sent_during_a_run_waits_for_its_end_and_settles_with_it(self) -> None:
        worker = self.make([ScriptedRun([self._gate()], "one"), ScriptedRun(text="two")])
        async with _Started(worker) as events:
            await worker.send("first")
            await events.until(ToolStarted)
            await worker.send("second")
            self._open_gate()
            await events.run()
            transcript = await worker.transcript(ALL)
        texts = [e.text for e in transcript.entries if e.kind in ("user", "assistant") and e.text]
        assert texts == ["first", "one", "second", "two"]

    async def test_an_abort_settles_the_run_drops_the_queue_and_leaves_an_idle_worker(self) -> None:
        worker = self.make([ScriptedRun([self._gate()]), ScriptedRun(text="again")])
        async with _Started(worker) as events:
            await worker.send("first")
            await events.until(ToolStarted)
            await worker.send("never delivered", steer=True)
            await worker.send("nor this")
            await asyncio.wait_for(worker.abort(), BOUND)
            await events.run()
            assert events.settled.aborted
            await worker.send("second")
            await events.run()
            assert not events.settled.aborted
            transcript = await worker.transcript(ALL)
        assert [e.text for e in transcript.entries if e.kind == "user"] == ["first", "second"]

    async def test_an_abort_of_an_idle_worker_reports_nothing(self) -> None:
        worker = self.make([ScriptedRun(text="fine")])
        async with _Started(worker) as events:
            await asyncio.wait_for(worker.abort(), BOUND)
            await worker.send("go")
            await events.run()
        assert not events.settled.aborted

    async def test_a_run_that_dies_of_the_provider_settles_with_its_words(self) -> None:
        worker = self.make([ScriptedRun(error="no such key"), ScriptedRun(text="fine")])
        async with _Started(worker) as events:
            await worker.send("first")
            await events.run()
            assert "no such key" in (events.settled.error or "")
            await worker.send("second")
            await events.run()
        assert events.settled.error is None

    async def test_a_direct_shell_execution_becomes_an_entry(self) -> None:
        worker = self.make([ScriptedRun(text="fine")])
        async with _Started(worker) as events:
            await worker.send("go")
            await events.run()
            result = await worker.shell("echo out; exit 4", timeout=BOUND)
            transcript = await worker.transcript(ALL)
        entry = transcript.entries[-1]
        assert (result.output, result.exit_code, result.cancelled) == ("out\n", 4, False)
        assert (entry.kind, entry.command, entry.exit_code, entry.text) == ("shell", "echo out; exit 4", 4, "out\n")
        assert entry.id == result.entry_id == transcript.leaf

    async def test_a_direct_shell_execution_ends_at_its_time_out(self) -> None:
        worker = self.make([ScriptedRun(text="fine")])
        async with _Started(worker) as events:
            await worker.send("go")
            await events.run()
            result = await asyncio.wait_for(worker.shell("sleep 60", timeout=0.2), BOUND)
            transcript = await worker.transcript(ALL)
        assert (result.exit_code, result.cancelled) == (None, True)
        assert (transcript.entries[-1].cancelled, transcript.entries[-1].id) == (True, result.entry_id)

    async def test_a_session_goes_on_in_another_process(self) -> None:
        first = self.make([ScriptedRun(text="one")])
        async with _Started(first) as events:
            assert events.info.session_file is not None
            await first.send("first")
            await events.run()
            before = await first.transcript(ALL)
        second = self.make([ScriptedRun(text="two")], session_file=events.info.session_file)
        async with _Started(second) as again:
            restored = await second.transcript(ALL)
            await second.send("second")
            await again.run()
            after = await second.transcript(ALL)
        assert again.info.session_id == events.info.session_id
        assert restored.entries == before.entries
        assert [e.text for e in after.entries] == ["first", "one", "second", "two"]

    async def test_an_empty_session_has_an_empty_transcript(self) -> None:
        worker = self.make([ScriptedRun()])
        async with _Started(worker):
            transcript = await worker.transcript(ALL)
        assert (transcript.entries, transcript.earlier) == ((), 0)

    async def test_a_worker_that_died_is_reported_and_takes_no_more_messages(self) -> None:
        worker = self.make([ScriptedRun([self._gate()])])
        async with _Started(worker) as events:
            await worker.send("go")
            await events.until(ToolStarted)
            await self.crash(worker, events.info.pid)
            await events.until(WorkerExited)
            assert await events.ended()
            for refused in (worker.send("more"), worker.abort(), worker.shell("true", timeout=1)):
                try:
                    await asyncio.wait_for(refused, BOUND)
                except PeerError as error:
                    assert error.kind == "exited"
                else:
                    raise AssertionError("a worker that died took an order")

    async def test_closing_ends_the_events_also_in_the_middle_of_a_run_and_twice(self) -> None:
        worker = self.make([ScriptedRun([self._gate()])])
        async with _Started(worker) as events:
            await worker.send("go")
            await events.until(ToolStarted)
            await asyncio.wait_for(worker.close(), BOUND)
            await asyncio.wait_for(worker.close(), BOUND)
            assert await events.ended()
            assert not any(isinstance(event, WorkerExited) for event in events.seen)

    def _gate(self) -> ScriptedCall:
        return ScriptedCall("while ! test -e gate; do sleep 0.02; done")

    def _open_gate(self) -> None:
        (self.folder / "gate").touch()


class _Started:
    """A started worker's events, collected; the worker is closed at the end."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._events: AsyncIterator[WorkerEvent] = worker.events()
        self.seen: list[WorkerEvent] = []

    async def __aenter__(self) -> _Started:
        self.info = await asyncio.wait_for(self._worker.start(), BOUND)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self._worker.close(), BOUND)

    async def until(self, kind: type[WorkerEvent]) -> list[WorkerEvent]:
        """Return the events up to the first of `kind`."""
        passed: list[WorkerEvent] = []
        while not passed or not isinstance(passed[-1], kind):
            passed.append(await asyncio.wait_for(anext(self._events), BOUND))
            self.seen.append(passed[-1])
        return passed

    async def run(self) -> list[WorkerEvent]:
        """Return the events up to the end of the run; how it ended is in `settled`."""
        events = await self.until(RunSettled)
        self.settled = _one(events, RunSettled)
        return events

    async def ended(self) -> bool:
        """Say whether no more events come; those that came before are kept in `seen`."""
        while (event := await asyncio.wait_for(anext(self._events, None), BOUND)) is not None:
            self.seen.append(event)
        return True


def _one(events: Sequence[WorkerEvent], kind: type[_Kind]) -> _Kind:
    found = [event for event in events if isinstance(event, kind)]
    assert len(found) == 1, events
    return found[0]


def _last(entries: Sequence[Entry], kind: str) -> Entry:
    return [entry for entry in entries if entry.kind == kind][-1]
