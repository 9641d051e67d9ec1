"""`create_deep_agent` with these tools in place of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, LocalShellBackend, StateBackend, StoreBackend
from deepagents.middleware import FilesystemMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_filestate import FileStateMiddleware, FileToolsMiddleware, WiringError
from langchain_filestate import tools as ours
from tests.scripted import Scripted, Session, call, code, edit, many, read, tool_messages, write


def deep(root: Path, *, backend: Any = None, virtual: bool = True, options: Any = None, **more: Any) -> Session:
    model = Scripted(script=[], requests=[])
    middleware = FileStateMiddleware(root, virtual=virtual, **(options or {}))
    backend = backend or FilesystemBackend(root_dir=root, virtual_mode=virtual)
    graph = create_deep_agent(
        model=model, middleware=[middleware], backend=backend, checkpointer=InMemorySaver(), name="deep", **more
    )
    return Session(graph, model, "t", middleware.toolkit)


def test_our_tools_stand_in_for_its_own(tmp_path: Path) -> None:
    session = deep(tmp_path)
    tools = session.graph.nodes["tools"].bound.tools_by_name
    kinds = {name: type(tool) for name, tool in tools.items()}
    assert kinds["read_file"] is ours.ReadFileTool
    assert kinds["edit_file"] is ours.EditFileTool
    assert kinds["write_file"] is ours.WriteFileTool
    assert {"multi_edit", "edit_notebook", "ls", "glob", "grep", "task"} <= set(kinds)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    out = session.say(
        call("ls", path="/"), read("/a.txt"), edit("/a.txt", "one", "1"), call("grep", pattern="two"),
        write("/sub/b.txt", "b\n"), call("glob", pattern="**/b.txt"),
    )  # fmt: skip
    assert [m.status for m in out] == ["success"] * 6
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"
    assert (tmp_path / "sub/b.txt").read_text() == "b\n"
    assert "/a.txt" in out[0].content
    assert "/sub/b.txt" in out[5].content
    assert out[1].artifact["file_path"] == str(tmp_path / "a.txt")
    assert "files" not in session.state()


async def test_in_async(tmp_path: Path) -> None:
    session = deep(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    out = await session.asay(write("/a.txt", "x\n"), read("/a.txt"), edit("a.txt", "one", "1"))
    assert [code(m) for m in out] == ["not_read", None, None]


def test_changes_to_one_path_in_one_message_go_by_its_guard(tmp_path: Path) -> None:
    session = deep(tmp_path)
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    session.say(read("/a.txt"))
    first, second = session.say([edit("/a.txt", "one", "1"), edit("/a.txt", "two", "2")])
    assert first.status == "success"
    assert "parallel file mutations" in second.content
    assert (tmp_path / "a.txt").read_text() == "1\ntwo\n"
    assert session.one(many("/a.txt", ("1", "one"), ("two", "2"))).status == "success"
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"


def test_a_file_that_its_delete_removed_is_announced(tmp_path: Path) -> None:
    session = deep(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    session.say(read("/a.txt"), call("delete", file_path="/a.txt"))
    assert not (tmp_path / "a.txt").exists()
    assert any("a.txt was deleted." in m.text for m in session.state()["messages"])


def test_a_large_result_is_put_where_our_read_finds_it(tmp_path: Path) -> None:
    from langchain_core.tools import tool

    @tool
    def fetch() -> str:
        """Fetch much."""
        return "".join(f"row {i}\n" for i in range(20_000))

    session = deep(tmp_path, tools=[fetch])
    (moved,) = session.say({**call("fetch"), "id": "big"})
    assert "/large_tool_results/big" in moved.content
    assert "row 19999" in session.one(read("/large_tool_results/big", offset=-2)).content


def test_a_large_result_of_our_read_stays(tmp_path: Path) -> None:
    session = deep(tmp_path)
    (tmp_path / "a.txt").write_text("".join(f"{i:05} {'x' * 90}\n" for i in range(2000)))
    out = session.say(read("/a.txt"))
    assert "saved in the filesystem" not in out[0].content
    assert len(out[0].content) > 80_000


# ---- compaction ------------------------------------------------------------------------------------------------------


def compact(session: Session, keep: int) -> None:
    """What its summarising leaves in the state: the messages stay, the request begins with a summary."""
    event = {"cutoff_index": len(session.state()["messages"]) - keep, "summary_message": HumanMessage("in short"),
             "file_path": None}  # fmt: skip
    session.graph.update_state(session.config, {"_summarization_event": event}, as_node="model")


def test_what_its_summarising_leaves_out_does_not_count(tmp_path: Path) -> None:
    session = deep(tmp_path)
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    session.say(read("/a.txt"))
    compact(session, keep=1)
    wrote, edited, again = session.say(write("/a.txt", "x\n"), edit("/a.txt", "one", "1"), read("/a.txt"))
    assert code(wrote) == "not_in_context"
    assert edited.artifact["content_not_in_model_context"] is True
    assert again.artifact["unchanged"] is False
    assert session.one(write("/a.txt", "x\n")).status == "success"


def test_old_arguments_that_its_summarising_cuts_do_not_count(tmp_path: Path) -> None:
    from deepagents.middleware.summarization import SummarizationMiddleware

    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    model = Scripted(script=[], requests=[])
    summary = SummarizationMiddleware(
        model=model, backend=backend, trigger=("tokens", 10**9), keep=("messages", 2),
        truncate_args_settings={"trigger": ("messages", 3), "keep": ("messages", 2), "max_length": 100},
    )  # fmt: skip
    middleware = FileStateMiddleware(tmp_path, virtual=True)
    graph = create_deep_agent(
        model=model, middleware=[summary, middleware], backend=backend, checkpointer=InMemorySaver(), name="deep"
    )
    session = Session(graph, model, "t", middleware.toolkit)
    text = "".join(f"line {i}\n" for i in range(100))
    session.say(write("/a.txt", text))
    session.say("nothing to do")
    assert code(session.one(write("/a.txt", "x\n"))) == "not_in_context"
    assert (tmp_path / "a.txt").read_text() == text


# ---- wiring ----------------------------------------------------------------------------------------------------------


class OwnBackend(FilesystemBackend):
    """Of the user's own, on this disk."""


