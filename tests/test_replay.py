"""A call that a graph runs again: applied once, and the same answer again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command

from langchain_filestate import FileHistory, _disk, tools
from langchain_filestate._changes import Change
from langchain_filestate._siblings import Siblings
from tests.backends import EACH, KINDS, Backend, opened
from tests.notebook_styles import JUPYTER
from tests.postgres import postgres_url  # noqa: F401  a fixture
from tests.scripted import KINDS as SESSIONS
from tests.scripted import Session, call, code, edit, graph_session, many, read, tool_messages, write

APPLIED = "This change was already applied."
APPROVE = {"decisions": [{"type": "approve"}]}

Makes = Callable[[Path], list[dict[str, Any]]]


def notebook() -> bytes:
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "execution_count": n, "outputs": [], "source": f"n = {n}"}
        for n in range(3)
    ]
    return JUPYTER.dump(cells)


def cell(path: Path, cell_id: str | None, source: str = "", mode: str = "replace") -> dict[str, Any]:
    return call("edit_notebook", file_path=str(path), cell_id=cell_id, new_source=source, edit_mode=mode)


@dataclass(frozen=True)
class Case:
    """One assistant message: the files before, what is read, the calls, the files after."""

    name: str
    before: dict[str, bytes]
    calls: Makes
    after: dict[str, bytes] | None
    """None: whatever it is after the first time. Of a bundle: those that are known."""
    changes: int = 1


CASES = [
    Case("edit", {"a": b"one\nrest\n"}, lambda d: [edit(d / "a", "one", "two")], {"a": b"two\nrest\n"}),
    Case("append", {"a": b"x\n"}, lambda d: [edit(d / "a", "x", "xx")], {"a": b"xx\n"}),
    Case("all", {"a": b"x y x\n"}, lambda d: [edit(d / "a", "x", "xx", replace_all=True)], {"a": b"xx y xx\n"}),
    Case("crlf", {"a": b"one\r\ntwo\n"}, lambda d: [edit(d / "a", "one\n", "1\n2\n")], {"a": b"1\r\n2\r\ntwo\n"}),
    Case(
        "gbk",
        {"a": "# 中文注释，说明程序的用途。\nx = 1\n".encode("gb18030") * 9 + b"end\n"},
        lambda d: [edit(d / "a", "end", "结束")],
        {"a": "# 中文注释，说明程序的用途。\nx = 1\n".encode("gb18030") * 9 + "结束\n".encode("gb18030")},
    ),
    Case("multi", {"a": b"1\n2\n3\n"}, lambda d: [many(d / "a", ("1", "11"), ("3", "33"))], {"a": b"11\n2\n33\n"}),
    Case("write", {"a": b"1\n"}, lambda d: [write(d / "a", "1\n1\n")], {"a": b"1\n1\n"}),
    Case("create", {}, lambda d: [write(d / "sub/deep/a", "new\n")], {"sub/deep/a": b"new\n"}),
    Case("create by edit", {}, lambda d: [edit(d / "a", "", "new\n")], {"a": b"new\n"}),
    Case("cell", {"n.ipynb": notebook()}, lambda d: [cell(d / "n.ipynb", "c1", "n = 11")], None),
    Case("new cell", {"n.ipynb": notebook()}, lambda d: [cell(d / "n.ipynb", "c1", "n", "insert")], None),
    Case("no cell", {"n.ipynb": notebook()}, lambda d: [cell(d / "n.ipynb", "c1", mode="delete")], None),
    Case(
        "two on one",
        {"a": b"x\ny\n"},
        lambda d: [edit(d / "a", "x", "xx"), edit(d / "a", "xx\ny", "xxx\nyy")],
        {"a": b"xxx\nyy\n"},
        2,
    ),
    Case(
        "there and back",
        {"a": b"one\n"},
        lambda d: [edit(d / "a", "one", "two"), edit(d / "a", "two", "one")],
        {"a": b"one\n"},
        2,
    ),
    Case(
        "several",
        {"a": b"x\n", "b": b"x\n"},
        lambda d: [edit(d / "a", "x", "xx"), edit(d / "b", "x", "xx"), write(d / "c", "c"), many(d / "a", ("xx", "x\nx"))],
        {"a": b"x\nx\n", "b": b"xx\n", "c": b"c"},
        4,
    ),
    Case(
        "apart",
        {"a": b"x\n", "b": b"x\n"},
        lambda d: [edit(d / "a", "x", "xx"), write(d / "c", "c"), edit(d / "b", "x", "xx")],
        {"a": b"xx\n", "b": b"xx\n", "c": b"c"},
        3,
    ),
]  # fmt: skip


def bundle(*names: str) -> Case:
    """Cases in one message, each in a directory of its own; all without names."""
    cases = [case for case in CASES if not names or case.name in names]
    return Case(
        "bundle",
        {f"{case.name}/{name}": data for case in cases for name, data in case.before.items()},
        lambda d: [one for case in cases for one in case.calls(d / case.name)],
        {f"{case.name}/{name}": data for case in cases for name, data in (case.after or {}).items()},
        sum(case.changes for case in cases),
    )


ALL = bundle()


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@dataclass
class Bench:
    """Makes sessions over one backend, each in a directory and a thread of its own."""

    make: Callable[..., Session]
    backend: Backend
    base: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def session(self, before: dict[str, bytes], **policy: Any) -> tuple[Path, Session]:
        number = next(self.numbers)
        root = self.base / f"root{number:03}"
        root.mkdir()
        for name, data in before.items():
            (root / name).parent.mkdir(exist_ok=True, parents=True)
            (root / name).write_bytes(data)
        return root, self.again(root, **policy)

    def again(self, root: Path, **policy: Any) -> Session:
        """As a new process would have it."""
        thread = self.backend.thread(root.name)
        history = policy.pop("history", None) or self.backend.history()
        return self.make(root, checkpointer=self.backend.saver, thread=thread, history=history, **policy)

    def changes(self, root: Path) -> list[Change]:
        return FileHistory(self.backend.store).changes(self.backend.thread(root.name))


def bench_of(kind: str, make: Callable[..., Session], where: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    base = where / "files"
    base.mkdir()
    with opened(kind, where, request) as backend:
        yield Bench(make, backend, base.resolve())


@pytest.fixture(params=EACH)
def bench(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[Bench]:
    """Each kind of backend and of graph."""
    kind, make = request.param.split("-")
    yield from bench_of(kind, SESSIONS[make], quick_path, request)


@pytest.fixture(params=KINDS)
def nodes(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[Bench]:
    """Each kind of backend, with a `ToolNode`."""
    yield from bench_of(request.param, graph_session, quick_path, request)


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Forgets what the calls of a message share in the process."""
    return lambda: monkeypatch.setattr(tools, "_siblings", Siblings())


