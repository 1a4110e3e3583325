from __future__ import annotations

import json
from pathlib import Path

import pytest

from goalkeeper.cli.main import run
from goalkeeper.pi.install import PACKAGE, PINNED_NODE, PINNED_PI


def put_package(modules: Path, name: str, version: str, program: str) -> None:
    folder = modules / name
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))
    script = folder / "cli.js"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (modules / ".bin").mkdir(exist_ok=True)
    (modules / ".bin" / program).symlink_to(script)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("GOALKEEPER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_what_is_installed_already_is_told(data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modules = data_folder / "pi" / "node_modules"
    put_package(modules, PACKAGE, PINNED_PI, "pi")
    put_package(modules, "node", PINNED_NODE, "node")

    assert run(["setup"]) == 0
    said = capsys.readouterr().out
    assert str(data_folder) in said and f"pi {PINNED_PI} is ready" in said and PINNED_NODE in said


def test_without_npm_it_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup"]) == 4
    assert "npm was not found" in capsys.readouterr().err


def test_npms_own_words_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    npm = tmp_path / "bin" / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error ENOTFOUND' >&2\nexit 1\n")
    npm.chmod(0o755)

    assert run(["setup"]) == 4
    assert "ENOTFOUND" in capsys.readouterr().err
