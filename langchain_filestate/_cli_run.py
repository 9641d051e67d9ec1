"""`run`: a real agent on a folder, with checkpoints and history that last.

A thread keeps its root, its model and its rules; going on with it needs none of them again. Rules that are given later
are added to those that are there, so that going on never opens what was closed. What a broken-off run left behind
(questions to the user, calls that were not answered) comes first, then the new task.
"""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from langchain_filestate import _cli_home as _home
from langchain_filestate._cli_agent import SCRIPTED, agent_of, checkpoint_of, model_of
from langchain_filestate._cli_show import Stop, clean, one_line, short
from langchain_filestate.results import ReadResult, parse_result
from langchain_filestate.tools import FileToolkit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Interrupt, StateSnapshot

    from langchain_filestate._cli_home import Desk, Thread
    from langchain_filestate._cli_show import Screen

_ADJECTIVES = (
    "amber",
    "brisk",
    "calm",
    "clear",
    "eager",
    "gentle",
    "keen",
    "lively",
    "mellow",
    "neat",
    "quick",
    "warm",
)
_NOUNS = (
    "badger",
    "cedar",
    "comet",
    "crane",
    "falcon",
    "heron",
    "maple",
    "meadow",
    "otter",
    "pebble",
    "river",
    "tulip",
)


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Let the agent work, and print what it does.

    Returns:
        0 if the agent finished; 1 if it waits for an answer that nobody gave.
    """
    with _home.opened(_home.home(args.state)) as desk:
        thread = _thread(args, desk)
        toolkit = FileToolkit(
            thread.root,
            deny=thread.deny,
            read_only=thread.read_only,
            approve=thread.approve,
            history=desk.history,
        )
        graph = agent_of(model_of(thread.model), toolkit, desk.saver, listing=True)
        work = _Work(graph, screen, thread.id, asks=thread.approve, as_json=args.json)
        start = work.state(args.start)
        if args.task is None and not start.next:
            raise Stop("Give a task: nothing of this thread was broken off.")
        desk.remember(thread)
        work.tell({"event": "thread", "thread": thread.id, "root": thread.root})
        try:
            return work.all(args.task, start, forked=args.start is not None)
        except Stop as stop:
            raise Stop(f"{stop.message}\nGo on later with: run --thread {thread.id}", stop.code) from stop


def _thread(args: argparse.Namespace, desk: Desk) -> Thread:
    """The thread to go on with, with what the user adds, or a new one."""
    given_root = None if args.root is None else os.path.realpath(args.root)
    model = args.model
    if model is not None and model.startswith(SCRIPTED):
        model = SCRIPTED + os.path.realpath(model.removeprefix(SCRIPTED))
    if args.thread is None:
        if args.start is not None:
            raise Stop("--from takes a checkpoint of a thread: give --thread, too.")
        if model is None:
            raise Stop("Give a model: --model provider:name, or --model scripted:FILE.json to try things out.")
        return _home.Thread(
            id=_fresh(desk),
            root=given_root or os.path.realpath("."),
            model=model,
            deny=tuple(args.deny),
            read_only=tuple(args.read_only),
            approve=bool(args.approve),
            started=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
    known = desk.thread(args.thread)
    if known is None:
        raise Stop(f"There is no thread {clean(args.thread)}; `history` lists them.")
    if given_root is not None and given_root != known.root:
        raise Stop(f"Thread {known.id} works in {clean(known.root)}; for another root start a new thread.")
    return replace(
        known,
        model=model or known.model,
        deny=tuple(dict.fromkeys([*known.deny, *args.deny])),
        read_only=tuple(dict.fromkeys([*known.read_only, *args.read_only])),
        approve=known.approve if args.approve is None else args.approve,
    )


def _fresh(desk: Desk) -> str:
    """A name for a thread that can be said aloud."""
    while True:
        name = f"{secrets.choice(_ADJECTIVES)}-{secrets.choice(_NOUNS)}-{secrets.randbelow(900) + 100}"
        if desk.thread(name) is None:
            return name


@dataclass(slots=True)
class _Work:
    """One run of a thread."""

    graph: CompiledStateGraph[Any, Any, Any, Any]
    screen: Screen
    thread: str
    asks: bool
    as_json: bool
    seen: set[str | None] = field(default_factory=set)
    answer: str = ""

    def config(self, checkpoint: str | None = None) -> Any:
        place = {"thread_id": self.thread, "checkpoint_ns": ""}
        return {"configurable": {**place, "checkpoint_id": checkpoint} if checkpoint else place}

    def state(self, checkpoint: str | None = None) -> StateSnapshot:
        if checkpoint is not None:
            return checkpoint_of(self.graph.get_state_history(self.config()), self.thread, checkpoint)
        return self.graph.get_state(self.config())

    def all(self, task: str | None, start: StateSnapshot, *, forked: bool) -> int:
        """What was broken off, then the task."""
        self.seen = {message.id for message in start.values.get("messages", ())}
        if start.next and not forked:
            self.tell({"event": "resumes"})
            if not self.until_done(start):
                return 1
        if task is not None:
            message = HumanMessage(task, id=f"task-{secrets.token_hex(6)}")
            self.seen.add(message.id)
            checkpoint = start.config["configurable"].get("checkpoint_id") if forked else None
            self.stream({"messages": [message]}, checkpoint)
            if not self.until_done(self.state()):
                return 1
        self.tell({"event": "answer", "text": self.answer})
        return 0

    def until_done(self, state: StateSnapshot) -> bool:
        """Ask and go on until nothing is left to do; False if the user does not answer."""
        while state.next:
            if state.interrupts and self.asks:  # if nobody is asked any more, the calls just run again
                answers = {}
                for interrupt in state.interrupts:
                    answer = self.ask(interrupt)
                    if answer is None:
                        self.tell({"event": "waits", "thread": self.thread})
                        return False
                    answers[interrupt.id] = {"decisions": [answer]}
                self.stream(Command(resume=answers))
            else:
                self.stream(None)
            state = self.state()
        return True

    def stream(self, given: Any, checkpoint: str | None = None) -> None:
        parts: Any = self.graph.stream(given, self.config(checkpoint), stream_mode=["values", "custom"])
        for mode, part in parts:
            if mode == "custom":
                if isinstance(part, dict) and part.get("type") == "file_change":
                    self.tell({"event": "change", **{key: part[key] for key in part if key != "type"}})
                continue
            for message in part.get("messages", ()):
                if message.id not in self.seen:
                    self.seen.add(message.id)
                    self.show(message)

    def show(self, message: Any) -> None:
        if isinstance(message, AIMessage):
            text = str(message.text)
            if message.tool_calls:
                if text:
                    self.tell({"event": "says", "text": text})
                for call in message.tool_calls:
                    self.tell({"event": "call", "name": call["name"], "args": call["args"], "tool_call_id": call["id"]})
            else:
                self.answer = text
        elif isinstance(message, ToolMessage):
            result = parse_result(message)
            self.tell(
                {
                    "event": "result",
                    "name": message.name,
                    "status": message.status,
                    "code": getattr(result, "code", None),
                    "text": _said(message, result),
                    "tool_call_id": message.tool_call_id,
                }
            )
        elif isinstance(message, HumanMessage):
            self.tell({"event": "notice", "text": str(message.text)})

    def tell(self, event: Mapping[str, Any]) -> None:
        """Print an event."""
        if self.as_json:
            self.screen.json(event)
            return
        line = self.screen.line
        match event["event"]:
            case "thread":
                line("Thread ", (event["thread"], "bold"), f" in {event['root']}")
            case "resumes":
                line(("Going on with what was broken off.", "dim"))
            case "says":
                line(one_line(event["text"], 400))
            case "call":
                line("  ", (event["name"], "bold"), f" {_arguments(event['args'])}")
            case "result":
                word, style = ("ok", "green") if event["status"] == "success" else (event["code"] or "error", "red")
                line("    ", (word, style), f": {one_line(event['text'])}")
            case "change":
                line(
                    "    ",
                    short(event["path"]),
                    " ",
                    (f"+{event['added']}", "green"),
                    " ",
                    (f"-{event['removed']}", "red"),
                )
            case "notice":
                line("  ", ("told of a change: ", "yellow"), one_line(event["text"]))
            case "waits":
                line(f"Nobody answered. Go on later with: run --thread {event['thread']}")
            case _:  # the answer
                line("")
                line(event["text"] or "(no answer)")

    def ask(self, interrupt: Interrupt) -> dict[str, Any] | None:
        """Put a change before the user; None if there is no answer to be had."""
        request = interrupt.value["action_requests"][0]
        if self.as_json:
            self.screen.json({"event": "asks", "id": interrupt.id, "action_requests": [request]})
        else:
            self.screen.line("")
            first, _, diff = request["description"].partition("\n")
            self.screen.line((first, "bold"))
            self.screen.diff(diff)
        while True:
            if not self.as_json:
                self.screen.line(("Do it? y, n, or say why not:", "bold"))
            sys.stdout.flush()
            said = sys.stdin.readline()
            if not said:
                return None
            said = said.strip()
            if said.lower() in {"y", "yes"}:
                return {"type": "approve"}
            if said:
                return {"type": "reject", "message": "" if said.lower() in {"n", "no"} else said}


def _arguments(args: Mapping[str, Any]) -> str:
    """The arguments of a call on one line; the path first and bare."""
    given = dict(args)
    path = given.pop("file_path", None)
    parts = [str(path)] if path is not None else []
    parts += [f"{name}={one_line(repr(value), 40)}" for name, value in given.items()]
    return one_line(" ".join(parts), 160)


def _said(message: ToolMessage, result: Any) -> str:
    """What a result says, in a line; of a read what it covered, and not the text."""
    if isinstance(result, ReadResult):
        if result.unchanged:
            return "unchanged since it was read"
        return f"line {result.first_line}-{result.last_line} of {result.total_lines}"
    return str(message.text).split("\n", 1)[0]
