from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.storage.holder import holder
from goalkeeper.storage.locks import hold_session, state_lock
from goalkeeper.storage.read_state import read_states, state_for
from goalkeeper.storage.state_file import StateFile

COMPAT = Path(__file__).parents[1] / "compat"


class Folder:
    """A working folder with the session files of two sessions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mine = path / "2026_mine.jsonl"
        self.other = path / "2026_other.jsonl"
        self.mine.write_text("{}\n")
        self.other.write_text("{}\n")
        self.warnings: list[str] = []

    @property
    def state(self) -> Path:
        return self.path / ".pi-goal" / "state.json"

    def file(self, session: Path | None = None, **options: Any) -> StateFile:
        return StateFile(self.path, session or self.mine, self.warnings.append, **options)

    def put(self, document: object, path: Path | None = None) -> bytes:
        path = path or self.state
        path.parent.mkdir(exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path.read_bytes()

    def names(self) -> list[str]:
        return sorted(
            path.name for path in self.state.parent.iterdir() if path.name not in (".state.lock", ".gitignore")
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def goal(condition: str = "all tests pass", **fields: Any) -> dict[str, Any]:
    return {"goal": {"condition": condition, "startedAt": 1, "turns": 0, **fields}, "loop": None}


# ---- round trip ------------------------------------------------------------------------------------------------------


def test_what_was_saved_is_loaded_by_the_same_session(folder: Folder) -> None:
    assert folder.file().load() is None
    assert not folder.state.parent.exists()
    assert folder.file().save(goal("größer 😀 \ud800"))
    assert folder.file().load() == {"owner": str(folder.mine), **goal("größer 😀 \ud800")}
    assert folder.state.stat().st_mode & 0o777 == 0o600
    assert (folder.state.parent / ".gitignore").read_text() == "*\n"
    assert folder.names() == ["state.json"]
    assert folder.warnings == []


def test_delete_removes_only_ones_own(folder: Folder) -> None:
    folder.file().save(goal())
    folder.file(folder.other).save(goal("other"))
    assert folder.file().delete()
    assert folder.file().load() is None
    assert folder.file(folder.other).load() is not None
    assert folder.file(folder.other).delete()
    assert folder.names() == []
    assert folder.file().delete()


def test_an_ephemeral_session_writes_nothing(tmp_path: Path) -> None:
    file = StateFile(tmp_path, None, pytest.fail)
    assert file.load() is None
    assert not file.save(goal())
    assert file.document is not None
    assert file.delete()
    assert list(tmp_path.iterdir()) == []


def test_an_ephemeral_session_adopts_nothing(folder: Folder) -> None:
    folder.file().save(goal())
    before = folder.state.read_bytes()
    file = StateFile(folder.path, None, folder.warnings.append)
    assert file.load() is None
    file.save(goal("ephemeral"))
    file.delete()
    assert folder.state.read_bytes() == before


def test_unknown_fields_stay_and_known_ones_are_ours(folder: Folder) -> None:
    folder.put(
        {
            "owner": str(folder.mine),
            "theirs": [1],
            "goal": {"condition": "c", "turns": 1, "lastReason": "old", "pausedReason": "old", "mood": "good"},
            "loop": {"prompt": "p", "jitter": 5},
            "goalkeeper": {"version": 0},
        }
    )
    folder.file().save({"goal": {"condition": "c", "turns": 2}, "loop": {"prompt": "p", "iterations": 1}})
    assert json.loads(folder.state.read_text()) == {
        "owner": str(folder.mine),
        "theirs": [1],
        "goal": {"condition": "c", "turns": 2, "mood": "good"},
        "loop": {"prompt": "p", "iterations": 1, "jitter": 5},
    }


def test_another_goal_does_not_inherit_fields_of_the_last(folder: Folder) -> None:
    folder.put({"owner": str(folder.mine), "goal": {"condition": "old", "mood": "good"}, "loop": None})
    folder.file().save(goal("new"))
    assert "mood" not in json.loads(folder.state.read_text())["goal"]
    folder.file().save({"goal": None, "loop": {"prompt": "p"}})
    assert json.loads(folder.state.read_text())["goal"] is None


# ---- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["other", None, "", "missing key", "relative.jsonl"])
def test_state_of_others_is_ignored_and_left_alone(folder: Folder, owner: str | None) -> None:
    document: dict[str, Any] = {"owner": str(folder.other) if owner == "other" else owner, **goal("theirs")}
    if owner == "missing key":
        del document["owner"]
    before = folder.put(document)
    file = folder.file()
    assert file.load() is None
    file.delete()
    file.save(goal("mine"))
    assert folder.state.read_bytes() == before
    assert folder.names() == ["state-mine.json", "state.json"]
    loaded = folder.file().load()
    assert loaded is not None
    assert loaded["goal"]["condition"] == "mine"
    assert folder.warnings == []


def test_two_sessions_in_one_folder_lose_nothing(folder: Folder) -> None:
    mine, other = folder.file(), folder.file(folder.other)
    for number in range(5):
        mine.save(goal("mine", n=number))
        other.save(goal("other", n=number))
    for file, name in ((mine, "mine"), (other, "other")):
        document = file.load()
        assert document is not None
        assert (document["goal"]["condition"], document["goal"]["n"]) == (name, 4)
    assert folder.names() == ["state-other.json", "state.json"]
    mine.delete()
    other.save(goal("other", n=5))
    assert folder.names() == ["state-other.json"]


def test_state_that_a_neighbour_overwrote_is_saved_elsewhere(folder: Folder) -> None:
    file = folder.file()
    file.save(goal("mine"))
    theirs = folder.put({"owner": str(folder.other), **goal("theirs")})  # the extension asks nobody
    file.save(goal("mine"))
    assert folder.state.read_bytes() == theirs
    assert state_for(folder.mine, read_states(folder.path)) is not None


def test_of_two_files_of_one_session_its_own_counts_and_one_is_left(folder: Folder) -> None:
    folder.put({"owner": str(folder.mine), **goal("older")})
    folder.put({"owner": str(folder.mine), **goal("newer")}, folder.state.with_name("state-mine.json"))
    file = folder.file()
    document = file.load()
    assert document is not None
    assert document["goal"]["condition"] == "newer"
    file.save(document)
    assert folder.names() == ["state-mine.json"]


def test_state_whose_session_is_gone_is_pruned(folder: Folder) -> None:
    folder.put({"owner": str(folder.path / "gone.jsonl"), **goal("orphan")})
    folder.put(
        {"owner": str(folder.path / "gone2.jsonl"), **goal("orphan")}, folder.state.with_name("state-gone2.json")
    )
    assert folder.file().load() is None
    assert folder.names() == []
    folder.file().save(goal("mine"))
    assert folder.names() == ["state.json"]


def test_state_of_a_session_that_pi_has_not_written_yet_is_not_pruned(folder: Folder) -> None:
    folder.other.unlink()
    lock = hold_session(folder.other, {"pid": os.getpid()})
    folder.file(folder.other).save(goal("about to begin"))
    assert folder.file().load() is None
    folder.file().save(goal("mine"))
    assert folder.names() == ["state-mine.json", "state.json"]
    lock.release()
    assert holder(folder.other) is None
    folder.file().load()
    assert folder.names() == ["state-mine.json"]


def test_ones_own_state_is_not_pruned_when_the_session_file_is_not_there_yet(folder: Folder) -> None:
    folder.mine.unlink()
    folder.file().save(goal())
    assert folder.file().load() is not None


def test_a_session_is_the_same_behind_a_link(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    folder.file(tmp_path / "link" / folder.mine.name).save(goal())
    assert folder.file().load() is not None


@pytest.mark.parametrize("name", sorted(path.name for path in COMPAT.glob("extension_*.json")))
def test_files_of_the_pi_extension_are_read_and_kept(folder: Folder, name: str) -> None:
    document = json.loads((COMPAT / name).read_text())
    owned = bool(document.get("owner"))
    if owned:
        document["owner"] = str(folder.mine)
    before = folder.put(document)
    assert folder.file().load() == (document if owned else None)
    assert folder.state.read_bytes() == before
    if owned:
        folder.file().save({"goal": document["goal"], "loop": document["loop"]})
        assert json.loads(folder.state.read_text()) == document
        assert list(json.loads(folder.state.read_text())) == list(document)
    assert folder.warnings == []


# ---- broken files ----------------------------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_is_set_aside_with_a_warning(folder: Folder) -> None:
    folder.file().save(goal("größer"))
    whole = folder.state.read_bytes()
    for length in range(len(whole)):
        folder.state.write_bytes(whole[:length])
        folder.warnings.clear()
        assert folder.file(settle=lambda: None).load() is None
        assert len(folder.warnings) == 1, length
        assert ".corrupt-" in folder.warnings[0]
        aside = [path for path in folder.state.parent.iterdir() if ".corrupt-" in path.name]
        assert [path.read_bytes() for path in aside] == [whole[:length]]
        assert folder.file().save(goal("next"))
        assert folder.file().load() is not None
        aside[0].unlink()


@pytest.mark.parametrize(
    "content",
    ["[]", "null", '"x"', '{"owner": 5}', '{"owner": "/x", "goal": []}', '{"loop": "x"}', "[" * 100_000, "\0"],
)
def test_what_is_no_state_is_set_aside(folder: Folder, content: str) -> None:
    folder.put(content)
    assert folder.file().load() is None
    assert [name for name in folder.names() if ".corrupt-" in name]
    assert folder.file().save(goal())
    assert folder.state.exists()


def test_files_set_aside_in_one_second_do_not_replace_each_other(folder: Folder) -> None:
    for number in range(3):
        folder.put(f"garbage {number}")
        folder.file().load()
    assert len([name for name in folder.names() if ".corrupt-" in name]) == 3


def test_a_broken_file_of_another_session_is_left_to_it(folder: Folder) -> None:
    folder.put("garbage", folder.state.with_name("state-other.json"))
    assert folder.file().load() is None
    assert folder.names() == ["state-other.json"]
    assert folder.warnings == []


def test_a_document_that_is_being_written_is_not_set_aside(folder: Folder) -> None:
    whole = json.dumps({"owner": str(folder.mine), **goal()})
    folder.put(whole[:20])
    document = folder.file(settle=lambda: folder.state.write_text(whole)).load()
    assert document is not None
    assert folder.names() == ["state.json"]
    assert folder.warnings == []


def test_set_aside_moves_a_document_that_others_can_not_understand(folder: Folder) -> None:
    folder.file().save(goal())
    file = folder.file()
    assert file.load() is not None
    aside = file.set_aside()
    assert aside is not None
    assert ".corrupt-" in aside.name
    assert aside.exists()
    assert file.load() is None
    assert file.set_aside() is None


@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "pipe"])
def test_what_is_no_regular_file_is_left_alone(folder: Folder, kind: str, tmp_path: Path) -> None:
    folder.state.parent.mkdir()
    target = tmp_path / "target.json"
    if kind == "link":
        target.write_text(json.dumps({"owner": str(folder.mine), **goal("forged")}))
    if kind == "folder":
        folder.state.mkdir()
    elif kind == "pipe":
        os.mkfifo(folder.state)
    else:
        folder.state.symlink_to(target)
    assert folder.file().load() is None
    assert len(folder.warnings) == 1
    assert "left alone" in folder.warnings[0]
    before = target.read_bytes() if target.exists() else None
    assert folder.file().save(goal("mine"))
    assert folder.names() == ["state-mine.json", "state.json"]
    assert (target.read_bytes() if target.exists() else None) == before
    assert folder.file().load() is not None


# ---- trouble with the disk -------------------------------------------------------------------------------------------


def test_trouble_is_told_once_and_the_newest_document_is_kept(folder: Folder) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder.file().save(goal("old"))
    file = folder.file(replace=full)
    for number in range(3):
        assert not file.save(goal("new", n=number))
    assert len(folder.warnings) == 1
    assert "No space left on device" in folder.warnings[0]
    assert "the work goes on" in folder.warnings[0]
    assert file.document is not None
    assert file.document["goal"]["n"] == 2
    old = folder.file().load()
    assert old is not None
    assert old["goal"]["condition"] == "old"
    assert folder.names() == ["state.json"]  # no temporary file is left


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root; the next test needs nothing")
def test_a_full_disk_warns_once_and_heals(folder: Folder) -> None:
    folder.state.parent.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder.state.parent)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        file = folder.file()
        assert file.save(goal("old"))
        ballast = folder.state.parent / "ballast"
        with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as opened:
            while True:
                opened.write(b"x" * 4096)
        assert not file.save(goal("new"))
        assert not file.save(goal("newer"))
        assert len(folder.warnings) == 1
        old = folder.file().load()
        assert old is not None
        assert old["goal"]["condition"] == "old"
        ballast.unlink()
        assert file.save(goal("newest"))
        assert [name for name in folder.names() if "tmp" in name] == []
    finally:
        subprocess.run(["umount", "-l", str(folder.state.parent)], check=True)


def test_a_file_that_cannot_grow_keeps_the_old_content(folder: Folder) -> None:
    folder.file().save(goal("old"))
    code = (
        "import resource, signal, sys\nfrom goalkeeper.storage.state_file import StateFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "warnings = []\nfile = StateFile(sys.argv[1], sys.argv[2], warnings.append)\n"
        "saved = [file.save({'goal': {'condition': 'new' * 99}, 'loop': None}) for _ in range(3)]\n"
        "assert saved == [False] * 3, saved\nassert len(warnings) == 1, warnings\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder.path), str(folder.mine)], check=True, timeout=60)
    old = folder.file().load()
    assert old is not None
    assert old["goal"]["condition"] == "old"
    assert folder.names() == ["state.json"]


def as_somebody(code: str, *arguments: str) -> None:
    """Run code as a user who must obey file modes."""
    drop = "import os, sys\nif os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    load = "from goalkeeper.storage.state_file import StateFile\nfrom goalkeeper.storage.journal import Journal\n"
    subprocess.run([sys.executable, "-c", load + drop + code, *arguments], check=True, timeout=60)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that any user can enter; pytest's own is closed to others again by each new pytest."""
    folder = Path(tempfile.mkdtemp(prefix="goalkeeper-test-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_read_only_folder_warns_once_and_state_is_still_read(public: Path) -> None:
    folder = Folder(public)
    folder.file().save(goal("old"))
    folder.path.chmod(0o755)
    folder.state.chmod(0o644)
    folder.state.parent.chmod(0o555)
    code = (
        "warnings = []\nfile = StateFile(sys.argv[1], sys.argv[2], warnings.append)\n"
        "assert file.load()['goal']['condition'] == 'old', warnings\n"
        "first = len(warnings)\n"
        "assert [file.save({'goal': {'condition': 'new'}, 'loop': None}) for _ in range(3)] == [False] * 3\n"
        "assert not file.delete()\n"
        "assert len(warnings) == first + 2, warnings\n"
        "journal = Journal(sys.argv[1], sys.argv[2], warnings.append)\n"
        "assert [journal.append({'at': 1}) for _ in range(3)] == [False] * 3\n"
        "assert len(warnings) == first + 3, warnings\n"
    )
    as_somebody(code, str(folder.path), str(folder.mine))
    folder.state.parent.chmod(0o755)
    document = folder.file().load()
    assert document is not None
    assert document["goal"]["condition"] == "old"


def test_a_folder_that_cannot_be_created_warns_once(public: Path) -> None:
    folder = Folder(public)
    folder.path.chmod(0o555)
    code = (
        "warnings = []\nfile = StateFile(sys.argv[1], sys.argv[2], warnings.append)\nassert file.load() is None\n"
        "assert [file.save({'goal': None, 'loop': None}) for _ in range(3)] == [False] * 3\n"
        "assert len(warnings) == 1, warnings\n"
    )
    as_somebody(code, str(folder.path), str(folder.mine))
    folder.path.chmod(0o755)


def test_a_kill_between_write_and_replace_leaves_the_old_state(folder: Folder) -> None:
    folder.file().save(goal("old"))
    code = (
        "import os, signal, sys\nfrom goalkeeper.storage.state_file import StateFile\n"
        "kill = lambda source, target: os.kill(os.getpid(), signal.SIGKILL)\n"
        "file = StateFile(sys.argv[1], sys.argv[2], print, replace=kill)\n"
        "file.save({'goal': {'condition': 'new'}, 'loop': None})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder.path), str(folder.mine)], timeout=60, check=False)
    assert done.returncode == -9
    old = folder.file().load()
    assert old is not None
    assert old["goal"]["condition"] == "old"
    assert folder.file().save(goal("next"))


def test_a_save_waits_for_whoever_is_at_the_state(folder: Folder) -> None:
    replaced = threading.Event()

    def replace(source: str, target: str) -> None:
        replaced.set()
        Path(source).replace(target)

    folder.file().save(goal("old"))
    saving = threading.Thread(target=folder.file(replace=replace).save, args=(goal("new"),))
    with state_lock(folder.state.with_name(".state.lock")):
        saving.start()
        assert not replaced.wait(0.2)
    saving.join(30)
    assert replaced.is_set()


def test_writers_at_once_leave_whole_documents(folder: Folder) -> None:
    code = (
        "import sys\nfrom goalkeeper.storage.state_file import StateFile\n"
        "file = StateFile(sys.argv[1], sys.argv[2], sys.exit)\n"
        "for number in range(40):\n"
        "    assert file.save({'goal': {'condition': sys.argv[2] * (number % 7 + 1), 'n': number}, 'loop': None})\n"
    )
    sessions = [folder.mine, folder.mine, folder.other]
    writers = [subprocess.Popen([sys.executable, "-c", code, str(folder.path), str(s)]) for s in sessions]
    while any(writer.poll() is None for writer in writers):
        assert [state.detail for state in read_states(folder.path) if state.problem] == []
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    for session in (folder.mine, folder.other):
        document = folder.file(session).load()
        assert document is not None
        assert document["goal"]["n"] == 39
        assert document["goal"]["condition"].startswith(str(session))
    assert folder.warnings == []
    assert len(folder.names()) == 2
