from __future__ import annotations

from pathlib import Path

from goalkeeper.pi.session_model import last_model
from goalkeeper.testing.session_builder import SessionBuilder, bash


def test_the_newest_model_change_counts(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.entry("model_change", provider="one", modelId="a")
    session.user("Work.")
    session.entry("model_change", provider="two", modelId="b/c")
    session.run(bash("ls"))

    assert last_model(session.save(tmp_path / "s.jsonl")) == ("two", "b/c")


def test_an_answer_tells_its_model_too(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.entry("model_change", provider="one", modelId="a")
    session.entry("message", message={"role": "assistant", "content": [], "provider": "two", "model": "b"})

    assert last_model(session.save(tmp_path / "s.jsonl")) == ("two", "b")


def test_another_branch_does_not_count(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.entry("model_change", provider="one", modelId="a")
    fork = session.user("Work.")
    session.entry("model_change", provider="two", modelId="b")
    session.leaf = fork
    session.user("No, like this.")

    assert last_model(session.save(tmp_path / "s.jsonl")) == ("one", "a")


def test_words_about_a_model_are_no_model(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.user('{"type":"model_change","provider":"x","modelId":"y"} "assistant"')

    assert last_model(session.save(tmp_path / "s.jsonl", tail='{"type":"model_change"')) is None
