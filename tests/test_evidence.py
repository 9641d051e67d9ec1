"""Every kind of surgery on an agent's messages, times what it may do afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from langchain_filestate import FileStateMiddleware
from langchain_filestate.state import LEFT_OUT, Messages
from langchain_filestate.watch import left_out
from tests.scripted import (
    Scripted,
    Session,
    State,
    agent_session,
    code,
    edit,
    graph_session,
    read,
    tool_messages,
    write,
)

TEXT = "".join(f"line {i}\n" for i in range(1, 41))
NEW = TEXT.replace("line 7\n", "line seven\n")


class OnDemand(AgentMiddleware[Any, Any, Any]):
    """Middleware of the tests: does something to the messages before the model, or to the request, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[list[Any]], list[Any]] | None = None
        self.request: Callable[[list[Any]], list[Any]] | None = None
        self.answers: list[ToolMessage] = []

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        do, self.before = self.before, None
        return None if do is None else {"messages": do(state["messages"])}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        if self.request is not None:
            request = request.override(messages=self.request(list(request.messages)))
        return handler(request)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        result = handler(request)
        self.answers += result.update["messages"]
        return result


@dataclass
class Tokens:
    """A counter of tokens that says what it is told to."""

    now: int = 0
    once: bool = False

    def __call__(self, messages: Any) -> int:
        count = self.now
        if self.once and count:
            self.now = 0
        return count


@dataclass
class Stage:
    """A session, and the switches that a surgery turns."""

    session: Session
    on_demand: OnDemand
    summary: Tokens
    clear: Tokens
    clearing: ClearToolUsesEdit

    def say(self, *calls: dict[str, Any]) -> list[ToolMessage]:
        self.on_demand.answers.clear()
        self.session.model.script[:] = [*calls, "done"]
        self.session.graph.invoke({"messages": [HumanMessage("go on")]}, self.session.config)
        return list(self.on_demand.answers)


def stage(root: Path) -> Stage:
    """An agent with every kind of middleware, all at rest."""
    on_demand, summary, clear = OnDemand(), Tokens(once=True), Tokens()
    clearing = ClearToolUsesEdit(trigger=100, keep=0)
    middleware: list[Any] = [
        SummarizationMiddleware(
            Scripted(script=["in short"]), trigger=("tokens", 100), keep=("messages", 1), token_counter=summary
        ),
        ContextEditingMiddleware(edits=[clearing], token_counter=clear),
        on_demand,
    ]
    return Stage(agent_session(root, middleware=middleware), on_demand, summary, clear, clearing)


def summarised(at: Stage) -> None:
    at.summary.now = 1000


def trimmed(at: Stage) -> None:
    at.on_demand.before = lambda messages: [RemoveMessage(str(m.id)) for m in messages[:-1]]


def removed_one(at: Stage) -> None:
    def remove(messages: list[Any]) -> list[Any]:
        pairs = [m for m in messages[:-1] if isinstance(m, ToolMessage) or (isinstance(m, AIMessage) and m.tool_calls)]
        return [RemoveMessage(str(m.id)) for m in pairs]

    at.on_demand.before = remove


def removed_by_update(at: Stage) -> None:
    gone = [RemoveMessage(str(m.id)) for m in at.session.state()["messages"] if not isinstance(m, HumanMessage)]
    at.session.graph.update_state(at.session.config, {"messages": gone})


def removed_all(at: Stage) -> None:
    at.session.graph.update_state(at.session.config, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})


def cleared_in_the_request(at: Stage) -> None:
    at.clear.now = 1000


def arguments_cleared_in_the_request(at: Stage) -> None:
    at.clear.now = 1000
    at.clearing.clear_tool_inputs = True


def left_out_of_the_request(at: Stage) -> None:
    at.on_demand.request = lambda messages: [HumanMessage("what was before, in short"), messages[-1]]


def replaced_in_place(at: Stage) -> None:
    old = tool_messages(at.session.state())
    changed = [message.model_copy(update={"content": "[old result cleared]"}) for message in old]
    at.session.graph.update_state(at.session.config, {"messages": changed})


def cut_in_place(at: Stage) -> None:
    changed: list[Any] = []
    for message in at.session.state()["messages"]:
        if isinstance(message, ToolMessage):
            changed.append(message.model_copy(update={"content": str(message.content)[:20] + "..."}))
        elif isinstance(message, AIMessage) and message.tool_calls:
            calls = [{**c, "args": {k: str(v)[:4] for k, v in c["args"].items()}} for c in message.tool_calls]
            changed.append(message.model_copy(update={"tool_calls": calls}))
    at.session.graph.update_state(at.session.config, {"messages": changed})


