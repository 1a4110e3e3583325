from __future__ import annotations

from typing import Any

import pytest

from goalkeeper.bench.cycle import cycles, worker
from goalkeeper.testing.model_steps import Calls, RecordedRequest, RequestKind, Text

USER = {"role": "user", "content": "go"}
TOOL = {"role": "tool", "content": "pass"}


def request(kind: RequestKind, last: dict[str, Any], at: float, answered_at: float | None) -> RecordedRequest:
    return RecordedRequest(kind, {"messages": [last]}, 0, at, answered_at=answered_at)


def test_a_cycle_goes_from_the_last_message_of_a_run_to_the_first_request_of_the_next() -> None:
    requests = [
        request("worker", USER, 1.0, 1.1),
        request("worker", TOOL, 2.0, 2.1),
        request("evaluator", USER, 2.105, 2.106),
        request("worker", USER, 2.110, 2.2),
        request("worker", TOOL, 3.0, 3.1),
        request("evaluator", USER, 3.2, 3.3),
    ]
    (cycle,) = cycles(requests)
    assert cycle.to_judge == pytest.approx(5.0)
    assert cycle.from_judge == pytest.approx(4.0)
    assert cycle.total == pytest.approx(10.0)


def test_the_worker_calls_the_shell_once_in_each_run() -> None:
    assert isinstance(worker(request("worker", USER, 0, None)), Calls)
    assert isinstance(worker(request("worker", TOOL, 0, None)), Text)
