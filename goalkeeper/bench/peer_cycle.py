"""The peer's half of the goal cycle: the `/goal` of the pi extension pi-orchestrate, inside a real pi over RPC.

Knows nothing of goalkeeper's own controller.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import NotMeasured
from goalkeeper.bench.cycle import CONDITION, FLAGS, GOAL_SECONDS, RUNS, Cycle, cycles, make_project, worker
from goalkeeper.pi.install import find_pi
from goalkeeper.testing.model_steps import RecordedRequest, Script, Text
from goalkeeper.testing.pi_home import pi_home
from goalkeeper.testing.scripted_model import ScriptedModel

EXIT_SECONDS = 10.0


def peer_extension() -> Path:
    """Return the peer's entry file.

    Raises:
        NotMeasured: GOALKEEPER_PEER does not name it.
    """
    path = Path(os.environ.get("GOALKEEPER_PEER", ""))
    if not path.is_file():
        raise NotMeasured("The peer extension is not installed: `make bench` installs it and sets GOALKEEPER_PEER.")
    return path


def run_peer_goal(folder: Path) -> list[Cycle]:
    """Run one goal of `RUNS` runs in a fresh pi with the peer loaded; return its cycles."""
    extension = peer_extension()
    project = make_project(folder)
    pi = find_pi()
    with ScriptedModel(worker, _judge()) as model:
        environment = pi.environment({**os.environ, **pi_home(folder / "agent", model.base_url)})
        arguments = [*pi.argv, "--mode", "rpc", *FLAGS, "-e", str(extension)]
        with subprocess.Popen(
            arguments, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as process:
            assert process.stdin is not None
            command = {"id": "1", "type": "prompt", "message": f"/goal {CONDITION}"}
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
            try:
                model.wait_for(_all_judged, GOAL_SECONDS)
            finally:
                process.stdin.close()
                _end(process)
        return cycles(model.requests)


def _judge() -> Script:
    """The peer's judge goes on unless the first line of the answer is YES."""
    return [*[Text("NO\nNot all of it is shown.")] * (RUNS - 1), Text("YES\nShown.")]


def _all_judged(requests: Sequence[RecordedRequest]) -> bool:
    judged = [request for request in requests if request.kind == "evaluator"]
    return len(judged) >= RUNS and judged[-1].answered_at is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