def forked_to_before(at: Stage) -> None:
    """On from a checkpoint that knows nothing of the call."""
    for snapshot in at.session.graph.get_state_history(at.session.config):
        if not tool_messages({"messages": snapshot.values.get("messages", [])}) and not snapshot.next:
            at.session.config = snapshot.config
            return
    raise AssertionError


def nothing(at: Stage) -> None:
    """Nothing is done to the messages."""


def _others(messages: list[Any]) -> list[Any]:
    """Somebody's own messages in the place of ours, under their ids."""
    return [
        ToolMessage("short", tool_call_id=m.tool_call_id, id=m.id) if isinstance(m, ToolMessage) else m
        for m in messages
    ]


def exchanged_in_place(at: Stage) -> None:
    at.session.graph.update_state(at.session.config, {"messages": _others(at.session.state()["messages"])})


def exchanged_in_the_request(at: Stage) -> None:
    at.on_demand.request = _others


def extended_in_place(at: Stage) -> None:
    """Middleware puts a note before a result, and wraps it in a block: the text still stands there."""
    changed: list[Any] = []
    for message in at.session.state()["messages"]:
        if isinstance(message, ToolMessage):
            text = [{"type": "text", "text": f"Note: reviewed.\n\n{message.content}"}]
            changed.append(message.model_copy(update={"content": text}))
    at.session.graph.update_state(at.session.config, {"messages": changed})


def cached_in_the_request(at: Stage) -> None:
    """Prompt caching turns the text into a block with a marker."""

    def wrap(messages: list[Any]) -> list[Any]:
        return [
            m.model_copy(update={"content": [{"type": "text", "text": m.content, "cache_control": {"type": "e"}}]})
            if isinstance(m.content, str) and m.content else m
            for m in messages
        ]  # fmt: skip

    at.on_demand.request = wrap


LOSES = [
    summarised, trimmed, removed_one, removed_by_update, removed_all, cleared_in_the_request,
    left_out_of_the_request, replaced_in_place, cut_in_place, exchanged_in_place, exchanged_in_the_request,
]  # fmt: skip
KEEPS = [nothing, extended_in_place, cached_in_the_request]
GIVERS = {
    "read": [read("a.txt")],
    "write": [write("a.txt", TEXT)],
}


def begin(root: Path, giver: str) -> tuple[Stage, Path]:
    """The agent has come to know all of `a.txt`, by reading or by writing it."""
    at = stage(root)
    path = root / "a.txt"
    at.say()
    if giver == "read":
        path.write_text(TEXT)
    for call in GIVERS[giver]:
        (message,) = at.say({**call, "id": f"call_{giver}"})
        assert message.status == "success"
    return at, path


# The text of a write stands in its call, so an exchanged answer takes nothing away.
CASES = [(f, giver) for f in LOSES for giver in sorted(GIVERS) if (f, giver) != (replaced_in_place, "write")]


@pytest.mark.parametrize(("surgery", "giver"), CASES, ids=[f"{f.__name__}-{giver}" for f, giver in CASES])
def test_what_is_gone_does_not_count(tmp_path: Path, surgery: Callable[[Stage], None], giver: str) -> None:
    at, path = begin(tmp_path, giver)
    surgery(at)
    wrote, edited, again, seen = at.say(
        write("a.txt", "all new\n"), edit("a.txt", "line 7\n", "line seven\n"), read("a.txt"), write("a.txt", "now\n")
    )
    assert code(wrote) == "not_in_context"
    assert edited.status == "success"
    assert edited.artifact["content_not_in_model_context"] is True
    assert edited.artifact["stale_recovered"] is False
    assert "line seven" in again.content
    assert again.artifact["unchanged"] is False
    if surgery in {cleared_in_the_request, exchanged_in_the_request}:
        assert code(seen) == "not_in_context"  # it goes on with every request
        assert path.read_text() == NEW
    else:
        assert seen.status == "success"


@pytest.mark.parametrize("giver", sorted(GIVERS))
@pytest.mark.parametrize("surgery", KEEPS, ids=lambda f: f.__name__)
def test_what_stands_there_counts(tmp_path: Path, surgery: Callable[[Stage], None], giver: str) -> None:
    at, path = begin(tmp_path, giver)
    surgery(at)
    again, edited, wrote = at.say(read("a.txt"), edit("a.txt", "line 7\n", "line seven\n"), write("a.txt", "all new\n"))
    assert again.artifact["unchanged"] is (giver == "read")
    assert edited.artifact["content_not_in_model_context"] is False
    assert wrote.status == "success"
    assert path.read_text() == "all new\n"


