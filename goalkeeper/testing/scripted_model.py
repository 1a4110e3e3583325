"""A scripted OpenAI-compatible model on loopback: the one thing in tests and the demo that stands in for a real one.

Knows nothing of goals. It tells worker, evaluator and compaction requests apart and answers each from its script.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from goalkeeper.testing import model_wire
from goalkeeper.testing.judges import basis_answer, is_terms_request
from goalkeeper.testing.model_steps import (
    CutStream,
    Hang,
    Hold,
    HttpError,
    MalformedSse,
    RecordedRequest,
    RequestKind,
    Script,
    Step,
    Text,
    step_for,
)

SUMMARY_PROMPT = "You are a context summarization assistant"
"""How pi's compaction requests begin; they carry no tools and must not be taken for an evaluator's."""

DEFAULT_SUMMARY = Text("Summary of the conversation so far: work on the task goes on.")
GONE_CHECK_SECONDS = 0.02
"""How often a held request looks whether its client is still there."""


class ScriptedModel:
    """A model server in this process, answering from scripts.

    Args:
        worker: script for requests that carry tools.
        evaluator: script for requests without tools.
        terms: script for the question that settles a goal's terms; the default says basis tool, no proofs.
        summary: script for pi's compaction requests.
        port: port on 127.0.0.1, 0 for a free one.
    """

    def __init__(
        self,
        worker: Script = (),
        evaluator: Script = (),
        *,
        terms: Script | None = None,
        summary: Script = DEFAULT_SUMMARY,
        port: int = 0,
    ) -> None:
        self._scripts: dict[RequestKind, Script] = {
            "worker": worker,
            "evaluator": evaluator,
            "terms": basis_answer() if terms is None else terms,
            "summary": summary,
        }
        self._changed = threading.Condition()
        self._requests: list[RecordedRequest] = []
        self._counts: Counter[RequestKind] = Counter()
        self._held = 0
        self._generation = 0
        self._closed = False
        self._server = _Server(port, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Stop, and end every connection."""
        self.close()

    @property
    def base_url(self) -> str:
        """The address for a provider's `baseUrl`, ending in /v1."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, in the order they came."""
        with self._changed:
            return list(self._requests)

    def of(self, kind: RequestKind) -> list[RecordedRequest]:
        """Return the requests of one kind so far."""
        return [request for request in self.requests if request.kind == kind]

    @property
    def held(self) -> int:
        """How many requests hang or are held at this moment."""
        with self._changed:
            return self._held

    def wait_for(
        self, wanted: int | Callable[[list[RecordedRequest]], bool], timeout: float, *, kind: RequestKind | None = None
    ) -> list[RecordedRequest]:
        """Wait until something is true of the requests and return them.

        Args:
            wanted: a number of requests, or a predicate over the list of them.
            timeout: seconds.
            kind: look only at requests of this kind.

        Raises:
            TimeoutError: it did not come true in time; the message lists the requests that came.
        """

        def matching() -> list[RecordedRequest]:
            return [r for r in self._requests if kind is None or r.kind == kind]

        def reached() -> bool:
            return wanted(matching()) if callable(wanted) else len(matching()) >= wanted

        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise TimeoutError(f"not within {timeout} s; requests: {[r.kind for r in self._requests]}")
            return matching()

    def wait_held(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until `count` requests hang or are held.

        Raises:
            TimeoutError: fewer did within `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._held >= count, timeout):
                raise TimeoutError(f"{self._held} requests held after {timeout} s, wanted {count}")

    def release(self) -> None:
        """Let every request that is held now go on; later ones are held again."""
        with self._changed:
            self._generation += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Stop answering and end every connection. Idempotent."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.end_connections()

    # ---- called by the server's threads ----------------------------------------------------------------------

    def record(self, body: Mapping[str, Any], authorization: str) -> RecordedRequest:
        """Note a request and return its record."""
        kind = kind_of(body)
        with self._changed:
            request = RecordedRequest(kind, body, self._counts[kind], time.monotonic(), authorization)
            self._counts[kind] += 1
            self._requests.append(request)
            self._changed.notify_all()
        return request

    def answered(self, request: RecordedRequest) -> None:
        """Note that the whole answer has been handed over."""
        with self._changed:
            request.answered_at = time.monotonic()
            self._changed.notify_all()

    def next_step(self, request: RecordedRequest) -> Step:
        """Return what to answer. A policy that raises becomes an error answer that names the exception."""
        try:
            return step_for(self._scripts[request.kind], request)
        except Exception as error:
            return HttpError(400, f"the script failed: {error!r}")

    def wait_released(self, request: RecordedRequest, connection: socket.socket) -> bool:
        """Hold a request; return False if the model was closed or the client left meanwhile."""
        with self._changed:
            self._held += 1
            self._changed.notify_all()
            before = self._generation
            try:
                while self._generation == before and not self._closed:
                    if _is_gone(connection):
                        request.gone = True
                        return False
                    self._changed.wait(GONE_CHECK_SECONDS)
                return not self._closed
            finally:
                self._held -= 1
                self._changed.notify_all()


def kind_of(body: Mapping[str, Any]) -> RequestKind:
    """Return who sent a request, from its content alone."""
    if body.get("tools"):
        return "worker"
    system = RecordedRequest("evaluator", body, 0, 0.0).system
    if SUMMARY_PROMPT in system:
        return "summary"
    return "terms" if is_terms_request(system) else "evaluator"


def _is_gone(connection: socket.socket) -> bool:
    """Say whether the peer has closed its end. A client that waits for an answer sends nothing meanwhile."""
    readable, _, _ = select.select([connection], [], [], 0)
    if not readable:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, model: ScriptedModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def track(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.add(connection)

    def forget(self, connection: socket.socket) -> None:
        with self._guard:
            self._open.discard(connection)

    def end_connections(self) -> None:
        with self._guard:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away in the middle of an answer is a normal part of a test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # headers and body leave in one piece, so that the client is woken once

    def setup(self) -> None:
        super().setup()
        self.server.track(self.connection)

    def finish(self) -> None:
        self.server.forget(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path.endswith("/models"):
            self._send(200, json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode())
        else:
            self._send(404, model_wire.error_body(404, "no such path"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        if not self.path.endswith("/chat/completions"):
            self._send(404, model_wire.error_body(404, "no such path"))
            return
        model = self.server.model
        request = model.record(body, self.headers.get("Authorization", ""))
        step = model.next_step(request)
        if isinstance(step, Hold):
            if not model.wait_released(request, self.connection):
                self.close_connection = True
                return
            step = step.step
        self._answer(request, step, streamed=bool(body.get("stream")))
        model.answered(request)

    def _answer(self, request: RecordedRequest, step: Step, *, streamed: bool) -> None:
        match step:
            case HttpError():
                self._send(step.status, model_wire.error_body(step.status, step.message), step.headers)
            case Hang() | Hold():
                self.server.model.wait_released(request, self.connection)
                self.close_connection = True
            case CutStream():
                self._cut(request, step.after)
            case MalformedSse():
                bad = [model_wire.delta(request, {"role": "assistant", "content": step.after}), b"data: {not json\n\n"]
                if streamed:
                    self._stream(iter(bad))
                else:
                    self._send(200, b"{not json")
            case _ if streamed:
                self._stream(model_wire.events(step, request))
            case _:
                self._send(200, json.dumps(model_wire.completion(step, request)).encode())

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self._finish_with(body)

    def _stream(self, events: Iterator[bytes]) -> None:
        self._start_stream()
        self._finish_with(b"".join(_chunk(event) for event in events) + b"0\r\n\r\n")

    def _cut(self, request: RecordedRequest, text: str) -> None:
        self._start_stream()
        self._finish_with(_chunk(model_wire.delta(request, {"role": "assistant", "content": text})))
        self.close_connection = True

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")

    def _finish_with(self, body: bytes) -> None:
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


if __name__ == "__main__":
    from goalkeeper.testing.model_process import main

    main()
