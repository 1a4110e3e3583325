from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from goalkeeper.errors import PrerequisiteError
from goalkeeper.pi.install import MINIMUM_PI, PACKAGE, PINNED_NODE, PINNED_PI, data_folder, find_pi, install_pi


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def package(prefix: Path, name: str, version: str, program: str) -> Path:
    """Lay out an npm package with a program, as npm does; return the link to it."""
    folder = prefix / "node_modules" / name
    script = executable(folder / "dist" / program)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))
    link = prefix / "node_modules" / ".bin" / program
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(script)
    return link


class Runner:
    """Answers for programs by name, and remembers what was run."""

    def __init__(self, **answers: str | tuple[int, str]) -> None:
        self.answers = answers
        self.ran: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        self.ran.append(argv)
        answer = self.answers.get(Path(argv[0]).name)
        if answer is None:
            raise FileNotFoundError(argv[0])
        status, text = answer if isinstance(answer, tuple) else (0, answer)
        return subprocess.CompletedProcess(argv, status, text if status == 0 else "", text if status else "")


def env(tmp_path: Path, *folders: Path, **more: str) -> dict[str, str]:
    path = ":".join(str(folder) for folder in folders) or str(tmp_path / "empty")
    return {"PATH": path, "HOME": str(tmp_path / "home"), **more}


def test_a_pi_that_is_named_comes_before_the_one_on_the_path(tmp_path: Path) -> None:
    named = package(tmp_path / "a", PACKAGE, "1.5.0", "pi")
    package(tmp_path / "a", "node", "24.1.0", "node")
    on_path = package(tmp_path / "b", PACKAGE, "1.6.0", "pi")
    package(tmp_path / "b", "node", "24.2.0", "node")
    runner = Runner()
    assert find_pi(env(tmp_path, on_path.parent, GOALKEEPER_PI=str(named)), runner=runner).version == "1.5.0"
    found = find_pi(env(tmp_path, on_path.parent), runner=runner)
    assert (found.version, found.node_version) == ("1.6.0", "24.2.0")
    assert found.argv == (str(on_path.parent / "node"), str(on_path.resolve()))
    assert runner.ran == []


def test_the_data_folder_is_looked_at_last(tmp_path: Path) -> None:
    package(tmp_path / "data" / "pi", PACKAGE, "1.6.0", "pi")
    package(tmp_path / "data" / "pi", "node", "24.1.0", "node")
    assert find_pi(env(tmp_path, GOALKEEPER_DATA_DIR=str(tmp_path / "data"))).version == "1.6.0"
    assert data_folder({"XDG_DATA_HOME": "/x"}) == Path("/x/goalkeeper")
    assert data_folder({"HOME": "/h"}) == Path("/h/.local/share/goalkeeper")


def test_a_node_on_the_path_that_is_too_old_gives_way_to_one_in_the_data_folder(tmp_path: Path) -> None:
    pi = package(tmp_path / "a", PACKAGE, "1.6.0", "pi")
    old = executable(tmp_path / "system" / "node").parent
    node = package(tmp_path / "data" / "pi", "node", "24.1.0", "node")
    runner = Runner(node="v20.9.0\n")
    whole = env(tmp_path, pi.parent, old, GOALKEEPER_DATA_DIR=str(tmp_path / "data"))
    assert find_pi(whole, runner=runner).argv[0] == str(node)
    with pytest.raises(PrerequisiteError, match=r"Node 20\.9\.0 is too old"):
        find_pi(env(tmp_path, pi.parent, old), runner=runner)
    with pytest.raises(PrerequisiteError, match="Node was not found"):
        find_pi(env(tmp_path, pi.parent))
    assert find_pi(env(tmp_path, pi.parent, old), runner=Runner(node="v22.19.0\n")).node_version == "22.19.0"


def test_what_a_person_types_is_pi_only_where_that_reaches_pi_and_its_node(tmp_path: Path) -> None:
    data = tmp_path / "home" / ".local" / "share" / "goalkeeper" / "pi"
    script = package(data, PACKAGE, PINNED_PI, "pi")
    node = package(data, "node", PINNED_NODE, "node")
    nowhere, here = env(tmp_path), env(tmp_path, script.parent)
    found = find_pi(nowhere)
    assert found.typed(nowhere) == f"{node} {script.resolve()}"
    assert found.typed(here) == "pi"
    older = tmp_path / "old" / "node_modules" / ".bin"
    package(tmp_path / "old", "node", "20.0.0", "node")
    assert found.typed(env(tmp_path, older, script.parent)) == f"{node} {script.resolve()}"