def test_a_write_whose_arguments_were_cleared_does_not_count(tmp_path: Path) -> None:
    at, _ = begin(tmp_path, "write")
    arguments_cleared_in_the_request(at)
    assert code(at.say(write("a.txt", "all new\n"))[0]) == "not_in_context"


def test_a_fork_to_before_the_read_knows_nothing(tmp_path: Path) -> None:
    at, path = begin(tmp_path, "read")
    forked_to_before(at)
    edited, wrote, again = at.say(edit("a.txt", "line 7\n", "line seven\n"), write("a.txt", "all new\n"), read("a.txt"))
    assert (code(edited), code(wrote)) == ("not_read", "not_read")
    assert again.artifact["unchanged"] is False
    assert path.read_text() == TEXT


def test_results_cleared_for_one_request_count_again_when_they_are_sent_again(tmp_path: Path) -> None:
    at, _ = begin(tmp_path, "read")
    cleared_in_the_request(at)
    assert code(at.say(write("a.txt", "1\n"))[0]) == "not_in_context"
    assert at.session.state()[LEFT_OUT]
    at.clear.now = 0
    assert at.say(write("a.txt", "1\n"))[0].status == "success"
    assert not at.session.state()[LEFT_OUT]


async def test_cleared_results_in_async(tmp_path: Path) -> None:
    session = agent_session(
        tmp_path, middleware=[ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])]
    )
    (tmp_path / "a.txt").write_text(TEXT)
    _, again, wrote = await session.asay(read("a.txt"), read("a.txt"), write("a.txt", "1\n"))
    assert again.artifact["unchanged"] is False
    assert code(wrote) == "not_in_context"


def test_the_note_of_what_was_left_out_is_the_threads_own(tmp_path: Path) -> None:
    """The middleware is shared by threads: it may not remember anything itself."""
    on_demand = OnDemand()
    model = Scripted(script=[], requests=[])
    ours = FileStateMiddleware(tmp_path)
    graph = create_agent(model, [], middleware=[on_demand, ours], checkpointer=InMemorySaver(), name="coder")
    one, two = (Session(graph, model, name, ours.toolkit) for name in ("one", "two"))
    (tmp_path / "a.txt").write_text(TEXT)
    one.say(read("a.txt"))
    two.say(read("a.txt"))
    on_demand.request = lambda messages: messages[-1:]
    one.say("hello")
    on_demand.request = None
    assert one.state()[LEFT_OUT]
    assert not two.state().get(LEFT_OUT)
    assert two.one(write("a.txt", "1\n")).status == "success"


