from dataclasses import replace

import pytest

from goalkeeper.evidence.progress import evidence_digest_of_run
from goalkeeper.evidence.transcript import Entry


def result(text: str, command: str = "pytest -q") -> Entry:
    return Entry("r", "tool_result", 1, text, tool_name="bash", command=command)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12 passed in 0.05s", "12 passed in 3.25s"),
        ("done in 1.2 seconds", "done in 14 seconds"),
        ("ok  pkg 0.004s", "ok  pkg 0.011s"),
        ("(12 ms)", "(9 ms)"),
        ("took 2m", "took 13m"),
        ("at 2026-03-02 21:26:41,123 started", "at 2026-03-03 07:00:02,001 started"),
        ("2026-03-02T21:26:41Z", "2026-03-02T21:27:44Z"),
        ("[10:11:12] go", "[10:12:59] go"),
        ("<Foo object at 0x7f3a2c>", "<Foo object at 0x55aa10>"),
        ("tmp /tmp/pytest-of-me/pytest-1/x", "tmp /tmp/pytest-of-me/pytest-22/x"),
        ("pid 4711", "pid 12"),
        ("mtime 1772486811896", "mtime 1772486999999"),
        ("\x1b[32mok\x1b[0m", "ok"),
    ],
)
def test_what_differs_between_two_runs_of_the_same_is_folded(one: str, other: str) -> None:
    assert evidence_digest_of_run([result(one)]) == evidence_digest_of_run([result(other)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12 passed", "11 passed"),
        ("1 failed", "2 failed"),
        ("test_a failed", "test_b failed"),
        ("version 1.2.3", "version 1.2.4"),
        ("5 modules", "6 modules"),
    ],
)
def test_what_says_something_new_is_not(one: str, other: str) -> None:
    assert evidence_digest_of_run([result(one)]) != evidence_digest_of_run([result(other)])


def test_words_of_worker_and_user_are_no_progress() -> None:
    talk = [Entry("u", "user", 1, "go on"), Entry("a", "assistant", 2, "Nearly there.")]
    assert evidence_digest_of_run([*talk, result("x")]) == evidence_digest_of_run([result("x")])
    assert evidence_digest_of_run(talk) == evidence_digest_of_run([])


def test_command_error_and_number_of_results_count() -> None:
    one = result("x")
    digests = {
        evidence_digest_of_run(entries)
        for entries in (
            [one],
            [one, one],
            [result("x", "make")],
            [replace(one, is_error=True)],
            [replace(one, kind="shell", exit_code=1)],
            [],
        )
    }
    assert len(digests) == 6


def test_excluded_shell_executions_do_not_count() -> None:
    assert evidence_digest_of_run([replace(result("x"), kind="shell", excluded=True)]) == evidence_digest_of_run([])