def before_tools(session: Session, nth: int = -1) -> Any:
    """The config of a checkpoint from which tools run: the newest, or an earlier one."""
    there = [s.config for s in session.graph.get_state_history(session.config) if "tools" in s.next]
    return there[::-1][nth]


def rerun(session: Session, config: Any) -> list[ToolMessage]:
    """Run the tools of a checkpoint again; what they answer."""
    had = len(tool_messages(session.graph.get_state(config).values))
    session.model.script[:] = ["done"]
    return tool_messages(session.graph.invoke(None, config))[had:]


def played(case: Case, root: Path, session: Session, *more: dict[str, Any], calls: Any = None) -> list[ToolMessage]:
    """Reads the files of a case, then plays its message."""
    if case.before:
        session.say([read(root / name) for name in case.before])
    return session.say([*(calls or case.calls(root)), *more])


def told(message: ToolMessage) -> tuple[Any, ...]:
    """What an answer says, without the root's number."""
    artifact = {key: value for key, value in message.artifact.items() if key != "already_applied"}
    text = str(message.content).removeprefix(f"{APPLIED} ")
    number = next((part for part in str(artifact["file_path"]).split("/") if part.startswith("root")), "root")
    return text.replace(number, "root"), json.dumps(artifact).replace(number, "root"), message.status


def same(first: list[ToolMessage], again: list[ToolMessage]) -> None:
    """The answers are the same, after the sentence."""
    assert len(first) == len(again)
    for one, other in zip(first, again, strict=True):
        assert code(one) is None, one.content
        assert str(other.content).startswith(APPLIED)
        assert other.artifact["already_applied"] is True
        assert told(one) == told(other)


