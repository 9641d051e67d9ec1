"""The tools as nodes of a graph: state, answers, interrupts, replays, compaction."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NotRequired

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from langchain_filestate import FileState, FileStateMiddleware, FileToolkit, WiringError, merge_records
from tests.cases.steps import Make, call, cell, code, edit, many, read, write
from tests.scripted import KINDS, Scripted, Session, State, agent_session, graph_session, tool_messages

APPROVE: dict[str, Any] = {"decisions": [{"type": "approve"}]}
REJECT: dict[str, Any] = {"decisions": [{"type": "reject", "message": "not that one"}]}


def start(s: Session, *lines: Any) -> Any:
    s.model.script[:] = [*lines, "done"]
    return s.graph.invoke({"messages": [HumanMessage("go")]}, s.config)


def interrupts(s: Session) -> list[Any]:
    return [i for task in s.graph.get_state(s.config).tasks for i in task.interrupts]


def answer_all(s: Session, decide: Callable[[Any], Any], most: int = 20) -> Any:
    """Resume until nobody asks any more, by interrupt id, as LangGraph has it."""
    out = None
    for _ in range(most):
        asked = interrupts(s)
        if not asked:
            return out
        out = s.graph.invoke(Command(resume={i.id: decide(i.value) for i in asked}), s.config)
    raise AssertionError("it asks for ever")


def path_of(value: Any) -> str:
    (request,) = value["action_requests"]
    return str(request["args"]["file_path"])


# ---- LG-01 ----------------------------------------------------------------------------------------------------------


class Bare(MessagesState):
    """Without the channel."""


class Lazy(MessagesState):
    """As somebody might write the channel by hand."""

    file_state: NotRequired[dict[str, Any]]


def one_node(root: Path, schema: Any, **policy: Any) -> Any:
    builder = StateGraph(schema)
    builder.add_node("tools", ToolNode(FileToolkit(root, **policy).get_tools()))
    builder.add_edge(START, "tools")
    return builder.compile()


def test_lg_01_a_graph_without_the_channel_is_told_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    with pytest.raises(WiringError, match="FileState"):
        one_node(tmp_path, Bare).invoke({"messages": [AIMessage("", tool_calls=[read("f")])]})


@pytest.mark.parametrize("schema", [State, Lazy])
@pytest.mark.parametrize("given", [{}, {"file_state": {}}, {"file_state": {"main": {}}}])
def test_lg_01_a_first_input_without_the_field(tmp_path: Path, schema: Any, given: dict[str, Any]) -> None:
    (tmp_path / "f").write_text("one\n")
    graph = one_node(tmp_path, schema)
    if schema is Lazy and not given:
        with pytest.raises(WiringError, match="FileState"):  # LangGraph hands on nothing, as if it were not declared
            graph.invoke({"messages": [AIMessage("", tool_calls=[read("f")])], **given})
        return
    out = graph.invoke({"messages": [AIMessage("", tool_calls=[read("f")])], **given})
    out = graph.invoke({**out, "messages": [*out["messages"], AIMessage("", tool_calls=[edit("f", "one", "two")])]})
    assert [m.status for m in tool_messages(out)] == ["success", "success"]


def test_lg_01_a_call_by_hand_inside_of_a_graph(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    builder = StateGraph(State)
    builder.add_node("node", lambda _: {"messages": [toolkit.get_tools()[0].invoke(read("f"))]})
    builder.add_edge(START, "node")
    with pytest.raises(WiringError, match="ToolNode"):
        builder.compile().invoke({"messages": []})


# ---- LG-02 ----------------------------------------------------------------------------------------------------------


def test_lg_02_parallel_calls_of_one_step(session: Make, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("one\ntwo\n")
    s = session()
    out = s.say(
        [read("a"), read("b"), read("c")],
        [edit("a", "one", "1"), edit("a", "two", "2"), edit("b", "one", "1"), read("c")],
    )
    assert [m.status for m in out] == ["success"] * 7
    assert (tmp_path / "a").read_text() == "1\n2\n"
    (records,) = s.records().values()
    assert {Path(p).name for p in records} == {"a", "b", "c"}
    assert [m.status for m in s.say([write(name, "x\n") for name in "abc"])] == ["success"] * 3


def record(seq: int, **more: Any) -> dict[str, Any]:
    return {"v": 1, "digest": f"d{seq}", "size": 1, "lines": 1, "views": [], "seq": seq, "origin": "read", **more}


def test_lg_02_the_reducer_takes_updates_in_any_order_and_twice() -> None:
    updates = [
        {"a": {"/x": record(1), "/y": record(5)}}, {"a": {"/x": record(3)}}, {"b": {"/x": record(2)}}, {}, {"a": {}},
        {"a": {"/y": record(4)}}, None, [], {"a": None}, {"a": {"/x": None}}, {"a": {"/z": {"seq": "9"}}}, {1: {}}, {"c": []},
    ]  # fmt: skip
    want: Any = None
    for order in itertools.islice(itertools.permutations(updates), 0, 400_000, 997):
        merged: Any = {}
        for update in (*order, *order[:3]):
            merged = merge_records(merged, update)
        slim = {agent: paths for agent, paths in merged.items() if paths}
        want = slim if want is None else want
        assert slim == want
    assert want == {"a": {"/x": record(3), "/y": record(5)}, "b": {"/x": record(2)}}


def test_lg_02_a_child_that_gives_back_nonsense(session: Make, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    s = session()
    s.say(read("f"))
    nonsense: list[Any] = [None, [], "x", 5, {"coder": None}, {"main": []}, {"main": {"/x": "y"}}]
    for odd in nonsense:
        s.graph.update_state(s.config, {"file_state": odd}, as_node="tools")
    assert s.one(edit("f", "one", "two")).status == "success"


# ---- LG-03 ----------------------------------------------------------------------------------------------------------


def failures(root: Path) -> list[dict[str, Any]]:
    (root / "dir").mkdir(exist_ok=True)
    (root / "bin").write_bytes(b"\0\1\2")
    (root / "shut").write_text("x\n")
    (root / "shut").chmod(0o444)
    (root / "n.ipynb").write_text("{}")
    return [
        read("none"), read("dir"), read("bin"), read("dir/none/x"), read("shut/x"), edit("none", "a", "b"), write("dir", "x"),
        write("shut", "x"), write("shut/x", "x"), write("a\0", "x"), write("new", "\ud800"), edit("shut", "x", "x"),
        many("none", ("a", "b")), cell("n.ipynb", "a", "x"), call("read_file"), call("write_file", file_path="x"),
        call("read_file", file_path="shut", offset="x"), call("multi_edit", file_path="shut", edits="x"), read("x" * 5000),
        call("edit_file", file_path=["a"], old_string=1, new_string=None), call("read_file", path="shut"),
    ]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
async def test_lg_03_each_call_has_one_answer(session: Make, tmp_path: Path, together: bool) -> None:
    s = session()
    calls = failures(tmp_path)
    out = await s.asay(calls) if together else s.say(*calls)
    assert [m.tool_call_id for m in out] == [c["id"] for c in calls]
    assert {m.status for m in out} == {"error"}
    assert all(code(m) for m in out)
    assert s.one(read("shut")).status == "success"  # and the thread goes on


def test_lg_03_what_the_system_refuses(session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [errno.ENOSPC, errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENAMETOOLONG]
    s = session()
    for number in numbers:
        (tmp_path / f"f{number}").write_text("one\n")
    s.say([read(f"f{number}") for number in numbers])
    real = os.open

    def failing(path: Any, flags: int, *args: Any, **more: Any) -> int:
        found = re.search(r"(?:^|/)f(\d+)$", str(path))
        if found:
            raise OSError(int(found[1]), os.strerror(int(found[1])))
        return real(path, flags, *args, **more)

    calls = []
    for number in numbers:
        calls += [
            edit(f"f{number}", "one", "two"),
            read(f"f{number}"),
            write(f"f{number}", "x"),
            write(f"g{number}", "x\n"),
        ]

    def now() -> Any:
        monkeypatch.setattr(os, "open", failing)
        return calls

    out = s.say(now)
    monkeypatch.undo()
    assert [m.tool_call_id for m in out] == [c["id"] for c in calls]
    assert [m.status for m in out] == ["error", "error", "error", "success"] * len(numbers)
    assert {(tmp_path / f"f{number}").read_text() for number in numbers} == {"one\n"}


# ---- LG-04, LG-05 ---------------------------------------------------------------------------------------------------


def needs(*names: str) -> Callable[[Any], bool]:
    return lambda change: Path(change.file_path).name in names


def test_lg_04_a_sibling_is_applied_once(session: Make, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x\n")
    s = session(approve=needs("b"))
    s.say([read("a"), read("b")])
    start(s, [edit("a", "x", "xx"), write("new", "n\n"), edit("b", "x", "xx"), many("a", ("xx", "x\nx"))])
    assert (tmp_path / "b").read_text() == "x\n"
    answer_all(s, lambda _: APPROVE)
    assert (tmp_path / "a").read_text() == "x\nx\n"
    assert (tmp_path / "b").read_text() == "xx\n"
    assert (tmp_path / "new").read_text() == "n\n"
    out = tool_messages(s.state())[-4:]
    assert [m.status for m in out] == ["success"] * 4
    counts = [len(s.toolkit.history.changes(path=str(tmp_path / name))) for name in ("a", "b", "new")]
    assert counts == [2, 1, 1]


@pytest.mark.parametrize("first", ["yes", "no"])
def test_lg_05_answers_reach_their_own_call(session: Make, tmp_path: Path, first: str) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x\n")
    s = session(approve=True)
    s.say([read("a"), read("b")])
    start(
        s, [edit("a", "x", "A"), edit("b", "x", "B")] if first == "yes" else [edit("b", "x", "B"), edit("a", "x", "A")]
    )
    asked: list[str] = []

    def decide(value: Any) -> Any:
        asked.append(path_of(value))
        return APPROVE if path_of(value).endswith("a") else REJECT

    answer_all(s, decide)
    assert sorted(asked) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "A\n"
    assert (tmp_path / "b").read_text() == "x\n"
    by_status = {m.artifact["file_path"][-1]: m for m in tool_messages(s.state())[-2:]}
    assert by_status["a"].status == "success"
    assert code(by_status["b"]) == "rejected"
    assert "not that one" in str(by_status["b"].content)


async def test_lg_05_many_questions_with_delays(session: Make, tmp_path: Path) -> None:
    chance = random.Random(5)
    names = [f"f{n}" for n in range(6)]
    for name in names:
        (tmp_path / name).write_text("x\n")
    s = session(approve=True)
    await s.asay([read(name) for name in names])
    s.model.script[:] = [[edit(name, "x", f"new {name}") for name in names], "done"]
    await s.graph.ainvoke({"messages": [HumanMessage("go")]}, s.config)
    for _ in range(20):
        asked = interrupts(s)
        if not asked:
            break
        chance.shuffle(asked)
        await asyncio.sleep(chance.random() / 100)
        answers = {i.id: APPROVE if int(path_of(i.value)[-1]) % 2 else REJECT for i in asked[: chance.randint(1, 6)]}
        await s.graph.ainvoke(Command(resume=answers), s.config)
    assert [(tmp_path / name).read_text() for name in names] == [
        f"new {n}\n" if int(n[-1]) % 2 else "x\n" for n in names
    ]


def test_lg_05_an_answer_is_for_what_was_shown(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x\nrest\n")
    s = session(approve=True)
    s.say(read("a"))
    start(s, edit("a", "x", "X"))
    path.write_text("x\nother rest\n")  # somebody saves while the person thinks
    asked: list[str] = []

    def decide(value: Any) -> Any:
        asked.append(value["action_requests"][0]["description"])
        return APPROVE

    answer_all(s, decide)
    assert len(asked) == 2
    assert " other rest" in asked[1]
    assert path.read_text() == "X\nother rest\n"


# ---- LG-06 ----------------------------------------------------------------------------------------------------------


class Catching(AgentMiddleware[Any, Any, Any]):
    """As somebody's logging middleware: everything is caught that a program may catch."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"])

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"])


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("around", ["nothing", "retry", "catching", "tool node"])
async def test_lg_06_the_question_passes_every_wrapper(tmp_path: Path, mode: str, around: str) -> None:
    path = tmp_path / "a"
    path.write_text("x\n")
    asked: list[Any] = []

    def approve(change: Any) -> bool:
        asked.append(change)
        return True

    if around == "tool node":
        s = graph_session(tmp_path, approve=approve)
        builder = StateGraph(State)
        model = s.model
        builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        builder.add_node("tools", ToolNode(s.toolkit.get_tools(), handle_tool_errors=True))
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__")
        builder.add_edge("tools", "model")
        s = Session(builder.compile(checkpointer=InMemorySaver()), model, "t", s.toolkit)
    else:
        wrap: Any = {
            "nothing": [],
            "retry": [ToolRetryMiddleware(max_retries=2, initial_delay=0)],
            "catching": [Catching()],
        }
        s = agent_session(tmp_path, approve=approve, middleware=wrap[around])
    lines = [read("a"), edit("a", "x", "y")]
    if mode == "sync":
        start(s, *lines)
    else:
        s.model.script[:] = [*lines, "done"]
        await s.graph.ainvoke({"messages": [HumanMessage("go")]}, s.config)
    assert len(interrupts(s)) == 1
    assert path.read_text() == "x\n"
    assert code(tool_messages(s.state())[-1]) is None
    answer_all(s, lambda _: APPROVE)
    assert path.read_text() == "y\n"
    assert asked