def test_a_notice_that_is_gone_does_not_count(tmp_path: Path) -> None:
    session = agent_session(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    session.say(read("a.txt"))
    path.write_text(NEW)
    session.say("nothing to do")
    notices = [m for m in session.state()["messages"] if isinstance(m, HumanMessage) and "a.txt" in str(m.content)]
    assert len(notices) == 1
    session.graph.update_state(session.config, {"messages": [RemoveMessage(str(m.id)) for m in notices]})
    wrote, edited = session.say(write("a.txt", "x\n"), edit("a.txt", "line seven\n", "line 7\n"))
    assert code(wrote) == "not_in_context"
    assert edited.artifact["content_not_in_model_context"] is True


def test_a_read_that_began_in_the_middle_of_a_line_is_no_reason_for_a_stub(tmp_path: Path) -> None:
    session = agent_session(tmp_path)
    (tmp_path / "a.txt").write_text("x" * 50 + "y" * 50 + "\n")
    part, whole = session.say(read("a.txt", column=51), read("a.txt"))
    assert "x" not in str(part.content).split("\t")[1].split("\n")[0]
    assert whole.artifact["unchanged"] is False
    assert "x" * 50 in whole.content


# ---- calls that somebody changes before they run ---------------------------------------------------------------------


def reviewed(root: Path, new: dict[str, Any], mode: Any) -> tuple[Session, Any]:
    review = HumanInTheLoopMiddleware({"edit_file": True, "write_file": True}, interrupt_mode=mode)
    session = agent_session(root, middleware=[review])
    (root / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    call = edit("a.txt", "one", "two")
    session.model.script[:] = [[call], "done"]
    session.graph.invoke({"messages": [HumanMessage("go")]}, session.config)
    decision = {"type": "edit", "edited_action": {"name": "edit_file", "args": {**call["args"], **new}}}
    answer = decision if mode == "per_call" else {"decisions": [decision]}
    (interrupt,) = session.graph.get_state(session.config).interrupts
    out = session.graph.invoke(Command(resume={interrupt.id: answer}), session.config)
    return session, tool_messages(out)[-1]


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_the_model_is_told_of_arguments_that_a_reviewer_changed(tmp_path: Path, mode: str) -> None:
    session, message = reviewed(tmp_path, {"new_string": "TWO"}, mode)
    assert (tmp_path / "a.txt").read_text() == "TWO\n"
    assert "new_string is now:\nTWO" in message.content
    session.model.script[:] = [[write("a.txt", "three\n")], "done"]
    session.graph.invoke({"messages": [HumanMessage("go")]}, session.config)
    (pending,) = session.graph.get_state(session.config).interrupts
    approve = {"type": "approve"}
    answer = approve if mode == "per_call" else {"decisions": [approve]}
    session.graph.invoke(Command(resume={pending.id: answer}), session.config)
    assert (tmp_path / "a.txt").read_text() == "three\n"  # the answer showed what is there


def test_changed_arguments_that_are_not_told_in_full_do_not_count(tmp_path: Path) -> None:
    session, message = reviewed(tmp_path, {"new_string": "TWO\n" * 5000}, "batched")
    assert "characters in all" in message.content
    (record,) = session.records()["coder"].values()
    assert record["views"] == []


def test_what_only_the_answer_tells_is_not_known_to_the_next_call_of_the_message(
    session: Callable[..., Session], tmp_path: Path
) -> None:
    """A formatter has changed what the first call wrote; the second was written without having seen that."""

    def shout(path: Path) -> None:
        path.write_text(path.read_text().upper())

    s = session(after_write=shout)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    s.say(read("a.txt"))
    first, second = s.say([edit("a.txt", "one", "1st"), write("a.txt", "1st\n2nd\n")])
    assert first.status == "success"
    assert code(second) in {"not_in_context", "partially_read"}
    assert s.one(write("a.txt", "1st\n2nd\n")).status == "success"


# ---- the parts -------------------------------------------------------------------------------------------------------


def test_what_a_state_has_no_messages_for_counts() -> None:
    assert Messages(None).alive({"a"}) == {"a"}
    assert Messages([]).alive({"a"}) == set()


def test_left_out_compares_texts_of_messages_without_a_mark() -> None:
    had = [HumanMessage("one", id="1"), HumanMessage("two", id="2"), HumanMessage("three", id="3")]
    sent = [HumanMessage([{"type": "text", "text": "one"}], id="1"), HumanMessage("cut", id="2")]
    assert left_out(had, sent, ["1", "2", "3", "4"]) == ["2", "3"]
    assert left_out(had, had, ["1", "2", "3", "4"]) == []


def test_evidence_is_found_far_back(tmp_path: Path) -> None:
    session = graph_session(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    pad = [HumanMessage(f"{i}") for i in range(500)]
    session.graph.update_state(session.config, {"messages": pad}, as_node="model")
    assert session.one(write("a.txt", "two\n")).status == "success"


def test_an_agent_that_gets_the_messages_of_another_builds_on_them(tmp_path: Path) -> None:
    """A handoff: the second agent has the first one's conversation before it, but for one message."""
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("one\n")
    models = {name: Scripted(script=[], requests=[]) for name in ("first", "second")}
    agents = {
        name: create_agent(model, [], middleware=[FileStateMiddleware(tmp_path)], name=name)
        for name, model in models.items()
    }

    def drop(state: Any) -> dict[str, Any]:
        return {
            "messages": [RemoveMessage(m.id) for m in state["messages"] if "b.txt" in str(getattr(m, "artifact", 0))]
        }

    builder = StateGraph(State)
    for name, node in {"first": agents["first"], "drop": drop, "second": agents["second"]}.items():
        builder.add_node(name, cast("Any", node))
    builder.add_edge(START, "first")
    builder.add_edge("first", "drop")
    builder.add_edge("drop", "second")
    graph = builder.compile(checkpointer=InMemorySaver())
    models["first"].script[:] = [[read("a.txt"), read("b.txt")], "done"]
    models["second"].script[:] = [
        [read("a.txt"), write("a.txt", "two\n"), write("b.txt", "two\n"), edit("b.txt", "one", "2")],
        "done",
    ]
    out = graph.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "t"}})
    again, a, b, c = tool_messages(out)[-4:]
    assert again.artifact["unchanged"] is True
    assert (a.status, code(b), code(c)) == ("success", "not_read", "not_read")
