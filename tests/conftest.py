"""Fixtures that every test may use: real pi, the scripted model, an isolated environment, a project to work in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from goalkeeper.errors import PrerequisiteError
from goalkeeper.pi.install import find_pi
from goalkeeper.testing.model_steps import Script
from goalkeeper.testing.pi_home import pi_home
from goalkeeper.testing.scripted_model import ScriptedModel

ADVICE = "run `make setup`, then `make test`, which names both"
DEAD_PROXY = "http://127.0.0.1:9"
"""Nothing listens on the discard port: a child process that wants out of the machine fails at once."""


def _refuse_other_hosts(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail whatever in this process connects to anything but loopback; no test may ask a real model."""
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        pytest.fail(f"a test tried to connect to {address!r}; tests talk to loopback only")


sys.addaudithook(_refuse_other_hosts)


def _executable(variable: str, *, on_path: bool) -> Path:
    """Return the pi that a variable names, or the one on PATH; fail if it is not there or can't be run."""
    named = os.environ.get(variable) or (shutil.which("pi") if on_path else None)
    # Not a skip: a suite without pi proves nothing about the product.
    if not named:
        pytest.fail(f"{variable} is not set and no pi was found: {ADVICE}")
    try:
        find_pi({**os.environ, "GOALKEEPER_PI": named})
    except PrerequisiteError as error:
        pytest.fail(f"{error.message} ({variable}={named}): {ADVICE}")
    return Path(named).absolute()


@pytest.fixture(autouse=True)
def own_state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the product stores for its user out of the home of whoever runs the tests."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-home"))


@pytest.fixture(scope="session")
def pi() -> Path:
    """The pi executable that the product supports best; the test fails if there is none."""
    return _executable("GOALKEEPER_PI", on_path=True)


@pytest.fixture(scope="session")
def old_pi() -> Path:
    """A pi of an older release that is still supported."""
    return _executable("GOALKEEPER_OLD_PI", on_path=False)


class ModelFactory(Protocol):
    """Starts a scripted model that ends with the test."""

    def __call__(self, worker: Script = (), evaluator: Script = (), **options: Any) -> ScriptedModel: ...


@pytest.fixture
def scripted_model() -> Iterator[ModelFactory]:
    """A factory of running scripted models; all are closed when the test ends."""
    models: list[ScriptedModel] = []

    def start(worker: Script = (), evaluator: Script = (), **options: Any) -> ScriptedModel:
        model = ScriptedModel(worker, evaluator, **options)
        models.append(model)
        return model.__enter__()

    yield start
    for model in models:
        model.close()


@pytest.fixture
def agent_env(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """A factory of whole environments for a child process: pi's scripted home, an empty HOME, no way out.

    Call it with a model (or its base_url) and the options of `pi_home`.
    """

    def make(model: ScriptedModel | str, *, pi: Path | None = None, **options: Any) -> dict[str, str]:
        base_url = model if isinstance(model, str) else model.base_url
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        executable = pi or _executable("GOALKEEPER_PI", on_path=True)
        # pi's own node lies beside it; an older one of the system must not be taken instead.
        path = os.pathsep.join([str(executable.parent), os.environ.get("PATH", os.defpath)])
        return {
            "PATH": path,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GOALKEEPER_PI": str(executable),
            "HTTP_PROXY": DEAD_PROXY,
            "HTTPS_PROXY": DEAD_PROXY,
            **pi_home(tmp_path / "agent", base_url, **options),
        }

    return make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git checkout with one commit, its own identity, and nothing from the user's configuration."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("A project.\n", encoding="utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Test"],
        ["config", "user.email", "test@example.invalid"],
        ["add", "README.md"],
        ["commit", "--quiet", "--message=Start"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, timeout=30)
    return folder
