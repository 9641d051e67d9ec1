"""Back to a checkpoint: what the tools did is undone, what anybody else did is left alone and named."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore

from langchain_filestate import FileHistory
from tests.cases.steps import Make, cell, code, digest_of_tree, edit, many, read, write
from tests.notebook_styles import JUPYTER
from tests.scripted import KINDS, Session, agent_session, call

CELLS: list[dict[str, Any]] = [
    {"cell_type": "code", "id": "c0", "metadata": {}, "execution_count": None, "outputs": [], "source": "a = 0"}
]


def now(s: Session) -> Any:
    return s.graph.get_state(s.config)


def by_path(entries: Any) -> dict[str, Any]:
    return {Path(entry.file_path).name: entry for entry in entries}


# ---- CK-01 ----------------------------------------------------------------------------------------------------------


def test_ck_01_what_the_agent_did_not_touch_stays(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "notes.md").write_text("mine\n")
    s = session()
    s.say("hello")
    t0 = now(s)
    s.say(read("a.py"), edit("a.py", "one", "two"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/data.bin").write_bytes(b"\0\1\2")
    (tmp_path / "notes.md").write_text("mine, more\n")
    before = digest_of_tree(tmp_path)
    stamp = (tmp_path / "notes.md").stat().st_mtime_ns
    report = s.toolkit.rewind(t0)
    assert list(by_path(report.restored)) == ["a.py"]
    assert report.conflicts == ()
    after = digest_of_tree(tmp_path)
    assert after.pop("a.py")[1] == b"one\n"
    before.pop("a.py")
    assert after == before
    assert (tmp_path / "notes.md").stat().st_mtime_ns == stamp


def theirs_changed(path: Path) -> None:
    path.write_text("theirs\n")


def theirs_appended(path: Path) -> None:
    path.write_text(path.read_text() + "theirs\n")


def theirs_deleted(path: Path) -> None:
    path.unlink()


def theirs_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("theirs\n")


def theirs_a_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def theirs_emptied(path: Path) -> None:
    path.write_bytes(b"")


THEIRS = [theirs_changed, theirs_appended, theirs_deleted, theirs_a_directory, theirs_a_link, theirs_emptied]


@pytest.mark.parametrize("theirs", THEIRS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", ["edited", "created"])
def test_ck_01_somebody_elses_change_is_a_conflict(agent: Make, tmp_path: Path, theirs: Any, how: str) -> None:
    path = tmp_path / "f"
    if how == "edited":
        path.write_text("one\n")
    s = agent()
    s.say("hello")
    t0 = now(s)
    s.say(read("f"), edit("f", "one", "two")) if how == "edited" else s.say(write("f", "two\n"))
    theirs(path)
    before = digest_of_tree(tmp_path)
    plan = s.toolkit.plan_rewind(t0)
    report = s.toolkit.rewind(t0)
    assert digest_of_tree(tmp_path) == before
    assert report.restored == ()
    if theirs is theirs_deleted and how == "created":  # it is as it was at the checkpoint
        assert report.conflicts == ()
        return
    (entry,) = report.conflicts
    assert entry.file_path == str(path)
    assert entry.conflict
    assert [e.conflict for e in plan.entries] == [entry.conflict]
    forced = s.toolkit.rewind(t0, force=True)
    if theirs in {theirs_a_directory, theirs_a_link}:
        assert digest_of_tree(tmp_path) == before  # not even then: this is no file any more
        assert by_path(forced.conflicts)["f"].conflict
    elif how == "edited":
        assert path.read_text() == "one\n"
    else:
        assert not path.exists()


def test_ck_01_another_thread_is_somebody_else(agent: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("1\n2\n")
    one, two = agent(thread="one"), agent(thread="two")
    one.say(read(path))
    two.say(read(path))
    t0 = now(one)
    one.say(edit(path, "1", "one"))
    two.say(read(path), edit(path, "2", "two"))
    report = one.toolkit.rewind(t0)
    assert path.read_text() == "one\ntwo\n"
    (entry,) = report.conflicts
    assert "two" in str(entry.conflict)
    two.toolkit.rewind(now(two))
    assert path.read_text() == "one\ntwo\n"


def test_ck_01_what_a_shell_did_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")

    @tool
    def shell(command: str) -> str:
        """Run it."""
        path.write_text("by a command\n")
        (tmp_path / "made").write_text("x\n")
        return ""

    s = agent_session(tmp_path, tools=[shell])
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"), call("shell", command="sed -i s/x/y/ f"))
    report = s.toolkit.rewind(t0)
    (entry,) = report.conflicts
    assert entry.file_path == str(path)
    assert "command" in str(entry.conflict)
    assert path.read_text() == "by a command\n"
    s.toolkit.rewind(t0, force=True)
    assert path.read_text() == "one\n"
    assert (tmp_path / "made").exists()


# ---- CK-03 ----------------------------------------------------------------------------------------------------------


def test_ck_03_all_of_it_and_forward_again(session: Make, tmp_path: Path) -> None:
    (tmp_path / "e.py").write_bytes(b"one\r\ntwo\xff three four five\n")
    (tmp_path / "w.py").write_text("old\n")
    (tmp_path / "n.ipynb").write_bytes(JUPYTER.dump(CELLS))
    (tmp_path / "twice.py").write_text("0\n")
    s = session()
    s.say([read(n) for n in ("e.py", "w.py", "n.ipynb", "twice.py")])
    t0, files0 = now(s), digest_of_tree(tmp_path)
    s.say(
        write("new/deep/n.py", "n\n"), edit("e.py", "one", "ONE"), write("w.py", "new\n"), cell("n.ipynb", "c0", "a = 1"),
        many("twice.py", ("0", "1")), edit("twice.py", "1", "2"), edit("made", "", "x"),
    )  # fmt: skip
    t1, files1 = now(s), digest_of_tree(tmp_path)
    assert {e.action for e in s.toolkit.plan_rewind(t0).entries} == {"restore", "delete"}
    assert digest_of_tree(tmp_path) == files1  # planning does nothing
    report = s.toolkit.rewind(t0)
    assert set(by_path(report.restored)) == {"n.py", "e.py", "w.py", "n.ipynb", "twice.py", "made"}
    assert report.conflicts == ()
    assert digest_of_tree(tmp_path) == files0  # the directories that were made are gone as well
    # The records of that checkpoint agree with the disk again.
    s.config = t0.config
    assert [
        m.status for m in s.say(edit("e.py", "one", "1"), write("w.py", "again\n"), cell("n.ipynb", "c0", "a = 2"))
    ] == ["success"] * 3
    # And forward: a rewind is a change like any other.
    assert t1.config != t0.config


def test_ck_03_redo(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = session()
    s.say(read("f"))
    t0 = now(s)
    s.say(edit("f", "one", "two"), write("g", "g\n"))
    t1, files1 = now(s), digest_of_tree(tmp_path)
    s.toolkit.rewind(t0)
    assert path.read_text() == "one\n"
    assert s.toolkit.rewind(t0).restored == ()  # nothing to do twice
    report = s.toolkit.rewind(t1)
    assert set(by_path(report.restored)) == {"f", "g"}
    assert by_path(report.restored)["g"].action == "recreate"
    assert digest_of_tree(tmp_path) == files1
    s.toolkit.rewind(t0)
    assert path.read_text() == "one\n"


def test_ck_03_files_that_another_hand_deleted_come_back_when_insisted_on(agent: Make, tmp_path: Path) -> None:
    path = tmp_path / "sub" / "d.py"
    path.parent.mkdir()
    path.write_text("one\n")
    s = agent()
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"))
    path.unlink()
    path.parent.rmdir()
    report = s.toolkit.rewind(t0)
    (entry,) = report.conflicts
    assert entry.action == "recreate"
    assert not path.exists()
    s.toolkit.rewind(t0, force=True)
    assert path.read_text() == "one\n"


def test_ck_03_step_by_step(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("0\n")
    s = session()
    s.say(read(path))
    points = [now(s)]
    for n in range(5):
        s.say(edit(path, f"{n}\n", f"{n + 1}\n"))
        points.append(now(s))
    for n in (3, 1, 4, 0, 5, 2):
        s.toolkit.rewind(points[n])
        assert path.read_text() == f"{n}\n", n


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_ck_03_in_another_process(tmp_path: Path, kind: str) -> None:
    path, store = tmp_path / "w" / "f", InMemoryStore()
    path.parent.mkdir()
    path.write_text("one\n")
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        s = KINDS[kind](path.parent, checkpointer=saver, history=FileHistory(store))
        s.say(read(path))
        s.say(edit(path, "one", "two"))
        again = KINDS[kind](path.parent, checkpointer=saver, history=FileHistory(store))
        states = [state for state in again.graph.get_state_history(again.config) if not state.next]
        report = again.toolkit.rewind(states[-1])
        assert list(by_path(report.restored)) == ["f"]
    assert path.read_text() == "one\n"


# ---- CK-04 ----------------------------------------------------------------------------------------------------------


def test_ck_04_modes_and_kinds_come_back(session: Make, tmp_path: Path) -> None:
    script, other, same = tmp_path / "run.sh", tmp_path / "crlf.txt", tmp_path / "same"
    script.write_bytes(b"#!/bin/sh\necho one\n")
    script.chmod(0o755)
    other.write_bytes(b"a\r\nb\n\xff and more text of it\x0c")
    other.chmod(0o600)
    same.write_text("same\n")
    s = session()
    s.say([read("run.sh"), read("crlf.txt"), read("same")])
    t0 = now(s)
    s.say(edit("run.sh", "one", "two"), write("crlf.txt", "x"), write("same", "other\n"), write("same", "same\n"))
    stamp = same.stat()
    s.toolkit.rewind(t0)
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (b"#!/bin/sh\necho one\n", 0o755)
    assert (other.read_bytes(), stat.S_IMODE(other.stat().st_mode)) == (b"a\r\nb\n\xff and more text of it\x0c", 0o600)
    after = same.stat()
    assert (after.st_mtime_ns, after.st_ino) == (stamp.st_mtime_ns, stamp.st_ino)  # right already: not touched


def test_ck_04_a_deleted_script_is_one_again(agent: Make, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(b"#!/bin/sh\n")
    script.chmod(0o751)
    s = agent()
    s.say(read(script))
    t0 = now(s)
    s.say(write(script, "#!/bin/bash\n"))
    script.unlink()
    s.toolkit.rewind(t0, force=True)
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (b"#!/bin/sh\n", 0o751)


@pytest.mark.parametrize("force", [False, True])
def test_ck_04_no_link_is_followed_out(agent: Make, tmp_path: Path, force: bool) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "dir").mkdir(parents=True)
    outside.mkdir()
    (root / "dir/f").write_text("one\n")
    (root / "g").write_text("one\n")
    (outside / "f").write_text("two\n")  # what the agent left, to the byte
    (outside / "g").write_text("two\n")
    s = agent(root)
    s.say([read("dir/f"), read("g")])
    t0 = now(s)
    s.say(edit("dir/f", "one", "two"), edit("g", "one", "two"))
    (root / "dir").rename(root / "was")
    (root / "dir").symlink_to(outside)
    (root / "g").unlink()
    (root / "g").symlink_to(outside / "g")
    before = digest_of_tree(outside)
    report = s.toolkit.rewind(t0, force=force)
    assert report.restored == ()
    assert set(by_path(report.conflicts)) == {"f", "g"}
    assert digest_of_tree(outside) == before
    assert os.readlink(root / "g") == str(outside / "g")


def test_ck_04_hard_links_come_back_together(agent: Make, tmp_path: Path) -> None:
    path = tmp_path / "h1"
    path.write_text("one\n")
    os.link(path, tmp_path / "h2")
    s = agent()
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"))
    s.toolkit.rewind(t0)
    assert (tmp_path / "h2").read_text() == "one\n"
    assert path.stat().st_ino == (tmp_path / "h2").stat().st_ino


def test_ck_04_what_a_rule_closes_meanwhile_stays(agent: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = agent()
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"))
    closed = agent(read_only=["f"])
    assert closed.toolkit.rewind(t0, force=True).restored == ()
    assert path.read_text() == "two\n"
    path.chmod(0o444)
    report = s.toolkit.rewind(t0)
    assert report.restored == ()
    assert by_path(report.conflicts)["f"].conflict
    assert path.read_text() == "two\n"


def test_ck_04_a_hook_of_the_project_is_undone_with_the_write(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one  x\n")

    def tidy(at: Path) -> None:
        at.write_text(at.read_text().replace("  ", " "))

    s = session(after_write=tidy)
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"))
    assert path.read_text() == "two x\n"
    assert list(by_path(s.toolkit.rewind(t0).restored)) == ["f"]
    assert path.read_text() == "one  x\n"


def test_ck_04_a_hook_that_takes_the_file_away_is_undone_too(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = session(after_write=lambda at: at.unlink())
    s.say(read(path))
    t0 = now(s)
    s.say(edit(path, "one", "two"))
    assert not path.exists()
    report = s.toolkit.rewind(t0)
    assert list(by_path(report.restored)) == ["f"]
    assert path.read_text() == "one\n"
    assert code(s.one(edit(path, "one", "1"))) is None