DENY = FilesystemPermission(operations=["read", "write"], paths=["/secret/**"], mode="deny")
DENY_WRITE = FilesystemPermission(operations=["write"], paths=["/**"], mode="deny")
ASK = FilesystemPermission(operations=["write"], paths=["/**"], mode="interrupt")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: {"backend": StateBackend()}, "StateBackend"),
        (lambda _: {"backend": StoreBackend(namespace=lambda _: ("files",))}, "StoreBackend"),
        (lambda root: {"backend": FilesystemBackend(root_dir=root, virtual_mode=False)}, "virtual_mode=False"),
        (lambda root: {"backend": FilesystemBackend(root_dir=root.parent, virtual_mode=True)}, "one root"),
        (lambda _: {"backend": CompositeBackend(default=StateBackend(), routes={})}, "StateBackend"),
        (
            lambda root: {"backend": CompositeBackend(
                default=FilesystemBackend(root_dir=root, virtual_mode=True), routes={"/mem/": StateBackend()}
            )},
            "deny=['/mem/']",
        ),
        (lambda _: {"permissions": [DENY]}, "deny=[...]"),
        (lambda _: {"permissions": [DENY_WRITE]}, "read_only=[...]"),
        (lambda _: {"permissions": [ASK]}, "approve="),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_told_at_once(tmp_path: Path, make: Any, said: str) -> None:
    for how in ("sync", "async"):
        session = deep(tmp_path, **make(tmp_path))
        with pytest.raises(WiringError) as caught:
            if how == "sync":
                session.say(write("/a.txt", "x\n"))
            else:
                await session.asay(write("/a.txt", "x\n"))
        assert said in str(caught.value)
        assert os.listdir(tmp_path) == []