def test_a_pi_below_the_minimum_is_refused_by_name(tmp_path: Path) -> None:
    old = package(tmp_path / "a", PACKAGE, "0.80.3", "pi")
    package(tmp_path / "a", "node", "24.1.0", "node")
    with pytest.raises(PrerequisiteError, match=rf"pi 0\.80\.3 is too old: at least {MINIMUM_PI}") as caught:
        find_pi(env(tmp_path, old.parent))
    assert "goalkeeper setup" in caught.value.hint
    package(tmp_path / "a", PACKAGE, MINIMUM_PI, "pi")
    assert find_pi(env(tmp_path, old.parent)).version == MINIMUM_PI


def test_a_pi_that_is_no_npm_script_is_asked_for_its_version(tmp_path: Path) -> None:
    wrapper = executable(tmp_path / "bin" / "pi")
    found = find_pi(env(tmp_path, wrapper.parent), runner=Runner(pi="1.6.0\n"))
    assert (found.argv, found.version, found.node_version) == ((str(wrapper),), "1.6.0", "")
    for runner in (Runner(pi="hello\n"), Runner(pi=(1, "broken")), Runner()):
        with pytest.raises(PrerequisiteError):
            find_pi(env(tmp_path, wrapper.parent), runner=runner)


def test_no_pi_at_all_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="pi was not found") as caught:
        find_pi(env(tmp_path))
    assert "goalkeeper setup" in caught.value.hint
    with pytest.raises(PrerequisiteError, match="GOALKEEPER_PI names"):
        find_pi(env(tmp_path, GOALKEEPER_PI=str(tmp_path / "gone")))


class Npm(Runner):
    """An npm that installs what it is told to."""

    def __call__(self, argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        if Path(argv[0]).name == "npm":
            prefix = Path(argv[argv.index("--prefix") + 1])
            for spec in argv[argv.index("--prefix") + 2 :]:
                name, _, version = spec.rpartition("@")
                package(prefix, name, version, "pi" if name == PACKAGE else "node")
        return super().__call__(argv, timeout)


def test_an_installation_brings_a_node_when_the_systems_is_too_old_and_is_done_once(tmp_path: Path) -> None:
    system = executable(tmp_path / "system" / "node").parent
    executable(system / "npm")
    npm = Npm(npm="added 2 packages", node="v20.1.0\n")
    whole = env(tmp_path, system, GOALKEEPER_DATA_DIR=str(tmp_path / "data"))
    found = install_pi(env=whole, runner=npm)
    assert (found.version, found.node_version) == (PINNED_PI, PINNED_NODE)
    installs = [argv for argv in npm.ran if Path(argv[0]).name == "npm"]
    assert installs[0][-2:] == [f"{PACKAGE}@{PINNED_PI}", f"node@{PINNED_NODE}"]
    assert install_pi(env=whole, runner=npm) == found == find_pi(whole, runner=npm)
    assert len([argv for argv in npm.ran if Path(argv[0]).name == "npm"]) == 1


def test_an_installation_uses_the_systems_node_when_it_is_new_enough(tmp_path: Path) -> None:
    system = executable(tmp_path / "system" / "node").parent
    executable(system / "npm")
    npm = Npm(npm="added", node="v24.0.0\n")
    found = install_pi("1.5.0", env=env(tmp_path, system), runner=npm)
    assert (found.version, found.argv[0]) == ("1.5.0", str(system / "node"))


def test_an_installation_that_fails_ends_with_npms_last_words(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="npm was not found"):
        install_pi(env=env(tmp_path))
    system = executable(tmp_path / "system" / "npm").parent
    with pytest.raises(PrerequisiteError, match="ENOTFOUND somewhere"):
        install_pi(env=env(tmp_path, system), runner=Runner(npm=(1, "npm error ENOTFOUND somewhere")))
