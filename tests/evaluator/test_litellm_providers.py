"""litellm against the wire formats of Anthropic and Gemini, answered on loopback in those providers' shapes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from goalkeeper.evaluator.litellm_model import LitellmConfig, LitellmModel
from goalkeeper.ports import ModelInfo, ModelRequest

ANSWER = '{"verdict": "unknown", "reason": "no evidence", "basis": "tool", "evidence": []}'
PRICES = {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}

ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [{"type": "text", "text": ANSWER}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 40},
}
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
    "modelVersion": "gemini-test",
}


class Provider:
    """A server that answers each POST with one JSON body and keeps what it was asked."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    made = Provider(request.param)
    yield made
    made.close()


async def ask(provider: Provider, api: str, model: str) -> Any:
    config = LitellmConfig.of_session(ModelInfo("any", model, api, provider.base_url, PRICES), "planted-key")
    client = LitellmModel(config)
    try:
        schema = {"type": "object", "properties": {"verdict": {"type": "string"}}}
        return await client.complete(ModelRequest("You judge.", "Is it met?", schema, 30.0))
    finally:
        await client.close()


@pytest.mark.parametrize("provider", [ANTHROPIC], indirect=True)
async def test_an_anthropic_model_is_asked_without_tools_and_read(provider: Provider) -> None:
    reply = await ask(provider, "anthropic-messages", "claude-test")
    ((path, headers, body),) = provider.asked
    assert path.endswith("/v1/messages")
    assert headers["x-api-key"] == "planted-key"
    assert not body.get("tools")
    assert "You judge." in json.dumps(body["system"])
    assert reply.text == ANSWER
    assert reply.finish == "stop"
    assert (reply.usage.output, reply.usage.cache_read) == (20, 40)
    assert reply.usage.cost and reply.usage.cost > 0


@pytest.mark.parametrize("provider", [GEMINI], indirect=True)
async def test_a_gemini_model_is_asked_without_tools_and_read(provider: Provider) -> None:
    reply = await ask(provider, "google-generative-ai", "gemini-test")
    ((path, headers, body),) = provider.asked
    assert "gemini-test:generateContent" in path
    assert "planted-key" in path or headers.get("x-goog-api-key") == "planted-key"
    assert not body.get("tools")
    assert "You judge." in json.dumps(body)
    assert reply.text == ANSWER
    assert reply.finish == "stop"
    assert reply.usage.output == 20
