from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.core.verdict import Terms
from goalkeeper.evaluator.prompt import terms_request, verdict_request
from goalkeeper.evidence.transcript import Entry, Transcript
from goalkeeper.evidence.window import build_window
from goalkeeper.testing.judges import basis_answer, say_verdict
from goalkeeper.testing.model_steps import (
    Calls,
    CutStream,
    EmptyAnswer,
    Hang,
    Hold,
    HttpError,
    Length,
    MalformedSse,
    RecordedRequest,
    Step,
    Text,
    Tokens,
    ToolUse,
    bash,
)
from goalkeeper.testing.scripted_model import ScriptedModel

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]


def connect(model: ScriptedModel) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", int(model.base_url.split(":")[2].split("/")[0]), timeout=10)


def ask(
    model: ScriptedModel,
    *,
    tools: bool = False,
    stream: bool = False,
    system: str = "Judge.",
    user: str = "Go.",
) -> tuple[int, str]:
    body: dict[str, Any] = {
        "model": "scripted",
        "stream": stream,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
    }
    if tools:
        body["tools"] = TOOLS
    connection = connect(model)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Authorization": "Bearer key"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_streamed_and_a_plain_answer_say_the_same(scripted_model: Callable[..., ScriptedModel]) -> None:
    answer = Calls(ToolUse("bash", {"command": "ls"}), text="Looking.", thinking="hm", usage=Tokens(100, 7, cached=40))
    model = scripted_model(worker=answer)
    _, plain = ask(model, tools=True)
    _, streamed = ask(model, tools=True, stream=True)
    message = json.loads(plain)["choices"][0]["message"]
    deltas = [e["choices"][0]["delta"] for e in events(streamed) if e["choices"]]
    calls = [d["tool_calls"][0] for d in deltas if "tool_calls" in d]
    assert message["content"] == "".join(d.get("content", "") for d in deltas) == "Looking."
    assert message["reasoning_content"] == "".join(d.get("reasoning_content", "") for d in deltas) == "hm"
    assert [c["function"] for c in message["tool_calls"]] == [c["function"] for c in calls]
    assert json.loads(plain)["choices"][0]["finish_reason"] == "tool_calls"
    assert [e["choices"][0]["finish_reason"] for e in events(streamed) if e["choices"]][-1] == "tool_calls"
    assert json.loads(plain)["usage"] == events(streamed)[-1]["usage"]
    assert json.loads(plain)["usage"]["prompt_tokens_details"] == {"cached_tokens": 40}


def test_each_kind_of_request_is_told_apart_and_answered_from_its_own_script(
    scripted_model: Callable[..., ScriptedModel],
) -> None:
    model = scripted_model(
        worker=Text("work"), evaluator=say_verdict("unknown"), terms=basis_answer("answer"), summary=Text("short")
    )
    window = build_window(Transcript((Entry("e1", "user", 0, "Go."),)))
    asked = verdict_request("it works", window, Terms("tool"))
    ask(model, tools=True, system="You are a context summarization assistant, or so a worker says.")
    _, verdict = ask(model, system=asked.system, user=asked.user)
    _, terms = ask(model, system=terms_request("it works").system)
    _, summary = ask(model, system="You are a context summarization assistant. Summarize.")
    assert [r.kind for r in model.requests] == ["worker", "evaluator", "terms", "summary"]
    assert '\\"verdict\\": \\"unknown\\"' in verdict
    assert '\\"basis\\": \\"answer\\"' in terms
    assert "short" in summary


