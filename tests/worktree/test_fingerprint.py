from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalkeeper.worktree.fingerprint import WorkTree


@pytest.fixture(autouse=True)
def _own_git_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (home / ".gitconfig").write_text(
        '[user]\n\tname = A\n\temail = a@example.com\n[protocol "file"]\n\tallow = always\n'
    )


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    assert not check or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape")


def make_repo(folder: Path, files: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in (files if files is not None else {"a.txt": "one\n", "src/b.py": "x = 1\n"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first", "--allow-empty")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def tree(repo: Path) -> Iterator[WorkTree]:
    work_tree = WorkTree(repo)
    yield work_tree
    work_tree.close()


async def look(work_tree: WorkTree) -> str:
    fingerprint = await work_tree.fingerprint()
    assert fingerprint is not None, work_tree.reason
    return fingerprint


async def fresh_look(repo: Path) -> str:
    work_tree = WorkTree(repo)
    try:
        return await look(work_tree)
    finally:
        work_tree.close()


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (stat.st_mode, stat.st_mtime_ns, content)
    return found


# ---- what is the same, what differs ------------------------------------------------------------------------------


async def test_is_the_tree_that_git_would_commit(repo: Path, tree: WorkTree) -> None:
    (repo / "new.txt").write_text("new\n")
    before = await look(tree)
    git(repo, "add", "-A")
    assert git(repo, "write-tree").strip() == before


async def test_is_the_same_before_and_after_a_commit(repo: Path, tree: WorkTree) -> None:
    (repo / "a.txt").write_text("two\n")
    (repo / "new.txt").write_text("new\n")
    before = await look(tree)
    git(repo, "add", "-A")
    assert await look(tree) == before
    git(repo, "commit", "-q", "-m", "second")
    assert await look(tree) == before
    assert await fresh_look(repo) == before


async def test_differs_after_an_edit_and_names_the_files(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    (repo / "a.txt").write_text("two\n")
    (repo / "new").mkdir()
    (repo / "new" / "file.txt").write_text("new\n")
    (repo / "src" / "b.py").unlink()
    after = await look(tree)
    assert after != before
    assert await tree.changed(before, after) == ("a.txt", "new/file.txt", "src/b.py")
    assert await tree.changed(after, after) == ()


async def test_is_the_old_one_again_when_an_edit_is_undone(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    (repo / "a.txt").write_text("two\n")
    assert await look(tree) != before
    (repo / "a.txt").write_text("one\n")
    assert await look(tree) == before


async def test_differs_after_a_checkout_of_another_branch(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    git(repo, "checkout", "-q", "-b", "other")
    assert await look(tree) == before
    (repo / "a.txt").write_text("other\n")
    git(repo, "commit", "-qam", "other")
    other = await look(tree)
    git(repo, "checkout", "-q", "main")
    assert await look(tree) == before
    git(repo, "checkout", "-q", "other")
    assert await look(tree) == other


async def test_a_touched_file_with_the_same_content_changes_nothing(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    os.utime(repo / "a.txt", (1, 1))
    assert await look(tree) == before


async def test_sees_the_whole_checkout_from_a_subfolder(repo: Path) -> None:
    work_tree = WorkTree(repo / "src")
    before = await look(work_tree)
    (repo / "a.txt").write_text("two\n")
    assert await work_tree.changed(before, await look(work_tree)) == ("a.txt",)


async def test_exec_bit_symlink_and_type_changes_differ(repo: Path, tree: WorkTree) -> None:
    git(repo, "config", "core.fileMode", "false")
    (repo / "link").symlink_to("a.txt")
    seen = [await look(tree)]
    (repo / "a.txt").chmod(0o755)
    seen.append(await look(tree))
    (repo / "link").unlink()
    (repo / "link").symlink_to("src")
    seen.append(await look(tree))
    (repo / "link").unlink()
    (repo / "link").mkdir()
    (repo / "link" / "inside").write_text("x")
    seen.append(await look(tree))
    (repo / "src" / "b.py").unlink()
    (repo / "src").rmdir()
    (repo / "src").write_text("a file now")
    seen.append(await look(tree))
    assert len(set(seen)) == len(seen)
    assert await fresh_look(repo) == seen[-1]
    assert await tree.changed(seen[0], seen[1]) == ("a.txt",)


async def test_odd_names_are_names_like_any_other(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    for name in (
        b"new\nline",
        b"\xff\xfe",
        b"-dash",
        b'quote"',
        "ümläut €".encode(),
        b" space ",
        b"tab\t",
        b"back\\slash",
    ):
        Path(os.fsdecode(os.fsencode(repo) + b"/" + name)).write_text("x")
    after = await look(tree)
    names = await tree.changed(before, after)
    assert set(names) == {
        *("new\nline", "\\xff\\xfe", "-dash", 'quote"', "ümläut €", " space ", "tab\t", "back\\slash")
    }
    Path(os.fsdecode(os.fsencode(repo) + b"/\xff\xfe")).write_text("y")
    assert await tree.changed(after, await look(tree)) == ("\\xff\\xfe",)


# ---- same size, same moment ----------------------------------------------------------------------------------------


async def test_an_edit_of_the_same_size_in_the_same_clock_tick_is_seen(repo: Path, tree: WorkTree) -> None:
    file = repo / "a.txt"
    last = await look(tree)
    for number in range(60):
        file.write_bytes(b"%04d" % number)
        current = await look(tree)
        assert current != last, number
        last = current


async def test_an_edit_that_keeps_size_and_time_is_seen(repo: Path, tree: WorkTree) -> None:
    file = repo / "a.txt"
    file.write_bytes(b"0000")
    now = time.time_ns()
    os.utime(file, ns=(now, now))
    last = await look(tree)
    for number in range(1, 40):
        with file.open("r+b") as opened:  # the same inode
            opened.write(b"%04d" % number)
        os.utime(file, ns=(now, now))
        current = await look(tree)
        assert current != last, number
        last = current


async def test_an_edit_right_after_git_wrote_its_own_index_is_seen(repo: Path) -> None:
    # The owner's index says that the file is clean, in the same second and with the same size.
    for number in range(10):
        file = repo / "a.txt"
        file.write_bytes(b"a%03d" % number)
        git(repo, "add", "-A")
        stat = file.stat()
        with file.open("r+b") as opened:
            opened.write(b"b%03d" % number)
        os.utime(file, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
        expected = await fresh_look(repo)
        file.write_bytes(b"a%03d" % number)
        assert await fresh_look(repo) != expected


# ---- what counts ---------------------------------------------------------------------------------------------------


async def test_ignored_files_and_caches_do_not_count(repo: Path, tree: WorkTree) -> None:
    (repo / ".gitignore").write_text("*.log\nbuild/\n")
    before = await look(tree)
    for name in (
        *("x.log", "build/out", ".pi-goal/state.json", "src/__pycache__/b.cpython-311.pyc", "src/b.pyc"),
        *(".pytest_cache/v", ".coverage", ".coverage.host.1", ".mypy_cache/x", ".ruff_cache/x", ".hypothesis/x"),
        *("web/node_modules/.cache/x", ".tox/x", ".nox/x", "htmlcov/index.html", "src/.DS_Store", "src/.pi-goal/x"),
    ):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("x")
    assert await look(tree) == before


async def test_caches_do_not_count_even_when_tracked(repo: Path, tree: WorkTree) -> None:
    (repo / "__pycache__").mkdir()
    (repo / "__pycache__" / "b.pyc").write_text("1")
    (repo / ".coverage").write_text("1")
    git(repo, "add", "-f", ".")
    git(repo, "commit", "-qm", "caches")
    before = await look(tree)
    (repo / "__pycache__" / "b.pyc").write_text("2")
    (repo / ".coverage").unlink()
    assert await look(tree) == before
    assert await fresh_look(repo) == before


async def test_ignore_globs_leave_out_more(repo: Path) -> None:
    work_tree = WorkTree(repo, ignore=["*.snap", "/out/", "src/gen/**"])
    (repo / "tracked.snap").write_text("1")
    git(repo, "add", "-A")
    before = await look(work_tree)
    for name in ("tracked.snap", "src/x.snap", "out/a", "src/gen/deep/b"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("2")
    assert await look(work_tree) == before
    (repo / "src" / "out").mkdir()
    (repo / "src" / "out" / "a").write_text("2")
    assert await work_tree.changed(before, await look(work_tree)) == ("src/out/a",)


async def test_files_of_our_own_are_no_content_and_no_other_file_goes_with_them(repo: Path) -> None:
    own = repo / "src" / "a [1]*.jsonl"
    link = repo / "link.jsonl"
    link.symlink_to(own)
    work_tree = WorkTree(repo, own=(link, own.with_name("#own"), Path("/elsewhere/s.jsonl")))
    before = await look(work_tree)
    own.write_text("1")
    own.with_name("#own").write_text("1")
    assert await look(work_tree) == before
    git(repo, "add", "-A")
    own.write_text("2")
    assert await look(work_tree) == before
    for other in ("src/a 1x.jsonl", "s.jsonl", "a [1]*.jsonl"):
        (repo / other).write_text("2")
        assert await work_tree.changed(before, before := await look(work_tree)) == (other,)


async def test_a_tracked_file_counts_although_it_is_ignored(repo: Path, tree: WorkTree) -> None:
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "kept.log").write_text("1")
    await look(tree)
    git(repo, "add", "-f", "kept.log")
    before = await look(tree)
    (repo / "kept.log").write_text("2")
    changed = await look(tree)
    assert await tree.changed(before, changed) == ("kept.log",)
    (repo / "kept.log").unlink()
    gone = await look(tree)
    assert gone not in (before, changed)
    (repo / "kept.log").write_text("2")
    assert await look(tree) == changed == await fresh_look(repo)
    git(repo, "rm", "-q", "-f", "--cached", "kept.log")
    assert await look(tree) == gone == await fresh_look(repo)


async def test_a_file_that_becomes_ignored_stops_counting(repo: Path, tree: WorkTree) -> None:
    (repo / "out.log").write_text("1")
    await look(tree)
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "out.log").write_text("changed with the rule")
    ignored = await look(tree)
    (repo / "out.log").write_text("2")
    assert await look(tree) == ignored == await fresh_look(repo)
    (repo / ".gitignore").unlink()
    assert await look(tree) not in (ignored,)
    assert await look(tree) == await fresh_look(repo)


async def test_the_users_own_ignore_rules_hold(repo: Path, tmp_path: Path) -> None:
    (Path(os.environ["HOME"]) / "mine").write_text("*.mine\n")
    git(repo, "config", "--global", "core.excludesFile", "~/mine")
    (repo / ".git" / "info" / "exclude").write_text("*.local\n")
    work_tree = WorkTree(repo)
    before = await look(work_tree)
    (repo / "x.mine").write_text("1")
    (repo / "x.local").write_text("1")
    assert await look(work_tree) == before
    (repo / ".git" / "info" / "exclude").write_text("")
    assert await work_tree.changed(before, await look(work_tree)) == ("x.local",)


async def test_files_that_git_was_told_to_trust_are_looked_at(repo: Path, tree: WorkTree) -> None:
    git(repo, "update-index", "--assume-unchanged", "a.txt")
    git(repo, "update-index", "--skip-worktree", "src/b.py")
    before = await look(tree)
    (repo / "a.txt").write_text("two\n")
    (repo / "src" / "b.py").write_text("x = 2\n")
    assert await tree.changed(before, await look(tree)) == ("a.txt", "src/b.py")


# ---- nothing is touched ----------------------------------------------------------------------------------------------


async def test_nothing_in_the_repository_is_touched(repo: Path, tree: WorkTree) -> None:
    (repo / "a.txt").write_text("two\n")
    (repo / "new.txt").write_text("new\n")
    os.utime(repo / "src" / "b.py", (1, 1))
    git(repo, "config", "core.untrackedCache", "true")
    before = snapshot(repo)
    first = await look(tree)
    assert snapshot(repo) == before
    (repo / "new.txt").write_text("newer\n")
    before = snapshot(repo)
    await tree.changed(first, await look(tree))
    assert snapshot(repo) == before


async def test_the_owners_hooks_filters_and_monitor_never_run(repo: Path, tree: WorkTree, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "filter.f.clean", "filter.f.process", "core.pager", "diff.external"):
        git(repo, "config", name, str(script))
    git(repo, "config", "filter.f.required", "true")
    (repo / ".gitattributes").write_text("* filter=f\n")
    (repo / "a.txt").write_text("two\n")
    before = await look(tree)
    (repo / "a.txt").write_text("three\n")
    await tree.changed(before, await look(tree))
    assert not mark.exists()


async def test_git_variables_of_the_environment_have_no_say(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(tmp_path / "other", {"z": "z"})
    expected = await fresh_look(repo)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    before = snapshot(other)
    assert await fresh_look(repo) == expected
    assert snapshot(other) == before


@pytest.mark.parametrize("setting", ["autocrlf=true", "autocrlf=input", "eol=crlf", "attributes", "none"])
async def test_line_ends_are_content_whatever_git_converts(repo: Path, setting: str) -> None:
    if setting == "attributes":
        (repo / ".gitattributes").write_text("* text=auto eol=crlf\n")
    elif setting != "none":
        git(repo, "config", f"core.{setting.split('=')[0]}", setting.split("=")[1])
    (repo / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    git(repo, "add", "-A")
    work_tree = WorkTree(repo)
    before = await look(work_tree)
    os.utime(repo / "a.txt", (1, 1))
    assert await look(work_tree) == before
    git(repo, "commit", "-qam", "crlf")
    assert await look(work_tree) == before == await fresh_look(repo)
    (repo / "a.txt").write_bytes(b"one\ntwo\r\n")
    assert await work_tree.changed(before, await look(work_tree)) == ("a.txt",)


def test_scratch_files_are_removed_on_close_and_at_exit(repo: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = (
        "import asyncio, sys, os\n"
        "from goalkeeper.worktree.fingerprint import WorkTree\n"
        "tree = WorkTree(sys.argv[1])\n"
        "assert asyncio.run(tree.fingerprint()), tree.reason\n"
        "assert os.listdir(sys.argv[2])\n"
        "if sys.argv[3] == 'close':\n    tree.close(); tree.close(); assert not os.listdir(sys.argv[2])\n"
        "    assert asyncio.run(tree.fingerprint()), tree.reason\n"
    )
    for how in ("close", "exit"):
        environment = {**os.environ, "TMPDIR": str(scratch)}
        subprocess.run([sys.executable, "-c", code, str(repo), str(scratch), how], env=environment, check=True)
        assert list(scratch.iterdir()) == []


# ---- shapes of repositories ----------------------------------------------------------------------------------------


async def test_a_repository_without_commits_or_files_has_a_fingerprint(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    git(folder, "init", "-q")
    work_tree = WorkTree(folder)
    before = await look(work_tree)
    (folder / "a").write_text("x")
    after = await look(work_tree)
    assert await work_tree.changed(before, after) == ("a",)
    git(folder, "add", "a")
    assert await look(work_tree) == after


async def test_no_checkout_no_fingerprint_and_a_reason(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    work_tree = WorkTree(plain)
    assert await work_tree.fingerprint() is None
    assert "not in a git checkout" in work_tree.reason
    git(plain, "init", "-q")
    assert await work_tree.fingerprint() is not None
    assert work_tree.reason == ""

    bare = tmp_path / "bare.git"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")
    work_tree = WorkTree(bare)
    assert await work_tree.fingerprint() is None
    assert "bare" in work_tree.reason

    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / ".git").write_text("gitdir: /nowhere\n")
    work_tree = WorkTree(broken)
    assert await work_tree.fingerprint() is None
    assert "/nowhere" in work_tree.reason


async def test_without_git_there_is_a_reason(repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    work_tree = WorkTree(repo)
    assert await work_tree.fingerprint() is None
    assert work_tree.reason == "git is not installed"


async def test_a_folder_that_its_checkout_ignores_has_no_fingerprint(repo: Path) -> None:
    (repo / ".gitignore").write_text("/sub/\n")
    (repo / "sub" / "deep").mkdir(parents=True)
    work_tree = WorkTree(repo / "sub" / "deep")
    assert await work_tree.fingerprint() is None
    assert "ignored" in work_tree.reason


async def test_a_broken_index_gives_a_reason_and_heals(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    index = (repo / ".git" / "index").read_bytes()
    (repo / ".git" / "index").write_bytes(b"garbage")
    assert await tree.fingerprint() is None
    assert tree.reason
    (repo / ".git" / "index").write_bytes(index)
    assert await look(tree) == before


async def test_scratch_files_that_something_removed_are_made_again(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    work_tree = WorkTree(repo)
    before = await look(work_tree)
    for folder in scratch.iterdir():
        shutil.rmtree(folder)
    assert await look(work_tree) == before
    work_tree.close()


async def test_linked_worktrees_and_git_files(repo: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", str(linked))
    work_tree = WorkTree(linked)
    before = await look(work_tree)
    assert before == await fresh_look(repo)
    (linked / "a.txt").write_text("two\n")
    (repo / "src" / "b.py").write_text("elsewhere")
    assert await work_tree.changed(before, await look(work_tree)) == ("a.txt",)


async def test_changes_inside_submodules_and_nested_repositories_count(repo: Path, tmp_path: Path) -> None:
    library = make_repo(tmp_path / "library", {"lib.c": "int a;\n"})
    git(repo, "submodule", "--quiet", "add", str(library), "vendor/my lib")
    git(repo, "commit", "-qm", "submodule")
    nested = make_repo(repo / "nested", {"n.txt": "n"})
    make_repo(nested / "deeper", {"d.txt": "d"})
    unborn = repo / "unborn"
    unborn.mkdir()
    git(unborn, "init", "-q")
    (unborn / "u.txt").write_text("u")

    work_tree = WorkTree(repo)
    before = await look(work_tree)
    assert await look(work_tree) == before
    for name in ("vendor/my lib/lib.c", "nested/n.txt", "nested/deeper/d.txt", "unborn/u.txt", "a.txt"):
        (repo / name).write_text("changed")
        after = await look(work_tree)
        assert await work_tree.changed(before, after) == (name,)
        before = after
    git(repo / "vendor" / "my lib", "commit", "-qam", "inside")
    git(nested, "commit", "-qam", "inside")
    git(unborn, "add", "-A")
    git(unborn, "commit", "-qm", "inside")
    assert await look(work_tree) == before
    git(repo, "commit", "-qam", "outside")
    assert await look(work_tree) == before == await fresh_look(repo)


async def test_a_nested_repository_that_comes_or_goes_counts(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    make_repo(repo / "nested", {"n.txt": "n", "sub/m.txt": "m"})
    with_nested = await look(tree)
    assert await tree.changed(before, with_nested) == ("nested/n.txt", "nested/sub/m.txt")
    (repo / "nested").rename(repo.parent / "elsewhere")
    assert await look(tree) == before


async def test_sparse_checkouts_count_what_is_there(repo: Path, tree: WorkTree) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "d.md").write_text("d")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "docs")
    git(repo, "sparse-checkout", "set", "src")
    assert not (repo / "docs").exists()
    before = await look(tree)
    (repo / "docs").mkdir()
    (repo / "docs" / "other.md").write_text("outside the cone")
    assert await tree.changed(before, await look(tree)) == ("docs/other.md",)
    (repo / "docs" / "d.md").write_text("changed")
    assert set(await tree.changed(before, await look(tree))) == {"docs/other.md", "docs/d.md"}


async def test_conflicts_in_the_index_are_content_like_any_other(repo: Path, tree: WorkTree) -> None:
    git(repo, "checkout", "-q", "-b", "other")
    (repo / "a.txt").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "checkout", "-q", "main")
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    before = await look(tree)
    git(repo, "merge", "other", check=False)
    assert "<<<<" in (repo / "a.txt").read_text()
    conflict = await look(tree)
    assert conflict == await fresh_look(repo)
    assert await tree.changed(before, conflict) == ("a.txt",)
    (repo / "a.txt").write_text("solved\n")
    solved = await look(tree)
    assert solved != conflict
    git(repo, "commit", "-qam", "merge")
    assert await look(tree) == solved == await fresh_look(repo)


async def test_sha256_repositories(tmp_path: Path) -> None:
    folder = tmp_path / "sha256"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    (folder / "a").write_text("1")
    git(folder, "add", "a")
    make_repo(folder / "nested", {"n": "1"})
    work_tree = WorkTree(folder)
    before = await look(work_tree)
    (folder / "a").write_text("2")
    middle = await look(work_tree)
    assert await work_tree.changed(before, middle) == ("a",)
    (folder / "nested" / "n").write_text("2")
    assert await work_tree.changed(middle, await look(work_tree)) == ("nested",)


async def test_a_split_index_and_an_old_index_version(repo: Path, tree: WorkTree) -> None:
    git(repo, "update-index", "--split-index")
    before = await look(tree)
    git(repo, "update-index", "--no-split-index", "--index-version=4")
    assert await look(tree) == before == await fresh_look(repo)


async def test_special_files_do_not_hang_or_break_a_look(repo: Path, tree: WorkTree) -> None:
    before = await look(tree)
    os.mkfifo(repo / "pipe")
    assert await look(tree) == before
    (repo / "a.txt").unlink()
    os.mkfifo(repo / "a.txt")
    assert await look(tree) != before


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that any user can enter; pytest's own is closed to others again by each new pytest."""
    folder = Path(tempfile.mkdtemp(prefix="goalkeeper-test-")).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_that_cannot_be_read_counts_by_its_facts(public: Path) -> None:
    code = (
        "import asyncio, concurrent.futures.thread, os, sys\n"
        "from goalkeeper.worktree.fingerprint import WorkTree\n"
        "if os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "async def main():\n"
        "    tree = WorkTree(sys.argv[1])\n"
        "    for line in sys.stdin:\n"
        "        print(await tree.fingerprint() or 'None ' + tree.reason, flush=True)\n"
        "asyncio.run(main())\n"
    )
    repo = make_repo(public / "repo")
    secret = repo / "secret"
    secret.write_text("1")
    secret.chmod(0)
    environment = {**os.environ, "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(repo)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        bufsize=1,
    )
    assert process.stdin and process.stdout

    def ask() -> str:
        print(file=process.stdin, flush=True)
        return process.stdout.readline().strip()

    try:
        first = ask()
        assert first.endswith("+"), first
        assert ask() == first
        secret.chmod(0o600)
        secret.write_text("2222")
        secret.chmod(0)
        second = ask()
        assert second.endswith("+")
        assert second != first
        secret.chmod(0o644)
        third = ask()
        assert not third.endswith("+"), third
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


async def test_files_that_vanish_or_change_during_a_look_do_no_harm(repo: Path, tree: WorkTree) -> None:
    stop = asyncio.Event()

    async def churn() -> None:
        number = 0
        while not stop.is_set():
            for index in range(20):
                file = repo / f"churn{index}"
                file.unlink(missing_ok=True) if (number + index) % 3 else file.write_text(str(number))
            number += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(churn())
    for _ in range(25):
        assert await tree.fingerprint() is not None, tree.reason
    stop.set()
    await task
    assert await look(tree) == await fresh_look(repo)


# ---- several at once -----------------------------------------------------------------------------------------------


async def test_calls_that_wait_together_share_a_look_that_began_after_them(repo: Path, tree: WorkTree) -> None:
    old = await look(tree)
    running = asyncio.create_task(look(tree))
    await asyncio.sleep(0)
    (repo / "a.txt").write_text("two\n")
    late = await asyncio.gather(*(look(tree) for _ in range(20)))
    await running
    assert set(late) == {await fresh_look(repo)}
    assert old not in late


async def test_a_cancelled_call_does_not_take_others_with_it(repo: Path, tree: WorkTree) -> None:
    first = asyncio.create_task(tree.fingerprint())
    second = asyncio.create_task(tree.fingerprint())
    await asyncio.sleep(0)
    first.cancel()
    assert await second is not None
    assert await tree.fingerprint() is not None


async def test_two_in_one_folder_do_not_disturb_each_other(repo: Path, tree: WorkTree) -> None:
    other = WorkTree(repo)
    for number in range(5):
        (repo / "a.txt").write_text(str(number))
        one, two = await asyncio.gather(look(tree), look(other))
        assert one == two
    other.close()
    assert await look(tree) == one


async def test_names_outlive_the_process_where_trees_are_kept(repo: Path, tmp_path: Path) -> None:
    (repo / "untracked.txt").write_text("not in any commit\n")
    kept = tmp_path / "trees"
    first = WorkTree(repo, trees=kept)
    before = await look(first)
    first.close()
    (repo / "src" / "b.py").write_text("x = 2\n")
    second = WorkTree(repo, trees=kept)
    now = await look(second)
    assert await second.changed(before, now) == ("src/b.py",)
    second.close()
    forgetful = WorkTree(repo)
    assert await forgetful.changed(before, await look(forgetful)) == ()
    forgetful.close()


@pytest.mark.parametrize("trouble", ["a file", "removed"])
async def test_trees_that_can_not_be_kept_cost_no_fingerprint(repo: Path, tmp_path: Path, trouble: str) -> None:
    kept = tmp_path / "trees"
    if trouble == "a file":
        kept.write_text("in the way")
    work_tree = WorkTree(repo, trees=kept)
    before = await look(work_tree)
    if trouble == "removed":
        shutil.rmtree(kept)
    (repo / "a.txt").write_text("two\n")
    assert await look(work_tree) != before
    assert await look(work_tree) == await fresh_look(repo)
    work_tree.close()
