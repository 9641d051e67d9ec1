"""Several agents on the same files: no false credit, no lost credit, nobody's work undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from langgraph_supervisor import create_supervisor
from langgraph_swarm import SwarmState, create_handoff_tool, create_swarm

from langchain_filestate import FileState, FileStateMiddleware, FileToolkit, FileToolsMiddleware
from tests.scripted import Scripted, Session, State, call, code, edit, read, tool_messages, write

GO = {"messages": [HumanMessage("go")]}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def scripted(*lines: Any) -> Scripted:
    return Scripted(script=list(lines), requests=[])


def coder(root: Path, model: Scripted, name: str | None, **options: Any) -> Any:
    watched = options.pop("watched", True)
    tools = options.pop("tools", [])
    made = FileStateMiddleware(root, **options) if watched else FileToolsMiddleware(root, **options)
    return create_agent(model, tools, middleware=[made], name=name)


def answers(out: Any, *names: str) -> list[Any]:
    wanted = names or ("read_file", "edit_file", "write_file", "multi_edit")
    return [m for m in tool_messages(out) if m.name in wanted]


# ---- sub-agents as tools ---------------------------------------------------------------------------------------------


class Child:
    """A sub-agent that is called inside a tool, with messages of its own, and gives its records back."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.said: list[ToolMessage] = []

    def tool(self, name: str = "delegate") -> BaseTool:
        def work(task: str, runtime: ToolRuntime) -> Any:
            out = self.agent.invoke({"messages": [HumanMessage(task)], "file_state": runtime.state["file_state"]})
            self.said += answers(out)
            text = ToolMessage(out["messages"][-1].text, tool_call_id=runtime.tool_call_id)
            return Command(update={"messages": [text], "file_state": out["file_state"]})

        return tool(name, description="Hand over a task.")(work)


def parent_and_child(root: Path, parent: Scripted, child: Scripted, **options: Any) -> tuple[Session, Child]:
    inner = Child(coder(root, child, options.pop("child_name", "child"), **options))
    middleware = (FileStateMiddleware if options.get("watched", True) else FileToolsMiddleware)(root)
    graph = create_agent(parent, [inner.tool()], middleware=[middleware], checkpointer=InMemorySaver(), name="parent")
    return Session(graph, parent, "t", middleware.toolkit), inner


def test_a_child_is_shown_the_file_and_refused_before(tmp_path: Path) -> None:
    """RS-05."""
    (tmp_path / "a.txt").write_text("one\n")
    child = scripted(edit("a.txt", "one", "two"), write("a.txt", "x\n"), read("a.txt"), write("a.txt", "two\n"), "done")
    session, inner = parent_and_child(tmp_path, scripted(), child)
    session.say(read("a.txt"), call("delegate", task="go"))
    refused, also, shown, done = inner.said
    assert (code(refused), code(also)) == ("not_read", "not_read")
    assert "one" in shown.content
    assert shown.artifact["unchanged"] is False
    assert done.status == "success"


