import json
from typing import Any

import pytest

from goalkeeper.core.verdict import Claim, EvaluatorFailure, Terms
from goalkeeper.evaluator.reply import parse_claim, parse_terms

GOOD: dict[str, Any] = {"verdict": "met", "reason": "All 12 pass.", "basis": "tool", "evidence": ["a1", "b2"]}
TEXT = json.dumps(GOOD)
CLAIM = Claim("met", "All 12 pass.", "tool", ("a1", "b2"))


def said(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


def without(key: str) -> str:
    return json.dumps({name: value for name, value in GOOD.items() if name != key})


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n  {TEXT}\n",
        json.dumps(GOOD, indent=2),
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"```JSON\n{json.dumps(GOOD, indent=2)}\n```\n",
        f"Here is my verdict:\n\n```json\n{TEXT}\n```",
        f"Here is my verdict:\n```json\n{TEXT}\n```\nLet me know if you need more.",
        f"~~~json\n{TEXT}\n~~~",
        f"<think>The result b2 says {{'12 passed'}}.</think>{TEXT}",
        f"<think>\nHm: ```json\n{{}}\n```\n</think>\n\n```json\n{TEXT}\n```",
        f"<thinking>{TEXT}</thinking>\n{TEXT}",
        said(extra=1, confidence="high"),
        said(quotes=None),
        said(quotes={}),
        said(quotes=[]),
    ],
)
def test_one_object_is_read(text: str) -> None:
    assert parse_claim(text) == CLAIM


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>met</think>", "empty"),
        ("Yes, the goal is met.", "prose"),
        ("met", "prose"),
        ("YES\nAll tests pass.", "prose"),
        (f"{TEXT}\n{TEXT}", "something follows"),
        (f"{TEXT} {{}}", "something follows"),
        (f"{TEXT}\nThat is my verdict.", "something follows"),
        (f"My verdict: {TEXT}", "no valid JSON"),
        (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "more than one fenced block"),
        (f"{TEXT}\n```json\n{TEXT}\n```", "outside the fenced one"),
        (f"```json\n{TEXT}\n{TEXT}\n```", "something follows"),
        (f"```json\n{TEXT}", "no valid JSON"),
        (f"<think>{TEXT}", "no valid JSON"),
        (f"[{TEXT}]", "no object"),
        ("null", "no object"),
        (TEXT[:-1], "no valid JSON"),
        (TEXT.replace('"', "'"), "no valid JSON"),
        ('{"verdict": "met", ' + TEXT[1:], "a key stands twice"),
        (TEXT.replace("}", ', "quotes": {"a1": "x", "a1": "y"}}'), "a key stands twice"),
        (said(n=float("nan")), "NaN"),
        ("{" * 100_000, "no valid JSON"),
        (said(verdict="yes"), "`verdict`"),
        (said(verdict="MET"), "`verdict`"),
        (said(verdict=True), "`verdict`"),
        (said(verdict=["met"]), "`verdict`"),
        (without("verdict"), "`verdict` is missing"),
        (said(reason=""), "`reason` is empty"),
        (said(reason=" \n\t"), "`reason` is empty"),
        (said(reason="\u202e\x07"), "`reason` is empty"),
        (said(reason=7), "`reason`"),
        (without("reason"), "`reason`"),
        (said(basis="both"), "`basis`"),
        (said(basis=None), "`basis`"),
        (without("basis"), "`basis`"),
        (said(evidence="a1"), "`evidence`"),
        (said(evidence=[1]), "`evidence`"),
        (said(evidence=[["a1"]]), "`evidence`"),
        (said(evidence={"a1": "x"}), "`evidence`"),
        (said(evidence=None), "`evidence`"),
        (without("evidence"), "`evidence`"),
        (said(quotes="12 passed"), "`quotes`"),
        (said(quotes=["12 passed"]), "`quotes`"),
        (said(quotes={"a1": 12}), "`quotes`"),
        (said(quotes={"a1": ["x"]}), "`quotes`"),
        (said(quotes=[{"id": "a1"}]), "`quotes`"),
    ],
)
def test_anything_else_is_malformed_and_says_why(text: str, why: str) -> None:
    failure = parse_claim(text)
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "malformed"
    assert why in failure.reason
    assert len(failure.reason) < 300 and "\n" not in failure.reason


def test_quotes_are_read_in_both_shapes() -> None:
    expected = (("a1", "12 passed"), ("b2", "ok"))
    for quotes in ({"a1": "12 passed", "b2": "ok"}, [{"id": "a1", "text": "12 passed"}, {"id": "b2", "text": "ok"}]):
        claim = parse_claim(said(quotes=quotes))
        assert isinstance(claim, Claim) and claim.quotes == expected


