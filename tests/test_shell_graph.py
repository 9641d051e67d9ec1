"""Shell commands in graphs: what they show counts as read, and what changes while they run is on record."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend
from langchain.agents import create_agent
from langchain.agents.middleware import HostExecutionPolicy, ShellToolMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langchain_filestate import FileHistory, FileStateMiddleware, FileToolkit
from langchain_filestate.watch import shell_reads
from tests.scripted import Scripted, Session, State, agent_session, call, code, edit, read, tool_messages, write

pytestmark = pytest.mark.usefixtures("tidy_shell")

TEXT = "".join(f"line {i}\n" for i in range(1, 21))


def runs(command: str, cwd: Path) -> str:
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, cwd=cwd, check=False).stdout


def own(root: Path, cwd: Path | None = None, **options: Any) -> Session:
    @tool
    def sh(script: str) -> str:
        """Run a command."""
        return runs(script, cwd or root)

    return agent_session(root, tools=[sh], shell_tools={"sh": "script"}, **options)


def langchains(root: Path, cwd: Path | None = None) -> Session:
    model = Scripted(script=[], requests=[])
    shell = ShellToolMiddleware(workspace_root=cwd or root, execution_policy=HostExecutionPolicy())
    ours = FileStateMiddleware(root)
    graph = create_agent(model, [], middleware=[shell, ours], checkpointer=InMemorySaver(), name="coder")
    return Session(graph, model, "t", ours.toolkit)


def deepagents(root: Path, cwd: Path | None = None, **more: Any) -> Session:
    model = Scripted(script=[], requests=[])
    virtual = cwd is None
    ours = FileStateMiddleware(root, virtual=virtual)
    graph = create_deep_agent(
        model=model, backend=LocalShellBackend(root_dir=cwd or root, virtual_mode=virtual, inherit_env=True),
        middleware=[ours], checkpointer=InMemorySaver(), name="coder", **more,
    )  # fmt: skip
    return Session(graph, model, "t", ours.toolkit)


MAKES: dict[str, tuple[Callable[..., Session], Callable[[str], dict[str, Any]]]] = {
    "own": (own, lambda command: call("sh", script=command)),
    "langchain": (langchains, lambda command: call("shell", command=command)),
    "deepagents": (deepagents, lambda command: call("execute", command=command)),
}
SHELLS = pytest.mark.parametrize("kind", sorted(MAKES))


@SHELLS
def test_what_stands_in_the_output_counts(tmp_path: Path, kind: str) -> None:
    make, shell = MAKES[kind]
    session = make(tmp_path)
    for name in "abcdef":
        (tmp_path / f"{name}.txt").write_text(f"{name}: \n" + TEXT)
    session.say(
        shell("cat a.txt"), shell("head -n 3 b.txt"), shell("cat c.txt d.txt"), shell("cat e.txt | wc -l"),
        shell(f"sed -n '2,4p' {tmp_path}/f.txt"),
    )  # fmt: skip
    out = session.say(*[write(f"{name}.txt", "x\n") for name in "abcde"])
    codes = [code(m) for m in out]
    assert codes == [None, "partially_read", None, None, "not_read"]
    known, unknown = session.say(edit("f.txt", "line 2\n", "2\n"), edit("b.txt", "line 9\n", "9\n"))
    assert known.artifact["content_not_in_model_context"] is False
    assert unknown.artifact["content_not_in_model_context"] is True
    records = session.records()["coder"]
    assert records[str(tmp_path / "b.txt")]["origin"] == "edit"


async def test_in_async(tmp_path: Path) -> None:
    session = own(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    _, wrote = await session.asay(call("sh", script="cat a.txt"), write("a.txt", "x\n"))
    assert wrote.status == "success"


@SHELLS
def test_the_same_name_in_another_directory_is_another_file(tmp_path: Path, kind: str) -> None:
    make, shell = MAKES[kind]
    root, cwd = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    cwd.mkdir()
    (root / "a.txt").write_text("of the root\n")
    (cwd / "a.txt").write_text("of elsewhere\n")
    session = make(root, cwd)
    session.say(shell("cat a.txt"))
    assert code(session.one(edit("a.txt", "of the root", "x"))) == "not_read"
    assert (root / "a.txt").read_text() == "of the root\n"


@SHELLS
def test_what_changed_while_a_command_ran_is_on_record(tmp_path: Path, kind: str) -> None:
    make, shell = MAKES[kind]
    session = make(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    path.chmod(0o640)
    session.say(read("a.txt"))
    there = session.graph.get_state(session.config)
    session.say(shell("echo two > a.txt; echo other > b.txt"))
    (change,) = session.toolkit.history.changes(path=str(path))
    assert (change.tool, change.agent, change.thread_id, change.mode) == ("shell", None, "t", 0o640)
    notice = next(m.text for m in session.state()["messages"] if m.type == "human" and "a.txt" in m.text)
    assert f"{path} was changed while a shell command ran." in notice
    assert "+two" in notice
    report = session.toolkit.rewind(there)
    assert [entry.file_path for entry in report.conflicts] == [str(path)]
    assert path.read_text() == "two\n"
    report = session.toolkit.rewind(there, force=True)
    assert path.read_text() == "one\n"
    assert path.stat().st_mode & 0o777 == 0o640


@SHELLS
def test_what_a_command_deleted_comes_back(tmp_path: Path, kind: str) -> None:
    make, shell = MAKES[kind]
    session = make(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    there = session.graph.get_state(session.config)
    session.say(shell("rm a.txt"))
    notice = next(m.text for m in session.state()["messages"] if m.type == "human" and "a.txt" in m.text)
    assert f"{path} was deleted while a shell command ran." in notice
    assert session.toolkit.rewind(there).conflicts
    assert not path.exists()
    session.toolkit.rewind(there, force=True)
    assert path.read_text() == "one\n"


@pytest.mark.parametrize("command", ["rm a.txt", "sed -i s/one/two/ a.txt; chmod 666 a.txt"])
def test_force_gives_back_the_mode_that_was_there_before_the_command(tmp_path: Path, command: str) -> None:
    session = own(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    path.chmod(0o600)
    session.say(read("a.txt"))
    there = session.graph.get_state(session.config)
    session.say(call("sh", script=command))
    session.toolkit.rewind(there, force=True)
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("one\n", 0o600)


def test_force_gives_back_what_a_process_saw_only_before_the_command(tmp_path: Path) -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    session = own(tmp_path, checkpointer=saver, history=FileHistory(store))
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    session.say(read("a.txt"))
    there = session.graph.get_state(session.config)
    session = own(tmp_path, checkpointer=saver, history=FileHistory(store))  # as after a restart
    session.say(call("sh", script="sed -i s/one/two/ a.txt"))
    assert path.read_text() == "two\n"
    assert not session.toolkit.rewind(there, force=True).conflicts
    assert path.read_text() == "one\n"


def test_a_command_that_fails_has_changed_what_it_changed(tmp_path: Path) -> None:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        runs(command, tmp_path)
        raise TimeoutError(command)

    session = agent_session(tmp_path, tools=[shell])
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    with pytest.raises(TimeoutError):
        session.say(call("shell", command="echo two > a.txt"))
    assert [change.tool for change in session.toolkit.history.changes(path=str(tmp_path / "a.txt"))] == ["shell"]


def test_an_own_edit_beside_a_command_is_the_agents(tmp_path: Path) -> None:
    """Both in one message: the edit is on record as what it is."""
    import threading

    edited = threading.Event()

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        edited.wait(10)
        return ""

    session = agent_session(tmp_path, tools=[shell], after_write=lambda _: edited.set())
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("a.txt"))
    session.say([call("shell", command="make"), edit("a.txt", "one", "two")])
    assert [change.tool for change in session.toolkit.history.changes(path=str(tmp_path / "a.txt"))] == ["edit_file"]


def test_an_error_that_shows_the_file_counts_for_what_it_shows(tmp_path: Path) -> None:
    session = langchains(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    shown, wrote = session.say(call("shell", command="cat a.txt missing.txt"), write("a.txt", "x\n"))
    assert "Exit code: 1" in shown.content
    assert wrote.status == "success"


def test_an_output_that_was_cut_counts_for_nothing(tmp_path: Path) -> None:
    model = Scripted(script=[], requests=[])
    shell = ShellToolMiddleware(workspace_root=tmp_path, execution_policy=HostExecutionPolicy(max_output_lines=10))
    ours = FileStateMiddleware(tmp_path)
    graph = create_agent(model, [], middleware=[shell, ours], checkpointer=InMemorySaver(), name="coder")
    session = Session(graph, model, "t", ours.toolkit)
    (tmp_path / "a.txt").write_text(TEXT)
    shown, edited = session.say(call("shell", command="cat a.txt"), edit("a.txt", "line 2\n", "2\n"))
    assert "truncated" in shown.content
    assert code(edited) == "not_read"


def test_an_output_that_deepagents_moved_away_does_not_count(tmp_path: Path) -> None:
    session = deepagents(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i:05} {'x' * 60}\n" for i in range(1400)))
    shown, wrote, again = session.say(
        call("execute", command="cat a.txt"), write("a.txt", "x\n"), read("a.txt", limit=5)
    )
    assert "/large_tool_results/" in shown.content
    assert code(wrote) == "not_in_context"
    assert again.artifact["unchanged"] is False


def test_a_denied_file_is_not_booked(tmp_path: Path) -> None:
    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return runs(command, tmp_path)

    session = agent_session(tmp_path, tools=[shell], deny=["secret.txt"])
    (tmp_path / "secret.txt").write_text("s\n")
    session.say(call("shell", command="cat secret.txt"))
    assert session.records() == {}


def test_a_tool_that_answers_with_a_command(tmp_path: Path) -> None:
    @tool
    def shell(command: str, runtime: ToolRuntime) -> Any:
        """Run a command."""
        text = runs(command, tmp_path)
        return Command(update={"messages": [ToolMessage(text, tool_call_id=runtime.tool_call_id, id="mine")]})

    session = agent_session(tmp_path, tools=[shell])
    (tmp_path / "a.txt").write_text(TEXT)
    shown, wrote = session.say(call("shell", command="cat a.txt"), write("a.txt", "x\n"))
    assert shown.id == "mine"
    assert wrote.status == "success"


def test_other_arguments_and_tools_are_left_alone(tmp_path: Path) -> None:
    @tool
    def shell(command: list[str]) -> str:
        """Run a command."""
        return TEXT

    @tool
    def other() -> str:
        """Do something."""
        return TEXT

    session = agent_session(tmp_path, tools=[shell, other])
    (tmp_path / "a.txt").write_text(TEXT)
    session.say(call("shell", command=["cat", "a.txt"]), call("other"))
    assert session.records() == {}
    assert not any(str(m.id).startswith("fs-") for m in tool_messages(session.state()))


def test_views_of_reads_and_of_commands_add_up(tmp_path: Path) -> None:
    session = own(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    out = session.say(
        read("a.txt", limit=10), call("sh", script="tail -n +11 a.txt"), write("a.txt", "x\n"),
        call("sh", script="cat empty.txt"),
    )  # fmt: skip
    assert out[2].status == "success"


def test_by_hand(tmp_path: Path) -> None:
    """`shell_reads` as a node after the tools."""
    model = Scripted(script=[], requests=[])
    toolkit = FileToolkit(tmp_path, agent="coder")

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        return runs(command, tmp_path)

    def book(state: Any) -> dict[str, Any]:
        message = state["messages"][-1]
        asked = next(m for m in reversed(state["messages"]) if m.type == "ai").tool_calls[0]
        if asked["name"] != "shell":
            return {}
        return shell_reads(asked["args"]["command"], message, toolkit, state=state)

    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([shell, *toolkit.get_tools()]))
    builder.add_node("book", book)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "book")
    builder.add_edge("book", "model")
    session = Session(builder.compile(checkpointer=InMemorySaver()), model, "t", toolkit)
    (tmp_path / "a.txt").write_text(TEXT)
    _, wrote = session.say(call("shell", command="cat a.txt"), write("a.txt", "x\n"))
    assert wrote.status == "success"


def test_without_a_message_there_is_nothing_to_stand_on(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "empty.txt").write_text("")
    assert shell_reads("cat a.txt", TEXT, toolkit) == {}
    assert shell_reads("cat a.txt", ToolMessage(TEXT, tool_call_id="c"), toolkit) == {}
    assert shell_reads("cat a.txt", HumanMessage([{"type": "text", "text": TEXT}], id="m"), toolkit) == {}
    assert shell_reads("cat a.txt", "other\n", toolkit, evidence="m") == {}
    assert shell_reads("cat missing.txt", "", toolkit, evidence="m") == {}
    (record,) = shell_reads("cat a.txt", TEXT, toolkit, evidence="m")["file_state"]["main"].values()
    assert (record["views"], record["origin"]) == ([[1, 20, "m"]], "shell")
    (record,) = shell_reads("cat empty.txt", "", toolkit, evidence="m")["file_state"]["main"].values()
    assert (record["views"], record["lines"]) == ([], 0)
