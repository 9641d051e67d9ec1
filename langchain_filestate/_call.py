"""Who calls, from where, and what comes back: the values that pass between the glue and the use cases."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from langchain_filestate import _records
from langchain_filestate._changes import next_seq

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from langchain_filestate._history import FileHistory
    from langchain_filestate._policy import PlannedChange, Policy
    from langchain_filestate._records import Known, Record, View
    from langchain_filestate._siblings import Place, Siblings
    from langchain_filestate._workspace import Workspace
    from langchain_filestate.results import Result


class Context(Protocol):
    """What stands in the calling agent's messages."""

    def alive(self, evidence: Collection[str]) -> Collection[str]:
        """Those of the message ids that the agent still has before it."""
        ...

    def shown(self, path: str, digest: str, first: int, last: int, text: str) -> str | None:
        """Id of a message in which one read of exactly this text, range and bytes stands; None without."""
        ...

    def media(self) -> tuple[int, int]:
        """How many pictures and other files stand there as content blocks, and the characters of their data."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person decided about a change.

    Attributes:
        approved: False for a rejection.
        message: The person's words; may be empty.
        args: The tool's arguments as the person changed them; None if unchanged.
    """

    approved: bool
    message: str = ""
    args: Mapping[str, Any] | None = None


class Ask(Protocol):
    """Asks a person."""

    def __call__(
        self, planned: PlannedChange, before: str | None, after: str, args: Mapping[str, Any], *, stale: bool
    ) -> Answer:
        """What they say about a change from one digest to another, asked for with these arguments.

        `stale` tells that it goes ahead on bytes that the agent has not seen.
        """
        ...

    def asked(self, path: str, before: str | None) -> bool:
        """Whether they were asked about a change of this call to a file with this digest that the agent had seen."""
        ...


class Call(NamedTuple):
    """One tool call.

    Attributes:
        tool: Name of the tool.
        agent: Whose records count as its own.
        evidence: Id of the message that will carry the answer.
        context: What stands in the agent's messages.
        state: The channel's value; other agents' records are in it too.
        thread_id: The thread; None without a checkpointer.
        checkpoint_id: The checkpoint that the step started from; None outside a graph.
        message_id: Id of the assistant message with the call; None outside a graph: then nothing is a replay.
        call_id: Id of the tool call; None if it was called without one.
        identity: The same, made unique in its message: some providers give every call one id.
        place: Where it stands among the calls of its message; None outside a graph.
        earlier: Index and `file_path` of earlier calls of the message.
        changed: Arguments that somebody changed after the model had given them.
        ask: Asks a person; None if nobody is to be asked.
        emit: Takes a small event for each change; None if nobody listens.
        gives_way: Older pictures and files of the conversation give way to new ones.
        book: Keeps an agent's records, where no graph does; None in a graph.
        reraise: Exceptions that steer the graph and pass through every handler.
    """

    tool: str
    agent: str
    evidence: str
    context: Context
    state: Mapping[str, Any]
    thread_id: str | None = None
    checkpoint_id: str | None = None
    message_id: str | None = None
    call_id: str | None = None
    identity: str | None = None
    place: Place | None = None
    earlier: tuple[tuple[int, str], ...] = ()
    changed: Mapping[str, Any] = MappingProxyType({})
    ask: Ask | None = None
    emit: Callable[[dict[str, Any]], None] | None = None
    gives_way: bool = False
    reraise: tuple[type[BaseException], ...] = ()
    book: Callable[[str, dict[str, Any]], None] | None = None


class Outcome(NamedTuple):
    """What comes of a call.

    Attributes:
        content: For the model: text, or content blocks for media.
        result: For programs.
        path: The record's key; None if no record changes.
        record: What the agent knows now; None if no record changes.
        told: True if some of what the record counts as shown is shown by the answer only, not by the call.
        stale: For a refusal that shows how the file was changed: the digest of which it speaks, and if it is all.
    """

    content: str | list[dict[str, Any]]
    result: Result
    path: str | None = None
    record: Record | None = None
    told: bool = False
    stale: Mapping[str, Any] | None = None


class Shop(Protocol):
    """What a use case works with."""

    workspace: Workspace
    history: FileHistory
    policy: Policy
    siblings: Siblings


class Memory:
    """Records as one call sees them: the state's, and what earlier calls of its message left.

    Args:
        call: The call.
        siblings: What the calls of its message share.
        path: Real, absolute path.
        until: Of those that were left, only records with a lower `seq`: what a call knew that runs again now.
    """

    def __init__(self, call: Call, siblings: Siblings, path: str, until: int = sys.maxsize) -> None:
        self._call = call
        self.records: dict[str, Record] = {}
        for agent, records in call.state.items():
            record = _records.load(records.get(path)) if isinstance(records, dict) else None
            if record is not None:
                self.records[agent] = record
        self._known: dict[str | None, Known] = {}
        self.pending: dict[str, bool] = {}
        if call.place is not None:
            self.pending = siblings.evidence(call.place)
            self._take(siblings.record(call.place, call.agent, path, until))
            if call.agent in self.records:
                self._take(siblings.overtaking(call.place, call.agent, path, until))

    def _take(self, left: Record | None) -> None:
        """A record that a sibling left, if it is newer."""
        mine = self.records.get(self._call.agent)
        if left is not None and (mine is None or left.seq > mine.seq):
            self.records[self._call.agent] = left

    def known(self, digest: str | None) -> Known:
        """What the calling agent may build on now, given the bytes on disk."""
        known = self._known.get(digest)
        if known is None:
            known = _records.known(self.records, self._call.agent, digest, self._counting)
            self._known[digest] = known
        return known

    def carried(self, digest: str | None) -> tuple[View, ...]:
        """The views of these bytes to keep in the record: those that count, or will when the step is over."""
        known = self.known(digest)
        if self.pending:  # there is more than what counts
            known = _records.known(self.records, self._call.agent, digest, self._carried)
        return known.views if known.record is not None and known.record.digest == digest else ()

    def _counting(self, evidence: Collection[str]) -> Collection[str]:
        """In the agent's messages, or written by itself in this very message."""
        alive = self._call.context.alive(evidence)
        return {*alive, *(e for e in evidence if self.pending.get(e))} if self.pending else alive

    def _carried(self, evidence: Collection[str]) -> Collection[str]:
        return {*self._call.context.alive(evidence), *(e for e in evidence if e in self.pending)}

    def next_seq(self) -> int:
        """A number above all that came before for this path; to be taken under the path's lock."""
        newest = max((record.seq for record in self.records.values()), default=0)
        return next_seq(newest)
