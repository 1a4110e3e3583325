from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from goalkeeper.errors import PeerError
from goalkeeper.pi.rpc_client import RpcClient

PEER = r"""
import json, sys
print("not json", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    kind, answer = request["type"], {"id": request.get("id"), "type": "response", "command": request["type"]}
    if kind == "exit":
        sys.stderr.write("why it ended"); sys.exit(5)
    if kind == "silent":
        continue
    if kind == "told":
        print(json.dumps({"type": "heard", "fields": request}), flush=True); continue
    if kind == "refuse":
        answer.update(success=False, error="no, because")
    else:
        print('{"type":"message_update","x":"' + "y" * 200_000 + '"}', flush=True)
        print(json.dumps({"type": "agent_settled", "text": "\u2028" + "z" * 3_000_000}), flush=True)
        answer.update(success=True, data=request)
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[RpcClient]:
    client = RpcClient()
    await client.start([sys.executable, "-c", PEER], cwd=str(tmp_path), env=dict(os.environ))
    yield client
    await client.close(grace=1)


async def test_a_request_returns_the_data_of_its_answer_and_events_arrive_in_the_queue(client: RpcClient) -> None:
    data = await client.request("echo", message="hé\u2028", left_out=None)
    assert data["message"] == "hé\u2028" and "left_out" not in data
    event = client.events.get_nowait()
    assert event is not None and event.type == "agent_settled" and len(event.body["text"]) == 3_000_001
    assert client.events.empty()
    assert client.malformed == 1 and client.last_malformed is not None


async def test_requests_side_by_side_get_their_own_answers(client: RpcClient) -> None:
    answers = await asyncio.gather(*(client.request("echo", number=number) for number in range(10)))
    assert [answer["number"] for answer in answers] == list(range(10))


async def test_a_refusal_carries_the_words_of_the_peer(client: RpcClient) -> None:
    with pytest.raises(PeerError, match="no, because") as caught:
        await client.request("refuse")
    assert caught.value.kind == "refused"


async def test_an_answer_that_does_not_come_is_given_up(client: RpcClient) -> None:
    with pytest.raises(PeerError, match=r"within 0\.05 s") as caught:
        await client.request("silent", timeout=0.05)
    assert caught.value.kind == "timeout"
    assert (await client.request("echo"))["type"] == "echo"


async def test_what_needs_no_answer_is_told(client: RpcClient) -> None:
    client.tell({"type": "told", "id": "x"})
    event = await asyncio.wait_for(client.events.get(), 20)
    assert event is not None and event.body["fields"] == {"type": "told", "id": "x"}


async def test_an_exit_ends_the_open_requests_and_the_events(client: RpcClient) -> None:
    waiting = asyncio.create_task(client.request("silent"))
    with pytest.raises(PeerError) as caught:
        await client.request("exit")
    assert caught.value.kind == "exited"
    with pytest.raises(PeerError):
        await waiting
    assert await asyncio.wait_for(client.events.get(), 20) is None
    assert (client.process.returncode, client.process.stderr_tail) == (5, "why it ended")
    with pytest.raises(PeerError) as caught:
        await client.request("echo")
    assert caught.value.kind == "exited"


async def test_a_client_that_was_never_started_says_so() -> None:
    with pytest.raises(PeerError) as caught:
        await RpcClient().request("echo")
    assert caught.value.kind == "exited"
    await RpcClient().close()
