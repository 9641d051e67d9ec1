"""`demo`: a scripted agent lives through what the tools are for, on a copy of real source.

Nothing is acted but the model's choices: the graph is `create_agent` with the middleware and a SQLite checkpointer, the
files are on disk, and the last step runs in another process, which knows of the first only what the checkpoint says.
No network, no key.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_filestate._cli_agent import NAME, Scripted, agent_of
from langchain_filestate._cli_show import Stop, bounded, one_line
from langchain_filestate.results import parse_result
from langchain_filestate.tools import FileToolkit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from langchain_filestate._cli_show import Screen

SOURCE = "unidiff"
FILE = "patch.py"
BY_HAND = "# A person was here while the agent worked.\n"
BY_AGENT = "by the agent"
TOLD_LINES = 14
_CONFIG: Any = {"configurable": {"thread_id": "demo"}}


@dataclass(frozen=True, slots=True)
class Texts:
    """Pieces of the file that the story is made of.

    Attributes:
        twice: A line that stands there more than once.
        once: Lines that stand there once.
    """

    twice: str
    once: tuple[str, ...]

    @classmethod
    def of(cls, source: str) -> Texts:
        """Find them: method heads, and docstrings that the agent has not had yet, in any version of the source."""
        lines = source.splitlines()
        twice = next(line for line in lines if line.startswith("    def ") and source.count(line) > 1)
        once = tuple(
            line.strip()
            for line in lines
            if line.strip().startswith('"""') and line.endswith('."""') and source.count(line.strip()) == 1
        )
        return cls(twice.strip(), tuple(line for line in once if BY_AGENT not in line))


def _edit(old: str, number: int) -> dict[str, Any]:
    """The agent's edits of docstrings, by number."""
    return _replace(old, old.removesuffix('."""') + f' (edit {number}, {BY_AGENT})."""')


def demo(args: argparse.Namespace, screen: Screen) -> int:
    """Tell the story. Returns 0 if it went as it should."""
    if args.go_on is not None:
        for step in second(args.go_on):
            screen.json(step)
        return 0
    folder = os.path.realpath(tempfile.mkdtemp(prefix="filestate-demo-"))
    try:
        for number, step in enumerate(_story(folder)):
            step["step"] = number
            if args.json:
                screen.json(step)
            else:
                _print(screen, step)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    if args.keep and not args.json:
        screen.line(f"The files, and the checkpoints beside them, are in {folder}")
    return 0


def _story(folder: str) -> Iterator[dict[str, Any]]:
    found = importlib.util.find_spec(SOURCE)
    places = found.submodule_search_locations if found is not None else None
    if not places:  # pragma: no cover  a dependency of this package
        raise Stop(f"The source that the demo works on, {SOURCE}, is not installed.")
    shutil.copytree(places[0], os.path.join(folder, SOURCE), ignore=shutil.ignore_patterns("__pycache__"))
    yield {
        "event": "begin", "title": f"A copy of {SOURCE}, to work on", "folder": folder, "file": f"{SOURCE}/{FILE}",
        "process": os.getpid(),
    }  # fmt: skip
    yield from first(folder)
    yield from _other_process(folder)


def _other_process(folder: str) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "langchain_filestate", "demo", "--go-on", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own program
    if done.returncode:
        raise Stop(f"The second process failed: {done.stderr.strip() or done.stdout.strip()}", 1)
    for line in done.stdout.splitlines():
        yield json.loads(line)


def first(folder: str) -> Iterator[dict[str, Any]]:
    """What happens in the first process."""
    path = os.path.join(folder, SOURCE, FILE)
    with open(path, encoding="utf-8", newline="") as file:
        texts = Texts.of(file.read())

    def by_hand() -> dict[str, Any]:
        with open(path, "a", encoding="utf-8", newline="") as file:
            file.write(BY_HAND)
        return _edit(texts.once[1], 2)

    yield from _play(
        folder,
        "Reword some docstrings.",
        [
            ("An edit of a file that the agent has not read is refused", _edit(texts.once[0], 1)),
            ("So it reads", _read()),
            ("Text that stands there more than once is refused", _replace(texts.twice, f"{texts.twice}  # edited")),
            ("Text that stands there once is replaced, and nothing else changes", _edit(texts.once[0], 1)),
            (f"A person adds a line: {BY_HAND.strip()!r}. The agent does not know, and is stopped", by_hand),
            ("It reads again", _read()),
            ("Now it may edit; the person's line stays", _edit(texts.once[1], 2)),
        ],
    )


