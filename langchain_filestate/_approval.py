"""Asking a person through LangGraph's interrupt, in the shapes of LangChain's human-in-the-loop middleware.

The client sends back decisions without the id of a call, and `ToolNode` runs several calls in one task, whose answers
LangGraph numbers in the order in which they are asked for. So the questions of a task are kept in the history in that
order, each with its call id and the digests that were shown, and an answer belongs to the question with its number:
it is never taken for another call, nor for another state of the file. One question of a task is open at a time; calls
that also need an answer raise the same question again, so that it is the one that surfaces, whichever comes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt
from pydantic import ValidationError

from langchain_filestate import _outside
from langchain_filestate._call import Answer
from langchain_filestate._policy import answered_at_once
from langchain_filestate._reading import Read
from langchain_filestate._running import wrong
from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_filestate._caller import Caller
    from langchain_filestate._history import FileHistory
    from langchain_filestate._policy import PlannedChange, Policy
    from langchain_filestate.tools import FileTool

_MAX_RUNS = 256


@dataclass(slots=True)
class _Run:
    """One run of a task: what was answered so far, and the question that is open."""

    scratchpad: object
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: list[Any] = field(default_factory=list)
    question: dict[str, Any] | None = None


_runs: OrderedDict[int, _Run] = OrderedDict()
_runs_lock = threading.Lock()


def _run_of(scratchpad: object) -> _Run:
    # LangGraph makes a new scratchpad, with the counter of answers in it, each time a task runs; it cannot be weakly
    # referenced, so the last ones are held.
    with _runs_lock:
        run = _runs.get(id(scratchpad))
        if run is None or run.scratchpad is not scratchpad:
            run = _runs[id(scratchpad)] = _Run(scratchpad)
            while len(_runs) > _MAX_RUNS:
                _runs.popitem(last=False)
        return run


def request(planned: PlannedChange, args: Mapping[str, Any], max_lines: int, before: str = "") -> dict[str, Any]:
    """The question about one change, as a client of LangChain's human-in-the-loop middleware expects it.

    Args:
        planned: The change.
        args: The arguments of the call.
        max_lines: Lines of diff.
        before: What is said first.
    """
    return {
        "action_requests": [
            {"name": planned.tool, "args": dict(args), "description": before + describe(planned, max_lines)},
        ],
        "review_configs": [{"action_name": planned.tool, "allowed_decisions": ["approve", "edit", "reject"]}],
    }


def describe(planned: PlannedChange, max_lines: int) -> str:
    """A change as a person is to judge it: what, where, and the diff."""
    text, _ = _outside.diff_text(planned.patch, max_lines)
    done = "Create" if planned.before is None else "Change"
    return f"{done} {planned.file_path} (+{planned.patch.added} / -{planned.patch.removed})\n{text}"


def describe_call(tool: FileTool, args: Mapping[str, Any], caller: Caller) -> str:
    """A call of a tool, not carried out, as a person is to judge it; for one that would be refused, why."""
    try:
        arguments = tool.args_schema.model_validate(args)
        op = tool.operation({field: getattr(arguments, field) for field in type(arguments).model_fields})
        if isinstance(op, Read):
            return f"{tool.name} changes no file."
        planned = caller.editor.preview(tool.name, caller.agent_of(None), op)
    except ValidationError as error:
        return wrong(error).message
    except Refused as refused:
        return refused.message
    return describe(planned, caller.editor.policy.limits.max_diff_lines)


class Asker:
    """Asks about the changes of one call.

    Args:
        history: Where the questions of a task are kept.
        task_id: The task.
        scratchpad: What LangGraph keeps for one run of it.
        call_id: The call.
        policy: Which changes are asked about, and how much of the diff the question shows.
    """

    def __init__(
        self, history: FileHistory, task_id: str, scratchpad: object, call_id: str | None, policy: Policy
    ) -> None:
        self._history, self._task, self._call_id = history, f"task:{task_id}", call_id
        self._approve, self._max_lines = policy.approve, policy.limits.max_diff_lines
        self._run = _run_of(scratchpad)

    def asked(self, path: str, before: str | None) -> bool:
        """Whether somebody was asked about a change of this call to a file with this digest that the agent had seen."""
        this = {"call": self._call_id, "path": path, "before": before}
        entries = self._history.asked(self._task)
        return any(e.get("stale") is False and this.items() <= e["question"].items() for e in entries)

    def __call__(
        self, planned: PlannedChange, before: str | None, after: str, args: Mapping[str, Any], *, stale: bool
    ) -> Answer:
        """The answer of a person to this very change; raises the interrupt if there is none yet."""
        if callable(self._approve):
            needed = self._approve(planned)
            answered_at_once("approve", needed)
            if not needed:
                return Answer(approved=True)
        mine = {"call": planned.tool_call_id, "path": planned.file_path, "before": before, "after": after}
        run, wrong = self._run, ""
        with run.lock:
            asked = {entry["number"]: entry["question"] for entry in self._history.asked(self._task)}
            self._collect()
            later = None
            for number in reversed(range(len(run.answers))):
                question = asked.get(number)
                if question == mine:
                    try:
                        found = decision(run.answers[number], planned, args)
                    except _Unreadable as error:
                        wrong = f"The last answer could not be read: {error}\n"
                        break
                    return later if later is not None and found.approved else found
                same = question is not None and (question["call"], question["path"]) == (mine["call"], mine["path"])
                if later is None and same:
                    later = _rejection(run.answers[number])  # a person's last no goes before an older yes
            if run.question is None:
                run.question = request(planned, args, self._max_lines, wrong)
                number = len(run.answers)
                if asked.get(number) != mine:
                    self._history.note_asked(self._task, {"number": number, "question": mine, "stale": stale})
            interrupt(run.question)
        raise WiringError("LangGraph gave an answer to a question that nobody was asked.")  # pragma: no cover

    def _collect(self) -> None:
        """Take the answers that are there; the graph gives them in the order of the questions.

        One whose question is not on record (the process is another, and the history was in memory) belongs to
        nothing, and its change is asked about once more.
        """
        run = self._run
        while run.question is None:
            try:
                run.answers.append(interrupt({}))
            except GraphBubbleUp:
                return


class _Unreadable(Exception):  # noqa: N818  an answer inside this module
    """The answer of a client has another shape."""


_TEXTS = frozenset({"old_string", "new_string", "replace_all", "edits", "content", "new_source"})
"""Arguments that a person may change while approving."""


def _rejection(answer: Any) -> Answer | None:
    """The answer, if it is a no in whatever shape it can be read."""
    decisions = answer.get("decisions") if isinstance(answer, dict) else None
    match decisions:
        case [{"type": "reject" | "respond"} as said]:
            return Answer(approved=False, message=str(said.get("message") or ""))
        case _:
            return None


def decision(answer: Any, planned: PlannedChange, given: Mapping[str, Any]) -> Answer:
    """What a person's answer says about this change.

    Args:
        answer: `{"decisions": [decision]}` as LangChain's middleware takes it; `decision` is one of
            `{"type": "approve"}`, `{"type": "edit", "edited_action": {"name": ..., "args": {...}}}`,
            `{"type": "reject", "message": ...}`, `{"type": "respond", "message": ...}`.
        planned: The change.
        given: The arguments of the call.

    Raises:
        _Unreadable: The answer has another shape.
        Refused: An edited decision names another tool or another file, or changes something else than the texts.
    """
    rejected = _rejection(answer)
    if rejected is not None:
        return rejected
    decisions = answer.get("decisions") if isinstance(answer, dict) else None
    match decisions:
        case [{"type": "approve"}]:
            return Answer(approved=True)
        case [{"type": "edit", "edited_action": {"name": name, "args": dict(args)}}]:
            path = args.get("file_path", planned.file_path)
            if isinstance(path, str) and normpath(path) in {planned.file_path, normpath(given["file_path"])}:
                args = {**args, "file_path": given["file_path"]}  # another spelling of it, such as the question's own
            fixed = (key for key, value in args.items() if key not in _TEXTS & given.keys() and value != given.get(key))
            other = next(fixed, None)
            if name != planned.tool or other is not None:
                raise Refused(
                    f"The user's decision is about another {'tool' if name != planned.tool else other} than your call; "
                    "the file was not changed. Ask them what they meant.",
                    code="rejected",
                )
            return Answer(approved=True, args={**given, **args})
        case _:
            raise _Unreadable('resume with {"decisions": [decision]}, one of type "approve", "edit" or "reject".')
