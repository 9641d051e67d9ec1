"""A person is asked about a change, and the answer belongs to that change alone."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langchain_filestate import FileHistory, FileToolkit, PlannedChange, Refused, WiringError
from tests.scripted import Scripted, Session, State, agent_session, call, code, edit, many, read, tool_messages, write

Make = Callable[..., Session]
APPROVE = {"type": "approve"}


def reject(words: str | None = None) -> dict[str, Any]:
    return {"type": "reject"} if words is None else {"type": "reject", "message": words}


def edited(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def ask(session: Session, *calls: dict[str, Any]) -> list[Any]:
    """Have the model make these calls in one message; the open questions."""
    session.model.script[:] = [list(calls), "done"]
    session.graph.invoke({"messages": [HumanMessage("go")]}, session.config)
    return open_questions(session)


def open_questions(session: Session) -> list[Any]:
    return list(session.graph.get_state(session.config).interrupts)


def path_of(question: Any) -> str:
    return str(question.value["action_requests"][0]["args"]["file_path"])


def answer(session: Session, decision: Any) -> list[Any]:
    """Answer the one open question; the tool messages that came of it."""
    (question,) = open_questions(session)
    return resume(session, {question.id: {"decisions": [decision]}})


def resume(session: Session, answers: Any) -> list[Any]:
    before = len(tool_messages(session.state()))
    out = session.graph.invoke(Command(resume=answers), session.config)
    return tool_messages(out)[before:]


def prepared(make: Make, root: Path, *names: str, **options: Any) -> Session:
    options.setdefault("approve", True)
    session = make(**options)
    for name in names or ("a.txt",):
        (root / name).write_text("one\ntwo\n")
        session.say(read(name))
    return session


# ---- one question ----------------------------------------------------------------------------------------------------


def test_the_question_has_langchains_shape(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    (question,) = ask(s, edit("a.txt", "one", "1"))
    assert question.value == {
        "action_requests": [
            {
                "name": "edit_file",
                "args": {"file_path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": False},
                "description": f"Change {tmp_path}/a.txt (+1 / -1)\n@@ -1,2 +1,2 @@\n-one\n+1\n two",
            }
        ],
        "review_configs": [{"action_name": "edit_file", "allowed_decisions": ["approve", "edit", "reject"]}],
    }
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    (m,) = answer(s, APPROVE)
    assert (m.status, m.artifact["user_modified"]) == ("success", False)
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (reject(), "The user rejected this change; the file was not changed."),
        (reject("Use spaces."), "The user rejected this change; the file was not changed. They said: Use spaces."),
        ({"type": "respond", "message": "Later."}, "The user rejected this change; the file was not changed. They said: Later."),
    ],
)  # fmt: skip
def test_a_rejection_comes_with_the_persons_words(session: Make, tmp_path: Path, decision: Any, says: str) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    (m,) = answer(s, decision)
    assert (code(m), m.content) == ("rejected", says)
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


EDITS = [
    (lambda: edit("a.txt", "one", "1"), {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "one\n2\n"),
    (lambda: edit("a.txt", "one", "1"), {"new_string": "ONE"}, "ONE\ntwo\n"),
    (lambda: edit("a.txt", "one", "1"), {"new_string": "ONE", "replace_all": None}, "ONE\ntwo\n"),
    (lambda: many("a.txt", ("one", "1")), {"edits": [{"old_string": "two", "new_string": "2"}]}, "one\n2\n"),
    (lambda: write("a.txt", "mine\n"), {"content": "theirs\n"}, "theirs\n"),
    (lambda: write("new.txt", "mine\n"), {"content": "theirs\n"}, "theirs\n"),
]


@pytest.mark.parametrize(("make_call", "args", "text"), EDITS)
def test_a_person_may_change_the_texts(
    session: Make, tmp_path: Path, make_call: Callable[[], dict[str, Any]], args: dict[str, Any], text: str
) -> None:
    s = prepared(session, tmp_path)
    asked = make_call()
    ask(s, asked)
    (m,) = answer(s, edited(asked["name"], **args))
    assert m.status == "success"
    assert m.artifact["user_modified"] is True
    assert "The user changed your call before approving it:" in m.content
    assert (tmp_path / asked["args"]["file_path"]).read_text() == text
    ask(s, write(asked["args"]["file_path"], "all new\n"))  # it was told, so it knows
    (m,) = answer(s, APPROVE)
    assert m.status == "success"


@pytest.mark.parametrize(
    "decision",
    [
        edited("write_file", file_path="a.txt", content="x"),
        edited("edit_file", file_path="b.txt", old_string="one", new_string="1"),
        edited("edit_file", file_path="a.txt", old_string="one", new_string=5),
        edited("edit_file", old_string="nowhere", new_string="x"),
        edited("edit_file", old_string="", new_string="x"),
        edited("edit_file", file_path=["a.txt"], old_string="one", new_string="1"),
        edited("edit_file", old_string="o", new_string="0", replace_all="false"),
        edited("edit_file", old_string="o", new_string="0", replace_all="perhaps"),
    ],
)
def test_an_edited_decision_that_is_none_changes_nothing(session: Make, tmp_path: Path, decision: Any) -> None:
    s = prepared(session, tmp_path)
    (tmp_path / "b.txt").write_text("one\n")
    ask(s, edit("a.txt", "one", "1"))
    (m,) = answer(s, decision)
    assert m.status == "error"
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    assert (tmp_path / "b.txt").read_text() == "one\n"


@pytest.mark.parametrize("spelled", ["{}/a.txt", "./a.txt", "x/../a.txt"])
def test_an_edited_decision_may_spell_the_file_as_the_question_does(
    session: Make, tmp_path: Path, spelled: str
) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    path = spelled.format(tmp_path)
    (m,) = answer(s, edited("edit_file", file_path=path, old_string="o", new_string="0", replace_all="true"))
    assert m.status == "success", m.content
    assert m.artifact["replacements"] == 2
    assert (tmp_path / "a.txt").read_text() == "0ne\ntw0\n"


@pytest.mark.parametrize(
    ("old", "why"), [("uno", "no_match"), ("o", "ambiguous"), ("", "empty_old_string"), ("one", "no_change")]
)
def test_the_model_is_told_what_a_person_changed_when_that_fails(
    session: Make, tmp_path: Path, old: str, why: str
) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    (m,) = answer(s, edited("edit_file", file_path="a.txt", old_string=old, new_string="one"))
    assert code(m) == why
    assert m.content == m.artifact["message"]
    told = "The user changed your call before approving it: "
    assert m.content.count(told) == 1
    assert m.content.endswith("new_string is now:\none")
    assert ("old_string is now:\n" in m.content) == (old != "one")
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


def test_what_a_person_says_stands_in_the_message_as_it_comes_back(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    (m,) = answer(s, reject("no \ud800, see \udcff"))
    assert m.content.endswith("They said: no \\ud800, see \\xff")
    assert m.artifact["message"] == m.content == tool_messages(s.state())[-1].content


def test_another_cell_is_another_call(agent: Make, tmp_path: Path) -> None:
    nbformat: Any = pytest.importorskip("nbformat")

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text, id=text) for text in ("one", "two")])
    nbformat.write(notebook, tmp_path / "a.ipynb")
    before = (tmp_path / "a.ipynb").read_bytes()
    s = agent(approve=True)
    s.say(read("a.ipynb"))
    ask(s, call("edit_notebook", file_path="a.ipynb", cell_id="one", new_source="1"))
    (m,) = answer(s, edited("edit_notebook", cell_id="two", new_source="1"))
    assert code(m) == "rejected"
    assert "another cell_id" in m.content
    assert (tmp_path / "a.ipynb").read_bytes() == before


@pytest.mark.parametrize("wrong", ["yes", {"type": "approve"}, {"decisions": []}, {"decisions": [APPROVE, APPROVE]}])
def test_an_answer_that_cannot_be_read_is_asked_for_again(session: Make, tmp_path: Path, wrong: Any) -> None:
    s = prepared(session, tmp_path)
    (first,) = ask(s, edit("a.txt", "one", "1"))
    assert resume(s, {first.id: wrong}) == []
    (again,) = open_questions(s)
    said = again.value["action_requests"][0]["description"]
    assert said.startswith("The last answer could not be read: resume with")
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    (m,) = answer(s, APPROVE)
    assert m.status == "success"


def test_a_plain_answer_will_do_where_there_is_one_question(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    (m,) = resume(s, {"decisions": [APPROVE]})
    assert m.status == "success"


# ---- freshness -------------------------------------------------------------------------------------------------------


def test_a_change_in_between_is_asked_about_anew(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    path = tmp_path / "a.txt"
    ask(s, edit("a.txt", "one", "1"))
    path.write_text("one\nTWO, by hand\n")
    assert answer(s, APPROVE) == []
    (again,) = open_questions(s)
    assert "TWO, by hand" in again.value["action_requests"][0]["description"]
    assert path.read_text() == "one\nTWO, by hand\n"
    (m,) = answer(s, APPROVE)
    assert (m.status, m.artifact["stale_recovered"]) == ("success", True)  # who was asked is not who has seen it
    assert path.read_text() == "1\nTWO, by hand\n"


def test_a_change_that_was_taken_back_leaves_the_answer_good(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    path = tmp_path / "a.txt"
    ask(s, edit("a.txt", "one", "1"))
    path.write_text("one\nby hand\n")
    assert answer(s, reject("not with that")) == []  # the question is another by now
    path.write_text("one\ntwo\n")
    (m,) = answer(s, APPROVE)  # an answer to the second question, which is about bytes that are gone
    assert (code(m), path.read_text()) == ("rejected", "one\ntwo\n")


def test_the_last_no_goes_before_an_older_yes(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    path = tmp_path / "a.txt"
    ask(s, edit("a.txt", "one", "1"))
    path.write_text("one\nby hand\n")
    assert answer(s, APPROVE) == []  # the question is another by now
    path.write_text("one\ntwo\n")
    (m,) = answer(s, reject("No more of this."))
    assert (code(m), path.read_text()) == ("rejected", "one\ntwo\n")
    assert "No more of this." in m.content


def test_a_decision_with_texts_of_another_tool_changes_nothing(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"))
    strange = {"type": "edit", "edited_action": {"name": "edit_file", "args": {"file_path": "a.txt", "content": "hi"}}}
    (m,) = answer(s, strange)
    assert code(m) == "rejected"
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


def test_an_approval_does_not_outlive_what_it_was_given_for(session: Make, tmp_path: Path) -> None:
    """The call becomes stale between question and answer: approval is no way around it."""
    s = prepared(session, tmp_path, recover_stale=False)
    ask(s, edit("a.txt", "one", "1"))
    (tmp_path / "a.txt").write_text("one\nby hand\n")
    (m,) = answer(s, APPROVE)
    assert code(m) == "stale"
    assert (tmp_path / "a.txt").read_text() == "one\nby hand\n"


# ---- several at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_two_questions_of_an_agent_by_their_ids(agent: Make, tmp_path: Path, order: Any, how: str) -> None:
    s = prepared(agent, tmp_path, "a.txt", "b.txt")
    questions = ask(s, edit("a.txt", "one", "1"), edit("b.txt", "one", "1"))
    assert sorted(map(path_of, questions)) == ["a.txt", "b.txt"]
    decisions = {"a.txt": APPROVE, "b.txt": reject("No.")}
    answers = {q.id: {"decisions": [decisions[path_of(q)]]} for q in (questions[i] for i in order)}
    before = len(tool_messages(s.state()))
    if how == "sync":
        out = s.graph.invoke(Command(resume=answers), s.config)
    else:
        out = await s.graph.ainvoke(Command(resume=answers), s.config)
    first, second = tool_messages(out)[before:]
    assert (first.status, code(second)) == ("success", "rejected")
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"
    assert (tmp_path / "b.txt").read_text() == "one\ntwo\n"


def test_one_of_two_answered_leaves_the_other_open(agent: Make, tmp_path: Path) -> None:
    s = prepared(agent, tmp_path, "a.txt", "b.txt")
    questions = {path_of(q): q for q in ask(s, edit("a.txt", "one", "1"), edit("b.txt", "one", "1"))}
    resume(s, {questions["b.txt"].id: {"decisions": [APPROVE]}})
    assert [path_of(q) for q in open_questions(s)] == ["a.txt"]
    assert (tmp_path / "b.txt").read_text() == "1\ntwo\n"
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    answer(s, reject())
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"


def by_hand(root: Path, *, slow: bool = False, errors: Any = None, **options: Any) -> Session:
    """A `ToolNode`, whose calls begin after random delays."""
    model = Scripted(script=[], requests=[])
    toolkit = FileToolkit(root, **options)
    dice = random.Random(1)

    def wrap(request: Any, execute: Callable[[Any], Any]) -> Any:
        if slow:
            time.sleep(dice.random() / 50)
        return execute(request)

    async def awrap(request: Any, execute: Callable[[Any], Any]) -> Any:
        if slow:
            await asyncio.sleep(dice.random() / 50)
        return await execute(request)

    more = {} if errors is None else {"handle_tool_errors": errors}
    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(toolkit.get_tools(), wrap_tool_call=wrap, awrap_tool_call=awrap, **more))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return Session(builder.compile(checkpointer=InMemorySaver()), model, "t", toolkit)


NAMES = ("a.txt", "b.txt", "c.txt")


@pytest.mark.parametrize("yes", list(itertools.product([True, False], repeat=3)))
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_questions_of_a_tool_node_one_at_a_time(tmp_path: Path, yes: tuple[bool, ...], how: str) -> None:
    """LG-05: whichever surfaces first, its answer reaches its own call."""
    s = by_hand(tmp_path, slow=True, approve=True)
    for name in NAMES:
        (tmp_path / name).write_text("one\n")
        s.say(read(name))
    want = dict(zip(NAMES, yes, strict=True))
    s.model.script[:] = [[edit(name, "one", "1") for name in NAMES], "done"]
    go: Any = {"messages": [HumanMessage("go")]}
    seen = []
    for _ in range(len(NAMES) + 1):
        out = s.graph.invoke(go, s.config) if how == "sync" else await s.graph.ainvoke(go, s.config)
        questions = open_questions(s)
        if not questions:
            break
        (question,) = questions
        seen.append(path_of(question))
        go = Command(resume={"decisions": [APPROVE if want[path_of(question)] else reject(path_of(question))]})
    assert sorted(seen) == sorted(NAMES)
    for name, message in zip(NAMES, tool_messages(out)[-3:], strict=True):
        assert (tmp_path / name).read_text() == ("1\n" if want[name] else "one\n")
        if not want[name]:
            assert f"They said: {name}" in message.content


def test_a_finished_sibling_is_not_applied_again(session: Make, tmp_path: Path) -> None:
    """LG-04: the write needs no approval and is done when the edit asks."""
    s = prepared(session, tmp_path, approve=lambda change: change.tool == "edit_file")
    (tmp_path / "log.txt").write_text("x\n")
    s.say(read("log.txt"))
    ask(s, many("log.txt", ("x", "xx")), edit("a.txt", "one", "1"), write("new.txt", "new\n"))
    assert (tmp_path / "log.txt").read_text() == "xx\n"
    assert (tmp_path / "new.txt").read_text() == "new\n"
    (tmp_path / "new.txt").unlink()
    (tmp_path / "new.txt").write_text("new\n")
    out = answer(s, APPROVE)
    assert [m.status for m in tool_messages(s.state())[-3:]] == ["success"] * 3
    assert len(out) in {1, 3}
    assert (tmp_path / "log.txt").read_text() == "xx\n"
    assert len([c for c in s.toolkit.history.changes(path=str(tmp_path / "log.txt")) if c.tool == "multi_edit"]) == 1


def test_edits_of_one_file_are_asked_about_in_turn(session: Make, tmp_path: Path) -> None:
    """The second is planned on what the first has made of the file."""
    s = prepared(session, tmp_path)
    ask(s, edit("a.txt", "one", "1"), edit("a.txt", "two", "2"))
    for _ in range(4):
        questions = open_questions(s)
        if not questions:
            break
        resume(s, {q.id: {"decisions": [APPROVE]} for q in questions})
    assert (tmp_path / "a.txt").read_text() == "1\n2\n"
    assert [m.status for m in tool_messages(s.state())[-2:]] == ["success"] * 2


# ---- what could swallow a question -----------------------------------------------------------------------------------


@wrap_tool_call
def careful(request: Any, handler: Callable[[Any], Any]) -> Any:
    """Reports what tools raise, as middleware should: what steers the graph goes through."""
    return handler(request)


@pytest.mark.parametrize(
    "make",
    [
        lambda root: agent_session(root, approve=True, middleware=[ToolRetryMiddleware(initial_delay=0), careful]),
        lambda root: by_hand(root, approve=True, errors=True),
        lambda root: by_hand(root, approve=True, errors="Something went wrong."),
    ],
    ids=["retry", "handle_tool_errors", "text"],
)
def test_nothing_swallows_the_question(tmp_path: Path, make: Callable[[Path], Session]) -> None:
    """LG-06."""
    s = make(tmp_path)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    s.say(read("a.txt"))
    assert len(ask(s, edit("a.txt", "one", "1"))) == 1
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n"
    (m,) = answer(s, APPROVE)
    assert m.status == "success"
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"


# ---- hooks and the predicate -----------------------------------------------------------------------------------------


def test_the_order_of_hooks_and_question(session: Make, tmp_path: Path) -> None:
    events: list[str] = []

    def before(change: PlannedChange) -> None:
        events.append("before")
        if b"bad" in change.after:
            raise Refused("Not that word.")

    def after(path: Path) -> str:
        events.append("after")
        path.write_text(path.read_text().upper())
        return "1 warning"

    def predicate(change: PlannedChange) -> bool:
        events.append("asked")
        return True

    s = prepared(session, tmp_path, before_write=before, after_write=after, approve=predicate)
    assert ask(s, edit("a.txt", "one", "bad")) == []
    assert code(tool_messages(s.state())[-1]) == "rejected"
    assert events == ["before"]
    events.clear()
    ask(s, edit("a.txt", "one", "first"))
    assert events == ["before", "asked"]
    (m,) = answer(s, APPROVE)
    assert events == ["before", "asked", "before", "asked", "after"]
    assert (tmp_path / "a.txt").read_text() == "FIRST\nTWO\n"
    assert "1 warning" in m.content
    assert "+FIRST" in str(m.artifact["patch"])
    assert "+TWO" in str(m.artifact["patch"])
    events.clear()
    ask(s, edit("a.txt", "TWO", "2"))
    (m,) = answer(s, edited("edit_file", old_string="TWO", new_string="bad"))  # the hook sees what the person wrote
    assert code(m) == "rejected"
    assert "Not that word." in m.content
    assert (tmp_path / "a.txt").read_text() == "FIRST\nTWO\n"


def test_the_predicate_decides(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path, "a.txt", "b.txt", approve=lambda change: change.file_path.endswith("b.txt"))
    (question,) = ask(s, edit("a.txt", "one", "1"), edit("b.txt", "one", "1"))
    assert path_of(question) == "b.txt"
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"
    answer(s, reject())
    assert (tmp_path / "b.txt").read_text() == "one\ntwo\n"


def test_what_is_refused_anyway_is_not_asked_about(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path)
    (tmp_path / "b.txt").write_text("b\n")
    assert ask(s, edit("a.txt", "nowhere", "x"), write("b.txt", "x"), write("a.txt", "one\ntwo\n")) == []


# ---- other processes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_an_answer_that_another_process_gets(tmp_path: Path, kept: bool) -> None:
    """With its history in a store the answer counts; without, the question is asked once more, never guessed."""
    store = InMemoryStore()
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")

    def process(saver: Any) -> Session:
        history = FileHistory(store if kept else InMemoryStore())
        return agent_session(root, checkpointer=saver, approve=True, history=history)

    with SqliteSaver.from_conn_string(str(tmp_path / "cp.db")) as saver:
        first = process(saver)
        first.say(read("a.txt"))
        ask(first, edit("a.txt", "one", "1"))
        second = process(saver)
        second.model.script[:] = ["done"]
        out = answer(second, APPROVE)
        if not kept:
            assert out == []
            assert (root / "a.txt").read_text() == "one\ntwo\n"
            out = answer(second, APPROVE)
        assert [m.status for m in out] == ["success"]
        assert (root / "a.txt").read_text() == "1\ntwo\n"


# ---- wiring, and the ready-made middleware ---------------------------------------------------------------------------


def test_outside_a_graph_nobody_can_be_asked(tmp_path: Path) -> None:
    tools = {tool.name: tool for tool in FileToolkit(tmp_path, approve=True).get_tools()}
    with pytest.raises(WiringError, match="checkpointer"):
        tools["write_file"].invoke(write("a.txt", "x"))


def test_describe_change_for_the_middleware_of_langchain(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    config: Any = {"allowed_decisions": ["approve", "reject"], "description": toolkit.describe_change}
    review = HumanInTheLoopMiddleware({"edit_file": config, "write_file": config})
    session = agent_session(tmp_path, middleware=[review])
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    session.say(read("a.txt"))
    (question,) = ask(session, edit("a.txt", "one", "1"), write("new.txt", "new\n"))
    first, second = (request["description"] for request in question.value["action_requests"])
    assert first == f"Change {tmp_path}/a.txt (+1 / -1)\n@@ -1,2 +1,2 @@\n-one\n+1\n two"
    assert second == f"Create {tmp_path}/new.txt (+1 / -0)\n@@ -0,0 +1,1 @@\n+new"
    session.graph.invoke(Command(resume={"decisions": [APPROVE, reject("No.")]}), session.config)
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"
    assert not (tmp_path / "new.txt").exists()


def test_describe_change_of_what_would_be_refused(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")

    def said(name: str, **args: Any) -> str:
        return toolkit.describe_change({"name": name, "args": args, "id": "c"})

    assert said("edit_file", file_path="a.txt", old_string="x", new_string="y").startswith(
        "String to replace not found"
    )
    assert said("write_file", file_path="../b", content="x").startswith("../b is outside the workspace.")
    assert said("write_file", file_path="b").startswith("Wrong arguments: content")
    assert said("read_file", file_path="a.txt") == "read_file changes no file."
    assert said("search") == "search is not one of the file tools."


def test_the_messages_stay_paired(session: Make, tmp_path: Path) -> None:
    s = prepared(session, tmp_path, "a.txt", "b.txt")
    ask(s, edit("a.txt", "one", "1"), edit("b.txt", "one", "1"))
    for decision in (APPROVE, reject()):
        for question in open_questions(s)[:1]:
            resume(s, {question.id: {"decisions": [decision]}})
    calls = [c["id"] for m in s.state()["messages"] if isinstance(m, AIMessage) for c in m.tool_calls]
    assert [m.tool_call_id for m in tool_messages(s.state())] == calls