# ---- LG-07 ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or isinstance(value, str | bool) or (isinstance(value, int) and abs(value) < 2**63)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("saver", ["memory", "sqlite", "strict"])
def test_lg_07_the_state_is_plain(tmp_path: Path, kind: str, saver: str) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (root / "f").write_bytes("caf\u00e9 \U0001f600 and more of it\r\n".encode() * 9 + b"\xff")
    serde = JsonPlusSerializer(allowed_msgpack_modules=[]) if saver == "strict" else None
    checkpointer: Any = InMemorySaver(serde=serde) if saver != "sqlite" else None
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as sqlite:
        s = KINDS[kind](root, checkpointer=checkpointer or sqlite)
        s.say(read("f"), edit("f", "caf\u00e9", "\u4e2d", replace_all=True), write("g", "g\n"), edit("nope", "a", "b"))
        again = KINDS[kind](root, checkpointer=checkpointer or sqlite)
        state = again.state()
        assert plain(state["file_state"])
        for message in tool_messages(state):
            assert plain(message.artifact)
            json.dumps(message.artifact).encode()
        assert again.one(edit("g", "g", "h")).status == "success"
        assert again.one(write("g", "i\n")).status == "success"


OLD: list[Any] = [
    {"v": 0}, {"v": 2, "digest": "x", "seq": 1}, {"v": 1}, {"v": "1", "seq": 1}, "text", 5, [], None,
    {"v": 1, "digest": 5, "size": 1, "lines": 1, "views": [], "seq": 1, "origin": "read"},
    {"v": 1, "digest": "x", "size": 1, "lines": 1, "views": [["a", "b", "c"]], "seq": 1, "origin": "read"},
    {"v": 1, "digest": "x", "size": 1, "lines": 1, "views": [[1, 2]], "seq": 1, "origin": "read"},
    {"v": 1, "digest": "x", "size": 1, "lines": 1, "views": "none", "seq": 1, "origin": "read"},
    {"v": 1, "digest": "x", "size": -1, "lines": None, "views": [], "seq": 1, "origin": "guess"},
]  # fmt: skip