def shape(session: Session) -> Any:
    """The records without order and ids of evidence."""
    return {
        (agent, path): (record["digest"], record["lines"], sorted((a, b) for a, b, _ in record["views"]))
        for agent, records in session.records().items()
        for path, record in records.items()
    }


def check_files(case: Case, root: Path) -> dict[str, bytes]:
    found = files(root)
    assert {name: data for name, data in found.items() if name in (case.after or {})} == case.after
    return found


# ---- time travel


def test_time_travel_to_before_the_tools(bench: Bench, new_process: Callable[[], None]) -> None:
    root, session = bench.session(ALL.before)
    first = played(ALL, root, session)
    there, records = check_files(ALL, root), shape(session)
    same(first, rerun(session, before_tools(session)))
    assert shape(session) == records
    new_process()
    session = bench.again(root)
    same(first, rerun(session, before_tools(session)))
    assert shape(session) == records
    assert files(root) == there
    assert len(bench.changes(root)) == ALL.changes
    # All of it is known, and nobody else changed it.
    again = session.say([write(root / name, "z\n") for name in there if name.endswith("a")])
    assert {code(message) for message in again} == {None}


def test_time_travel_with_later_changes_on_top(bench: Bench, new_process: Callable[[], None]) -> None:
    root, session = bench.session(ALL.before)
    first = played(ALL, root, session)
    tools_ran = before_tools(session)
    names = list(files(root))
    later = [cell(root / n, "c2", "later") if n.endswith(".ipynb") else write(root / n, "later\n") for n in names]
    last = [cell(root / n, "c2", "last") if n.endswith(".ipynb") else edit(root / n, "later", "last") for n in names]
    assert {code(message) for message in session.say(later, last)} == {None}
    there = files(root)
    same(first, rerun(session, tools_ran))
    new_process()
    session = bench.again(root)
    same(first, rerun(session, tools_ran))
    assert files(root) == there
    assert len(bench.changes(root)) == ALL.changes + 2 * len(names)


def test_time_travel_after_somebody_else_wrote(bench: Bench) -> None:
    root, session = bench.session({"a": b"x\n", "b": b"x\n"})
    session.say([read(root / "a"), read(root / "b")])
    session.say([edit(root / "a", "x", "xx"), edit(root / "b", "x", "xx")])
    (root / "a").write_bytes(b"mine\n")
    (root / "b").unlink()
    again = rerun(session, before_tools(session))
    assert [code(message) for message in again] == ["conflict", "conflict"]
    assert files(root) == {"a": b"mine\n"}


def test_time_travel_after_a_rewind_applies_again(bench: Bench) -> None:
    root, session = bench.session({"a": b"x\n"})
    session.one(read(root / "a"))
    first = session.one(edit(root / "a", "x", "xx"))
    there = before_tools(session)
    for _ in range(2):
        report = session.toolkit.rewind(session.graph.get_state(there))
        assert [entry.action for entry in report.restored] == ["restore"]
        assert files(root) == {"a": b"x\n"}
        (again,) = rerun(session, there)
        assert told(again) == told(first)
        assert again.artifact["already_applied"] is False
        assert files(root) == {"a": b"xx\n"}
        same([first], rerun(session, there))
    assert [change.tool for change in bench.changes(root)] == [
        "edit_file",
        "rewind",
        "edit_file",
        "rewind",
        "edit_file",
    ]


def test_a_call_whose_arguments_were_changed_at_the_checkpoint_is_another_one(bench: Bench) -> None:
    root, session = bench.session({"a": b"one\n"})
    session.one(read(root / "a"))
    session.one(edit(root / "a", "one", "two"))
    there = session.graph.get_state(before_tools(session))
    message = there.values["messages"][-1]
    message = message.model_copy(
        update={"tool_calls": [{**message.tool_calls[0], "args": edit(root / "a", "two", "three")["args"]}]}
    )
    fork = session.graph.update_state(there.config, {"messages": [message]}, as_node="model")
    (answer,) = rerun(session, fork)
    assert code(answer) is None, answer.content
    assert answer.artifact["already_applied"] is False
    assert files(root) == {"a": b"three\n"}
    same([answer], rerun(session, before_tools(session)))


# ---- call ids that are all the same


