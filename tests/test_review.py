"""Faults that an attack on the whole package found, each as it was found: through a graph."""

from __future__ import annotations

import operator
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

from langchain_filestate import FileState, FileToolkit, Limits
from tests.scripted import KINDS, Scripted, agent_session, call, code, edit, read, write

if TYPE_CHECKING:
    from pathlib import Path

kinds = pytest.mark.parametrize("kind", sorted(KINDS))


def _graph(root: Path, schema: Any, key: str, *lines: Any) -> Any:
    model, toolkit = Scripted(script=[*lines, "done"], requests=[]), FileToolkit(root)
    builder = StateGraph(schema)
    builder.add_node("model", lambda _: {key: [model.invoke([HumanMessage("go on")])]})
    builder.add_node("tools", ToolNode(toolkit.get_tools(), messages_key=key))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: tools_condition(state, messages_key=key))
    builder.add_edge("tools", "model")
    return builder.compile()


class _TwoLists(MessagesState, FileState):
    chat: Annotated[list[Any], add_messages]


class _Plain(FileState):
    messages: Annotated[list[Any], operator.add]


def test_the_calls_stand_in_another_list_than_messages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    graph = _graph(tmp_path, _TwoLists, "chat", read("a.txt"), edit("a.txt", "x", "y"))
    out = graph.invoke({"chat": [HumanMessage("go")], "messages": [HumanMessage("of something else")]})
    assert [message.content for message in out["messages"]] == ["of something else"]
    assert (tmp_path / "a.txt").read_text() == "y\n"


@pytest.mark.parametrize("first", [("user", "hi"), {"role": "user", "content": "hi"}, "hi"])
def test_messages_in_other_shapes_are_no_evidence_and_do_no_harm(tmp_path: Path, first: Any) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    lines = [read("a.txt"), edit("a.txt", "x", "y"), read("a.txt"), write("a.txt", "z\n")]
    out = _graph(tmp_path, _Plain, "messages", *lines).invoke({"messages": [first]})
    assert "already" not in str(out["messages"][-2].content)
    assert (tmp_path / "a.txt").read_text() == "z\n"


