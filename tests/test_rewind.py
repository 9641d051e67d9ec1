from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import StateSnapshot

from langchain_filestate import _disk
from langchain_filestate._changes import Change, change_id, next_seq
from langchain_filestate._history import FileHistory
from langchain_filestate._rewind import RewindPlan, RewindReport, plan_rewind, rewind
from langchain_filestate._shelves import MemoryShelf
from langchain_filestate._workspace import Workspace
from langchain_filestate.errors import Refused, WiringError
from tests.postgres import empty_store, postgres_url  # noqa: F401  a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def checkpoint(thread: str = "t") -> StateSnapshot:
    """A checkpoint of this moment, as a saver stamps it: microseconds."""
    micros = next_seq() // 1000 + 1
    while next_seq() <= (micros + 1) * 1000:
        pass
    created = (EPOCH + timedelta(microseconds=micros)).isoformat()
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_id": str(micros), "checkpoint_ns": ""}}
    return StateSnapshot({}, (), config, None, created, None, (), ())


@dataclass
class Desk:
    """Files, their history, and hands that write."""

    root: Path
    history: FileHistory
    calls: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root, **self.options)

    def write(self, name: str, after: bytes | None, thread: str | None = "t", **given: Any) -> Change:
        """What a tool does."""
        self.calls += 1
        location = self.workspace.locate(name, write=True)
        with self.workspace.open(location, make_parents=True) as target:
            before = _disk.snapshot(target)
            values: dict[str, Any] = {
                "id": change_id(thread, "m", str(self.calls)),
                "path": location.path,
                "before": before and before.digest,
                "after": digest(after),
                "mode": before and before.mode,
                "seq": next_seq(),
                "agent": "main",
                "tool": "write_file",
                "thread_id": thread,
                "checkpoint_id": None,
                "tool_call_id": str(self.calls),
                "result": {"made": list(target.made)},
            }
            change = self.history.record(Change(**{**values, **given}), None if before is None else before.data)
            if after is not None:
                _disk.commit(target, after, change.before)
            elif before is not None:
                _disk.remove(target, before.digest)
            return change

    def phantom(self, name: str, before: bytes | None, after: bytes | None, thread: str = "t") -> Change:
        """What a killed process leaves."""
        self.calls += 1
        change = Change(
            id=change_id(thread, "m", str(self.calls)), path=str(self.root / name), before=digest(before),
            after=digest(after), mode=None, seq=next_seq(), agent="main", tool="write_file", thread_id=thread,
            checkpoint_id=None, tool_call_id=None,
        )  # fmt: skip
        return self.history.record(change, before)

    def plan(self, there: StateSnapshot) -> list[tuple[str, str, bool]]:
        plan = plan_rewind(self.history, self.workspace, there)
        return [(os.path.relpath(e.file_path, self.root), e.action, e.conflict is not None) for e in plan.entries]

    def rewind(self, there: StateSnapshot, *, force: bool = False) -> RewindReport:
        return rewind(self.history, self.workspace, there, force=force)

    def done(self, there: StateSnapshot, *, force: bool = False) -> list[str]:
        report = self.rewind(there, force=force)
        assert not report.conflicts
        return [os.path.relpath(e.file_path, self.root) for e in report.restored]

    def refused(self, there: StateSnapshot, *, force: bool = False) -> str:
        report = self.rewind(there, force=force)
        assert not report.restored
        (entry,) = report.conflicts
        return str(entry.conflict)

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in sorted(self.root.rglob("*")) if p.is_file()}


def memory() -> FileHistory:
    history = FileHistory()
    history._shelf = MemoryShelf()
    return history


@contextmanager
def opened(kind: str, where: Path, request: pytest.FixtureRequest) -> Iterator[FileHistory]:
    if kind == "memory":
        yield memory()
    elif kind == "store":
        yield FileHistory(InMemoryStore())
    elif kind == "sqlite":
        with SqliteStore.from_conn_string(str(where / "history.db")) as store:
            yield FileHistory(store)
    else:
        with empty_store(request.getfixturevalue("postgres_url")) as store:
            yield FileHistory(store)


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "root"
    root.mkdir()
    with opened(getattr(request, "param", "memory"), tmp_path, request) as history:
        yield Desk(root.resolve(), history)