def zero(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "id": "call_0"} for one in calls]


def test_one_id_for_every_call(bench: Bench, new_process: Callable[[], None]) -> None:
    root, session = bench.session(ALL.before)
    session.say(zero([read(root / name) for name in ALL.before]))
    first = session.say(zero(ALL.calls(root)))
    check_files(ALL, root)
    tools_ran = before_tools(session)
    for old, new in (("\n", "\nmore\n"), ("more", "more more")):
        calls = [
            edit(root / name, old, new, replace_all=True) for name in ("append/a", "two on one/a", "there and back/a")
        ]
        assert [code(message) for message in session.say(zero(calls))] == [None, None, None]
    there = files(root)
    same(first, rerun(session, tools_ran))
    new_process()
    session = bench.again(root)
    same(first, rerun(session, tools_ran))
    assert files(root) == there
    assert len(bench.changes(root)) == ALL.changes + 6


def test_one_id_for_two_multi_edits_of_one_message(bench: Bench) -> None:
    root, session = bench.session({"a": b"x\ny\n"})
    session.one(read(root / "a"))
    first = session.say(zero([many(root / "a", ("x", "xx")), many(root / "a", ("y", "yy"))]))
    assert files(root) == {"a": b"xx\nyy\n"}
    same(first, rerun(session, before_tools(session)))
    assert files(root) == {"a": b"xx\nyy\n"}
    assert len(bench.changes(root)) == 2


# ---- an interrupt, and a sibling's crash


def asks(planned: Any) -> bool:
    return str(planned.file_path).endswith("ask.txt")


@pytest.mark.parametrize("fresh", [False, True], ids=["same process", "new process"])
def test_resume_after_an_interrupt(nodes: Bench, fresh: bool, new_process: Callable[[], None]) -> None:
    """A `ToolNode` runs all calls of the message again."""
    case = ALL
    twin, plain = nodes.session(case.before)
    first, records = played(case, twin, plain), shape(plain)
    root, session = nodes.session(case.before, approve=asks)
    played(case, root, session, write(root / "ask.txt", "asked"))
    there = check_files(case, root)
    assert there == check_files(case, twin)
    if fresh:
        new_process()
        session = nodes.again(root, approve=asks)
    had = len(tool_messages(session.state()))
    session.model.script[:] = ["done"]
    out = session.graph.invoke(Command(resume=APPROVE), session.config)
    *again, asked = tool_messages(out)[had:]
    assert code(asked) is None
    same(first, again)
    assert files(root) == {**there, "ask.txt": b"asked"}
    assert len(nodes.changes(root)) == case.changes + 1
    mine = {
        (a, p.replace(root.name, twin.name)): r for (a, p), r in shape(session).items() if not p.endswith("ask.txt")
    }
    assert mine == records


def test_resume_after_a_sibling_crashed(bench: Bench, new_process: Callable[[], None]) -> None:
    case = ALL
    down = [2]

    @tool
    def boom() -> str:
        """Fails twice."""
        down[0] -= 1
        if down[0] >= 0:
            raise RuntimeError("boom")
        return "ok"

    twin, plain = bench.session(case.before)
    first, records = played(case, twin, plain), shape(plain)
    root, session = bench.session(case.before, tools=[boom])
    if case.before:
        session.say([read(root / name) for name in case.before])
    with pytest.raises(RuntimeError, match="boom"):
        session.say([*case.calls(root), call("boom")])
    new_process()
    session = bench.again(root, tools=[boom])
    with pytest.raises(RuntimeError, match="boom"):
        session.graph.invoke(None, session.config)
    session.model.script[:] = ["done"]
    out = session.graph.invoke(None, session.config)
    *again, last = tool_messages(out)[len(case.before) :]
    assert last.content == "ok"
    assert [told(message) for message in again] == [told(message) for message in first]
    assert files(root) == files(twin)
    assert len(bench.changes(root)) == case.changes
    mine = {(a, p.replace(root.name, twin.name)): r for (a, p), r in shape(session).items()}
    assert mine == records


# ---- a kill between history and disk


