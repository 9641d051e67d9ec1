"""Files back to a checkpoint, through real graphs, and the conversation that goes on from there."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langchain_filestate import FileHistory, FileState, FileStateMiddleware, Limits, _disk
from tests.backends import EACH, Backend, opened
from tests.postgres import postgres_url  # noqa: F401  a fixture
from tests.scripted import KINDS as SESSIONS
from tests.scripted import Scripted, Session, agent_session, call, code, edit, graph_session, read, tool_messages, write


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@dataclass
class Trip:
    """One thread over one backend, and its directory."""

    make: Callable[..., Session]
    backend: Backend
    root: Path

    def session(self, name: str = "t", **policy: Any) -> Session:
        thread = self.backend.thread(name)
        return self.make(
            self.root, checkpointer=self.backend.saver, thread=thread, history=self.backend.history(), **policy
        )

    def put(self, **contents: bytes) -> None:
        for name, data in contents.items():
            (self.root / name).write_bytes(data)


@pytest.fixture(params=EACH)
def trip(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[Trip]:
    kind, make = request.param.split("-")
    root = quick_path / "files"
    root.mkdir()
    with opened(kind, quick_path, request) as backend:
        yield Trip(SESSIONS[make], backend, root)


once_each = pytest.mark.parametrize("trip", [EACH[0], EACH[-1]], indirect=True)
"""For graphs that a test builds itself: in memory and on PostgreSQL."""


@pytest.fixture
def near(quick_path: Path) -> Trip:
    """In memory only, with `create_agent`."""
    root = quick_path / "files"
    root.mkdir()
    return Trip(agent_session, Backend(InMemorySaver(), InMemoryStore()), root)


def now(session: Session) -> Any:
    return session.graph.get_state(session.config)


def ended(session: Session, turns: int) -> Any:
    """The checkpoint at the end of the n-th turn."""
    there = [s for s in session.graph.get_state_history(session.config) if not s.next]
    return there[::-1][turns - 1]


def plan(session: Session, there: Any) -> list[tuple[str, str, str | None]]:
    entries = session.toolkit.plan_rewind(there).entries
    return [(os.path.relpath(e.file_path, session.toolkit.workspace.root), e.action, e.conflict) for e in entries]


def back(session: Session, there: Any, *, force: bool = False) -> tuple[list[str], list[str]]:
    root, report = session.toolkit.workspace.root, session.toolkit.rewind(there, force)
    restored, conflicts = (
        [os.path.relpath(e.file_path, root) for e in es] for es in (report.restored, report.conflicts)
    )
    return restored, conflicts


def go_on(session: Session, there: Any, *lines: Any) -> list[Any]:
    """Continue the conversation from a checkpoint: a fork."""
    had = len(tool_messages(there.values))
    session.model.script[:] = [*lines, "done"]
    return tool_messages(session.graph.invoke({"messages": [HumanMessage("again")]}, there.config))[had:]


def fine(messages: list[Any]) -> None:
    assert [code(message) for message in messages] == [None] * len(messages), [m.content for m in messages]
    assert not any(message.artifact.get("stale_recovered") for message in messages)


def test_back_and_forth_and_on(trip: Trip) -> None:
    root = trip.root
    trip.put(a=b"one\r\ntwo\n\xff and text\n", b=b"b\n", same=b"s\n", mine=b"mine\n")
    (root / "a").chmod(0o750)
    session = trip.session()
    fine(session.say([read(root / name) for name in ("a", "b", "same")]))
    start, before = now(session), files(root)
    fine(
        session.say([edit(root / "a", "one", "1"), write(root / "sub/deep/n", "new\n")], edit(root / "same", "s", "t"))
    )
    middle, between = now(session), files(root)
    fine(session.say(edit(root / "a", "two", "2"), write(root / "b", "bb\n"), edit(root / "same", "t", "s")))
    (root / "mine").write_bytes(b"still mine\n")
    end, after = now(session), files(root)
    stamp = (root / "same").stat()

    # What a plan says is what is done, and only that.
    wanted = [("a", "restore", None), ("b", "restore", None), ("sub/deep/n", "delete", None)]
    assert plan(session, start) == wanted
    assert files(root) == after
    assert back(session, start) == (["a", "b", "sub/deep/n"], [])
    assert files(root) == {**before, "mine": b"still mine\n"}
    assert not (root / "sub").exists()
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750
    assert (root / "same").stat() == stamp  # not touched
    assert plan(session, start) == []
    assert back(session, start) == ([], [])

    # Redo, to the middle and to the end, and back.
    for there, wanted_files in ((middle, between), (end, after), (start, before), (middle, between), (start, before)):
        assert [c for _, _, c in plan(session, there)].count(None) == len(plan(session, there))
        assert back(session, there)[1] == []
        assert files(root) == {**wanted_files, "mine": b"still mine\n"}
        assert stat.S_IMODE((root / "a").stat().st_mode) == 0o750

    # The conversation goes on from there; its records agree with the disk without another read.
    fine(
        go_on(
            session,
            start,
            [edit(root / "a", "two", "zwei")],
            write(root / "b", "all new\n"),
            edit(root / "same", "s", "S"),
        )
    )
    assert (root / "a").read_bytes() == b"one\r\nzwei\n\xff and text\n"
    fine(session.say(edit(root / "a", "one", "eins")))
    # The fork is left: back to the other branch.
    assert back(session, middle) == (["a", "b", "same", "sub/deep/n"], [])
    assert files(root) == {**between, "mine": b"still mine\n"}
    fine(go_on(session, middle, edit(root / "sub/deep/n", "new", "newer"), edit(root / "a", "1", "11")))


def test_another_process_rewinds(trip: Trip) -> None:
    root = trip.root
    trip.put(a=b"one\n")
    session = trip.session()
    fine(session.say(read(root / "a")))
    fine(session.say(edit(root / "a", "one", "two"), write(root / "n", "n\n")))
    other = trip.session()
    assert back(other, ended(other, 1)) == (["a", "n"], [])
    assert files(root) == {"a": b"one\n"}
    fine(go_on(other, ended(other, 1), edit(root / "a", "one", "three")))
    third = trip.session()
    assert back(third, ended(session, 1)) == (["a"], [])
    assert files(root) == {"a": b"one\n"}


def test_every_checkpoint_of_a_conversation(trip: Trip) -> None:
    """Also those in the middle of a turn."""
    root = trip.root
    session = trip.session()
    for n in range(3):
        fine(
            session.say(
                [write(root / f"f{n}", f"{n}\n"), write(root / f"g{n}", f"{n}\n")], edit(root / f"f{n}", "\n", "!\n")
            )
        )
    history = list(session.graph.get_state_history(session.config))
    for there in (*history, *history[::-1]):
        assert back(session, there)[1] == []
        done = [m.artifact for m in tool_messages({"messages": [], **there.values})]
        wanted: dict[str, str] = {}
        for artifact in done:
            wanted[os.path.basename(artifact["file_path"])] = artifact["after"]
        assert {name: _disk.digest(data) for name, data in files(root).items()} == wanted


def test_somebody_else_wrote(trip: Trip) -> None:
    root = trip.root
    trip.put(between=b"x\n", after=b"x\n", gone=b"x\n", other=b"x\n", clean=b"x\n")
    names = ["between", "after", "gone", "other", "clean"]
    session, other = trip.session("t"), trip.session("u")
    session.say([read(root / name) for name in names])
    start = now(session)
    fine(session.say([edit(root / name, "x", "xx") for name in names]))
    (root / "between").write_bytes(b"a person\nxx\n")
    session.say(read(root / "between"))
    fine(session.say(edit(root / "between", "xx", "xxx")))
    (root / "after").write_bytes(b"a person\n")
    (root / "gone").unlink()
    other.say(read(root / "other"))
    fine(other.say(edit(root / "other", "xx", "theirs")))
    left = files(root)
    said = {name: conflict for name, _, conflict in plan(session, start)}
    assert set(said) == set(names)
    assert said["clean"] is None
    assert "between two changes" in str(said["between"])
    assert "not by this thread's tools" in str(said["after"])
    assert "deleted" in str(said["gone"])
    assert other.config["configurable"]["thread_id"] in str(said["other"])
    assert back(session, start) == (["clean"], ["after", "between", "gone", "other"])
    assert files(root) == {**left, "clean": b"x\n"}
    # Insisted on, nothing is lost for good: the rewind is a change, too.
    there = now(session)
    assert back(session, start, force=True) == (["after", "between", "gone", "other"], [])
    assert files(root) == dict.fromkeys(names, b"x\n")
    undo = now(session)
    assert undo.config == there.config
    for name in ("after", "between", "other"):
        change = session.toolkit.history.changes(session.config["configurable"]["thread_id"], str(root / name))[-1]
        assert change.tool == "rewind"
        assert session.toolkit.history.content(change.before) == left[name]


def test_what_was_too_large_to_keep_is_reported(near: Trip) -> None:
    root = near.root
    near.put(a=b"x" * 2000 + b"\n", b=b"y\n")
    session = near.make(
        root, history=FileHistory(near.backend.store, max_bytes=1000), limits=Limits(max_history_bytes=1000)
    )
    session.say([read(root / "a"), read(root / "b")])
    start = now(session)
    fine(session.say([edit(root / "a", "x" * 2000, "z"), edit(root / "b", "y", "z")]))
    session.toolkit.history._read.drop(_disk.digest(b"x" * 2000 + b"\n"))  # what a new process does not have
    ((name, action, conflict), clean) = plan(session, start)
    assert (name, action, clean) == ("a", "restore", ("b", "restore", None))
    assert "too large" in str(conflict)
    assert back(session, start, force=True) == (["b"], ["a"])
    assert files(root) == {"a": b"z\n", "b": b"y\n"}


def test_links_are_not_followed(near: Trip) -> None:
    root, outside = near.root, near.root.parent / "outside"
    outside.mkdir()
    (root / "sub").mkdir()
    near.put(a=b"x\n", **{"sub/b": b"x\n"})
    session = near.session()
    session.say([read(root / "a"), read(root / "sub/b")])
    start = now(session)
    fine(session.say([edit(root / "a", "x", "y"), edit(root / "sub/b", "x", "y"), write(root / "new/c", "c\n")]))
    for name in ("a", "sub", "new"):
        (root / name).rename(outside / name)
        (root / name).symlink_to(outside / name)
    there = files(outside)
    restored, conflicts = back(session, start, force=True)
    assert restored == []
    assert conflicts == ["a", "new/c", "sub/b"]
    assert files(outside) == there


async def test_async_twins(near: Trip) -> None:
    root = near.root
    near.put(a=b"x\n")
    session = near.session()
    await session.asay(read(root / "a"))
    start = await session.graph.aget_state(session.config)
    fine(await session.asay(edit(root / "a", "x", "y"), write(root / "b", "b\n")))
    entries = (await session.toolkit.aplan_rewind(start)).entries
    assert [entry.action for entry in entries] == ["restore", "delete"]
    assert files(root) == {"a": b"y\n", "b": b"b\n"}
    report = await session.toolkit.arewind(start)
    assert len(report.restored) == 2
    assert files(root) == {"a": b"x\n"}
    (root / "a").write_bytes(b"mine\n")
    await asyncio.gather(*(session.toolkit.arewind(start) for _ in range(3)))
    assert files(root) == {"a": b"mine\n"}
    await session.toolkit.arewind(start, force=True)
    assert files(root) == {"a": b"x\n"}


# ---- the thread's sub-agents


class Joint(MessagesState, FileState):
    """As a user writes the state of a graph of agents."""


@once_each
def test_an_agent_used_as_a_node(trip: Trip) -> None:
    from langchain.agents import create_agent

    root = trip.root
    trip.put(a=b"x\n")
    model = Scripted(script=[], requests=[])
    middleware = FileStateMiddleware(root, history=trip.backend.history())
    writer = create_agent(model, [], middleware=[middleware], name="writer")
    builder = StateGraph(Joint)
    builder.add_node("writer", writer)
    builder.add_edge(START, "writer")
    session = Session(
        builder.compile(checkpointer=trip.backend.saver), model, trip.backend.thread(), middleware.toolkit
    )
    fine(session.say(read(root / "a")))
    start = now(session)
    fine(session.say(edit(root / "a", "x", "xx"), write(root / "n", "n\n")))
    end = now(session)
    (thread,) = {change.thread_id for change in session.toolkit.history.changes(path=str(root / "a"))}
    assert thread == session.config["configurable"]["thread_id"]
    assert back(session, start) == (["a", "n"], [])
    assert files(root) == {"a": b"x\n"}
    fine(go_on(session, start, edit(root / "a", "x", "xxx")))
    assert back(session, end) == (["a", "n"], [])
    assert files(root) == {"a": b"xx\n", "n": b"n\n"}


@once_each
def test_deepagents_task(trip: Trip) -> None:
    from deepagents import create_deep_agent
    from deepagents.backends import FilesystemBackend

    root = trip.root
    trip.put(a=b"x\n", b=b"x\n")
    history = trip.backend.history()
    main, sub = Scripted(script=[], requests=[]), Scripted(script=[], requests=[])
    ours, theirs = (FileStateMiddleware(root, virtual=True, history=history) for _ in range(2))
    helper: Any = {
        "name": "helper", "description": "helps", "system_prompt": "help", "model": sub, "tools": [], "middleware": [theirs],
    }  # fmt: skip
    graph = create_deep_agent(
        main,
        [],
        middleware=[ours],
        subagents=[helper],
        backend=FilesystemBackend(root_dir=str(root), virtual_mode=True),
        checkpointer=trip.backend.saver,
        name="lead",
    )
    session = Session(graph, main, trip.backend.thread(), ours.toolkit)
    session.say([read("/a")])
    start = now(session)
    fine(session.say(edit("/a", "x", "xx")))
    middle = now(session)
    sub.script[:] = [
        [read("/a"), read("/b")],
        edit("/b", "x", "y"),
        edit("/a", "xx", "xxx"),
        write("/n", "n\n"),
    ]
    session.say(call("task", description="do it", subagent_type="helper"))
    end = now(session)
    assert files(root) == {"a": b"xxx\n", "b": b"y\n", "n": b"n\n"}
    agents = [change.agent for change in history.changes(session.config["configurable"]["thread_id"])]
    assert agents == ["lead", "helper", "helper", "helper"]
    assert plan(session, middle) == [("a", "restore", None), ("b", "restore", None), ("n", "delete", None)]
    assert back(session, middle)[1] == []
    assert files(root) == {"a": b"xx\n", "b": b"x\n"}
    assert back(session, end)[1] == []
    assert files(root) == {"a": b"xxx\n", "b": b"y\n", "n": b"n\n"}
    assert back(session, start)[1] == []
    assert files(root) == {"a": b"x\n", "b": b"x\n"}
    fine(go_on(session, start, edit("/a", "x", "z")))


# ---- walks

NAMES = ["a", "b", "sub/c"]


class Walk(RuleBasedStateMachine):
    """Turns, forks, rewinds, replays and hands at random on one real graph, beside the files of each checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(
            tempfile.mkdtemp(prefix="fs-trip-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        ).resolve()
        self.session = graph_session(self.base, history=FileHistory(InMemoryStore()), checkpointer=InMemorySaver())
        self.session.say("hello")
        self.count = 0
        self.others = dict.fromkeys(NAMES, 0)
        self.points: list[tuple[Any, dict[str, bytes], dict[str, int]]] = []
        self.here: Any = None
        self.mark()

    def teardown(self) -> None:
        shutil.rmtree(self.base)

    def mark(self) -> None:
        self.here = now(self.session)
        self.points.append((self.here, files(self.base), dict(self.others)))

    @rule(name=st.sampled_from(NAMES), twice=st.booleans())
    def turn(self, name: str, twice: bool) -> None:
        """An edit, and a second one in the same message; from the newest checkpoint."""
        path = self.base / name
        self.count += 1
        known = path.read_bytes().decode().rstrip("\n") if path.exists() else None
        if known is None:
            fine(self.session.say([write(path, f"v{self.count}\n")]))
            wanted = f"v{self.count}\n"
        else:
            calls = [edit(path, known, f"{known}+")] + [edit(path, "+\n", f"{self.count}\n")] * twice
            fine(self.session.say(read(path), calls))
            wanted = f"{known}{self.count}\n" if twice else f"{known}+\n"
        assert path.read_bytes().decode() == wanted
        self.mark()

    @rule(name=st.sampled_from(NAMES), gone=st.booleans())
    def hand(self, name: str, gone: bool) -> None:
        path = self.base / name
        self.count += 1
        if not gone:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"h%d\n" % self.count)
        elif path.exists():
            path.unlink()
        else:
            return
        self.others[name] += 1

    @rule(data=st.data(), force=st.booleans())
    def rewind(self, data: st.DataObject, force: bool) -> None:
        there, wanted, others = data.draw(st.sampled_from(self.points))
        before = files(self.base)
        report = self.session.toolkit.rewind(there, force)
        after = files(self.base)
        touched = {os.path.relpath(e.file_path, self.base) for e in report.restored}
        assert touched == {name for name in NAMES if before.get(name) != after.get(name)}
        for name in NAMES:
            if self.others[name] == others[name]:
                assert after.get(name) == wanted.get(name)

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """The tools of the newest message once more: nothing happens twice."""
        there = [s for s in self.session.graph.get_state_history(self.session.config) if "tools" in s.next]
        if not there:
            return
        before = files(self.base)
        self.session.model.script[:] = ["done"]
        out = tool_messages(self.session.graph.invoke(None, there[0].config))
        if out[-1].artifact.get("already_applied"):
            assert files(self.base) == before
        self.mark()

    @invariant()
    def no_litter(self) -> None:
        assert set(files(self.base)) <= set(NAMES)


TestWalk = Walk.TestCase
TestWalk.settings = settings(
    max_examples=int(os.environ.get("WALKS", "8")), stateful_step_count=10, deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SESSIONS))
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("thread", [7, uuid.UUID(int=7), "7"])
def test_a_thread_may_have_an_id_of_another_type(kind: str, store: bool, thread: Any, tmp_path: Path) -> None:
    """LangGraph takes it, and tells it as a string in its snapshots."""
    (tmp_path / "a.txt").write_text("one\n")
    history = FileHistory(InMemoryStore() if store else None)
    session = SESSIONS[kind](tmp_path, thread=thread, history=history)
    (_, done) = session.say(read("a.txt"), edit("a.txt", "one", "two"))
    assert done.status == "success"
    here = str(tmp_path / "a.txt")
    changes = history.changes(thread, here)
    assert [change.thread_id for change in changes] == [str(thread)]
    assert history.changes(thread)[-1:] == history.changes(str(thread))[-1:] == changes
    assert history.find(changes[0].id, thread) == changes[0]
    first = list(session.graph.get_state_history(session.config))[-1]
    report = session.toolkit.rewind(first)
    assert [entry.file_path for entry in report.restored] == [here]
    assert (tmp_path / "a.txt").read_text() == "one\n"
    assert history.prune(keep_threads=[thread], drop_threads=[thread]).changes == 0
    history.prune(drop_threads=[thread])
    assert history.changes(thread) == []