everywhere = pytest.mark.parametrize(
    "desk", ["memory", "store", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


@everywhere
def test_back_and_forth(desk: Desk) -> None:
    a, e, mine = desk.root / "a", desk.root / "e.bin", desk.root / "mine"
    a.write_bytes(b"one\r\n\0\xff")
    a.chmod(0o750)
    (desk.root / "d").write_bytes(b"to be deleted")
    (desk.root / "d").chmod(0o600)
    mine.write_bytes(b"1")
    start = checkpoint()
    desk.write("a", b"two")
    desk.write("sub/deep/n", b"new")
    desk.write("a", b"three")
    desk.write("d", None)
    mine.write_bytes(b"2")
    end = checkpoint()
    assert desk.plan(start) == [("a", "restore", False), ("d", "recreate", False), ("sub/deep/n", "delete", False)]
    assert desk.plan(end) == []
    assert a.read_bytes() == b"three"  # a plan changes nothing
    assert desk.done(start) == ["a", "d", "sub/deep/n"]
    assert desk.files() == {"a": b"one\r\n\0\xff", "d": b"to be deleted", "mine": b"2"}
    assert not (desk.root / "sub").exists()
    assert [stat.S_IMODE((desk.root / name).stat().st_mode) for name in ("a", "d")] == [0o750, 0o600]
    assert desk.plan(start) == []
    assert not e.exists()
    # and forth again
    assert desk.plan(end) == [("a", "restore", False), ("d", "delete", False), ("sub/deep/n", "recreate", False)]
    assert desk.done(end) == ["a", "d", "sub/deep/n"]
    assert desk.files() == {"a": b"three", "mine": b"2", "sub/deep/n": b"new"}
    assert stat.S_IMODE(a.stat().st_mode) == 0o750
    # and back
    assert desk.done(start) == ["a", "d", "sub/deep/n"]
    assert desk.files() == {"a": b"one\r\n\0\xff", "d": b"to be deleted", "mine": b"2"}
    assert not (desk.root / "sub").exists()


@everywhere
def test_a_rewind_is_recorded(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("b", b"1")
    report = desk.rewind(there)
    changes = desk.history.changes("t")[2:]
    assert [(c.tool, c.agent, os.path.basename(c.path), c.before, c.after) for c in changes] == [
        ("rewind", None, "a", digest(b"1"), None),
        ("rewind", None, "b", digest(b"1"), None),
    ]
    assert len({c.result["rewind"] for c in changes}) == 1
    assert len({c.id for c in changes}) == 2
    assert changes[0].checkpoint_id == there.config["configurable"]["checkpoint_id"]
    assert report.restored[0].patch is not None
    assert report.restored[0].patch.removed == 1
    assert RewindReport.model_validate(report.model_dump()) == report
    plan = plan_rewind(desk.history, desk.workspace, checkpoint())
    assert plan == RewindPlan(entries=())


@everywhere
def test_between_two_of_the_changes(desk: Desk) -> None:
    """What a fork leaves: changes, a rewind, other changes. Each moment can be had back."""
    moments = []
    for data in (b"0", b"1", b"2"):
        desk.write("a", data)
        moments.append((checkpoint(), data))
    desk.done(moments[0][0])
    for data in (b"3", b"4"):
        desk.write("a", data)
        moments.append((checkpoint(), data))
    for there, data in [moments[i] for i in (1, 4, 0, 3, 2, 4)]:
        desk.done(there)
        assert desk.files() == {"a": data}


@pytest.mark.parametrize(
    ("hand", "says"),
    [
        (lambda p: p.write_bytes(b"by hand"), "changed since, not by this thread"),
        (lambda p: p.unlink(), "deleted since"),
        (lambda p: (p.unlink(), p.mkdir()), "director"),
        (lambda p: (p.unlink(), p.symlink_to("elsewhere")), "link"),
        (lambda p: p.unlink() or subprocess.run(["mkfifo", p], check=True), "pipe"),
    ],
)
def test_somebody_else_on_top(desk: Desk, hand: Any, says: str) -> None:
    path = desk.root / "a"
    path.write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")
    hand(path)
    before = os.lstat(path) if os.path.lexists(path) else None
    assert [conflict for _, _, conflict in desk.plan(there)] == [True]
    assert says in desk.refused(there)
    assert (os.lstat(path) if os.path.lexists(path) else None) == before
    if before is None or stat.S_ISREG(before.st_mode):
        assert desk.done(there, force=True) == ["a"]
        assert path.read_bytes() == b"one"
    else:
        assert says in desk.refused(there, force=True)
        assert os.lstat(path).st_ino == before.st_ino


def test_what_force_overwrote_can_be_had_back(desk: Desk) -> None:
    start = checkpoint()
    desk.write("a", b"two")
    (desk.root / "a").write_bytes(b"by hand")
    middle = checkpoint()
    assert desk.rewind(start, force=True).restored[0].conflict is not None
    assert desk.files() == {}
    assert desk.done(middle) == ["a"]
    assert desk.files() == {"a": b"by hand"}


def test_somebody_else_between(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    (desk.root / "a").write_bytes(b"by hand")
    desk.write("a", b"2")
    assert "between two changes" in desk.refused(there)
    assert desk.files() == {"a": b"2"}
    assert desk.done(there, force=True) == ["a"]
    assert desk.files() == {}


@everywhere
def test_another_thread(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("a", b"2", thread="u", agent="other")
    assert "other in thread u" in desk.refused(there)
    desk.write("a", b"3")
    assert "between two changes" in desk.refused(there)
    desk.write("a", b"4", thread=None)
    assert "outside of any thread" in desk.refused(there)
    assert desk.plan(checkpoint("u")) == []
    assert desk.files() == {"a": b"4"}


def test_other_threads_are_left_alone(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("b", b"1", thread="u")
    assert desk.done(there) == ["a"]
    assert desk.files() == {"b": b"1"}


def test_agents_of_one_thread(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("a", b"2", agent="helper")
    desk.write("b", b"2", agent="helper")
    assert desk.done(there) == ["a", "b"]
    assert desk.files() == {}


def test_a_command_that_changed_it(desk: Desk) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("a", b"2", agent=None, tool="shell")
    desk.write("a", b"3")
    assert "while a command ran" in desk.refused(there)
    assert desk.done(there, force=True) == ["a"]
    assert desk.files() == {}


def test_phantoms(desk: Desk) -> None:
    there = checkpoint()
    desk.phantom("never", None, b"x")
    desk.phantom("a", None, b"x")
    desk.write("a", b"1")
    desk.phantom("a", b"1", b"x")
    desk.phantom("a", None, b"y")  # planned before the write, recorded after it
    desk.write("a", b"2")
    desk.phantom("a", b"2", b"x")
    assert desk.plan(there) == [("a", "delete", False)]
    assert desk.done(there) == ["a"]
    assert desk.files() == {}


def stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def test_what_is_right_is_not_touched(desk: Desk) -> None:
    path = desk.root / "a"
    path.write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")
    path.write_bytes(b"one")  # somebody was faster
    desk.write("b", b"1")
    (desk.root / "b").unlink()
    os.utime(path, ns=(1, 1))
    path.chmod(0o600)
    before = stamp(path)
    assert desk.plan(there) == []
    assert desk.done(there, force=True) == []
    assert stamp(path) == before
    assert len(desk.history.changes()) == 2


def test_already_right_although_there_is_a_gap(desk: Desk) -> None:
    (desk.root / "a").write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")
    (desk.root / "a").write_bytes(b"by hand")
    desk.write("a", b"one")
    assert desk.plan(there) == []


def test_not_kept(desk: Desk) -> None:
    desk.history.max_bytes = 10
    desk.history._read.limit = 0
    (desk.root / "a").write_bytes(b"x" * 11)
    (desk.root / "b").write_bytes(b"short")
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("b", b"1")
    report = desk.rewind(there, force=True)
    assert [e.file_path for e in report.restored] == [str(desk.root / "b")]
    (entry,) = report.conflicts
    assert entry.action == "restore"
    assert entry.patch is None
    assert "too large for the history" in str(entry.conflict)
    assert desk.files() == {"a": b"1", "b": b"short"}


@everywhere
@pytest.mark.parametrize("name", ["a", "new"])
def test_what_was_before_pruned_changes_is_not_known(desk: Desk, name: str) -> None:
    (desk.root / "a").write_bytes(b"v0")
    there = checkpoint()
    desk.write(name, b"v1")
    desk.write(name, b"between", thread="other")
    later = checkpoint()
    cut = time.monotonic()
    time.sleep(0.1)
    desk.write(name, b"v2")
    desk.write(name, b"v3")
    desk.history.prune(older_than=timedelta(seconds=time.monotonic() - cut - 0.05))
    assert len(desk.history.changes("t")) == 2
    assert "were pruned" in desk.refused(there, force=True)
    assert desk.files()[name] == b"v3"
    assert desk.done(later) == [name]
    assert desk.files()[name] == b"between"


@everywhere
def test_a_path_of_which_all_changes_were_pruned_is_in_the_plan(desk: Desk) -> None:
    (desk.root / "a").write_bytes(b"v0")
    there = checkpoint()
    desk.write("a", b"v1")
    desk.history.prune(older_than=timedelta(0))
    assert desk.plan(there) == [("a", "restore", True)]
    desk.write("a", b"v2")
    assert "were pruned" in desk.refused(there, force=True)
    later = checkpoint()
    desk.write("a", b"v3")
    assert desk.done(later) == ["a"]
    desk.history.prune(drop_threads=["t"])
    assert desk.plan(there) == []


def test_what_the_memory_let_go_is_not_known(desk: Desk) -> None:
    desk.history._shelf = MemoryShelf(changes=3)
    there = checkpoint()
    for number in range(4):
        desk.write("a", b"%d" % number)
        desk.write("a", b"%d of another" % number, thread="other")
    assert "were pruned" in desk.refused(there, force=True)
    assert desk.files() == {"a": b"3 of another"}


def test_what_was_let_go_is_remembered_for_as_many_paths_as_there_may_be_changes(desk: Desk) -> None:
    desk.history._shelf = MemoryShelf(changes=2)
    for name in "abcde":
        desk.write(name, b"1")
    assert sorted(desk.history.pruned("t")) == [str(desk.root / name) for name in "bc"]


@pytest.mark.parametrize("wrong", [None, {}, {"configurable": {"thread_id": "t"}}])
def test_what_is_no_snapshot_is_a_wiring_mistake(desk: Desk, wrong: Any) -> None:
    with pytest.raises(WiringError, match="get_state"):
        plan_rewind(desk.history, desk.workspace, wrong)


def test_no_longer_kept(desk: Desk) -> None:
    (desk.root / "a").write_bytes(b"one")
    there = checkpoint()
    change = desk.write("a", b"1")
    desk.history._shelf.sweep([], [], 0, 0)
    shelf = desk.history._shelf
    assert isinstance(shelf, MemoryShelf)
    shelf._images.drop(str(change.before))
    desk.history._read.drop(str(change.before))
    assert "no longer in the history" in desk.refused(there, force=True)
    desk.history.remember(b"not these", str(change.before))  # bytes that are not what they are called
    assert "no longer in the history" in desk.refused(there, force=True)
    assert desk.files() == {"a": b"1"}


def test_only_what_this_workspace_may_write(desk: Desk, tmp_path: Path) -> None:
    there = checkpoint()
    desk.write("a", b"1")
    desk.write("closed/a", b"1")
    desk.write("fixed/a", b"1")
    outside = Desk(tmp_path / "elsewhere", desk.history)
    outside.root.mkdir()
    outside.write("a", b"1")
    desk.options = {"deny": ["closed/"], "read_only": ["fixed/"]}
    assert desk.plan(there) == [("a", "delete", False)]
    assert desk.done(there, force=True) == ["a"]
    (desk.root / "closed/a").unlink()
    assert desk.done(there, force=True) == []
    assert (desk.root / "closed").exists()
    assert desk.files() == {"fixed/a": b"1"}
    assert outside.files() == {"a": b"1"}


def test_links_on_the_way_are_not_followed(desk: Desk, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", desk.root / "inside"
    for directory in (outside, inside):
        directory.mkdir()
    there = checkpoint()
    desk.write("sub/x/a", b"1")
    desk.write("dir/a", b"1")
    for name, to in (("sub", outside), ("dir", inside)):
        shutil.move(desk.root / name, to / "kept")
        (to / "x").mkdir()
        (to / "a").write_bytes(b"1")
        (to / "x/a").write_bytes(b"1")
        (desk.root / name).symlink_to(to)
    report = desk.rewind(there, force=True)
    assert report.restored == ()
    assert [e.action for e in report.conflicts] == ["delete", "delete"]
    assert all((to / name).read_bytes() == b"1" for to in (outside, inside) for name in ("a", "x/a"))


def test_directories_made_by_tools(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "old").mkdir()
    there = checkpoint()
    desk.write("old/a", b"1")
    desk.write("new/a", b"1")
    desk.write("new/sub/b", b"1")
    desk.write("full/a", b"1")
    desk.write("gone/a", b"1")
    desk.write("swapped/a", b"1")
    (desk.root / "full/mine").write_bytes(b"mine")
    shutil.rmtree(desk.root / "gone")
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(desk.root / "swapped")
    (desk.root / "swapped").symlink_to(outside)
    desk.rewind(there)
    assert sorted(os.listdir(desk.root)) == ["full", "old", "swapped"]
    assert desk.files() == {"full/mine": b"mine"}
    assert outside.exists()


def test_directories_are_never_removed_outside(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    there = checkpoint()
    desk.write("a", b"1", result={"made": [str(outside), str(desk.root)]})
    desk.rewind(there)
    assert outside.exists()
    assert desk.root.exists()


def test_a_directory_that_is_gone_comes_back(desk: Desk) -> None:
    (desk.root / "sub").mkdir()
    (desk.root / "sub/a").write_bytes(b"one")
    there = checkpoint()
    desk.write("sub/a", None)
    (desk.root / "sub").rmdir()
    later = checkpoint()
    assert desk.done(there) == ["sub/a"]
    assert desk.files() == {"sub/a": b"one"}
    assert desk.done(later) == ["sub/a"]
    assert not (desk.root / "sub").exists()  # the rewind had made it


def test_what_cannot_be_read_is_not_absent(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    (desk.root / "a").write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")

    def unreadable(target: Any) -> None:
        raise Refused("Could not read it.", code="io_error")

    monkeypatch.setattr(_disk, "snapshot", unreadable)
    assert desk.refused(there, force=True) == "Could not read it."
    assert desk.files() == {"a": b"two"}


@pytest.mark.parametrize("error", [Refused("No right to.", code="read_only"), OSError("No right to.")])
def test_what_cannot_be_written_does_not_stop_the_rest(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    (desk.root / "a").write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")
    desk.write("b", b"two")

    def commit(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(_disk, "commit", commit)
    report = desk.rewind(there)
    assert [e.conflict for e in report.conflicts] == ["No right to."]
    assert len(report.restored) == 1
    assert desk.files() == {"a": b"two"}
    assert [c.tool for c in desk.history.changes()].count("rewind") == 1


def test_somebody_writes_in_the_last_moment(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.root / "a"
    path.write_bytes(b"one")
    there = checkpoint()
    desk.write("a", b"two")
    commit, left = _disk.commit, [3]

    def disturbed(*args: Any, **options: Any) -> Any:
        if left[0]:
            left[0] -= 1
            path.write_bytes(b"by hand %d" % left[0])
        return commit(*args, **options)

    monkeypatch.setattr(_disk, "commit", disturbed)
    assert "changed since" in desk.refused(there)
    assert path.read_bytes() == b"by hand 2"
    assert desk.done(there, force=True) == ["a"]
    assert path.read_bytes() == b"one"
    assert [c.tool for c in desk.history.changes()] == ["write_file", "rewind"]
    path.write_bytes(b"by hand")
    left[0] = 100
    assert "all the time" in desk.refused(there, force=True)


def test_what_is_no_checkpoint(desk: Desk) -> None:
    good = checkpoint()
    for bad in (good._replace(created_at=None), good._replace(config={}), good._replace(config={"configurable": {}})):
        with pytest.raises(WiringError, match="checkpoint"):
            desk.plan(bad)
        with pytest.raises(WiringError, match="checkpoint"):
            desk.rewind(bad)
    desk.write("a", b"1")
    naive = good._replace(created_at=str(good.created_at).removesuffix("+00:00"))
    assert desk.plan(naive) == desk.plan(good) == [("a", "delete", False)]


def test_it_waits_for_the_lock_of_a_path(desk: Desk) -> None:
    there = checkpoint()
    change = desk.write("a", b"1")
    with _disk.lock(change.path):
        thread = threading.Thread(target=desk.rewind, args=(there,))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        assert desk.files() == {"a": b"1"}
    thread.join(10)
    assert desk.files() == {}


def test_real_checkpoints(desk: Desk) -> None:
    """The order of a saver's stamps and of changes is the one that they were made in."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    def work(state: MessagesState) -> dict[str, Any]:
        desk.write("a", b"%d" % len(state["messages"]))
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    for _ in range(5):
        graph.invoke({"messages": [HumanMessage("go")]}, config)
    for snapshot in graph.get_state_history(config):
        desk.done(snapshot)
        before = (
            len(snapshot.values["messages"])
            if snapshot.next != ("__start__",)
            else len(snapshot.values["messages"]) + 1
        )
        wanted = {} if before < 2 else {"a": b"%d" % (before - 1 if before % 2 == 0 else before - 2)}
        assert desk.files() == wanted, (snapshot.next, before)


# ---- walks


NAMES = ["a", "b", "sub/c"]
THREADS = ["t", "u"]


class Walk(RuleBasedStateMachine):
    """Tools of two threads, hands, crashes and rewinds at random, beside a model of the timeline.

    The model: the bytes of each file at each checkpoint, and how often somebody else than the checkpoint's thread had written
    to it. Where nobody else wrote since, a rewind gives the bytes of the checkpoint. Without force a rewind takes away
    nothing but bytes that the thread's own changes made, and with it nothing that cannot be had back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.checkpoints: list[tuple[str, StateSnapshot, dict[str, bytes], dict[str, int]]] = []
        self.others = {thread: dict.fromkeys(NAMES, 0) for thread in THREADS}
        self.base = Path(tempfile.mkdtemp(prefix="fs-walk-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.desk = Desk(self.base.resolve(), memory())

    def teardown(self) -> None:
        shutil.rmtree(self.base)

    def fresh(self) -> bytes:
        self.count += 1
        return b"bytes %d" % self.count

    def wrote(self, name: str, writer: str | None) -> None:
        for thread in THREADS:
            self.others[thread][name] += thread != writer

    @initialize(there=st.sets(st.sampled_from(NAMES)))
    def begin(self, there: set[str]) -> None:
        for name in there:
            self.hand(name, gone=False, again=None)
        self.mark("t")

    @rule(thread=st.sampled_from(THREADS))
    def mark(self, thread: str) -> None:
        self.checkpoints.append((thread, checkpoint(thread), self.desk.files(), dict(self.others[thread])))

    @rule(name=st.sampled_from(NAMES), thread=st.sampled_from(THREADS))
    def tool(self, name: str, thread: str) -> None:
        self.desk.write(name, self.fresh(), thread)
        self.wrote(name, thread)

    @rule(name=st.sampled_from(NAMES), thread=st.sampled_from(THREADS))
    def crash(self, name: str, thread: str) -> None:
        self.desk.phantom(name, self.desk.files().get(name), self.fresh(), thread)

    @rule(name=st.sampled_from(NAMES), gone=st.booleans(), again=st.none() | st.integers(0, 20))
    def hand(self, name: str, gone: bool, again: int | None) -> None:
        path = self.base / name
        if not gone:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(self.fresh() if again is None else b"bytes %d" % again)
        elif path.exists():
            path.unlink()
        self.wrote(name, None)

    @rule(data=st.data(), force=st.booleans())
    def back(self, data: st.DataObject, force: bool) -> None:
        thread, there, files, others = data.draw(st.sampled_from(self.checkpoints))
        since = max((c.seq for c in self.desk.history.changes()), default=0)
        mine = {name: {c.after for c in self.desk.history.changes(thread, str(self.base / name))} for name in NAMES}
        before = self.desk.files()
        planned = self.desk.plan(there)
        report = self.desk.rewind(there, force=force)
        after = self.desk.files()
        conflicts = {os.path.relpath(e.file_path, self.base) for e in report.conflicts}
        restored = {os.path.relpath(e.file_path, self.base) for e in report.restored}
        assert {name for name, _, _ in planned} == conflicts | restored
        assert not (force and conflicts)
        assert restored == {name for name in NAMES if before.get(name) != after.get(name)}
        assert len(self.desk.history.changes()) == sum(c.seq <= since for c in self.desk.history.changes()) + len(
            restored
        )
        for name in NAMES:
            if self.others[thread][name] == others[name]:
                assert after.get(name) == files.get(name)
            if name in restored:
                assert force or digest(before.get(name)) in mine[name]
                assert name not in before or self.desk.history.content(str(digest(before[name]))) == before[name]
                self.wrote(name, thread)

    @invariant()
    def no_litter(self) -> None:
        assert set(self.desk.files()) <= set(NAMES)


TestWalk = Walk.TestCase
TestWalk.settings = settings(
    max_examples=int(os.environ.get("WALKS", "25")), stateful_step_count=25, deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
