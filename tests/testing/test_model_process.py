from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.testing import demo_script
from goalkeeper.testing.judges import basis_answer, say_verdict
from goalkeeper.testing.model_process import load_model, load_script
from goalkeeper.testing.model_steps import (
    Calls,
    CutStream,
    EmptyAnswer,
    Hang,
    HttpError,
    Length,
    MalformedSse,
    RecordedRequest,
    Step,
    Text,
    ToolUse,
    step_for,
)

STEPS: list[tuple[dict[str, Any], Step]] = [
    ({"type": "text", "text": "hi"}, Text("hi")),
    ({"type": "calls", "calls": [{"name": "bash", "arguments": {"command": "ls"}}], "text": "t"},
     Calls(ToolUse("bash", {"command": "ls"}), text="t")),
    ({"type": "empty"}, EmptyAnswer()),
    ({"type": "length", "text": "cu"}, Length("cu")),
    ({"type": "error", "status": 500, "message": "broke"}, HttpError(500, "broke")),
    ({"type": "hang"}, Hang()),
    ({"type": "cut", "after": "ha"}, CutStream("ha")),
    ({"type": "malformed"}, MalformedSse()),
    ({"type": "verdict", "verdict": "met", "reason": "r", "evidence": ["a"]}, say_verdict("met", "r", evidence=["a"])),
    ({"type": "terms", "basis": "answer"}, basis_answer("answer")),
]  # fmt: skip


def request(*messages: dict[str, Any]) -> RecordedRequest:
    return RecordedRequest("worker", {"messages": list(messages)}, 0, 0.0)


@pytest.mark.parametrize(("data", "step"), STEPS, ids=[data["type"] for data, _ in STEPS])
def test_each_kind_of_step_can_be_written_as_json(data: dict[str, Any], step: Step) -> None:
    assert step_for(load_script(json.loads(json.dumps(data))), request()) == step
    assert step_for(load_script([data]), request()) == step


def test_a_policy_is_named_in_a_script() -> None:
    assert step_for(load_script("demo"), request({"role": "user", "content": "go"})) == demo_script.READ
    assert "met" in str(step_for(load_script(["yes_man"]), request()))


def test_a_step_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        load_script({"type": "sing"})


@pytest.mark.parametrize("name", ["demo", "file"])
def test_a_script_can_be_asked_for_by_name_or_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"worker": "demo", "evaluator": ["yes_man"]}), encoding="utf-8")
    with load_model("demo" if name == "demo" else str(path), 0) as model:
        assert model.base_url.startswith("http://127.0.0.1:")
        assert model.next_step(request({"role": "user", "content": "go"})) == demo_script.READ