class Killed(BaseException):
    """Stands for the end of the process: nothing of the package handles it."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_the_commit(
    bench: Bench, when: str, new_process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = bundle("append", "create", "write", "cell", "apart")  # no call needs another one's result
    twin, plain = bench.session(case.before)
    first, records = played(case, twin, plain), shape(plain)
    root, session = bench.session(case.before)
    if case.before:
        session.say([read(root / name) for name in case.before])
    commit = _disk.commit

    def killed(*args: Any, **options: Any) -> Any:
        if when == "after":
            commit(*args, **options)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(_disk, "commit", killed)
        session.say(case.calls(root))
    assert (files(root) == case.before) is (when == "before")
    assert len(bench.changes(root)) >= 1
    new_process()
    session = bench.again(root)
    session.model.script[:] = ["done"]
    again = tool_messages(session.graph.invoke(None, session.config))[len(case.before) :]
    assert [told(message) for message in again] == [told(message) for message in first]
    assert again[0].artifact["already_applied"] is (when == "after")
    assert files(root) == files(twin)
    assert len(bench.changes(root)) == case.changes  # no phantom is left
    mine = {(a, p.replace(root.name, twin.name)): r for (a, p), r in shape(session).items()}
    assert mine == records


# ---- what a person or a hook changed


def test_a_change_that_was_edited_on_approval_is_replayed_as_it_was_made(
    bench: Bench, new_process: Callable[[], None]
) -> None:
    root, session = bench.session({"a": b"x\n"}, approve=True)
    session.one(read(root / "a"))
    session.say([edit(root / "a", "x", "xx")])
    edited = {"name": "edit_file", "args": {"file_path": str(root / "a"), "old_string": "x", "new_string": "x x x"}}
    answer = {"decisions": [{"type": "edit", "edited_action": edited}]}
    session.model.script[:] = ["done"]
    first = tool_messages(session.graph.invoke(Command(resume=answer), session.config))[-1:]
    assert first[0].artifact["user_modified"]
    assert "x x x" in first[0].content
    same(first, rerun(session, before_tools(session)))
    new_process()
    session = bench.again(root, approve=True)
    same(first, rerun(session, before_tools(session)))
    assert files(root) == {"a": b"x x x\n"}
    assert len(bench.changes(root)) == 1


def test_a_change_with_a_formatter_is_replayed(bench: Bench, new_process: Callable[[], None]) -> None:
    runs = []

    def formatter(path: Path) -> str:
        runs.append(path)
        path.write_bytes(path.read_bytes().replace(b" ", b"_"))
        return "Formatted."

    root, session = bench.session({"a": b"x\ny\n"}, after_write=formatter)
    session.one(read(root / "a"))
    first = [session.one(edit(root / "a", "x", "x x"))]
    first_there = before_tools(session)
    assert "Formatted." in first[0].content
    records = shape(session)
    same(first, rerun(session, first_there))
    new_process()
    session = bench.again(root, after_write=formatter)
    same(first, rerun(session, first_there))
    assert files(root) == {"a": b"x_x\ny\n"}
    assert len(runs) == 1
    assert len(bench.changes(root)) == 2
    assert shape(session) == records
    assert not session.one(edit(root / "a", "y", "yy")).artifact["stale_recovered"]
    same(first, rerun(session, first_there))
    assert files(root) == {"a": b"x_x\nyy\n"}


async def test_replays_in_async_graphs(quick_path: Path, session: Callable[..., Session]) -> None:
    (quick_path / "a").write_bytes(b"x\n")
    one = session(quick_path)
    await one.asay(read(quick_path / "a"))
    first = await one.asay([edit(quick_path / "a", "x", "xx"), edit(quick_path / "a", "xx", "xxx")])
    out = await one.graph.ainvoke(None, before_tools(one))
    same(first, tool_messages(out)[1:])
    assert (quick_path / "a").read_bytes() == b"xxx\n"


def test_outside_a_thread_nothing_is_a_replay(quick_path: Path) -> None:
    """Without a checkpointer there is no thread; another run of the same script is another call."""
    (quick_path / "a").write_bytes(b"x\n")
    session = graph_session(quick_path, require_read="never")
    graph = session.graph.builder.compile()
    for _ in range(2):
        session.model.script[:] = [zero([edit(quick_path / "a", "\n", "x\n")]), "done"]
        graph.invoke({"messages": [HumanMessage("go")]})
    assert (quick_path / "a").read_bytes() == b"xxx\n"