def test_the_default_backend_is_told_to_who_uses_the_tools_alone(tmp_path: Path) -> None:
    model = Scripted(script=["done"], requests=[])
    with pytest.raises(WiringError, match="FilesystemBackend"):
        create_deep_agent(model=model, middleware=[FileToolsMiddleware(tmp_path)]).invoke(
            {"messages": [HumanMessage("go")]}
        )


def test_a_later_deepagents_that_shows_less_is_found_out_by_its_channel(tmp_path: Path) -> None:
    from langchain_filestate import FileToolkit
    from langchain_filestate._deepagents import check

    class Tool:
        @staticmethod
        def func() -> None:
            """A function that closes over nothing."""

    Tool.func.__module__ = "deepagents.middleware.filesystem"
    check([Tool], {"messages": []}, FileToolkit(tmp_path).ours)
    with pytest.raises(WiringError, match="graph's state"):
        check([Tool], {"messages": [], "files": {}}, FileToolkit(tmp_path).ours)


@pytest.mark.parametrize(
    "make",
    [
        lambda root: {"backend": OwnBackend(root_dir=root, virtual_mode=True)},
        lambda root: {"backend": LocalShellBackend(root_dir=root, virtual_mode=True)},
        lambda _: {"permissions": [DENY], "options": {"deny": ["secret/"]}},
        lambda _: {"permissions": [DENY_WRITE], "options": {"read_only": ["secret/"]}},
        lambda _: {"permissions": [ASK], "options": {"approve": lambda _: False}},
        lambda root: {
            "backend": CompositeBackend(
                default=FilesystemBackend(root_dir=root, virtual_mode=True), routes={"/mem/": StateBackend()}
            ),
            "options": {"deny": ["/mem/"]},
        },
    ],
)
def test_what_fits_goes_through(tmp_path: Path, make: Any) -> None:
    session = deep(tmp_path, **make(tmp_path))
    session.say(read("/a.txt"))


def test_rules_bind_our_tools_and_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("k\n")
    session = deep(tmp_path, permissions=[DENY], options={"deny": ["secret/"]})
    out = session.say(read("/secret/key"), write("/secret/new", "x"), call("ls", path="/secret"))
    assert [code(m) for m in out[:2]] == ["denied", "denied"]
    assert "key" not in str(out[2].content)


def test_its_own_way_of_asking_works_for_the_tools_it_knows(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    session = deep(tmp_path, interrupt_on={"edit_file": True})
    session.say(read("/a.txt"))
    session.say(edit("/a.txt", "one", "1"))
    assert (tmp_path / "a.txt").read_text() == "one\n"
    out = session.graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), session.config)
    assert tool_messages(out)[-1].status == "success"
    assert (tmp_path / "a.txt").read_text() == "1\n"


# ---- sub-agents ------------------------------------------------------------------------------------------------------


class Staff(Scripted):
    """One model for all: each agent plays the lines under its own first message."""

    lines: dict[str, list[Any]] = {}
    answers: dict[str, list[Any]] = {}

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        first = next(m for m in messages if m.type == "human").text
        self.answers[first] = [m for m in messages if isinstance(m, ToolMessage)]
        self.script[:] = [self.lines[first].pop(0) if self.lines[first] else "done"]
        return super()._generate(messages, *args, **kwargs)


def staffed(root: Path, **lines: list[Any]) -> tuple[Any, Staff]:
    model = Staff(script=[], requests=[], lines=lines, answers={})
    middleware = FileStateMiddleware(root, virtual=True)
    helper: Any = {"name": "helper", "description": "Helps.", "system_prompt": "Help.", "middleware": [middleware]}
    graph = create_deep_agent(
        model=model, middleware=[middleware], backend=FilesystemBackend(root_dir=root, virtual_mode=True),
        subagents=[helper], checkpointer=InMemorySaver(), name="boss",
    )  # fmt: skip
    return graph, model


