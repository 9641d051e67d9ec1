"""What an agent is told of files that changed outside."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langchain_filestate import FileToolkit, Limits, _disk
from langchain_filestate.watch import changed_files
from tests.scripted import Scripted, Session, State, agent_session, call, code, edit, read, write


def notices(session: Session) -> list[str]:
    return [m.text for m in session.state()["messages"] if m.type == "human" and m.text != "go on"]


def text(count: int = 9) -> str:
    return "".join(f"line {i}\n" for i in range(1, count + 1))


def by_hand(root: Path) -> Session:
    """A hand-made graph with the sweep as a node of its own."""
    model = Scripted(script=[], requests=[])
    toolkit = FileToolkit(root, agent="coder")
    builder = StateGraph(State)
    builder.add_node("sweep", lambda state: changed_files(state, toolkit))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(toolkit.get_tools()))
    builder.add_edge(START, "sweep")
    builder.add_edge("sweep", "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "sweep")
    return Session(builder.compile(checkpointer=InMemorySaver()), model, "t", toolkit)


MAKES: dict[str, Callable[[Path], Session]] = {"agent": agent_session, "by hand": by_hand}


@pytest.fixture(params=sorted(MAKES))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    return MAKES[request.param](tmp_path)


def test_changed(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text())
    session.say(read("a.txt"))
    path.write_text(text().replace("line 5\n", "line five\n"))
    session.say("hm")
    session.say("hm")
    (said,) = notices(session)
    assert said == (
        f"A file changed on disk since it was last shown here:\n{path} was changed.\n"
        "@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n line 6\n line 7\n line 8"
    )
    again, wrote = session.say(edit("a.txt", "line five", "line 5"), write("a.txt", "x\n"))
    assert again.artifact["content_not_in_model_context"] is False
    assert again.artifact["stale_recovered"] is False
    assert wrote.status == "success"


def test_the_model_is_told_before_it_answers(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    (tmp_path / "a.txt").write_text("two\n")
    session.model.requests.clear()
    session.say("hm")
    assert "+two" in session.model.requests[0][-1].text
    kinds = [m.type for m in session.state()["messages"][-3:]]
    assert kinds == ["human", "human", "ai"]


async def test_in_async(tmp_path: Path) -> None:
    session = agent_session(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text(text())
    await session.asay(read("a.txt"))
    path.write_text("x\n")
    await session.asay("hm")
    assert len(notices(session)) == 1


def test_deleted_and_there_again(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    path.unlink()
    session.say("hm")
    session.say("hm")
    assert [said.splitlines()[1] for said in notices(session)] == [f"{path} was deleted."]
    record = session.records()["coder"][str(path)]
    assert (record["digest"], record["lines"], record["views"], record["origin"]) == ("", 0, [], "notice")
    assert code(session.one(edit("a.txt", "one", "1"))) == "not_found"
    path.write_text("one\n")
    wrote, edited = session.say(write("a.txt", "x\n"), read("a.txt"))
    assert notices(session)[1].splitlines()[1] == f"{path} is there again."
    assert code(wrote) == "not_read"
    assert edited.artifact["unchanged"] is True  # the text stands above, and is the same


def test_a_write_where_the_deleted_file_was_creates(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    path.unlink()
    assert session.one(write("a.txt", "two\n")).artifact["created"] is True
    session.say("hm")
    assert len(notices(session)) == 1


@pytest.mark.parametrize("kind", ["directory", "pipe", "link out", "parent is a file"])
def test_what_is_no_file_any_more_is_told_once(session: Session, tmp_path: Path, kind: str) -> None:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub/a.txt"
    path.write_text("one\n")
    session.say(read("sub/a.txt"))
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link out":
        path.symlink_to("/etc/passwd")
    else:
        (tmp_path / "sub").rmdir()
        (tmp_path / "sub").write_text("a file\n")
    session.say("hm")
    session.say("hm")
    said = notices(session)
    if kind == "link out":  # what lies outside is nobody's business here
        assert said == []
        assert code(session.one(write("sub/a.txt", "x\n"))) is not None
        return
    assert len(said) == 1
    assert "cannot be read any more." in said[0] or "was deleted." in said[0]
    assert code(session.one(write("sub/a.txt", "x\n"))) is not None


def test_no_text_any_more(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    path.write_bytes(b"\0\1\2" * 100)
    session.say("hm")
    session.say("hm")
    (said,) = notices(session)
    assert said.splitlines()[1:] == [f"{path} was changed and is no text any more."]
    assert code(session.one(edit("a.txt", "one", "1"))) == "binary"


def test_a_notebook_is_told_by_its_cells(session: Session, tmp_path: Path) -> None:
    def notebook(**sources: str) -> str:
        cells: list[Any] = [
            {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [], "source": source}
            for name, source in sources.items()
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})

    path = tmp_path / "a.ipynb"
    path.write_text(notebook(one="1", two="2", three="3"))
    session.say(read("a.ipynb"))
    path.write_text(notebook(one="1", two="2 + 2", four="4"))
    session.say("hm")
    path.write_text(notebook(one="1", two="2 + 2", four="4") + "\n")
    session.say("hm")
    path.write_text("{")
    session.say("hm")
    first, second, third = (said.splitlines()[1:] for said in notices(session))
    assert first == [
        f"{path} was changed.",
        *('Cell "two" (code) was changed:', "@@ -1 +1 @@", "-2", "+2 + 2"),
        *('Cell "three" (code) is gone.', 'Cell "four" (code) is new, after "two":', "+4"),
    ]
    assert second == [f"{path} was changed.", "The text of its cells is the same."]
    assert third == [f"{path} was changed."]
    edited = session.one(call("edit_notebook", file_path="a.ipynb", cell_id="one", new_source="x"))
    assert edited.status == "error"


def test_a_cut_diff_is_not_seen(tmp_path: Path) -> None:
    session = agent_session(tmp_path, limits=Limits(max_notice_lines=10))
    path = tmp_path / "a.txt"
    path.write_text(text(40))
    session.say(read("a.txt"))
    path.write_text(text(40).replace("line", "row"))
    wrote, edited = session.say(write("a.txt", "x\n"), edit("a.txt", "row 7\n", "row seven\n"))
    (said,) = notices(session)
    assert said.count("\n") <= 12
    assert said.endswith("(more not shown)")
    assert code(wrote) == "not_read"
    assert edited.artifact["stale_recovered"] is True


def test_what_a_notice_had_no_room_for_is_not_known_to_an_edit_either(tmp_path: Path) -> None:
    session = agent_session(tmp_path, limits=Limits(max_notice_lines=1))
    path = tmp_path / "a.txt"
    path.write_text(text(40))
    session.say(read("a.txt"))
    path.write_text(text(40).replace("line", "row"))
    session.say("hm")
    edited = session.one(edit("a.txt", "row 7\n", "row seven\n"))
    assert edited.artifact["stale_recovered"] is True
    assert str(edited.content).endswith("what changed is not known here. Read it again where you build on it.")
    refused = session.one(edit("a.txt", "line 8\n", "x\n"))
    assert code(refused) == "no_match"


def test_without_the_old_bytes_there_is_no_diff_and_no_credit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restart."""
    session = agent_session(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text(text())
    session.say(read("a.txt"))
    monkeypatch.setattr(session.toolkit.history, "content", lambda _: None)
    path.write_text("x\n")
    wrote = session.one(write("a.txt", "y\n"))
    (said,) = notices(session)
    assert said.splitlines()[1:] == [f"{path} was changed."]
    assert code(wrote) == "not_read"


def test_a_formatter_over_many_files_makes_one_message(tmp_path: Path) -> None:
    session = agent_session(tmp_path, limits=Limits(max_notice_lines=30))
    paths = [tmp_path / f"{i:02}.txt" for i in range(60)]
    for path in paths:
        path.write_text("one\n")
    session.say([read(path) for path in paths])
    for path in paths:
        path.write_text("two\n")
    session.say("hm")
    session.say("hm")
    (said,) = notices(session)
    lines = said.splitlines()
    assert sum("was changed." in line for line in lines) == 50
    assert lines[-1] == "And 10 more files that were shown in this conversation changed."
    assert sum("was changed." not in line for line in lines[1:-1]) <= 30
    assert len(said) < 10_000
    whole = session.one(write(paths[0], "x\n"))
    assert whole.status == "success"
    assert code(session.one(write(paths[59], "x\n"))) == "not_read"


def test_the_shortest_diffs_go_first_and_one_more_is_cut(tmp_path: Path) -> None:
    session = agent_session(tmp_path, limits=Limits(max_notice_lines=12))
    for name in ("big.txt", "small.txt"):
        (tmp_path / name).write_text(text(40))
    session.say(read("big.txt"), read("small.txt"))
    (tmp_path / "big.txt").write_text(text(40).replace("line", "row"))
    (tmp_path / "small.txt").write_text(text(40) + "end\n")
    session.say("hm")
    (said,) = notices(session)
    assert "+end" in said
    assert "-line 1\n" in said
    assert said.count("more not shown") == 1
    small, big = session.say(write("small.txt", "x\n"), write("big.txt", "x\n"))
    assert (small.status, code(big)) == ("success", "not_read")


# ---- who -------------------------------------------------------------------------------------------------------------


def test_another_agent_is_named(tmp_path: Path) -> None:
    session = agent_session(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    other = {tool.name: tool for tool in FileToolkit(tmp_path, agent="Mr. Other").get_tools()}
    other["read_file"].invoke({"file_path": "a.txt"})
    other["edit_file"].invoke({"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    session.say("hm")
    assert f'{path} was changed by agent "Mr. Other".' in notices(session)[0]


def test_who_wrote_the_same_text_long_ago_is_not_named(tmp_path: Path) -> None:
    session = agent_session(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    other = {tool.name: tool for tool in FileToolkit(tmp_path, agent="other").get_tools()}
    other["read_file"].invoke({"file_path": "a.txt"})
    other["edit_file"].invoke({"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    path.write_text("three\n")
    session.say(read("a.txt"))
    path.write_text("two\n")  # a person takes it back
    session.say("hm")
    assert notices(session)[0].splitlines()[1] == f"{path} was changed."

    def once_more() -> Any:
        path.write_text("one\n")
        return write("a.txt", "x\n")

    stale = session.one(once_more)
    assert code(stale) == "stale"
    assert "by" not in str(stale.content).splitlines()[0].removeprefix("File has been modified since read.")


def test_another_thread_of_the_same_agent_is_said_so(tmp_path: Path) -> None:
    one, two = agent_session(tmp_path, thread="1"), agent_session(tmp_path, thread="2")
    (tmp_path / "a.txt").write_text("one\n")
    one.say(read("a.txt"))
    two.say(read("a.txt"), edit("a.txt", "one", "two"))
    one.say("hm")
    assert "was changed by this agent in another thread." in notices(one)[0]


def test_own_writes_are_no_news(session: Session, tmp_path: Path) -> None:
    session.say(write("a.txt", "one\n"), edit("a.txt", "one", "two"), [read("a.txt"), edit("a.txt", "two", "three")])
    session.say("hm")
    assert notices(session) == []


def test_what_a_refusal_has_shown_is_not_said_again(tmp_path: Path) -> None:
    session = agent_session(tmp_path, recover_stale=False)
    path = tmp_path / "a.txt"
    path.write_text(text())
    session.say(read("a.txt"))

    def later() -> Any:
        path.write_text(text() + "by hand\n")
        return edit("a.txt", "line 3", "line three")

    stale, again = session.say(later, edit("a.txt", "line 3", "line three"))
    assert code(stale) == "stale"
    assert "+by hand" in stale.content
    assert notices(session) == []
    assert again.status == "success"  # as after a notice: the change stands above in full
    assert again.artifact["stale_recovered"] is False
    assert session.one(write("a.txt", "x\n")).status == "success"


def test_what_came_after_the_refusal_is_said(tmp_path: Path) -> None:
    session = agent_session(tmp_path, recover_stale=False)
    path = tmp_path / "a.txt"
    path.write_text(text())
    session.say(read("a.txt"))

    def later() -> Any:
        path.write_text(text() + "by hand\n")
        return edit("a.txt", "line 3", "line three")

    assert code(session.one(later)) == "stale"
    path.write_text(text() + "by hand, again\n")
    session.say("hm")
    assert any("+by hand, again" in said for said in notices(session))


def test_a_refusal_that_was_cut_gives_no_credit(tmp_path: Path) -> None:
    session = agent_session(tmp_path, recover_stale=False, limits=Limits(max_diff_lines=5))
    path = tmp_path / "a.txt"
    path.write_text(text(40))
    session.say(read("a.txt"))

    def later() -> Any:
        path.write_text(text(40).replace("line", "row"))
        return edit("a.txt", "line 3\n", "line three\n")

    stale, again, wrote = session.say(later, edit("a.txt", "row 3\n", "x\n"), write("a.txt", "x\n"))
    assert [code(m) for m in (stale, again, wrote)] == ["stale", "stale", "not_read"]
    assert notices(session) == []


# ---- bounds ----------------------------------------------------------------------------------------------------------


def settled(root: Path, count: int) -> list[Path]:
    paths = []
    past = time.time() - 3600
    for number in range(count):
        path = root / f"{number}.txt"
        path.write_text(f"{number}\n")
        os.utime(path, (past, past))
        paths.append(path)
    return paths


def state_of(toolkit: FileToolkit, paths: list[Path]) -> dict[str, Any]:
    message = HumanMessage("all of them", id="m")
    records: dict[str, Any] = {}
    for path in paths:
        records |= toolkit.seen(str(path), "m", agent="main")["file_state"]["main"]
    return {"messages": [message, AIMessage("ok", id="n")], "file_state": {"main": records}}


def test_settled_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_disk, "SETTLED_NS", -3_600_000_000_000)  # ctime cannot be set back
    toolkit = FileToolkit(tmp_path)
    state = state_of(toolkit, settled(tmp_path, 512))
    opened = []
    real = os.open

    def counted(path: Any, *args: Any, **kwargs: Any) -> int:
        opened.append(path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", counted)
    assert changed_files(state, toolkit) == {}
    assert opened == []
    (tmp_path / "7.txt").write_text("x\n")
    update = changed_files(state, toolkit)
    assert list(update["file_state"]["main"]) == [str(tmp_path / "7.txt")]
    assert opened


def test_files_that_may_still_be_written_to_are_looked_at(tmp_path: Path) -> None:
    """Size and time stamps as before, other bytes."""
    toolkit = FileToolkit(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    stat = path.stat()
    state = state_of(toolkit, [path])
    path.write_text("two\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert changed_files(state, toolkit)["messages"][0].text.endswith("-one\n+two")


def test_a_large_file_is_told_without_a_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_filestate import watch

    monkeypatch.setattr(watch, "_MAX_BYTES", 100)
    toolkit = FileToolkit(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    state = state_of(toolkit, [path])
    path.write_text("x" * 101)
    update = changed_files(state, toolkit)
    assert update["messages"][0].text.splitlines()[1:] == [f"{path} was changed."]
    assert update["file_state"]["main"][str(path)]["views"] == []
    state["file_state"] = update["file_state"]
    assert changed_files(state, toolkit) == {}
    path.unlink()
    assert "was deleted." in changed_files(state, toolkit)["messages"][0].text


def test_nothing_known_nothing_done(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    assert changed_files({"messages": []}, toolkit) == {}
    assert changed_files({"messages": [], "file_state": {}}, toolkit) == {}
    broken = {"main": {str(tmp_path / "a"): {"v": 9, "digest": "x"}}, "other": {str(tmp_path / "b"): {}}}
    assert changed_files({"messages": [], "file_state": broken}, toolkit) == {}


# ---- seen ------------------------------------------------------------------------------------------------------------


def test_a_file_that_the_user_put_into_the_prompt_need_not_be_read(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    prompt = HumanMessage(f"Look at this:\n{path.read_text()}", id="prompt")
    update = session.toolkit.seen("a.txt", "prompt", agent="coder")
    session.graph.update_state(session.config, {"messages": [prompt], **update}, as_node="model")
    edited, wrote = session.say(edit("a.txt", "one", "1"), write("a.txt", "x\n"))
    assert edited.artifact["content_not_in_model_context"] is False
    assert wrote.status == "success"


async def test_seen_as_a_node_and_only_while_it_stands_there(tmp_path: Path) -> None:
    model = Scripted(script=[], requests=[])
    toolkit = FileToolkit(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "empty.txt").write_text("")

    async def show(state: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage("one\n", id="p")], **await toolkit.aseen("a.txt", "p")}

    builder = StateGraph(State)
    builder.add_node("show", show)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(toolkit.get_tools()))
    builder.add_edge(START, "show")
    builder.add_edge("show", "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    session = Session(builder.compile(checkpointer=InMemorySaver()), model, "t", toolkit)
    (m,) = await session.asay(write("a.txt", "two\n"))
    assert m.status == "success"
    assert toolkit.records == {}  # inside a graph only the state knows
    toolkit.seen("empty.txt", "p")
    assert toolkit.records["main"][str(tmp_path / "empty.txt")]["views"] == []