def test_lg_07_old_and_broken_records_count_as_not_read(session: Make, tmp_path: Path) -> None:
    s = session(agent="me")
    paths = [tmp_path / f"f{n}" for n in range(len(OLD))]
    for path in paths:
        path.write_text("one\n")
    records = {str(path): old for path, old in zip(paths, OLD, strict=True)}
    s.model.script[:] = [
        [edit(path, "one", "two") for path in paths], [read(path) for path in paths], [edit(path, "one", "two") for path in paths], "done",
    ]  # fmt: skip
    out = tool_messages(s.graph.invoke({"messages": [HumanMessage("x")], "file_state": {"me": records}}, s.config))
    assert [code(m) for m in out] == ["not_read"] * len(OLD) + [None] * 2 * len(OLD)


# ---- LG-09 ----------------------------------------------------------------------------------------------------------


def test_lg_09_what_is_returned_is_what_is_kept(session: Make, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("one\n")
    s = session()
    out = start(s, [read("a"), read("b")], [edit("a", "one", "two"), edit("b", "one", "two")])
    assert out["file_state"] == s.graph.get_state(s.config).values["file_state"]


def test_lg_09_what_was_injected_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    graph = one_node(tmp_path, State)
    out = graph.invoke({"messages": [AIMessage("", tool_calls=[read("f")])]})
    before = json.dumps(out["file_state"])
    asked = {
        **out,
        "messages": [*out["messages"], AIMessage("", tool_calls=[edit("f", "one", "two"), write("g", "x")])],
    }
    held = out["file_state"]
    graph.invoke(asked)
    assert json.dumps(held) == before
    # Nor does the toolkit keep anything of its own for a graph.
    fresh = one_node(tmp_path, State)
    (message,) = fresh.invoke({"messages": [AIMessage("", tool_calls=[edit("f", "two", "three")])]})["messages"][-1:]
    assert code(message) == "not_read"


# ---- LG-10 ----------------------------------------------------------------------------------------------------------


def before_tools(s: Session, nth: int = -1) -> Any:
    """The checkpoint right before the tools ran, the newest one by default."""
    states = [
        state for state in s.graph.get_state_history(s.config) if state.next and any("tools" in n for n in state.next)
    ]
    return states[0 if nth == -1 else nth]


def test_lg_10_a_replay_applies_nothing_twice(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = session()
    s.say(read(path))
    s.say(edit(path, "one", "one one"))
    point = before_tools(s)
    s.model.script[:] = ["done"]
    out = tool_messages(s.graph.invoke(None, point.config))
    assert path.read_text() == "one one\n"
    assert out[-1].status == "success"
    assert str(out[-1].content).startswith("This change was already applied.")
    assert out[-1].artifact["already_applied"] is True


def test_lg_10_a_replay_after_somebody_else_is_a_conflict(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = session()
    s.say(read(path))
    s.say(edit(path, "one", "two"))
    point = before_tools(s)
    path.write_text("one, by hand\n")
    s.model.script[:] = ["done"]
    out = tool_messages(s.graph.invoke(None, point.config))
    assert code(out[-1]) in {"conflict", "stale"}
    assert path.read_text() == "one, by hand\n"


def test_lg_10_a_fork_works_on_the_files_that_are_there(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\nrest\n")
    s = session()
    s.say(read(path))
    t0 = s.graph.get_state(s.config)
    s.say(edit(path, "one", "two"))
    s.config = t0.config
    first, whole = s.say([edit(path, "one", "three"), write(path, "x\n")])
    assert code(first) in {"stale", "no_match"}
    told = [str(m.content) for m in s.model.requests[-2] if isinstance(m, HumanMessage)]
    if "+two" in told[-1]:  # the middleware has told in full what is there: it is no old view any more
        assert whole.status == "success"
        return
    assert code(whole) == "stale"
    assert path.read_text() == "two\nrest\n"


def test_lg_10_a_fork_with_the_files_put_back(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = session()
    s.say(read(path))
    t0 = s.graph.get_state(s.config)
    s.say(edit(path, "one", "two"))
    s.toolkit.rewind(t0)
    s.config = t0.config
    assert s.one(edit(path, "one", "three")).artifact["stale_recovered"] is False
    assert path.read_text() == "three\n"


def test_lg_10_a_child_graph_replays_as_well(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    toolkit = FileToolkit(tmp_path)
    child = StateGraph(State)
    child.add_node("tools", ToolNode(toolkit.get_tools()))
    child.add_edge(START, "tools")
    model = Scripted(script=[], requests=[])
    parent = StateGraph(State)
    parent.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    parent.add_node("child", child.compile())
    parent.add_edge(START, "model")
    parent.add_conditional_edges("model", lambda state: "child" if state["messages"][-1].tool_calls else "__end__")
    parent.add_edge("child", "model")
    s = Session(parent.compile(checkpointer=InMemorySaver()), model, "t", toolkit)
    s.say(read(path), edit(path, "one", "one one"))
    states = [state for state in s.graph.get_state_history(s.config) if state.next == ("child",)]
    model.script[:] = ["done"]
    out = tool_messages(s.graph.invoke(None, states[0].config))
    assert path.read_text() == "one one\n"
    assert out[-1].artifact["already_applied"] is True


# ---- LG-12 ----------------------------------------------------------------------------------------------------------


def paired(messages: list[Any]) -> bool:
    """Each call has its answer right behind it, and each answer its call."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        else:
            if waiting:
                return False
            waiting = [str(c["id"]) for c in message.tool_calls] if isinstance(message, AIMessage) else []
    return not waiting


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5])
def test_lg_12_pairs_stay_pairs_when_the_past_is_summed_up(tmp_path: Path, keep: int) -> None:
    for name in "ab":
        (tmp_path / name).write_text("text of it\n" * 30)
    summary = Scripted(script=["A summary."] * 50, requests=[])
    wrap = SummarizationMiddleware(summary, trigger=("messages", 6), keep=("messages", keep))
    s = agent_session(tmp_path, middleware=[wrap])
    s.say([read("a"), edit("b", "x", "y")], [read("b"), read("a")])
    (tmp_path / "a").write_text("other text\n" * 30)  # a notice comes in between
    s.say(read("b"), [read("a"), read("b")], edit("b", "text of it\n" * 30, "new\n"))
    s.say(read("a"), [read("b"), write("c", "x\n")])
    for request in s.model.requests:
        assert paired([m for m in request if m.type != "system"]), [m.type for m in request]
    assert paired(s.state()["messages"])
    # What was summed up is given in full again (RS-04).
    shown = tool_messages(start(s, read("a")))[-1]
    assert "other text" in str(shown.content) or any("other text" in str(m.content) for m in s.state()["messages"][:-1])


def test_lg_12_a_notice_never_parts_a_pair(agent: Make, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("one\n")
    s = agent()
    s.say([read("a"), read("b")])

    def by_hand() -> Any:
        (tmp_path / "a").write_text("two\n")
        return [read("b"), edit("b", "one", "1")]

    s.say(by_hand, by_hand, by_hand)
    for request in s.model.requests:
        assert paired([m for m in request if m.type != "system"])


def test_lg_12_own_helpers_remove_nothing(tmp_path: Path) -> None:
    """Nothing in the package takes a message away: updates are additions, or a message under its own id."""
    for source in Path(FileStateMiddleware.__module__.replace(".", "/")).parent.glob("*.py"):
        assert "RemoveMessage" not in source.read_text(), source


def test_lg_12_after_everything_is_gone_the_work_goes_on(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    s = session()
    s.say(read(path), edit(path, "one", "1"))
    s.graph.update_state(
        s.config, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("so far")]}, as_node="tools"
    )
    out = s.say(edit(path, "two", "2"), write(path, "x"), read(path), write(path, "x\n"))
    assert [code(m) for m in out] == [None, "partially_read", None, None]  # of the edit's own line alone


# ---- and the state by its own name ----------------------------------------------------------------------------------


def test_lg_01_the_middleware_brings_the_channel(tmp_path: Path) -> None:
    model = Scripted(script=[write("f", "x\n"), "done"], requests=[])
    graph: Any = create_agent(model, [], middleware=[FileStateMiddleware(tmp_path)])
    out = graph.invoke({"messages": [HumanMessage("go")]})
    assert set(out["file_state"]) == {"main"}
    assert FileState.__annotations__.keys() == {"file_state"}