def task(description: str, kind: str = "helper") -> dict[str, Any]:
    return call("task", description=description, subagent_type=kind)


CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_task(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    graph, model = staffed(
        tmp_path,
        boss=[read("/a.txt"), task("help"), write("/a.txt", "one\n2\n"), write("/b.txt", "x\n"), read("/b.txt")],
        help=[write("/a.txt", "x\n"), read("/a.txt"), edit("/a.txt", "one", "1, by the helper"), read("/b.txt")],
    )
    (tmp_path / "b.txt").write_text("b\n")
    start = {"messages": [HumanMessage("boss")]}
    out = graph.invoke(start, CONFIG) if how == "sync" else await graph.ainvoke(start, CONFIG)
    refused, shown, edited, other = model.answers["help"]
    assert code(refused) == "not_read"
    assert (shown.artifact["unchanged"], edited.status, other.status) == (False, "success", "success")
    _, _, wrote, stolen, again = tool_messages(out)
    notice = next(m for m in out["messages"] if m.type == "human" and "a.txt" in m.text)
    assert 'by agent "helper"' in notice.text
    assert wrote.status == "success"  # the notice showed the helper's change in full
    assert code(stolen) == "not_read"  # what the helper read is no credit here
    assert again.artifact["unchanged"] is False
    assert set(out["file_state"]) == {"boss", "helper"}


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_tasks_in_parallel_on_one_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt").write_text("b\n")
    graph, model = staffed(
        tmp_path,
        boss=[[task("first"), task("second")], write("/a.txt", "x\n")],
        first=[read("/a.txt"), edit("/a.txt", "one", "1"), write("/b.txt", "x\n")],
        second=[read("/a.txt"), edit("/a.txt", "three", "3"), read("/b.txt")],
    )
    start = {"messages": [HumanMessage("boss")]}
    out = graph.invoke(start, CONFIG) if how == "sync" else await graph.ainvoke(start, CONFIG)
    assert path.read_text() == "1\ntwo\n3\n"
    assert [m.status for m in model.answers["first"]] == ["success", "success", "error"]
    assert [m.status for m in model.answers["second"]] == ["success"] * 3
    assert code(tool_messages(out)[-1]) == "not_read"


def test_its_general_purpose_agent_has_its_own_tools_unless_it_is_named(tmp_path: Path) -> None:
    """The guard of the others holds all the same: what it wrote is announced as anybody's."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    graph, model = staffed(
        tmp_path,
        boss=[read("/a.txt"), task("help", "general-purpose"), write("/a.txt", "one\ntwo\n3\n")],
        help=[write("/a.txt", "all new\n")],
    )
    out = graph.invoke({"messages": [HumanMessage("boss")]}, CONFIG)
    assert path.read_text() == "one\ntwo\n3\n"
    notice = next(m for m in out["messages"] if m.type == "human" and "a.txt" in m.text)
    assert "was changed." in notice.text
    assert "+all new" in notice.text
    assert set(out["file_state"]) == {"boss"}
    assert model.answers["help"][0].artifact is None


def test_its_middleware_may_be_replaced_beside_ours(tmp_path: Path) -> None:
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    model = Scripted(script=[], requests=[])
    graph = create_deep_agent(
        model=model, backend=backend, checkpointer=InMemorySaver(), name="deep",
        middleware=[FilesystemMiddleware(backend=backend, tools=["read_file", "ls"]),
                    FileStateMiddleware(tmp_path, virtual=True)],
    )  # fmt: skip
    session = Session(graph, model, "t")
    assert session.one(write("/a.txt", "x\n")).status == "success"
    gone = [RemoveMessage(str(m.id)) for m in session.state()["messages"]]
    session.graph.update_state(session.config, {"messages": gone}, as_node="tools")
    assert code(session.one(write("/a.txt", "y\n"))) == "not_in_context"