@kinds
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_that_holds_only_its_byte_order_mark_has_no_lines(tmp_path: Path, kind: str, encoding: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("x\n".encode(encoding))
    session = KINDS[kind](tmp_path)
    session.one(read("a.txt"))
    session.one(edit("a.txt", "x\n", ""))
    (records,) = session.records().values()
    assert [(record["lines"], record["views"]) for record in records.values()] == [(0, [])]
    assert code(session.one(write("a.txt", "new\n"))) is None
    assert file.read_bytes() == "new\n".encode(encoding)


@kinds
def test_a_file_is_emptied_to_its_byte_order_mark_by_somebody_else(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("x\n".encode("utf-8-sig"))
    session = KINDS[kind](tmp_path, after_write=lambda path: path.write_bytes(b"\xef\xbb\xbf") and None)
    session.one(read("a.txt"))
    session.one(edit("a.txt", "x", "y"))
    assert code(session.one(write("a.txt", "new\n"))) is None


def test_a_notice_of_a_file_emptied_to_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("x\n".encode("utf-8-sig"))
    session = agent_session(tmp_path)
    session.one(read("a.txt"))
    file.write_bytes(b"\xef\xbb\xbf")
    session.say("nothing")
    (records,) = session.records().values()
    assert [(record["lines"], record["views"]) for record in records.values()] == [(0, [])]


@kinds
def test_an_empty_old_string_fills_a_file_that_holds_only_its_byte_order_mark(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("".encode("utf-16"))
    session = KINDS[kind](tmp_path)
    assert "is empty" in session.one(read("a.txt")).content
    done = session.one(edit("a.txt", "", "new\n"))
    assert (code(done), done.artifact["created"], file.read_bytes()) == (None, False, "new\n".encode("utf-16"))
    assert code(session.one(write("a.txt", "other\n"))) is None


@kinds
def test_a_hook_that_returns_something_else_than_text(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("x\n")

    def format_it(path: Path) -> Any:
        return subprocess.run([sys.executable, "-c", "", str(path)], check=True)

    session = KINDS[kind](tmp_path, after_write=format_it)
    session.one(read("a.txt"))
    done = session.one(edit("a.txt", "x", "y"))
    assert code(done) is None
    assert "returned CompletedProcess instead of text" in done.content


@kinds
def test_words_of_a_hook_that_no_checkpoint_can_hold(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    session = KINDS[kind](tmp_path, after_write=lambda _: "a\0b\ud800c")
    session.one(read("a.txt"))
    assert str(session.one(edit("a.txt", "x", "y")).content).endswith("a\\0b\\ud800c")


@kinds
def test_a_truth_value_given_as_text_is_not_a_changed_call(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("x\nx\n")
    session = KINDS[kind](tmp_path)
    session.one(read("a.txt"))
    done = session.one(edit("a.txt", "x", "y", replace_all="true"))
    assert "changed before it ran" not in done.content
    assert (tmp_path / "a.txt").read_text() == "y\ny\n"
    refused = session.one(edit("a.txt", "y", "z", replace_all="maybe"))
    assert code(refused) == "bad_arguments"


_RECORD = {"v": 1, "digest": "0" * 64, "size": 2, "lines": 1, "views": [[1, 1, "e"]], "seq": 1, "origin": "read"}
_BROKEN = [
    {"views": None},
    {"views": [None]},
    {"views": [[1]]},
    {"views": 5},
    {"views": [[1, 1, {}]]},
    {"origin": ["read"]},
    {"v": 2, "views": "abc"},
]


@kinds
@pytest.mark.parametrize("agent", ["coder", "main", "other"])
@pytest.mark.parametrize("broken", _BROKEN)
def test_records_in_other_shapes_count_as_not_read(tmp_path: Path, kind: str, agent: str, broken: Any) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x\n")
    session = KINDS[kind](tmp_path)
    update = {agent: {str(file.resolve()): {**_RECORD, **broken}, "no\0path": _RECORD}}
    session.graph.update_state(session.config, {"file_state": update, "messages": [HumanMessage("hello", id="e")]})
    got = session.say(write("a.txt", "q\n"), read("a.txt"), write("a.txt", "q\n"))
    assert [code(message) for message in got] == ["not_read", None, None]


def test_a_root_named_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    got = agent_session(tmp_path).say(
        [read("a.txt"), read("."), call("edit_file", file_path=".", old_string="x", new_string="y")]
    )
    assert [code(message) for message in got] == [None, "is_directory", "is_directory"]


@kinds
def test_a_read_that_other_limits_had_cut_is_not_said_to_be_unchanged(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text(f"short\n{'y' * 500}\n")
    saver = InMemorySaver()
    cut = KINDS[kind](tmp_path, checkpointer=saver, limits=Limits(max_line_chars=50)).one(read("a.txt"))
    assert not cut.artifact["complete"]
    session = KINDS[kind](tmp_path, checkpointer=saver)
    refused = session.one(write("a.txt", "other\n"))
    whole = session.one(read("a.txt"))
    assert (code(refused), whole.artifact["unchanged"], "y" * 500 in str(whole.content)) == (
        "partially_read",
        False,
        True,
    )
    assert code(session.one(write("a.txt", "other\n"))) is None


@kinds
def test_a_line_too_long_to_be_shown_whole_was_not_seen_and_not_lost(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text(f"{'y' * 500}\n")
    session = KINDS[kind](tmp_path, limits=Limits(max_chars=100))
    session.one(read("a.txt"))
    refused = session.one(write("a.txt", "other\n"))
    assert code(refused) == "partially_read"
    assert "not seen line 1" in str(refused.content)