def test_a_reason_of_several_lines_is_kept_and_cleaned() -> None:
    claim = parse_claim(said(reason="First.\nSecond \x1b[31mred\x1b[0m.\n"))
    assert isinstance(claim, Claim) and claim.reason == "First.\nSecond red."


@pytest.mark.parametrize("text", [TEXT, '{"verdict": "met", "rea', ""])
def test_an_answer_that_was_cut_is_no_verdict_even_if_it_reads_like_one(text: str) -> None:
    failure = parse_claim(text, "length")
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "cut_off"


def test_a_met_in_an_answer_that_ended_in_an_error_is_not_trusted() -> None:
    failure = parse_claim(TEXT, "error", "upstream\nbroke")
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "provider_error"
    assert "upstream broke" in failure.reason


# ---- terms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "named", "accepted"),
    [
        ("All tests pass: `pytest -q` exits 0.", ["pytest -q"], ("pytest -q",)),
        ("All tests pass: `pytest -q` exits 0.", ["`pytest -q`"], ("pytest -q",)),
        ("All tests pass: `pytest -q` exits 0.", ["pytest -q", " pytest -q "], ("pytest -q",)),
        ("All tests pass: `pytest -q` exits 0.", ["pytest"], ("pytest -q",)),
        ("All tests pass: `pytest -q` exits 0.", [], ("pytest -q",)),
        ("All tests pass: `pytest -q` exits 0.", ["pytest -q -x"], ("pytest -q",)),
        ("`pytest -q` shows no failure.", ["pytest -q -x"], ()),
        ("`pytest -q` shows no failure.", ["python -m pytest -q"], ()),
        ("All tests pass.", ["pytest"], ()),
        ("All tests pass.", ["tests"], ()),
        ("All tests pass.", ["All tests pass"], ()),
        ("The command frobnicate --all exits 0.", ["frobnicate --all"], ()),
        ("The command `frobnicate --all` exits 0.", ["frobnicate --all"], ("frobnicate --all",)),
        ("CI=1 frobnicate exits 0.", ["CI=1 frobnicate"], ("CI=1 frobnicate",)),
        ("pytest passes.", ["pytest"], ("pytest",)),
        ("make test passes", ["make test"], ("make test",)),
        ("./check.sh exits 0.", ["./check.sh"], ("./check.sh",)),
        ("Use tools only.", ["ls", "tool"], ()),
        ("`deploy` says ok", ["deploy"], ("deploy",)),
        ("`make a && make b` passes", ["make a", "make b"], ("make a && make b",)),
        ("`a 1` and `b 2` exit 0", ["a 1", "b 2"], ("a 1", "b 2")),
        ("x" * 50, [], ()),
    ],
)
def test_a_command_is_accepted_only_as_the_condition_has_it(
    condition: str, named: list[str], accepted: tuple[str, ...]
) -> None:
    answer = json.dumps({"basis": "tool", "proofs": named})
    assert parse_terms(answer, "stop", condition) == Terms("tool", accepted, "evaluator")


@pytest.mark.parametrize(
    "answer",
    [
        '{"basis": "answer"}',
        '{"basis": "answer", "proofs": "none"}',
        '{"basis": "answer", "proofs": [1, null]}',
        '{"basis": "answer", "commands": []}',
        '```json\n{"basis": "answer"}\n```',
        said(basis="answer"),
    ],
)
def test_terms_need_only_a_basis(answer: str) -> None:
    assert parse_terms(answer, "stop", "Explain `x`.") == Terms("answer")


def test_commands_are_read_under_either_name() -> None:
    answer = '{"basis": "tool", "commands": ["pytest -q"]}'
    assert parse_terms(answer, "stop", "`pytest -q` exits 0") == Terms("tool", ("pytest -q",))


@pytest.mark.parametrize(
    ("answer", "finish", "kind"),
    [
        ("tool", "stop", "malformed"),
        ('{"basis": "both"}', "stop", "malformed"),
        ('{"proofs": []}', "stop", "malformed"),
        ('{"basis": "tool"}', "length", "cut_off"),
        ('{"basis": "tool"}', "error", "provider_error"),
    ],
)
def test_terms_that_can_not_be_read_are_a_failure(answer: str, finish: Any, kind: str) -> None:
    failure = parse_terms(answer, finish, "All tests pass.")
    assert isinstance(failure, EvaluatorFailure) and failure.kind == kind