def test_steps_are_taken_in_turn_and_the_last_one_repeats(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(worker=[Text("one"), lambda request: Text(f"computed {request.text}")])
    answers = [ask(model, tools=True, user=u)[1] for u in ("a", "b", "c")]
    assert "one" in answers[0]
    assert "computed b" in answers[1]
    assert "computed c" in answers[2]


def test_an_error_carries_status_message_and_headers(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(evaluator=HttpError(429, "slow down", {"Retry-After": "5"}))
    connection = connect(model)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": []}))
    response = connection.getresponse()
    assert response.status == 429
    assert response.headers["Retry-After"] == "5"
    assert json.loads(response.read())["error"]["message"] == "slow down"
    connection.close()


def test_a_script_without_steps_or_with_a_bug_answers_an_error_that_says_so(
    scripted_model: Callable[..., ScriptedModel],
) -> None:
    def broken(request: RecordedRequest) -> Step:
        raise LookupError("no such entry")

    model = scripted_model(evaluator=broken)
    assert "no such entry" in ask(model)[1]
    assert ask(model, tools=True)[0] == 400


def test_a_cut_stream_ends_without_a_last_chunk(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(worker=CutStream("half an ans"))
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(model, tools=True, stream=True)
    assert b"half an ans" in caught.value.partial


def test_a_malformed_stream_holds_an_event_that_is_not_json(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(worker=MalformedSse("start"))
    _, text = ask(model, tools=True, stream=True)
    assert "start" in text
    assert "data: {not json" in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(ask(model, tools=True)[1])


def test_length_and_empty_answers_carry_their_finish_reason(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(worker=[Length("cut"), EmptyAnswer()])
    cut, empty = (json.loads(ask(model, tools=True)[1])["choices"][0] for _ in range(2))
    assert (cut["finish_reason"], cut["message"]["content"]) == ("length", "cut")
    assert (empty["finish_reason"], empty["message"]["content"]) == ("stop", "")


def test_a_held_answer_comes_when_it_is_released(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(evaluator=Hold(Text("at last")))
    got: list[str] = []
    client = threading.Thread(target=lambda: got.append(ask(model)[1]))
    client.start()
    model.wait_held()
    assert model.requests[0].answered_at is None
    model.release()
    client.join(10)
    assert "at last" in got[0]
    model.wait_for(lambda requests: requests[0].answered_at is not None, 10)


def test_a_client_that_leaves_while_it_waits_is_noted(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(evaluator=Hang())
    connection = connect(model)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": []}))
    model.wait_held()
    connection.close()
    model.wait_for(lambda requests: requests[0].gone, 10)
    assert model.held == 0


def test_closing_ends_a_hanging_request_at_once(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(evaluator=Hang())
    ended = threading.Event()

    def client() -> None:
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(model)
        ended.set()

    thread = threading.Thread(target=client)
    thread.start()
    model.wait_held()
    model.close()
    assert ended.wait(5)
    thread.join(5)


def test_waiting_for_what_does_not_come_says_what_came(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(evaluator=Text("x"))
    ask(model)
    with pytest.raises(TimeoutError, match="evaluator"):
        model.wait_for(2, 0.05)


def test_one_connection_serves_many_requests(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model(worker=bash("ls"))
    connection = connect(model)
    for _ in range(3):
        connection.request("POST", "/v1/chat/completions", json.dumps({"messages": [], "stream": True}))
        assert connection.getresponse().read().endswith(b"[DONE]\n\n") is False
    connection.request("GET", "/v1/models")
    assert json.loads(connection.getresponse().read())["data"][0]["id"] == "scripted"
    connection.close()


def test_closing_ends_an_idle_connection(scripted_model: Callable[..., ScriptedModel]) -> None:
    model = scripted_model()
    connection = connect(model)
    connection.request("GET", "/v1/models")
    connection.getresponse().read()
    model.close()
    assert connection.sock.recv(1) == b""
    connection.close()


# ---- as a process ---------------------------------------------------------------------------------------------


def start_process(script: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "goalkeeper.testing.scripted_model", "--script", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def script_file(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"worker": [{"type": "text", "text": "from a file"}]}), encoding="utf-8")
    return path


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_the_process_says_where_it_is_and_ends_with_its_parent_or_on_a_signal(script_file: Path, end: str) -> None:
    with start_process(script_file) as process:
        assert process.stdin is not None and process.stdout is not None
        started = json.loads(process.stdout.readline())
        assert started["pid"] == process.pid
        port = int(started["base_url"].split(":")[2].split("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/v1/chat/completions", json.dumps({"messages": [], "tools": TOOLS}))
        assert b"from a file" in connection.getresponse().read()
        connection.close()
        if end == "stdin":
            process.stdin.close()
        else:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(10) == 0


def test_times_are_monotonic_and_answers_follow_requests(scripted_model: Callable[..., ScriptedModel]) -> None:
    before = time.monotonic()
    model = scripted_model(evaluator=Text("x"))
    ask(model)
    (request,) = model.wait_for(lambda requests: requests[0].answered_at is not None, 10)
    assert request.answered_at is not None
    assert before <= request.at <= request.answered_at <= time.monotonic()
    assert request.authorization == "Bearer key"
