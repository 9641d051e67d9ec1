"""Every refusal through a graph: the code, exactly one answer, and files byte for byte as before."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langchain_filestate import (
    EditResult,
    FileHistory,
    FileStateMiddleware,
    FileToolkit,
    Limits,
    PlannedChange,
    Refused,
    WiringError,
    _disk,
    merge_records,
    parse_result,
)
from langchain_filestate.tools import TOOL_NAMES
from tests.scripted import Scripted, Session, call, code, edit, many, read, write

Make = Callable[..., Session]


class ChatState(BaseModel):
    """Not a TypedDict, and its messages have another name."""

    chat: Annotated[list[AnyMessage], add_messages]
    file_state: Annotated[dict[str, Any], merge_records] = {}


def tree(root: Path) -> dict[str, str]:
    """Everything below a directory, with modes and digests."""
    found = {}
    for path in sorted(root.rglob("*")):
        kind = oct(path.lstat().st_mode)
        if path.is_symlink():
            kind += f" -> {os.readlink(path)}"
        elif path.is_file():
            kind += hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(root))] = kind
    return found


def fill(root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\ntwo\ntwo\n")
    (root / "long.txt").write_text("".join(f"{n}\n" for n in range(100)))
    (root / "bin").write_bytes(b"\x7fELF\0\0\0\0" * 20)
    (root / "latin.txt").write_bytes(
        "caf\u00e9 r\u00e9sum\u00e9 na\u00efve \u2013 d\u00e9j\u00e0 vu\n".encode("cp1252") * 30
    )
    (root / "empty.txt").write_bytes(b"")
    (root / "bad.ipynb").write_bytes(b"{}")
    (root / "good.ipynb").write_bytes(b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    (root / "dir").mkdir()
    (root / "link").symlink_to("a.txt")
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to("/etc/hostname")
    os.mkfifo(root / "pipe")
    (root / "secret").mkdir()
    (root / "secret" / "key").write_text("k\n")
    (root / "fixed.txt").write_text("fixed\n")
    (root / "locked.txt").write_text("locked\n")
    (root / "locked.txt").chmod(0o444)


# calls before, the refused call, its code
CASES: list[tuple[str, list[Any], Any, str]] = [
    ("edit unread", [], edit("a.txt", "one", "1"), "not_read"),
    ("multi_edit unread", [], many("a.txt", ("one", "1")), "not_read"),
    ("overwrite unread", [], write("a.txt", "x"), "not_read"),
    ("overwrite after a window", [read("long.txt", limit=5)], write("long.txt", "x"), "partially_read"),
    ("no match", [read("a.txt")], edit("a.txt", "three", "3"), "no_match"),
    ("two matches", [read("a.txt")], edit("a.txt", "two", "2"), "ambiguous"),
    ("same text", [read("a.txt")], edit("a.txt", "one", "one"), "no_change"),
    ("empty old text", [read("a.txt")], edit("a.txt", "", "x"), "empty_old_string"),
    ("empty old text, all", [read("a.txt")], edit("a.txt", "", "x", replace_all=True), "empty_old_string"),
    ("overlap", [read("a.txt")], many("a.txt", ("one\ntwo", "x"), ("two\ntwo", "y")), "overlap"),
    ("one of two misses", [read("a.txt")], many("a.txt", ("one", "1"), ("nine", "9")), "no_match"),
    ("read absent", [], read("none.txt"), "not_found"),
    ("edit absent", [], edit("none.txt", "a", "b"), "not_found"),
    ("edit in an absent directory", [], edit("no/where.txt", "a", "b"), "not_found"),
    ("read a directory", [], read("dir"), "is_directory"),
    ("write a directory", [], write("dir", "x"), "is_directory"),
    ("read a pipe", [], read("pipe"), "not_a_file"),
    ("write a pipe", [], write("pipe", "x"), "not_a_file"),
    ("below a file", [], write("a.txt/x", "x"), "parent_not_directory"),
    ("write a link", [read("link")], write("link", "x"), "symlink"),
    ("edit a link", [read("link")], edit("link", "one", "1"), "symlink"),
    ("outside by dots", [], read("../outside.txt"), "outside_root"),
    ("outside by an absolute path", [], write("/etc/hostname", "x"), "outside_root"),
    ("outside by a link", [], read("out"), "outside_root"),
    ("denied", [], read("secret/key"), "denied"),
    ("denied, new", [], write("secret/new", "x"), "denied"),
    ("read-only rule", [read("fixed.txt")], edit("fixed.txt", "fixed", "x"), "read_only"),
    ("no write bit", [read("locked.txt")], edit("locked.txt", "locked", "x"), "read_only"),
    ("no write bit, overwrite", [read("locked.txt")], write("locked.txt", "x"), "read_only"),
    ("binary", [], read("bin"), "binary"),
    ("edit binary", [], edit("bin", "ELF", "x"), "binary"),
    ("overwrite binary", [], write("bin", "x"), "binary"),
    ("not in this encoding", [read("latin.txt")], write("latin.txt", "\u4e2d"), "encoding"),
    ("half a character", [], write("new.txt", "a\ud800"), "encoding"),
    ("no name", [], read(""), "bad_path"),
    ("NUL in a name", [], read("a\0b"), "bad_path"),
    ("a name too long", [], write("x" * 300, "x"), "bad_path"),
    ("a drive", [], write("C:\\tmp\\x", "x"), "bad_path"),
    ("past the end", [], read("a.txt", offset=9), "out_of_range"),
    ("too large", [read("long.txt")], edit("long.txt", "50\n", "x\n"), "too_large"),
    ("placeholder", [read("a.txt")], write("a.txt", "one\n# ... rest of the file unchanged ...\n"), "placeholder"),
    ("cell of no notebook", [], call("edit_notebook", file_path="a.txt", cell_id="1", new_source="x"), "bad_notebook"),
    ("broken notebook", [read("bad.ipynb")], call("edit_notebook", file_path="bad.ipynb", cell_id="1"), "bad_notebook"),
    ("a notebook as text", [read("good.ipynb")], edit("good.ipynb", "{}", "[]"), "is_notebook"),
    ("a whole notebook as text", [read("good.ipynb")], write("good.ipynb", "{}"), "is_notebook"),
    ("wrong type", [], call("read_file", file_path="a.txt", offset="many"), "bad_arguments"),
    ("missing argument", [], call("write_file", file_path="a.txt"), "bad_arguments"),
    ("no edits", [], call("multi_edit", file_path="a.txt", edits=[]), "bad_arguments"),
    ("limit of nothing", [], read("a.txt", limit=0), "bad_arguments"),
    ("column of nothing", [], read("a.txt", column=0), "bad_arguments"),
]


@pytest.mark.parametrize(("before", "refused", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_refusals(session: Make, tmp_path: Path, before: list[Any], refused: Any, expected: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    fill(root)
    limits = Limits(max_file_bytes=200) if expected == "too_large" else Limits()
    s = session(root, deny=["secret/"], read_only=["fixed.txt"], limits=limits)
    was = tree(root)
    *_, message = s.say(*before, refused)
    assert (message.status, code(message)) == ("error", expected)
    assert message.tool_call_id == refused["id"]
    result = parse_result(message)
    assert result is not None
    assert result.kind == "failure"
    assert message.content == result.message
    assert len(str(message.content)) < 1500
    assert tree(root) == was
    json.dumps(message.artifact)  # plain values, as a checkpoint needs them


def test_stale_and_gone_from_context(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    s = session(recover_stale=False)
    s.say(read(path))

    def by_hand() -> Any:
        path.write_text("other\n")
        return [edit(path, "one", "1"), write(path, "x")]

    assert [code(m) for m in s.say(by_hand)] == ["stale", "stale"]
    assert path.read_text() == "other\n"
    s.say(read(path))
    s.graph.update_state(s.config, {"messages": [RemoveMessage(m.id) for m in s.state()["messages"]]}, as_node="tools")
    assert code(s.one(write(path, "x"))) == "not_in_context"
    assert path.read_text() == "other\n"


def test_sockets_and_devices_do_not_hang(session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        out = session().say(read("s"), write("s", "x"), read("/dev/zero"), write("/dev/null", "x"))
    assert [code(m) for m in out] == ["not_a_file", "not_a_file", "outside_root", "outside_root"]


def test_a_hook_may_refuse(session: Make, tmp_path: Path) -> None:
    def no(change: Any) -> None:
        assert change.before is None
        assert change.after == b"x"
        assert change.patch.added == 1
        raise Refused("Not on Sundays.")

    s = session(before_write=no)
    message = s.one(write("a.txt", "x"))
    assert (code(message), message.content) == ("rejected", "Not on Sundays.")
    assert not (tmp_path / "a.txt").exists()


async def test_sync_and_async_are_one(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    s = session()
    out = await s.asay(edit(path, "one", "1"), read(path), edit(path, "one", "1"), write(path, "2\n"))
    assert [code(m) for m in out] == ["not_read", None, None, None]
    assert path.read_text() == "2\n"


async def test_many_async_edits_of_one_message_are_applied_in_order(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x = 0\n")
    s = session()
    await s.asay(read(path))
    out = await s.asay([edit(path, f"x = {n}\n", f"x = {n + 1}\n") for n in range(20)])
    assert [m.status for m in out] == ["success"] * 20
    assert path.read_text() == "x = 20\n"


async def test_async_edits_that_arrive_out_of_order_do_not_wait_for_each_other_s_threads(tmp_path: Path) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware

    class Late(AgentMiddleware[Any, Any, Any]):
        """Lets the first calls of a message arrive last."""

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            await asyncio.sleep(0.04 - 0.002 * int(request.tool_call["args"].get("new_string", "x = 20")[4:]))
            return await handler(request)

    path = tmp_path / "a.txt"
    path.write_text("x = 0\n")
    edits = [edit(path, f"x = {n}\n", f"x = {n + 1}\n") for n in range(20)]
    model = Scripted(script=[read(path), edits, "done"], requests=[])
    graph = create_agent(model, [], middleware=[Late(), FileStateMiddleware(tmp_path)], name="coder")
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        out = await graph.ainvoke({"messages": [HumanMessage("go")]})
    assert [m.status for m in out["messages"] if isinstance(m, ToolMessage)] == ["success"] * 21
    assert path.read_text() == "x = 20\n"


# ---- rules of a message ---------------------------------------------------------------------------------------------


def test_a_read_in_the_same_message_counts_for_an_edit_and_not_for_an_overwrite(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\nmore\n")
    s = session()
    shown, changed, whole = s.say([read("a.txt"), edit("a.txt", "one", "two"), write("a.txt", "x\n")])
    assert shown.status == "success"
    assert changed.status == "success"
    assert changed.artifact["content_not_in_model_context"] is True
    assert code(whole) in {"not_in_context", "partially_read"}
    assert s.one(write("a.txt", "y\n")).status == "success"


def test_the_order_of_the_message_decides_and_not_who_ran_first(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    changed, shown = session().say([edit("a.txt", "one", "two"), read("a.txt")])
    assert code(changed) == "not_read"
    assert shown.status == "success"


def test_a_new_file_may_be_written_and_edited_in_one_message(session: Make, tmp_path: Path) -> None:
    out = session().say([write("a.txt", "one\n"), edit("a.txt", "one", "two"), write("a.txt", "three\n")])
    assert [m.status for m in out] == ["success"] * 3
    assert (tmp_path / "a.txt").read_text() == "three\n"


def test_calls_that_share_an_id_are_told_apart(session: Make, tmp_path: Path) -> None:
    calls = [{**write(f"{n}.txt", f"{n}\n"), "id": "call_0"} for n in range(2)]
    s = session()
    out = s.say(calls)
    assert [m.artifact["already_applied"] for m in out] == [False, False]
    s.say({**edit("0.txt", "0", "zero"), "id": "call_0"})
    assert [(tmp_path / f"{n}.txt").read_text() for n in range(2)] == ["zero\n", "1\n"]


# ---- policy ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "codes"),
    [("always", ["not_read", "not_read"]), ("overwrite", [None, "partially_read"]), ("never", [None, None])],
)
def test_what_needs_a_read(session: Make, tmp_path: Path, rule: str, codes: list[str | None]) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    out = session(require_read=rule).say(edit("a.txt", "one", "1"), write("a.txt", "x\n"))
    assert [code(m) for m in out] == codes


def test_without_a_needed_read_what_was_read_must_still_be_current(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    s = session(require_read="never")
    s.say(read(path))

    def by_hand() -> Any:
        path.write_text("by hand\n")
        return write(path, "x")

    assert code(s.one(by_hand)) == "stale"


def test_a_hook_after_the_write_is_part_of_the_patch_and_of_the_record(session: Make, tmp_path: Path) -> None:
    def tidy(path: Path) -> str:
        path.write_text(path.read_text().replace("  ", " "))
        return "One warning."

    s = session(after_write=tidy)
    message = s.one(write("a.txt", "a  b\nc\n"))
    assert (tmp_path / "a.txt").read_text() == "a b\nc\n"
    assert "One warning." in message.content
    assert "+a b" in message.content
    assert message.artifact["after"] == hashlib.sha256(b"a b\nc\n").hexdigest()
    assert "+a b" in str(parse_result(message).patch)  # type: ignore[union-attr]
    assert s.one(write("a.txt", "new\n")).status == "success"  # the change was shown in full


def test_a_hook_that_fails_leaves_the_write(session: Make, tmp_path: Path) -> None:
    def bad(_: Path) -> str:
        raise ValueError("no such formatter")

    message = session(after_write=bad).one(write("a.txt", "a\n"))
    assert message.status == "success"
    assert "no such formatter" in message.content
    assert (tmp_path / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("left", ["nothing", "link", "directory"])
def test_a_hook_that_takes_the_file_away_is_part_of_what_comes_back(session: Make, tmp_path: Path, left: str) -> None:
    path = tmp_path / "a.txt"

    def away(_: Path) -> None:
        path.unlink()
        if left == "link":
            path.symlink_to("nowhere")
        elif left == "directory":
            path.mkdir()

    path.write_text("old\n")
    s = session(after_write=away, history=FileHistory(InMemoryStore()))
    message = s.say(read("a.txt"), edit("a.txt", "old", "new"))[1]
    assert message.status == "success"
    assert "took the file away" in message.content
    result = parse_result(message)
    assert isinstance(result, EditResult)
    assert (result.after, result.patch.target, result.patch.hunks[0].lines) == ("", "/dev/null", ["-old"])
    first, second = s.toolkit.history.changes(path=str(path))
    assert (second.before, second.after) == (first.after, None)
    ((record,),) = (records.values() for records in s.state()["file_state"].values())
    assert (record["digest"], record["lines"], record["views"]) == ("", 0, [])


def test_a_file_that_cannot_be_read_after_the_hook_is_what_was_written(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old\n")
    real = _disk.snapshot
    broken: list[int] = []

    def snapshot(*args: Any, **options: Any) -> Any:
        if broken:
            raise Refused("It is being written right now.", code="busy")
        return real(*args, **options)

    monkeypatch.setattr(_disk, "snapshot", snapshot)
    s = session(after_write=lambda _: broken.append(1), history=FileHistory(InMemoryStore()))
    message = s.say(read("a.txt"), edit("a.txt", "old", "new"))[1]
    assert "right now" in str(message.content)
    assert message.artifact["after"] == hashlib.sha256(b"new\n").hexdigest()
    assert len(s.toolkit.history.changes(path=str(path))) == 1


def test_what_a_hook_says_is_bounded(session: Make, tmp_path: Path) -> None:
    message = session(after_write=lambda _: "warning " * 1000, limits=Limits(max_chars=100)).one(write("a.txt", "a\n"))
    assert (tmp_path / "a.txt").read_text() == "a\n"
    assert str(message.content).endswith("warning warn\n... (7900 more characters not shown)")


async def _async_hook(_: object) -> None:
    raise Refused("never")


class _AsyncHook:
    async def __call__(self, _: object) -> None:
        raise Refused("never")


@pytest.mark.parametrize(
    "options",
    [
        {"require_read": "sometimes"},
        {"pdf": "pictures"},
        {"history": {}},
        {"limits": 3},
        {"limits": {"max_lines": 3}},
        {"deny": ["!x"]},
        {"encodings": ["nope"]},
        {"encodings": "cp1252"},
        {"before_write": "x"},
        {"before_write": _async_hook},
        {"after_write": _AsyncHook()},
        {"approve": _async_hook},
        {"approve": "yes"},
        {"approve": None},
        {"agent": 5},
        {"recover_stale": "no"},
        {"allow_placeholders": "no"},
        {"virtual": "yes"},
    ],
    ids=str,
)
def test_wiring_mistakes_raise_at_once(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(WiringError):
        FileToolkit(tmp_path, **options)


@pytest.mark.parametrize("shell_tools", ["shell", ["shell"], 5])
def test_a_shell_tool_has_an_argument(tmp_path: Path, shell_tools: Any) -> None:
    with pytest.raises(WiringError, match="argument"):
        FileStateMiddleware(tmp_path, shell_tools=shell_tools)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_lines", 0), ("max_lines", True), ("max_lines", "5"), ("max_lines", None), ("max_chars", 1.5),
        ("max_file_bytes", -1), ("wait_seconds", "x"), ("wait_seconds", 0), ("wait_seconds", float("nan")),
    ],
)  # fmt: skip
def test_a_bound_is_a_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(WiringError, match=rf"Limits.{name} must be a (whole )?number greater than 0\."):
        Limits(**{name: value})


@pytest.mark.parametrize(
    "hook", [partial(_AsyncHook()), lambda planned: _async_hook(planned.after)], ids=["partial", "lambda"]
)
@pytest.mark.parametrize("option", ["before_write", "approve"])
def test_a_hook_that_gives_something_to_await_is_a_wiring_mistake(
    session: Make, tmp_path: Path, option: str, hook: Any
) -> None:
    with pytest.raises(WiringError, match=option):
        session(**{option: hook}).one(write("a.txt", "a\n"))
    assert not (tmp_path / "a.txt").exists()


def test_a_history_of_something_else_than_a_store_is_a_wiring_mistake() -> None:
    with pytest.raises(WiringError, match="store"):
        FileHistory(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["link.txt", "a\u202ftxt"], ids=["link", "look-alike"])
def test_calls_that_spell_one_file_otherwise_keep_their_order(session: Make, tmp_path: Path, name: str) -> None:
    path = tmp_path / ("a txt" if "\u202f" in name else "a.txt")
    if name == "link.txt":
        (tmp_path / name).symlink_to(path.name)
    for number in range(5):
        path.write_text("old\n" * 2000)
        s = session(thread=str(number))
        seen, changed = s.say([read(name, limit=1), multi_edit(path)])
        assert changed.status == "success", changed.content
        assert str(seen.content).startswith("     1\told")


def multi_edit(path: Path) -> dict[str, Any]:
    return edit(path.name, "old", "new", replace_all=True)


def test_a_directory_that_vanishes_between_plan_and_commit_is_made_again(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "d" / "a.txt"
    path.parent.mkdir()
    path.write_text("old\n")

    def gone(planned: PlannedChange) -> None:
        if planned.before is not None:
            shutil.rmtree(path.parent)

    s = session(before_write=gone)
    _, message = s.say(read(path), write(path, "new\n"))
    assert message.status == "success", message.content
    assert path.read_text() == "new\n"


# ---- what a program and a model are given ---------------------------------------------------------------------------


def test_every_argument_is_described(tmp_path: Path) -> None:
    for tool in FileToolkit(tmp_path).get_tools():
        schema = convert_to_openai_tool(tool)["function"]
        assert schema["description"]
        properties = schema["parameters"]["properties"]
        assert "runtime" not in properties
        assert all(argument.get("description") for argument in properties.values()), tool.name
    assert {tool.name for tool in FileToolkit(tmp_path).get_tools()} == TOOL_NAMES


def test_a_write_of_what_is_there_touches_nothing(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    os.utime(path, ns=(1, 1))
    s = session()
    _, message = s.say(read(path), write(path, "one\n"))
    assert message.status == "success"
    assert path.stat().st_mtime_ns == 1
    assert message.artifact["before"] == message.artifact["after"]
    assert s.toolkit.history.changes(path=str(path)) == []


def test_line_endings_that_change_are_reported(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\nb\r\n")
    _, message = session().say(read(path), write(path, "a\nb\nc\n"))
    assert message.artifact["newline_changed"] is True
    assert "CRLF" in message.content
    assert path.read_bytes() == b"a\nb\nc\n"


@pytest.mark.parametrize("before", [b"a\nb\n", b"a\r\nb\n", b"a"], ids=["lf", "mixed", "none"])
def test_crlf_that_an_edit_brings_into_a_file_without_is_told(session: Make, tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(before)
    _, message = session().say(read(path), edit(path, "a", "x\r\ny"))
    assert path.read_bytes() == before.replace(b"a", b"x\r\ny")
    assert ("CRLF" in message.content) is (before == b"a\nb\n")


def test_changes_are_streamed(agent: Make, tmp_path: Path) -> None:
    s = agent()
    s.model.script[:] = [write("a.txt", "a\nb\n"), "done"]
    events = list(s.graph.stream({"messages": [HumanMessage("go")]}, s.config, stream_mode="custom"))
    assert len(events) == 1
    assert (events[0]["kind"], events[0]["added"], events[0]["removed"]) == ("write", 2, 0)
    assert events[0]["path"] == str(tmp_path / "a.txt")


def test_a_state_of_another_kind_works_too(tmp_path: Path) -> None:
    builder = StateGraph(ChatState)
    builder.add_node("tools", ToolNode(FileToolkit(tmp_path).get_tools(), messages_key="chat"))
    builder.add_edge(START, "tools")
    (tmp_path / "a.txt").write_text("one\n")
    graph: Any = builder.compile()
    out = graph.invoke({"chat": [AIMessage("", tool_calls=[read("a.txt")])]})
    assert out["file_state"]["main"][str(tmp_path / "a.txt")]["origin"] == "read"


def test_seen_text_need_not_be_read_again(agent: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    s = agent()
    message = HumanMessage("Here is a.txt: one", id="given")
    update = {"messages": [message], **s.toolkit.seen("a.txt", "given", agent="coder")}
    s.graph.update_state(s.config, update)
    assert s.one(write("a.txt", "two\n")).status == "success"


def test_describe_change_tells_what_a_call_would_do(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    assert "-one" in toolkit.describe_change(edit("a.txt", "one", "two"))
    assert "not found" in toolkit.describe_change(edit("a.txt", "three", "two"))
    assert "file_path" in toolkit.describe_change({"name": "edit_file", "args": {}})
    assert "changes no file" in toolkit.describe_change(read("a.txt"))
    assert "not one of" in toolkit.describe_change({"name": "shell", "args": {}})


def test_outside_of_a_graph_wrong_arguments_are_answered_too(tmp_path: Path) -> None:
    tools = {tool.name: tool for tool in FileToolkit(tmp_path).get_tools()}
    message = tools["write_file"].invoke(call("write_file", file_path="a"))
    assert (message.status, message.artifact["code"]) == ("error", "bad_arguments")
    assert "content" in message.content
    assert "file_path" in str(tools["read_file"].invoke("a.txt"))
    assert "does not exist" in tools["read_file"].invoke({"file_path": "a.txt"})
    assert "does not exist" in asyncio.run(tools["read_file"].ainvoke({"file_path": "a.txt"}))


def test_siblings_that_run_out_of_order_are_still_no_strangers(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_filestate import _siblings

    monkeypatch.setattr(_siblings, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(_siblings, "BUSY_SECONDS", 0.0)
    path = tmp_path / "a.txt"
    for attempt in range(5):
        path.write_text("".join(f"<{n}>\n" for n in range(40)))
        s = session(limits=Limits(wait_seconds=0.0001), thread=str(attempt))
        s.say(read(path))
        out = s.say([edit(path, f"<{n}>", f"[{n}]") for n in range(0, 40, 4)])
        assert [m.status for m in out] == ["success"] * 10
        assert not any(m.artifact["stale_recovered"] for m in out)
        assert path.read_text() == "".join(f"[{n}]\n" if n % 4 == 0 else f"<{n}>\n" for n in range(40))
        assert s.one(write(path, "all new\n")).status == "success"


def test_a_broken_notebook_is_mended_as_text(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text('<<<<<<< ours\n{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n')
    shown, changed = session().say(read(path), edit(path, "<<<<<<< ours\n", ""))
    assert "<<<<<<< ours" in shown.content
    assert changed.status == "success"
    assert path.read_text().startswith("{")


def test_edits_of_many_threads_outside_any_graph_know_each_other(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    file = tmp_path / "a.txt"
    file.write_text("".join(f"<{n}>\n" for n in range(40)))
    tools["read_file"].invoke({"file_path": "a.txt"})

    def edit(n: int) -> Any:
        args = {"file_path": "a.txt", "old_string": f"<{n}>", "new_string": f"[{n}]"}
        return tools["edit_file"].invoke({"name": "edit_file", "args": args, "id": f"c{n}", "type": "tool_call"})

    with ThreadPoolExecutor(16) as pool:
        messages = list(pool.map(edit, range(40)))
    assert file.read_text() == "".join(f"[{n}]\n" for n in range(40))
    assert {(m.status, m.artifact["stale_recovered"]) for m in messages} == {("success", False)}
    ((record,),) = (records.values() for records in toolkit.records.values())
    assert (record["views"][0][0], record["views"][-1][1]) == (1, 40)