def second(folder: str) -> Iterator[dict[str, Any]]:
    """What happens in the second process: the same thread, and no read."""
    with open(os.path.join(folder, SOURCE, FILE), encoding="utf-8", newline="") as file:
        texts = Texts.of(file.read())
    title = "Another process goes on with the thread; what was read is in its checkpoint"
    yield from _play(folder, "One more.", [(title, _edit(texts.once[0], 3))])


def _read() -> dict[str, Any]:
    return {"name": "read_file", "args": {"file_path": FILE}}


def _replace(old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "args": {"file_path": FILE, "old_string": old, "new_string": new}}


@dataclass(slots=True)
class _Watch:
    """Makes steps of the messages as they come."""

    titles: list[str]
    seen: set[str | None] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)

    def steps(self, state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        calls = {
            call["id"]: call
            for message in state["messages"]
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
        for message in state["messages"]:
            if message.id in self.seen:
                continue
            self.seen.add(message.id)
            if isinstance(message, HumanMessage):
                self.notices.append(str(message.text))
            elif isinstance(message, ToolMessage):
                call = calls[message.tool_call_id]
                result = parse_result(message)
                patch = getattr(result, "patch", None)
                records = state.get("file_state", {}).get(NAME, {})
                yield {
                    "event": "step",
                    "title": self.titles.pop(0),
                    "process": os.getpid(),
                    "notices": self.notices,
                    "call": {"name": call["name"], "args": call["args"]},
                    "status": message.status,
                    "code": getattr(result, "code", None),
                    "told": bounded(str(message.text), TOLD_LINES),
                    "patch": None if patch is None else str(patch),
                    "record": next(iter(records.values()), None),
                }
                self.notices = []


def _play(
    folder: str, task: str, story: list[tuple[str, dict[str, Any] | Callable[[], dict[str, Any]]]]
) -> Iterator[dict[str, Any]]:
    model = Scripted(script=[line for _, line in story])
    toolkit = FileToolkit(os.path.join(folder, SOURCE), recover_stale=False)
    with SqliteSaver.from_conn_string(os.path.join(folder, "checkpoints.db")) as saver:
        graph = agent_of(model, toolkit, saver)
        watch = _Watch([title for title, _ in story])
        watch.seen = {message.id for message in graph.get_state(_CONFIG).values.get("messages", ())}
        said = HumanMessage(task, id=f"task-{len(watch.seen)}")
        watch.seen.add(said.id)
        for state in graph.stream({"messages": [said]}, _CONFIG, stream_mode="values"):
            yield from watch.steps(state)


def _print(screen: Screen, step: dict[str, Any]) -> None:
    if step["event"] == "begin":
        screen.line((step["title"], "bold"), f": {step['folder']}/{step['file']} (process {step['process']})")
        return
    screen.line("")
    screen.line((f"{step['step']}. {step['title']}", "bold"), f" (process {step['process']})")
    for notice in step["notices"]:
        screen.line(("   the model is told beforehand:", "yellow"))
        screen.block(bounded(notice, TOLD_LINES), "dim")
    args = "".join(f"\n{name}: {one_line(str(value))}" for name, value in step["call"]["args"].items())
    screen.line(("   the model calls ", "dim"), (step["call"]["name"], "bold"))
    screen.block(args.removeprefix("\n"))
    refused = step["status"] == "error"
    screen.line(
        ("   the model is told ", "dim"), (f"({step['code']})" if refused else "(ok)", "red" if refused else "green")
    )
    screen.block(step["told"])
    if step["patch"]:
        screen.line(("   the patch", "dim"))
        screen.diff(step["patch"])
    record = step["record"]
    if record is None:
        screen.line(("   its record of the file: ", "dim"), "none")
    else:
        views = ", ".join(f"{first}-{last}" for first, last in _joined(record["views"])) or "none"
        shown = f"digest {record['digest'][:12]}, {record['lines']} lines, seen {views}, by {record['origin']}"
        screen.line(("   its record of the file: ", "dim"), shown)


def _joined(views: list[list[Any]]) -> list[tuple[int, int]]:
    """The line ranges of views, those that touch made one."""
    ranges: list[tuple[int, int]] = []
    for first, last, _ in sorted(views):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges
