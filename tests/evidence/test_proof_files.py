import pytest

from goalkeeper.core.verdict import Terms
from goalkeeper.evidence.proof_files import changed_proof_files

NOTHING = Terms("tool")


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_parse.py", "test_parse.py", "pkg/parse_test.go", "src/app.spec.ts", "src/app.test.jsx",
        "conftest.py", "tests/data/input.json", "src/__tests__/app.js", "src/FooTest.java", "spec/foo_spec.rb",
        "Tests/Foo.cs", "__snapshots__/a.snap", "checks.bats",
    ],
)  # fmt: skip
def test_tests_and_what_they_read_are_marked(name: str) -> None:
    assert changed_proof_files([name], NOTHING) == ((name, "test"),)


@pytest.mark.parametrize(
    "name",
    [
        "pytest.ini",
        "pyproject.toml",
        "tox.ini",
        "Makefile",
        "package.json",
        ".github/workflows/ci.yml",
        "jest.config.js",
    ],
)
def test_configuration_of_tests_is_marked(name: str) -> None:
    assert changed_proof_files([name], NOTHING) == ((name, "test configuration"),)


@pytest.mark.parametrize("name", ["ledger/parse.py", "README.md", "contest.py", "latest/notes.md", "src/testing.py"])
def test_ordinary_files_are_not(name: str) -> None:
    assert changed_proof_files([name], NOTHING) == ((name, ""),)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("check.sh", "./check.sh --all"),
        ("scripts/verify.py", "python scripts/verify.py"),
        ("suite/one.py", "pytest suite/"),
        ("suite/one.py", "pytest suite/one.py::test_x"),
        ("a.cfg", "tool --config=a.cfg"),
    ],
)
def test_files_that_a_proof_or_check_names_are_marked(name: str, command: str) -> None:
    expected = ((name, "named in a proof or check"),)
    assert changed_proof_files([name], Terms("tool", (command,))) == expected
    assert changed_proof_files([name], NOTHING, (command,)) == expected


def test_marked_files_come_first_else_the_order_stays() -> None:
    found = changed_proof_files(["b.py", "a.py", "tests/t.py"], Terms("tool", ("pytest .",)))
    assert [name for name, _ in found] == ["tests/t.py", "b.py", "a.py"]
