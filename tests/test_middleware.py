"""The middleware as such, and what it leaves in checkpoints."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_filestate import FileStateMiddleware, FileToolkit, FileToolsMiddleware
from langchain_filestate.state import LEFT_OUT
from tests.scripted import KINDS, Scripted, Session, call, code, edit, many, read, tool_messages, write

MARKER = "zq7-marker-that-stands-nowhere-else"


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def tables(path: Path) -> dict[str, bytes]:
    """Everything that a database file holds, by table and column."""
    found: dict[str, bytes] = {}
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            for row in cursor:
                for name, value in zip(names, row, strict=True):
                    data = value if isinstance(value, bytes) else str(value).encode()
                    found[f"{table}.{name}"] = found.get(f"{table}.{name}", b"") + data
    return found


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_checkpoint_holds_text_that_no_message_showed(tmp_path: Path, kind: str) -> None:
    """Files are edited, overwritten, announced; what stood far from the edits is in no byte of the database."""
    root = tmp_path / "root"
    root.mkdir()
    far = "".join(f"{MARKER} {i}\n" for i in range(30))
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("first\n" + "pad\n" * 10 + far)
    database = tmp_path / "checkpoints.db"
    with SqliteSaver.from_conn_string(str(database)) as saver:
        s = KINDS[kind](root, checkpointer=saver, after_write=lambda _: "checked")
        out = s.say(
            [read("a.txt", limit=2), read("b.txt", limit=2)], edit("a.txt", "first", "1st"),
            many("b.txt", ("first", "1st")), edit("a.txt", "1st", "2nd"),
        )  # fmt: skip
        assert [m.status for m in out] == ["success"] * 5
        (root / "a.txt").write_text((root / "a.txt").read_text().replace("2nd", "3rd"))
        s.say("hm")
        s.say(edit("a.txt", "3rd", "4th"), write("b.txt", "x\n"))
    assert MARKER.encode() not in database.read_bytes()
    wal = database.with_name(database.name + "-wal")
    assert not wal.exists() or MARKER.encode() not in wal.read_bytes()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_text_that_was_shown_stands_in_messages_only(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text(f"{MARKER}\n")
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        s = KINDS[kind](root, checkpointer=saver)
        s.say(read("a.txt"), edit("a.txt", MARKER, f"{MARKER} 2"))
        for snapshot in s.graph.get_state_history(s.config):
            others = {key: value for key, value in snapshot.values.items() if key != "messages"}
            assert MARKER not in repr(others)
            assert MARKER not in repr(snapshot.metadata)
    held = [name for name, data in tables(tmp_path / "checkpoints.db").items() if MARKER.encode() in data]
    assert set(held) <= {"checkpoints.checkpoint", "writes.value"}


def test_a_record_is_small_whatever_the_file(tmp_path: Path) -> None:
    s = KINDS["agent"](tmp_path)
    (tmp_path / "a.txt").write_text("x" * 80 + "\n" * 1000)
    s.say(read("a.txt"))
    assert len(repr(s.records())) < 400


SCRIPT = textwrap.dedent(
    """
    import asyncio, os, sys
    from pathlib import Path
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.serde import _msgpack
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.types import Command
    from tests.scripted import KINDS, call, code, edit, read, tool_messages, write

    root, step, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    assert _msgpack.STRICT_MSGPACK_ENABLED
    APPROVE = {"decisions": [{"type": "approve"}]}

    async def play(kind, saver):
        options = {"approve": lambda change: change.file_path.endswith("ask.txt")}
        s = KINDS[kind](root / kind, checkpointer=saver, thread=kind, **options)
        graph = s.graph
        async def invoke(value):
            return graph.invoke(value, s.config) if how == "sync" else await graph.ainvoke(value, s.config)
        async def say(*lines):
            s.model.script[:] = [*lines, "done"]
            return tool_messages(await invoke({"messages": [HumanMessage("go")]}))[-len(lines):]
        if step == "first":
            for name in ("a.txt", "b.txt", "ask.txt"):
                (root / kind / name).write_text("one\\ntwo\\n")
            (root / kind / "b.txt").write_text("only here\\n")
            out = await say(read("a.txt"), read("b.txt"), read("ask.txt"), edit("a.txt", "one", "1"))
            assert [m.status for m in out] == ["success"] * 4, out
            s.model.script[:] = [edit("ask.txt", "one", "1"), "done"]
            await invoke({"messages": [HumanMessage("go")]})
            return
        (root / kind / "b.txt").write_text("by hand\\n")
        s.model.script[:] = ["done"]
        for _ in range(2):  # the history is not kept: the question is asked once more
            state = await graph.aget_state(s.config) if how == "async" else graph.get_state(s.config)
            if state.interrupts:
                s.model.script[:] = ["done"]
                await invoke(Command(resume=APPROVE))
        assert (root / kind / "ask.txt").read_text() == "1\\ntwo\\n"
        again, edited, wrote = await say(read("a.txt"), edit("a.txt", "two", "2"), write("a.txt", "x\\n"))
        # After the edit the text of line 2 stands in the read, and the file is another: the whole is shown again.
        assert (again.artifact["unchanged"], edited.status, wrote.status) == (False, "success", "success"), (again, edited, wrote)
        (stale,) = await say(write("b.txt", "x\\n"))
        assert code(stale) in {"stale", "not_read", None}, stale
        print(kind, code(stale))

    async def main():
        path = str(root / "cp.db")
        if how == "sync":
            with SqliteSaver.from_conn_string(path) as saver:
                for kind in sorted(KINDS):
                    await play(kind, saver)
        else:
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                for kind in sorted(KINDS):
                    await play(kind, saver)

    asyncio.run(main())
    """
)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_strict_checkpoints_in_fresh_processes(tmp_path: Path, how: str) -> None:
    for kind in KINDS:
        (tmp_path / kind).mkdir()
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONWARNINGS": "error::UserWarning"}
    for step in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path), step, how],
            cwd=Path(__file__).parent.parent, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        assert "unregistered" not in done.stderr.lower()
    assert done.stdout.split() == ["agent", "not_read", "graph", "stale"]


async def test_an_async_checkpointer_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
        model = Scripted(script=[read("a.txt"), edit("a.txt", "one", "1"), "done"], requests=[])
        graph = create_agent(model, [], middleware=[FileStateMiddleware(tmp_path)], checkpointer=saver, name="coder")
        out = await graph.ainvoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    assert [m.status for m in tool_messages(out)] == ["success"] * 2


# ---- the classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FileToolsMiddleware, FileStateMiddleware])
def test_a_toolkit_may_be_given(tmp_path: Path, kind: Any) -> None:
    toolkit = FileToolkit(tmp_path, agent="me")
    made = kind(toolkit)
    assert made.toolkit is toolkit
    assert [tool.name for tool in made.tools] == [tool.name for tool in toolkit.get_tools()]
    with pytest.raises(TypeError, match="toolkit"):
        kind(toolkit, agent="other")
    with pytest.raises(TypeError):
        kind(tmp_path, no_such_option=1)


def test_the_left_out_note_is_private(tmp_path: Path) -> None:
    graph = create_agent(Scripted(script=["done"], requests=[]), [], middleware=[FileStateMiddleware(tmp_path)])
    out = graph.invoke({"messages": [HumanMessage("go")]})
    assert "file_state" in out
    assert LEFT_OUT not in out
    assert LEFT_OUT not in graph.get_output_jsonschema()["properties"]


async def test_tools_alone(tmp_path: Path) -> None:
    for how in ("sync", "async"):
        model = Scripted(script=[], requests=[])
        graph = create_agent(
            model, [], middleware=[FileToolsMiddleware(tmp_path)], checkpointer=InMemorySaver(), name="coder"
        )
        session = Session(graph, model, "t")
        (tmp_path / "a.txt").write_text("one\n")
        lines = [edit("a.txt", "one", "1"), read("a.txt"), edit("a.txt", "one", "1")]
        out = session.say(*lines) if how == "sync" else await session.asay(*lines)
        assert [code(m) for m in out] == ["not_read", None, None]
        (tmp_path / "a.txt").write_text("two\n")
        session.say("hm")
        assert all(m.text in {"go on", "hm", "done", ""} or m.type == "tool" for m in session.state()["messages"])


class Flaky(Scripted):
    fail: list[bool] = []

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        if self.fail and self.fail.pop():
            raise ConnectionError
        return super()._generate(*args, **kwargs)


def test_a_model_call_that_is_tried_again_announces_once(tmp_path: Path) -> None:
    model = Flaky(script=[], requests=[], fail=[])
    retry = ModelRetryMiddleware(initial_delay=0, retry_on=(ConnectionError,))
    ours = FileStateMiddleware(tmp_path)
    graph = create_agent(model, [], middleware=[retry, ours], checkpointer=InMemorySaver(), name="coder")
    session = Session(graph, model, "t", ours.toolkit)
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    (tmp_path / "a.txt").write_text("two\n")
    model.fail = [True]
    session.say("hm")
    session.say("hm")
    assert sum("a.txt was changed." in m.text for m in session.state()["messages"]) == 1


def test_a_model_call_that_fails_announces_at_the_next(tmp_path: Path) -> None:
    model = Flaky(script=[], requests=[], fail=[])
    ours = FileStateMiddleware(tmp_path)
    graph = create_agent(model, [], middleware=[ours], checkpointer=InMemorySaver(), name="coder")
    session = Session(graph, model, "t", ours.toolkit)
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    (tmp_path / "a.txt").write_text("two\n")
    model.fail = [True]
    with pytest.raises(ConnectionError):
        session.say("hm")
    session.say("hm")
    assert sum("a.txt was changed." in m.text for m in session.state()["messages"]) == 1


class Rewrites(AgentMiddleware[Any, Any, Any]):
    """Rewrites the model's answer, after the pattern of LangChain's documentation."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        from langchain.agents.middleware.types import ModelResponse
        from langchain_core.messages import AIMessage

        response = handler(request)
        first = response.result[0]
        if first.tool_calls:
            return response
        return ModelResponse(result=[AIMessage(f"[brief] {first.text}")])


def test_middleware_that_rewrites_the_answer_stands_inside(tmp_path: Path) -> None:
    """The notice comes with the answer, so what takes the first message for the answer is listed after ours."""
    model = Scripted(script=[], requests=[])
    ours = FileStateMiddleware(tmp_path)
    graph = create_agent(model, [], middleware=[ours, Rewrites()], checkpointer=InMemorySaver(), name="coder")
    session = Session(graph, model, "t", ours.toolkit)
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    (tmp_path / "a.txt").write_text("two\n")
    session.say("hm")
    texts = [m.text for m in session.state()["messages"]]
    assert any("a.txt was changed." in text for text in texts)
    assert "[brief] hm" in texts


def test_calls_that_name_no_tool_of_ours_pass(tmp_path: Path) -> None:
    session = KINDS["agent"](tmp_path)
    session.say(call("no_such_tool", x=1))
    assert session.records() == {}
