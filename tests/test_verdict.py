"""What was read and written by calls of the same message, where the process has forgotten it: the history stands in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from langchain_filestate import FileHistory, tools
from langchain_filestate._siblings import Siblings
from tests.notebook_styles import JUPYTER
from tests.scripted import Session, agent_session, call, code, edit, graph_session, read, tool_messages, write

TEXT = b"1\n2\n3\n"
Calls = Callable[[Path], list[dict[str, Any]]]


@wrap_tool_call
def gate(request: Any, handler: Callable[[Any], Any]) -> Any:
    """Has a person look at calls that hold a question mark, and ends the process meanwhile."""
    if any("?" in str(value) for value in request.tool_call["args"].values()):
        interrupt("may I?")
    return handler(request)


class Run:
    """One message of calls, of which the last waits for a person; `resume` in a process that knows nothing of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self._options = {"checkpointer": InMemorySaver(), "history": FileHistory(), **options}
        self._monkeypatch, self._root = monkeypatch, root
        self.session = self._made()

    def _made(self) -> Session:
        return agent_session(self._root, **self._options)

    def say(self, calls: list[dict[str, Any]], decision: Any) -> Any:
        """The answer to the last call."""
        self.session.model.script[:] = [calls, "done"]
        out = self.session.graph.invoke({"messages": [HumanMessage("go")]}, self.session.config)
        assert out["__interrupt__"]
        self._monkeypatch.setattr(tools, "_siblings", Siblings())
        self.session = self._made()
        self.session.model.script[:] = ["done"]
        out = self.session.graph.invoke(Command(resume=decision), self.session.config)
        *earlier, last = tool_messages(out)[-len(calls) :]
        assert {message.status for message in earlier} <= {"success"}
        return last


OVERWRITES: list[tuple[str, int | None, Calls, str | None]] = [
    ("a part was read", 1, lambda f: [edit(f, "1", "one"), write(f, "all?\n")], "partially_read"),
    ("all was read", 3, lambda f: [edit(f, "1", "one"), write(f, "all?\n")], None),
    ("nothing was read", None, lambda f: [read(f), edit(f, "1", "one"), write(f, "all?\n")], "not_read"),
    ("it was written", 3, lambda f: [write(f, "mine\n"), edit(f, "mine", "my"), write(f, "all?\n")], None),
    ("and was this before", 3, lambda f: [write(f, "A\n"), write(f, "B\n"), write(f, "A\n"), write(f, "all?\n")], None),
    ("it was made", None, lambda f: [write(f.with_name("n"), "mine\n"), write(f.with_name("n"), "all?\n")], None),
]


@pytest.mark.parametrize(
    ("lines", "calls", "refused"), [case[1:] for case in OVERWRITES], ids=[c[0] for c in OVERWRITES]
)
def test_an_overwrite_needs_the_same_as_ever(
    lines: int | None, calls: Calls, refused: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)
    run = Run(tmp_path, monkeypatch, middleware=[gate])
    if lines is not None:
        run.session.one(read(file, limit=lines))
    last = run.say(calls(file), "yes")
    assert code(last) == refused, last.content
    assert [path for path in tmp_path.iterdir() if path.read_text() == "all?\n"] == (
        [] if refused else [Path(last.artifact["file_path"])]
    )


def test_what_somebody_else_wrote_meanwhile_is_not_taken_for_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)
    run = Run(tmp_path, monkeypatch, middleware=[gate, wrap_tool_call(lambda r, h: _save_after(r, h, file))])
    run.session.one(read(file))
    assert code(run.say([edit(file, "1", "one"), write(file, "all?\n")], "yes")) == "stale"
    assert file.read_bytes() == b"by hand\n"


def _save_after(request: Any, handler: Callable[[Any], Any], file: Path) -> Any:
    answer = handler(request)
    if request.tool_call["name"] == "edit_file":
        file.write_bytes(b"by hand\n")
    return answer


def test_what_a_hook_made_of_their_own_write_was_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)

    def formatter(path: Path) -> None:
        path.write_bytes(path.read_bytes().replace(b"2", b"two"))

    run = Run(tmp_path, monkeypatch, middleware=[gate], after_write=formatter)
    run.session.one(read(file))
    assert code(run.say([edit(file, "1", "one"), write(file, "all?\n")], "yes")) == "stale"
    assert file.read_bytes() == b"one\ntwo\n3\n"


def test_what_a_middleware_made_of_their_own_write_was_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "n"

    @wrap_tool_call
    def signed(request: Any, handler: Callable[[Any], Any]) -> Any:
        args = request.tool_call["args"]
        if args.get("content") == "mine\n":
            request = request.override(tool_call={**request.tool_call, "args": {**args, "content": "mine, signed\n"}})
        return handler(request)

    run = Run(tmp_path, monkeypatch, middleware=[gate, signed])
    assert code(run.say([write(file, "mine\n"), write(file, "all?\n")], "yes")) == "not_read"
    assert file.read_text() == "mine, signed\n"