def test_what_a_child_read_is_no_credit_for_the_parent(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    session, _ = parent_and_child(tmp_path, scripted(), scripted(read("a.txt"), "done"))
    _, wrote, edited, again = session.say(
        call("delegate", task="go"), write("a.txt", "x\n"), edit("a.txt", "one", "two"), read("a.txt")
    )
    assert (code(wrote), code(edited)) == ("not_read", "not_read")
    assert again.artifact["unchanged"] is False
    assert set(session.records()) == {"child", "parent"}


@pytest.mark.parametrize("watched", [True, False])
def test_a_childs_write_is_not_undone_by_the_parent(tmp_path: Path, watched: bool) -> None:
    """RS-06."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    child = scripted(read("a.txt"), edit("a.txt", "two", "2, by the child"), "done")
    session, _ = parent_and_child(tmp_path, scripted(), child, watched=watched)
    session.say(read("a.txt"), call("delegate", task="go"))
    (m,) = session.say(write("a.txt", "one\ntwo\n3\n"))
    if watched:  # the parent was told, with the whole change, by whom it was
        notice = next(m for m in session.state()["messages"] if m.type == "human" and "a.txt" in m.text)
        assert 'by agent "child"' in notice.text
        assert "+2, by the child" in notice.text
        assert m.status == "success"
        return
    assert code(m) == "stale"
    assert 'by agent "child"' in m.content
    assert "+2, by the child" in m.content
    assert path.read_text() == "one\n2, by the child\nthree\n"
    (m,) = session.say(edit("a.txt", "three", "3"))
    assert m.artifact["stale_recovered"] is True
    assert path.read_text() == "one\n2, by the child\n3\n"


def test_the_call_after_the_childs_in_one_step_is_stale(tmp_path: Path) -> None:
    """No model call lies between, so nothing was announced."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    child = scripted(read("a.txt"), edit("a.txt", "two", "2"), "done")
    session, _ = parent_and_child(tmp_path, scripted(), child)
    session.say(read("a.txt"))

    def later() -> Any:
        """The child is done before the parent's model answers."""
        inner.agent.invoke({"messages": [HumanMessage("go")], "file_state": session.records()})
        return write("a.txt", "mine\n")

    inner = Child(coder(tmp_path, child, "child"))
    m = session.one(later)
    assert code(m) == "stale"
    assert 'by agent "child"' in m.content
    assert "-two" in m.content
    assert path.read_text() == "one\n2\n"


def test_a_second_run_of_a_child_does_not_have_what_the_first_had(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    child = scripted(read("a.txt"), "done", read("a.txt"), "done", write("a.txt", "x\n"), "done")
    session, inner = parent_and_child(tmp_path, scripted(), child)
    session.say(call("delegate", task="first"), call("delegate", task="second"), call("delegate", task="third"))
    first, second, third = inner.said
    assert (first.artifact["unchanged"], second.artifact["unchanged"]) == (False, False)
    assert code(third) == "not_in_context"


def test_an_unnamed_child_goes_by_the_parents_name_and_still_may_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    child = scripted(read("a.txt"), write("a.txt", "x\n"), "done", write("a.txt", "y\n"), "done")
    session, inner = parent_and_child(tmp_path, scripted(), child, child_name=None)
    (tmp_path / "b.txt").write_text("b\n")
    session.say(read("a.txt"), read("b.txt"), call("delegate", task="go"))
    assert set(session.records()) == {"parent"}
    shown, done = inner.said
    assert shown.artifact["unchanged"] is False
    assert done.status == "success"
    child.script[:] = [write("b.txt", "y\n"), "done"]
    session.say(call("delegate", task="go"))
    assert code(inner.said[-1]) == "not_in_context"


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_children_of_one_name_in_parallel(tmp_path: Path, how: str) -> None:
    """Each has messages of its own; they edit one file at once, and each change stays."""
    path = tmp_path / "a.txt"
    path.write_text("".join(f"<{i}>\n" for i in range(8)))
    (tmp_path / "b.txt").write_text("b\n")

    class Worker(Scripted):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            number = messages[0].text
            done = len(tool_messages({"messages": messages}))
            lines = [read("a.txt"), edit("a.txt", f"<{number}>", f"[{number}]"), write("b.txt", number), "done"]
            self.script[:] = []
            line = lines[done] if done < len(lines) else "done"
            from langchain_core.outputs import ChatGeneration, ChatResult

            message = AIMessage(line) if isinstance(line, str) else AIMessage("", tool_calls=[line])
            return ChatResult(generations=[ChatGeneration(message=message)])

    agent = coder(tmp_path, Worker(script=[], requests=[]), "worker")
    jobs = [{"messages": [HumanMessage(str(i))]} for i in range(8)]
    if how == "sync":
        outs = await asyncio.to_thread(agent.batch, jobs)
    else:
        outs = await asyncio.gather(*[agent.ainvoke(job) for job in jobs])
    assert path.read_text() == "".join(f"[{i}]\n" for i in range(8))
    for out in outs:
        shown, edited, wrote = answers(out)
        assert shown.artifact["unchanged"] is False
        assert edited.status == "success"
        assert code(wrote) == "not_read"  # b.txt was shown to nobody
    assert (tmp_path / "b.txt").read_text() == "b\n"


def test_children_of_one_name_side_by_side_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    models = {"x": scripted(read("a.txt"), edit("a.txt", "one", "1"), "done"),
              "y": scripted(read("a.txt"), edit("a.txt", "two", "2"), "done")}  # fmt: skip
    children = {name: Child(coder(tmp_path, model, "worker")) for name, model in models.items()}
    parent = scripted()
    middleware = FileStateMiddleware(tmp_path)
    graph = create_agent(
        parent, [child.tool(name) for name, child in children.items()], middleware=[middleware],
        checkpointer=InMemorySaver(), name="parent",
    )  # fmt: skip
    session = Session(graph, parent, "t", middleware.toolkit)
    session.say([call("x", task="go"), call("y", task="go")])
    assert (tmp_path / "a.txt").read_text() == "1\n2\n"
    assert all(m.status == "success" for child in children.values() for m in child.said)
    assert code(session.one(write("a.txt", "mine\n"))) == "not_read"


# ---- two agents on one file ------------------------------------------------------------------------------------------


def test_two_agents_never_overwrite_each_other(tmp_path: Path) -> None:
    """Each appends by overwriting the whole file, on its own reading, turn by turn and out of turn."""
    path = tmp_path / "a.txt"
    path.write_text("0\n")
    sessions = []
    for name in ("ann", "bob"):
        model = scripted()
        middleware = FileToolsMiddleware(tmp_path)
        graph = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver(), name=name)
        sessions.append((name, Session(graph, model, name, middleware.toolkit)))
    wrote = ["0"]
    known = {name: 1 for name, _ in sessions}
    for _, session in sessions:
        session.say(read("a.txt"))
    for turn, who in enumerate([0, 1, 1, 0, 0, 1, 0, 1]):
        name, session = sessions[who]
        text = "".join(f"{line}\n" for line in [*wrote[: known[name]], f"{name}{turn}"])
        m = session.one(write("a.txt", text))
        if known[name] == len(wrote):
            assert m.status == "success"
        else:
            other = sessions[1 - who][0]
            assert code(m) == "stale"
            assert f'by agent "{other}"' in m.content
            assert f"+{wrote[-1]}" in m.content
            session.say(read("a.txt"))
            text = "".join(f"{line}\n" for line in [*wrote, f"{name}{turn}"])
            assert session.one(write("a.txt", text)).status == "success"
        wrote.append(f"{name}{turn}")
        known[name] = len(wrote)
        assert path.read_text().split() == wrote


# ---- supervisor ------------------------------------------------------------------------------------------------------


# The supervisor builds on an agent that LangGraph has given a new home.
moved = pytest.mark.filterwarnings("ignore::langgraph.warnings.LangGraphDeprecatedSinceV10")


class TeamState(State):
    remaining_steps: RemainingSteps


@moved
@pytest.mark.parametrize("mode", ["last_message", "full_history"])
def test_supervisor(tmp_path: Path, mode: Any) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    ann, bob, boss = scripted(), scripted(), scripted()
    team = create_supervisor(
        [coder(tmp_path, ann, "ann"), coder(tmp_path, bob, "bob")], model=boss, state_schema=TeamState, output_mode=mode
    ).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": mode}}

    def turn(who: str, model: Scripted, *lines: Any) -> list[Any]:
        """What the worker was answered."""
        model.requests.clear()
        model.script[:] = [*lines, "done"]
        boss.script[:] = [call(f"transfer_to_{who}"), "done"]
        team.invoke(GO, config)
        return answers({"messages": model.requests[-1]})[-len(lines) :]

    turn("ann", ann, read("a.txt"))
    edited, wrote = turn("bob", bob, edit("a.txt", "one", "1"), write("a.txt", "x\n"))
    if mode == "last_message":
        assert (code(edited), code(wrote)) == ("not_read", "not_read")
        turn("bob", bob, read("a.txt"), edit("a.txt", "one", "1"))
    else:  # bob has ann's messages before him
        assert edited.status == "success"
        assert wrote.status == "success"
        turn("bob", bob, edit("a.txt", "x", "1"))
    (m,) = turn("ann", ann, write("a.txt", "mine\n"))
    if mode == "last_message":
        assert code(m) == "partially_read"  # the notice shows one line; her own reading is not in the team's messages
        assert path.read_text() == "1\ntwo\n"
    else:
        assert m.status == "success"  # she has bob's write in her messages
    assert {"ann", "bob"} <= set(team.get_state(config).values["file_state"])


@moved
def test_supervisor_without_the_channel_forgets_and_stays_safe(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    ann, boss = scripted(read("a.txt"), "done"), scripted(call("transfer_to_ann"), "done")
    team = create_supervisor([coder(tmp_path, ann, "ann")], model=boss).compile(checkpointer=InMemorySaver())
    team.invoke(GO, CONFIG)
    ann.script[:] = [write("a.txt", "x\n"), read("a.txt"), write("a.txt", "y\n"), "done"]
    boss.script[:] = [call("transfer_to_ann"), "done"]
    team.invoke(GO, CONFIG)
    first, shown, then = answers({"messages": ann.requests[-1]})[-3:]
    assert code(first) == "not_read"
    assert shown.artifact["unchanged"] is False
    assert then.status == "success"


# ---- swarm -----------------------------------------------------------------------------------------------------------


class TeamSwarm(SwarmState, FileState):
    pass


@pytest.mark.parametrize("watched", [True, False])
def test_swarm(tmp_path: Path, watched: bool) -> None:
    """All messages are everybody's: what one was shown, the next has before it."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    ann, bob = scripted(), scripted()
    team = create_swarm(
        [
            coder(tmp_path, ann, "ann", watched=watched, tools=[create_handoff_tool(agent_name="bob")]),
            coder(tmp_path, bob, "bob", watched=watched, tools=[create_handoff_tool(agent_name="ann")]),
        ],
        default_active_agent="ann",
        state_schema=TeamSwarm,
    ).compile(checkpointer=InMemorySaver())
    ann.script[:] = [read("a.txt"), call("transfer_to_bob"), "done"]
    bob.script[:] = [
        read("a.txt"), edit("a.txt", "one", "1"), write("a.txt", "1\n2\n"), call("transfer_to_ann"), "done",
    ]  # fmt: skip
    out = team.invoke(GO, CONFIG)
    _, again, edited, wrote = answers(out)
    assert again.artifact["unchanged"] is True
    assert edited.artifact["content_not_in_model_context"] is False
    assert wrote.status == "success"
    # Ann has bob's write before her; her own record is older, and no reason to call it stale.
    ann.script[:] = [edit("a.txt", "2", "two"), write("a.txt", "ann's\n"), "done"]
    out = team.invoke(GO, CONFIG)
    edited, wrote = answers(out)[-2:]
    assert (edited.status, edited.artifact["stale_recovered"]) == ("success", False)
    assert wrote.status == "success"
    assert path.read_text() == "ann's\n"
    notices = [m for m in out["messages"] if m.type == "human" and "a.txt" in m.text]
    assert notices == []  # nothing happened that is not in the messages


# ---- agents and tools as nodes ---------------------------------------------------------------------------------------


def test_agents_as_nodes_in_parallel(tmp_path: Path) -> None:
    """Both see the conversation up to the fork, and not each other's."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    ann = scripted(read("a.txt"), edit("a.txt", "one", "1"), "done")
    bob = scripted(read("a.txt"), edit("a.txt", "two", "2"), "done")
    builder = StateGraph(State)
    for name, model in {"ann": ann, "bob": bob}.items():
        builder.add_node(name, cast("Any", coder(tmp_path, model, name)))
        builder.add_edge(START, name)
    graph = builder.compile(checkpointer=InMemorySaver())
    out = graph.invoke(cast("Any", GO), CONFIG)
    assert [m.status for m in answers(out)] == ["success"] * 4
    assert path.read_text() == "1\n2\n"
    # Each channel holds both records; then both have all messages, and the last write's text in full.
    ann.script[:] = [read("a.txt"), write("a.txt", "ann\n"), "done"]
    bob.script[:] = ["done"]
    out = graph.invoke(cast("Any", GO), CONFIG)
    assert answers(out)[-1].status == "success"


def test_tools_of_two_agents_in_one_hand_made_graph(tmp_path: Path) -> None:
    """`agent=` of the toolkit names the agent where nothing else does."""
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    builder = StateGraph(State)
    for name in ("ann", "bob"):
        builder.add_node(name, ToolNode(FileToolkit(tmp_path, agent=name).get_tools()))
    builder.add_edge(START, "ann")
    builder.add_edge("ann", "bob")
    graph = builder.compile(checkpointer=InMemorySaver())
    out = graph.invoke({"messages": [AIMessage("", tool_calls=[read("a.txt")])]}, CONFIG)
    assert set(out["file_state"]) == {"ann", "bob"}


def test_unnamed_agents_are_main(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    model = scripted(read("a.txt"), "done")
    out = coder(tmp_path, model, None).invoke(GO)
    assert set(out["file_state"]) == {"main"}
