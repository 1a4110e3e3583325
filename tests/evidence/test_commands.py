import pytest

from goalkeeper.evidence.commands import named_proofs, same_command


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "  pytest -q\n",
        "pytest -q 2>&1",
        "cd /project && pytest -q",
        "cd /project/ && pytest -q 2>&1",
        'cd "/project" && pytest -q',
        "cd '/project' &&\n  pytest -q",
        "cd . && pytest -q",
    ],
)
def test_the_same_command_in_another_dress_is_the_same(command: str) -> None:
    assert same_command(command, "pytest -q", "/project")


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q || true",
        "pytest -q; true",
        "pytest -q | tail -3",
        "pytest -q > log",
        "pytest -q 2>/dev/null",
        "pytest -q &",
        "pytest -q -k parse",
        "pytest",
        "pytest  -q",
        "PYTEST_ADDOPTS=-x pytest -q",
        "cd /other && pytest -q",
        "cd tests && pytest -q",
        "cd /project/link/.. && pytest -q",
        "cd /project; pytest -q",
        "cd /project || pytest -q",
        "cd $HOME && pytest -q",
        "cd ~ && pytest -q",
        "cd - && pytest -q",
        "cd $(pwd) && pytest -q",
        "cd /project && cd tests && pytest -q",
        "cd /project && pytest -q || true",
        "pytest -q\n2>&1",
        "pytest -q2>&1",
        "pytest -q 2>&1 2>&1",
        "echo 'pytest -q'",
        "",
    ],
)
def test_anything_else_is_another_command(command: str) -> None:
    assert not same_command(command, "pytest -q", "/project")


def test_the_named_command_is_read_the_same_way() -> None:
    assert same_command("make test", "cd /project && make test 2>&1", "/project")
    assert same_command("cd sub && make", "cd sub && make", "/project")


def test_no_command_is_the_same_as_none() -> None:
    assert not same_command(None, None, "/project")
    assert not same_command(None, "make", "/project")
    assert not same_command("cd /project && make", "make", "")


@pytest.mark.parametrize(
    ("condition", "proofs"),
    [
        ("All tests pass: `pytest -q` exits 0.", ("pytest -q",)),
        ("`pytest -v` exits with code 0 and `ruff check .` returns exit status 0", ("pytest -v", "ruff check .")),
        ("``a `b` c`` passes", ()),
        ("`make test` succeeds; then `make test` succeeds again", ("make test",)),
        ("`make test` now passes", ("make test",)),
        ("`make broken` exits 1", ()),
        ("`make broken` no longer exits 0", ()),
        ("`ruff check .` reports no findings", ()),
        ("the function `passes` passes nothing on", ()),
        ("pytest -q exits 0", ()),
        ("`pytest -q` exits 0x1", ()),
        ("`./check.sh --all` passes", ("./check.sh --all",)),
        ("`verify-all` exits 0", ("verify-all",)),
        ("the test `test_parse_empty` passes", ()),
        ("`tests/test_parse.py` passes, and `lint` succeeds", ()),
        ("`GET /health` succeeds", ()),
        ("`count(items)` returns 0", ()),
        ("`main()` exits 0", ()),
    ],
)
def test_a_condition_names_its_proof_beyond_doubt(condition: str, proofs: tuple[str, ...]) -> None:
    assert named_proofs(condition) == proofs
