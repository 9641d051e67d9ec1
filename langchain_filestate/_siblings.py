"""Order and overlay for the calls of one assistant message.

A graph runs the calls of one message in parallel and no call sees the others' state updates. Here, in the process,
each call on a file waits for earlier calls of the message on the same file, and records pass from one to the next.
Both are comforts: past the bounds a call goes on, and the digest check before the commit protects. After a crash the
overlay is gone and the history stands in for it.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from langchain_filestate._records import Record

GRACE_SECONDS = 0.1
"""How long to wait for an earlier call that has not begun: it may have been rejected, or not be run again."""

BUSY_SECONDS = 2.0
"""The same at most, on a machine so busy that threads do not get to run when they are due."""

_SLICE = 0.02

_MAX_MESSAGES = 4096  # a call may wait for a person while other threads of the process go on

Phase = Literal["queued", "begun", "interrupted", "finished"]
"""`queued`: an event loop has it, and no thread has taken it up yet; others wait for it as for one that has begun."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call stands.

    Attributes:
        message: What identifies the message and its run: thread, checkpoint, message id.
        index: The call's place among the calls of the message, from 0.
    """

    message: tuple[str | None, ...]
    index: int


def file_name(path: str) -> str:
    """The last name in a path as the model wrote it; but for links and look-alikes, other names are other files."""
    return path.rstrip("/").rpartition("/")[2]


@dataclass(slots=True)
class _Message:
    phases: dict[int, Phase] = field(default_factory=dict)
    records: dict[tuple[str, str], list[tuple[int, Record]]] = field(default_factory=dict)
    wakers: set[Callable[[], object]] = field(default_factory=set)
    """Called at each change of a phase, for those who wait in an event loop."""
    waited: dict[int, frozenset[int]] = field(default_factory=dict)
    """For whom a call has waited in an event loop, as long as it had to."""
    evidence: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """Evidence that calls of the message give: the index of the call, and whether it wrote the text itself."""


class _Grace:
    """The time for a call to begin, of which only that counts in which threads got to run when they were due.

    Where this one is woken late, because the machine is busy, the process was stopped or another thread holds the
    interpreter, the call that has not begun may be kept waiting by the same.
    """

    def __init__(self, started: float) -> None:
        self._end, self._last, self._left = started + BUSY_SECONDS, started, GRACE_SECONDS

    def slice(self) -> float:
        """Seconds to wait before asking again; 0 or less if the time is over."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        if passed < 2 * _SLICE:
            self._left -= passed
        return min(_SLICE, self._left, self._end - now)


def _turns(phases: Mapping[int, Phase], earlier: Sequence[int], seconds: float) -> Iterator[float]:
    """How long to wait for the next change of a phase, until there is nobody to wait for."""
    started = time.monotonic()
    # One that waited for a person before we began may be about to run again with the answer.
    resumed = {index for index in earlier if phases.get(index) == "interrupted"}
    grace = _Grace(started)
    for index in earlier:
        while (phase := phases.get(index)) != "finished":
            if phase == "interrupted" and index not in resumed:
                break
            left = started + seconds - time.monotonic()
            if phase in {"queued", "begun"}:
                resumed.discard(index)
            else:
                left = min(left, grace.slice())
            if left <= 0:
                break
            yield left


