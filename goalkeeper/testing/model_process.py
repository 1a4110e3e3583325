"""The scripted model as a process of its own, which never outlives the process that started it.

Knows nothing of sockets; it names the scripts that can be asked for, or reads one from a JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from goalkeeper.testing.demo_repo import COMMAND
from goalkeeper.testing.demo_script import demo_worker
from goalkeeper.testing.judges import basis_answer, judge_unittest, say_verdict, yes_man
from goalkeeper.testing.model_steps import (
    Calls,
    CutStream,
    EmptyAnswer,
    Hang,
    HttpError,
    Length,
    MalformedSse,
    Policy,
    Script,
    Step,
    Text,
    ToolUse,
)
from goalkeeper.testing.scripted_model import ScriptedModel

POLICIES: dict[str, Policy] = {
    "demo": demo_worker,
    "judge_unittest": judge_unittest(),
    "yes_man": yes_man(),
    "yes_man_answer": yes_man("answer"),
}


def _calls(step: Mapping[str, Any]) -> Step:
    return Calls(*(ToolUse(c["name"], c["arguments"]) for c in step["calls"]), text=step.get("text", ""))


STEPS: dict[str, Callable[[Mapping[str, Any]], Step]] = {
    "text": lambda s: Text(s["text"]),
    "calls": _calls,
    "empty": lambda s: EmptyAnswer(),
    "length": lambda s: Length(s["text"]),
    "error": lambda s: HttpError(s["status"], s.get("message", "scripted failure"), s.get("headers", {})),
    "hang": lambda s: Hang(),
    "cut": lambda s: CutStream(s.get("after", "")),
    "malformed": lambda s: MalformedSse(s.get("after", "")),
    "verdict": lambda s: say_verdict(s["verdict"], s["reason"], basis=s.get("basis", "tool"), evidence=s["evidence"]),
    "terms": lambda s: basis_answer(s.get("basis", "tool"), s.get("proofs", ())),
}


def load_script(data: str | list[Any] | Mapping[str, Any]) -> Script:
    """Return the script that JSON data describes.

    Args:
        data: the name of a policy, one step, or a list of both. A step is an object with `type`, see `STEPS`.

    Raises:
        KeyError: no such policy or step, or a field of it is missing.
    """
    if isinstance(data, list):
        return [_load_one(item) for item in data]
    return _load_one(data)


def _load_one(item: str | Mapping[str, Any]) -> Step | Policy:
    return POLICIES[item] if isinstance(item, str) else STEPS[item["type"]](item)


def load_model(name: str, port: int) -> ScriptedModel:
    """Return the model for `--script`: "demo", or a JSON file with a script for each kind of request."""
    if name == "demo":
        return ScriptedModel(demo_worker, judge_unittest(), terms=basis_answer("tool", [COMMAND]), port=port)
    scripts = json.loads(Path(name).read_text(encoding="utf-8"))
    return ScriptedModel(**{kind: load_script(script) for kind, script in scripts.items()}, port=port)


def main() -> None:
    """Serve until SIGTERM, SIGINT, or the end of standard input."""
    parser = argparse.ArgumentParser(prog="python -m goalkeeper.testing.scripted_model")
    parser.add_argument("--script", required=True, help='"demo" or a JSON file')
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=_watch_input, args=(ended,), daemon=True).start()
    with load_model(options.script, options.port) as model:
        sys.stdout.write(json.dumps({"base_url": model.base_url, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        ended.wait()


def _watch_input(ended: threading.Event) -> None:
    """Whoever started us holds our standard input; it closes when they end, however they end."""
    while os.read(0, 4096):
        pass
    ended.set()
