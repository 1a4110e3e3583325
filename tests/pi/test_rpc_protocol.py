from __future__ import annotations

import json
from typing import Any

import pytest

from goalkeeper.pi.rpc_protocol import Answer, Malformed, PeerEvent, RpcProtocol, encode


def line(**record: Any) -> bytes:
    return encode(record)


def test_answers_find_their_requests_in_any_order() -> None:
    protocol = RpcProtocol()
    first, sent = protocol.request("get_state", {})
    second, _ = protocol.request("bash", {"command": "ls"})
    assert json.loads(sent) == {"id": first, "type": "get_state"}
    data = line(id=second, type="response", command="bash", success=True, data={"exitCode": 0})
    data += line(id=first, type="response", command="get_state", success=False, error="no")
    assert protocol.receive(data) == [Answer(second, True, {"exitCode": 0}), Answer(first, False, None, "no")]


def test_an_answer_that_nobody_waits_for_is_malformed() -> None:
    protocol = RpcProtocol()
    known, _ = protocol.request("abort", {})
    protocol.forget(known)
    late, parse = protocol.receive(
        line(id=known, type="response", command="abort", success=True)
        + line(type="response", command="parse", success=False, error="Failed to parse command")
    )
    assert isinstance(late, Malformed) and isinstance(parse, Malformed)
    assert "Failed to parse command" in parse.reason


@pytest.mark.parametrize("record", [b"{nope\n", b"[1]\n", b'"text"\n', b'{"type":5}\n', b"[" * 100_000 + b"\n"])
def test_a_malformed_record_is_a_value_and_the_stream_goes_on(record: bytes) -> None:
    bad, good = RpcProtocol().receive(record + line(type="agent_settled", aborted=False))
    assert isinstance(bad, Malformed) and bad.reason
    assert good == PeerEvent("agent_settled", {"type": "agent_settled", "aborted": False})


def test_a_record_above_the_maximum_is_malformed() -> None:
    bad, good = RpcProtocol(maximum=1000).receive(line(type="x", text="y" * 2000) + line(type="agent_start"))
    assert isinstance(bad, Malformed) and "too long" in bad.reason
    assert isinstance(good, PeerEvent)


def test_records_that_repeat_others_are_dropped_without_being_parsed() -> None:
    broken = b'{"type":"message_update","usage":' + b"x" * 3000 + b"\n"
    assert RpcProtocol().receive(broken) == []
    assert RpcProtocol(maximum=1000).receive(broken) == []
    assert isinstance(RpcProtocol(skip=()).receive(broken)[0], Malformed)


def test_of_ended_messages_the_assistants_and_those_with_usage_are_passed_on() -> None:
    user = line(type="message_end", message={"role": "user", "content": "hi"})
    tool = line(type="message_end", message={"role": "toolResult", "content": []})
    nested = line(type="message_end", message={"role": "toolResult", "usage": {"input": 1}})
    assistant = line(type="message_end", message={"role": "assistant"})
    found = RpcProtocol().receive(user + tool + nested + assistant)
    assert [event.body["message"]["role"] for event in found if isinstance(event, PeerEvent)] == [
        "toolResult",
        "assistant",
    ]


def test_a_lone_surrogate_can_be_sent() -> None:
    assert json.loads(encode({"message": "a\ud800"})) == {"message": "a\ud800"}