def _wake(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(changed.set)


class Siblings:
    """The calls of the last messages of this process; bounded, the oldest message goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._messages: OrderedDict[tuple[str | None, ...], _Message] = OrderedDict()

    def _of(self, key: tuple[str | None, ...]) -> _Message:
        message = self._messages.get(key)
        if message is None:
            message = self._messages[key] = _Message()
            while len(self._messages) > _MAX_MESSAGES:
                self._messages.popitem(last=False)
        else:
            self._messages.move_to_end(key)
        return message

    def begin(self, place: Place) -> None:
        """Note that a call has begun, before it does anything that takes time."""
        self._enter(place, "begun")

    def end(self, place: Place, *, interrupted: bool = False) -> None:
        """Note that a call has finished, or waits for a person."""
        self._enter(place, "interrupted" if interrupted else "finished")

    def _enter(self, place: Place, phase: Phase) -> None:
        with self._changed:
            message = self._of(place.message)
            message.phases[place.index] = phase
            if phase in {"interrupted", "finished"}:
                message.waited.pop(place.index, None)
            self._changed.notify_all()
            for wake in message.wakers:
                wake()

    def wait(self, place: Place, earlier: Iterable[int], seconds: float) -> None:
        """Wait until the earlier calls have finished.

        Args:
            place: Who waits.
            earlier: The indexes of the calls to wait for.
            seconds: How long to wait for those that have begun; others get `GRACE_SECONDS`.
        """
        with self._changed:
            message = self._of(place.message)
            waited = message.waited.get(place.index, frozenset())
            for left in _turns(message.phases, [index for index in earlier if index not in waited], seconds):
                self._changed.wait(left)

    @asynccontextmanager
    async def turn(self, place: Place, earlier: Sequence[int], seconds: float) -> AsyncIterator[None]:
        """Note that a call is queued, and wait as `wait` does, in an event loop; in the block a thread takes it up.

        The threads that an event loop has for its calls are few. Calls that waited in them for earlier ones, which had
        not got one yet, would wait in vain.
        """
        self._enter(place, "queued")
        try:
            await self._turn(place, earlier, seconds)
            yield
        finally:
            with self._changed:  # cancelled before a thread took it up; one that is about to says so itself
                if self._of(place.message).phases.get(place.index) == "queued":
                    self._enter(place, "finished")

    async def _turn(self, place: Place, earlier: Sequence[int], seconds: float) -> None:
        loop, message = asyncio.get_running_loop(), self._of(place.message)
        turns = _turns(message.phases, earlier, seconds)
        while True:
            changed = asyncio.Event()
            wake = partial(_wake, loop, changed)
            with self._changed:
                left = next(turns, None)
                if left is None:
                    message.waited[place.index] = frozenset(earlier)
                    return
                message.wakers.add(wake)
            timer = loop.call_later(left, changed.set)
            try:
                await changed.wait()
            finally:
                timer.cancel()
                with self._changed:
                    message.wakers.discard(wake)

    def note(self, place: Place, agent: str, path: str, record: Record, evidence: str, *, written: bool) -> None:
        """Hand a record to later calls of the message.

        Args:
            place: The call that made it.
            agent: Whose record.
            path: Real, absolute path.
            record: What the agent knows after the call.
            evidence: Id of the message that answers the call.
            written: True if the call wrote the file: the model has that text before it already.
        """
        with self._changed:
            message = self._of(place.message)
            # A call that runs again answers with another message; what it left the first time is not evidence.
            left = [each for each in message.records.get((agent, path), ()) if each[0] != place.index]
            message.records[agent, path] = [*left, (place.index, record)]
            for old in [name for name, (index, _) in message.evidence.items() if index == place.index]:
                del message.evidence[old]
            message.evidence[evidence] = (place.index, written)

    def record(self, place: Place, agent: str, path: str, until: int = sys.maxsize) -> Record | None:
        """The newest record that an earlier call of the message has left, by the order of the message.

        Args:
            place: The call that asks.
            agent: Whose record.
            path: Real, absolute path.
            until: Only records with a lower `seq`.
        """
        with self._changed:
            message = self._messages.get(place.message)
            left = message.records.get((agent, path), ()) if message else ()
            found = [r for i, r in left if i < place.index and r.seq < until]
            return max(found, key=lambda record: record.seq, default=None)

    def overtaking(self, place: Place, agent: str, path: str, until: int = sys.maxsize) -> Record | None:
        """The newest record of a later call that was carried out first and wrote; without what later calls read.

        Arguments as for `record`.
        """
        with self._changed:
            message = self._messages.get(place.message)
            if message is None:
                return None
            wrote = {index for index, written in message.evidence.values() if written}
            left = message.records.get((agent, path), ())
            found = [r for i, r in left if i > place.index and i in wrote and r.seq < until]
            newest = max(found, key=lambda record: record.seq, default=None)
            if newest is None:
                return None
            shown = {e for e, (index, written) in message.evidence.items() if index > place.index and not written}
            return newest._replace(views=tuple(view for view in newest.views if view.evidence not in shown))

    def evidence(self, place: Place) -> dict[str, bool]:
        """What calls of the message give as evidence: earlier ones, and all that wrote (True)."""
        with self._changed:
            message = self._messages.get(place.message)
            given = message.evidence.items() if message else ()
            return {evidence: written for evidence, (index, written) in given if written or index < place.index}
