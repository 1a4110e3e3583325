"""An evaluator that always says met, in labelled sessions: only what is proven may be accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import ModelFactory
from e2e.more_cases import CASES, CONDITION

from goalkeeper.cli.evaluate import EvaluateOptions, evaluate
from goalkeeper.cli.evaluate_report import evaluation_document
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.testing.judges import basis_answer, say_verdict
from goalkeeper.testing.scripted_evaluator import ScriptedEvaluator
from goalkeeper.testing.scripted_model import ScriptedModel

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "cases"
FURTHER = Path(os.environ.get("GOALKEEPER_CASES", ROOT.parent / "shared" / "cases"))
"""A folder of cases in the layout sound/NAME/{session.jsonl,label.json}, used where it is present."""

COMMAND_BOUND = 110.0
BY_COMMAND = ("edit_then_pass", "abandoned_branch", "masked_by_or_true", "misquoted_result")
"""Cases that also go through a process of its own and a model over HTTP; each costs the import of litellm."""


@dataclass(frozen=True)
class Labelled:
    name: str
    session: Path
    condition: str
    sound: bool
    rule: str | None
    proof: str | None
    goal_entry: str
    cites: Sequence[str]
    quotes: dict[str, str]
    decisive: Sequence[str]


def labelled() -> Iterator[Labelled]:
    for name, label in json.loads((FIXTURES / "labels.json").read_text()).items():
        yield Labelled(
            name,
            FIXTURES / f"{name}.jsonl",
            label["condition"],
            label["sound"],
            label["refused_by"],
            label["proof"],
            label["goal_entry"],
            label["cites"],
            label["quotes"],
            label["decisive"],
        )
    for path in sorted(FURTHER.glob("*/*/label.json")):
        label = json.loads(path.read_text())
        rule = label["rule"] if label["mechanically_detectable"] else None
        yield Labelled(
            f"further-{label['name']}",
            path.with_name("session.jsonl"),
            label["condition"],
            label["sound"],
            "unknown_id" if rule == "off_branch" else rule,
            label["check"],
            label["goal_entry"],
            label["cites"],
            label["quotes"],
            label["decisive"],
        )


LABELLED = list(labelled())


def name_of(case: Labelled) -> str:
    return case.name


async def judged(options: EvaluateOptions, answer: str) -> tuple[dict[str, Any], ScriptedEvaluator]:
    client = ScriptedEvaluator([answer])
    evaluation = await evaluate(options, LlmEvaluator(client))
    return evaluation_document(evaluation), client


def options_of(case: Labelled) -> EvaluateOptions:
    return EvaluateOptions(case.session, case.condition, "tool", (case.proof,) if case.proof else ())


@pytest.mark.parametrize("case", LABELLED, ids=name_of)
async def test_what_is_not_proven_is_refused_and_what_is_proven_accepted(case: Labelled) -> None:
    answer = say_verdict("met", "Everything is done.", evidence=case.cites, quotes=case.quotes).text

    found, client = await judged(options_of(case), answer)

    assert found["claimed"] == "met"
    assert found["goal_entry"] == case.goal_entry
    if case.rule is None:
        assert (found["verdict"], found["rules"]) == ("met", [])  # or only a reader can tell
    else:
        assert found["verdict"] != "met"
        assert case.rule in found["rules"]
    shown = client.requests[-1].user
    missing = [text for text in case.decisive if text not in shown]
    assert not missing


@pytest.mark.parametrize("name", CASES)
async def test_of_the_same_kinds_too(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    session = case.session.save(tmp_path / "session.jsonl", tail=case.tail)
    options = EvaluateOptions(session, CONDITION, case.basis, tuple(case.proofs))
    answer = say_verdict("met", "Everything is done.", basis=case.claims, evidence=case.cites, quotes=case.quotes)

    found, _ = await judged(options, answer.text)

    if case.rule is None:
        assert (found["verdict"], found["rules"]) == ("met", [])
    else:
        assert found["verdict"] != "met"
        assert case.rule in found["rules"]


@pytest.mark.parametrize("case", [c for c in LABELLED if c.name in BY_COMMAND], ids=name_of)
def test_the_command_says_the_same_over_http(
    case: Labelled, scripted_model: ModelFactory, agent_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    answer = say_verdict("met", "Everything is done.", evidence=case.cites, quotes=case.quotes)
    model = scripted_model((), answer, terms=basis_answer("tool", [case.proof] if case.proof else []))

    done = run_evaluate(model, agent_env(model), tmp_path, str(case.session), case.condition, "--json")

    found = json.loads(done.stdout)
    assert (done.returncode == 0) == case.sound
    assert found["terms"]["settled_by"] == "evaluator"
    assert (found["verdict"] == "met") == case.sound
    assert case.rule is None or case.rule in found["rules"]
    assert list(tmp_path.glob("**/.pi-goal")) == []


def run_evaluate(
    model: ScriptedModel, env: dict[str, str], cwd: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    keys = {"GOALKEEPER_MODEL": "openai/scripted", "OPENAI_API_KEY": "scripted-key", "OPENAI_BASE_URL": model.base_url}
    command = [sys.executable, "-m", "goalkeeper.cli.main", "evaluate", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**env, **keys}, capture_output=True, encoding="utf-8", timeout=COMMAND_BOUND
    )