def test_a_branch_that_was_left_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "n"
    session = agent_session(tmp_path)
    session.say(write(file, "of the first branch\n"))
    there = next(s for s in session.graph.get_state_history(session.config) if "tools" in s.next)
    message = there.values["messages"][-1]
    changed = message.model_copy(
        update={"tool_calls": [{**message.tool_calls[0], "args": {"file_path": str(file), "content": "other\n"}}]}
    )
    fork = session.graph.update_state(there.config, {"messages": [changed]}, as_node="model")
    session.model.script[:] = ["done"]
    (answer,) = tool_messages(session.graph.invoke(None, fork))
    assert code(answer) == "not_read"
    assert file.read_text() == "of the first branch\n"


NOTEBOOK = JUPYTER.dump(
    [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": f"n = {n}",
        }
        for n in range(3)
    ]
)


def test_a_cell_that_nobody_has_seen_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "n.ipynb"
    file.write_bytes(NOTEBOOK)
    run = Run(tmp_path, monkeypatch, middleware=[gate])
    insert = call("edit_notebook", file_path=str(file), cell_id="c0", new_source="new", edit_mode="insert")
    last = call("edit_notebook", file_path=str(file), cell_id="c2", new_source="mine?")
    assert code(run.say([read(file, limit=1), insert, last], "yes")) == "not_read"
    assert "n = 2" in file.read_text()


def test_a_cell_that_a_person_was_asked_about_is_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "n.ipynb"
    file.write_bytes(NOTEBOOK)
    run = Run(tmp_path, monkeypatch, approve=lambda planned: b"ASK" in planned.after)
    insert = call("edit_notebook", file_path=str(file), cell_id="c0", new_source="new", edit_mode="insert")
    last = call("edit_notebook", file_path=str(file), cell_id="c2", new_source="ASK", edit_mode="insert")
    answer = run.say([read(file), insert, last], {"decisions": [{"type": "approve"}]})
    assert answer.status == "success", answer.content
    assert "ASK" in file.read_text()


def test_a_notebook_that_a_hook_changed_is_not_the_one_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    session = agent_session(
        tmp_path, after_write=lambda path: path.write_bytes(path.read_bytes().replace(b"[]", b"[ ]")) and None
    )
    session.say(write(file, NOTEBOOK.decode()))
    assert code(session.one(write(file, "{}"))) == "is_notebook"


APPROVE = {"decisions": [{"type": "approve"}]}
EDITS: list[tuple[str, Calls]] = [
    ("made", lambda f: [write(f.with_name("n"), "new\n"), edit(f.with_name("n"), "new", "ASK")]),
    ("read", lambda f: [read(f), edit(f, "2", "ASK")]),
    ("read and edited", lambda f: [read(f), edit(f, "1", "one"), edit(f, "one", "ASK")]),
]


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("recover", [False, True])
@pytest.mark.parametrize("calls", [case[1] for case in EDITS], ids=[case[0] for case in EDITS])
def test_an_edit_that_a_person_approved_is_carried_out(
    calls: Calls, recover: bool, announced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)
    run = Run(tmp_path, monkeypatch, approve=lambda planned: b"ASK" in planned.after, recover_stale=recover)
    if announced:  # what was read is another version, and so much changed that the notice does not show it
        file.write_bytes(b"long\n" * 200)
        run.session.say(read(file))
        file.write_bytes(TEXT)
    last = run.say(calls(file), APPROVE)
    assert last.status == "success", last.content
    assert b"ASK" in Path(last.artifact["file_path"]).read_bytes()


def test_what_was_asked_about_another_version_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)
    run = Run(tmp_path, monkeypatch, approve=True)
    made = run._made

    def saved() -> Session:
        file.write_bytes(b"1\n2\nby hand\n")
        return made()

    monkeypatch.setattr(run, "_made", saved)
    assert code(run.say([read(file), edit(file, "2", "two")], APPROVE)) == "not_read"
    assert file.read_bytes() == b"1\n2\nby hand\n"


def test_a_read_beside_an_overwrite_is_told_from_one_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(TEXT)
    file.with_name("b").write_bytes(TEXT)
    session = graph_session(tmp_path)
    refused = session.say([read(file), write(file, "all\n")])[1]
    assert code(refused) == "not_in_context"
    assert "in your next message" in str(refused.content)
    assert session.one(write(file, "all\n")).status == "success"
    refused = session.say([read(file.with_name("b"), limit=1), write(file.with_name("b"), "all\n")])[1]
    assert code(refused) == "partially_read"
    assert "lines 2-3" in str(refused.content)


def test_a_notebook_that_the_agent_wrote_itself_may_be_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "n.ipynb"
    session = graph_session(tmp_path)
    cells = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    first = session.one(write(file, cells))
    again = session.one(write(file, cells.replace("5", "4")))
    assert (first.status, again.status) == ("success", "success"), again.content
    session.one(read(file))
    refused = session.one(call("write_file", file_path=str(file), content=cells))
    assert code(refused) == "is_notebook"
