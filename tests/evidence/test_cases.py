"""Labelled sessions: an evaluator that always says met is refused or accepted as the label says."""

import json
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.core.verdict import Claim, Freshness, Judgement, Stamp, Terms, Verdict
from goalkeeper.evidence.citations import judge_claim
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.evidence.window import Window, build_window
from goalkeeper.pi.session_log import SessionLog

ROOT = Path(__file__).parents[2]
OWN = ROOT / "fixtures" / "cases"
SHARED = ROOT.parent / "shared" / "cases"


def own_cases() -> list[tuple[Path, dict[str, Any]]]:
    labels = json.loads((OWN / "labels.json").read_text(encoding="utf-8"))
    return [(OWN / f"{name}.jsonl", label) for name, label in labels.items()]


def shared_cases() -> list[tuple[Path, dict[str, Any]]]:
    """The same sessions in full length, where they lie beside the checkout."""
    found = []
    for file in sorted(SHARED.glob("*/*/label.json")):
        label = json.loads(file.read_text(encoding="utf-8"))
        label["refused_by"] = {"off_branch": "unknown_id"}.get(label["rule"], label["rule"])
        label["proof"] = label["check"]
        found.append((file.with_name("session.jsonl"), label))
    return found


CASES = [*own_cases(), *shared_cases()]
IDS = [f"{'own' if path.parent == OWN else 'shared'}-{path.stem}-{path.parent.name}" for path, _ in CASES]


def judged(
    path: Path, label: dict[str, Any], freshness: Freshness | None = None
) -> tuple[Judgement, Window, Transcript]:
    transcript = SessionLog(path).read(40_000)
    window = build_window(transcript)
    judgement = judge_claim(
        Claim("met", "Everything is done.", "tool", tuple(label["cites"]), tuple(label["quotes"].items())),
        window,
        transcript,
        Terms("tool", (label["proof"],) if label["proof"] else ()),
        goal_entry=label["goal_entry"],
        goal_at=None,
        cwd="/project",
        freshness=freshness or Freshness(),
    )
    return judgement, window, transcript


@pytest.mark.parametrize(("path", "label"), CASES, ids=IDS)
def test_a_yes_man_gets_what_the_label_says(path: Path, label: dict[str, Any]) -> None:
    judgement, window, _ = judged(path, label)
    rules = [finding.rule for finding in judgement.findings]
    if label["refused_by"]:
        assert label["refused_by"] in rules
        assert not (isinstance(judgement, Verdict) and judgement.verdict == "met")
    else:
        assert rules == []
        assert isinstance(judgement, Verdict) and judgement.verdict == "met"
    for text in label["decisive"]:
        assert text in window.text


def test_a_shell_edit_after_the_passing_run_is_refused_where_results_are_stamped() -> None:
    path, label = next(case for case in own_cases() if case[0].stem == "stale_before_shell_edit")
    stamps = {label["cites"][0]: Stamp("tree-then")}
    fresh = Freshness("tree-now", stamps, {"tree-then": ("ledger/parse.py",)})
    judgement, _, _ = judged(path, label, fresh)
    assert isinstance(judgement, Verdict) and judgement.verdict == "unknown"
    assert [finding.rule for finding in judgement.findings] == ["later_change"]
    assert "ledger/parse.py" in judgement.reason


def test_there_are_sound_and_unsound_cases() -> None:
    labels = [label for _, label in own_cases()]
    assert sum(label["sound"] for label in labels) == 7
    assert sum(not label["sound"] for label in labels) == 27
