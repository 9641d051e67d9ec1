"""Where a history is kept: what it needs of such a place, and the one in this process.

All shelves do the same: changes by id, by path and by thread, before-images by digest, answers by call. What the
changes mean is not their matter.

`MemoryShelf` keeps the values themselves, so that an edit costs some dictionary entries: no JSON, no compression. Its
bounds are the bytes of all images (the oldest go first) and the number of changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from langchain_filestate._changes import Change, by_seq, newest_of, next_seq

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_filestate._changes import Mark
    from langchain_filestate._match import Spliced

MEMORY_BYTES = 256 * 2**20
MEMORY_CHANGES = 100_000
MEMORY_ANSWERS = 10_000
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What `prune` removed.

    Attributes:
        changes: Number of changes.
        images: Number of before-images.
        size: Bytes of those images, as they were kept (on a store: compressed, in base64).
    """

    changes: int
    images: int
    size: int


class Shelf(Protocol):
    """What a history needs of the place where it is kept."""

    limit: int | None
    """Largest image that the place can keep at all, in bytes; None if there is no bound of its own."""

    def put(self, change: Change, before: bytes | None) -> None:
        """Keep a change, and the bytes before it if they are given."""

    def drop(self, change: Change, older: Change | None) -> None:
        """Forget a change; `older` is then the newest of its call."""

    def find(self, call: str) -> Change | None:
        """The newest change of a call."""

    def reread(self, change: Change) -> Change | None:
        """A change as it is kept; None if it is not."""

    def marks(self, path: str) -> Sequence[Mark]:
        """All changes of a path by `seq`, as far as digests go."""

    def load(self, marks: Sequence[Mark]) -> list[Change]:
        """The changes behind marks of `marks`."""

    def of_thread(self, thread_id: str | None) -> list[Change]:
        """All changes of a thread by `seq`; of None those without a thread."""

    def all(self) -> list[Change]:
        """All changes by `seq`."""

    def threads(self) -> list[str]:
        """Threads that have changes."""

    def image(self, digest: str) -> bytes | None:
        """The bytes with this digest, if they are kept."""

    def note(self, key: str, entry: dict[str, Any]) -> None:
        """Add an answer to the log of a key."""

    def notes(self, key: str) -> list[dict[str, Any]]:
        """The log of a key in order."""

    def sizes(self) -> dict[str, tuple[int, int]]:
        """For each image: bytes as kept, and when it was last used in nanoseconds since the epoch."""

    def sweep(self, changes: Sequence[Change], images: Sequence[str], unused_since: int, notes_before: int) -> int:
        """Remove changes, images not used since a time, and answers older than a time. How many images went."""

    def mark_pruned(self, newest: Mapping[tuple[str, str], int], drop_threads: Collection[str]) -> None:
        """Remember the `seq` of the newest change of a thread and path that is removed; forget those of threads."""

    def pruned(self, thread_id: str) -> dict[str, int]:
        """Paths of a thread of which changes were removed, and the `seq` of the newest of these."""


class Images:
    """Bytes by digest, up to a total; the oldest go first. Safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def put(self, digest: str, data: bytes | Spliced) -> None:
        """Keep bytes as the newest, unless they alone are more than the total."""
        if len(data) > self.limit:
            return
        whole = bytes(data)  # what it was made of may be far larger
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return
            self._kept[digest] = whole
            self._total += len(data)
            while self._total > self.limit:
                self._total -= len(self._kept.popitem(last=False)[1])

    def get(self, digest: str) -> bytes | None:
        """The bytes, or None."""
        return self._kept.get(digest)

    def drop(self, digest: str) -> bool:
        """Forget bytes; whether they were there."""
        with self._lock:
            data = self._kept.pop(digest, None)
            self._total -= len(data or b"")
            return data is not None

    def sizes(self) -> dict[str, int]:
        """Length of each."""
        with self._lock:
            return {digest: len(data) for digest, data in self._kept.items()}


def _take(index: dict[K, dict[tuple[int, str], Change]], at: K, key: tuple[int, str]) -> None:
    entries = index.get(at)
    if entries is not None:
        entries.pop(key, None)
        if not entries:
            del index[at]


class MemoryShelf:
    """In this process, and gone with it. Its one lock is held for dictionary entries only."""

    def __init__(self, limit: int = MEMORY_BYTES, changes: int = MEMORY_CHANGES) -> None:
        self.limit: int | None = limit
        self._images = Images(limit)
        self._bound = changes
        self._changes: OrderedDict[tuple[int, str], Change] = OrderedDict()
        self._calls: dict[str, Change] = {}
        self._paths: dict[str, dict[tuple[int, str], Change]] = {}
        self._threads: dict[str | None, dict[tuple[int, str], Change]] = {}
        self._pruned: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._answers: OrderedDict[str, list[tuple[int, dict[str, Any]]]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, change: Change, before: bytes | None) -> None:
        """Keep a change, and the bytes before it if they are given."""
        if before is not None and change.before is not None:
            self._images.put(change.before, before)
        with self._lock:
            key = change.seq, change.id
            self._changes[key] = change
            newest = self._calls.get(change.id)
            if change.id and (newest is None or newest.seq <= change.seq):
                self._calls[change.id] = change
            self._paths.setdefault(change.path, {})[key] = change
            self._threads.setdefault(change.thread_id, {})[key] = change
            if len(self._changes) > self._bound:
                oldest = next(iter(self._changes.values()))
                self._forget(oldest)
                self._mark(newest_of([oldest]))

    def mark_pruned(self, newest: Mapping[tuple[str, str], int], drop_threads: Collection[str]) -> None:
        """Remember the `seq` of the newest change of a thread and path that is removed; forget those of threads."""
        with self._lock:
            for pair in [pair for pair in self._pruned if pair[0] in drop_threads]:
                del self._pruned[pair]
            self._mark(newest)

    def _mark(self, newest: Mapping[tuple[str, str], int]) -> None:
        for pair, seq in newest.items():
            self._pruned.pop(pair, None)
            self._pruned[pair] = seq
            if len(self._pruned) > self._bound:
                self._pruned.popitem(last=False)

    def pruned(self, thread_id: str) -> dict[str, int]:
        """Paths of a thread of which changes were removed, and the `seq` of the newest of these."""
        with self._lock:
            return {path: seq for (thread, path), seq in self._pruned.items() if thread == thread_id}

    def _forget(self, change: Change) -> None:
        key = change.seq, change.id
        self._changes.pop(key, None)
        newest = self._calls.get(change.id)
        if newest is not None and newest.seq == change.seq:
            del self._calls[change.id]
        _take(self._paths, change.path, key)
        _take(self._threads, change.thread_id, key)

    def drop(self, change: Change, older: Change | None) -> None:
        """Forget a change; `older` is then the newest of its call."""
        with self._lock:
            self._forget(change)
            if older is not None:
                self._calls.setdefault(change.id, older)

    def find(self, call: str) -> Change | None:
        """The newest change of a call."""
        return self._calls.get(call)

    def reread(self, change: Change) -> Change | None:
        """A change as it is kept; None if it is not."""
        return self._changes.get((change.seq, change.id))

    def marks(self, path: str) -> Sequence[Mark]:
        """All changes of a path by `seq`; here the changes themselves."""
        with self._lock:
            return by_seq(self._paths.get(path, {}).values())

    def load(self, marks: Sequence[Mark]) -> list[Change]:
        """The changes behind marks of `marks`."""
        return [mark for mark in marks if isinstance(mark, Change)]

    def of_thread(self, thread_id: str | None) -> list[Change]:
        """All changes of a thread by `seq`; of None those without a thread."""
        with self._lock:
            return by_seq(self._threads.get(thread_id, {}).values())

    def all(self) -> list[Change]:
        """All changes by `seq`."""
        with self._lock:
            return by_seq(self._changes.values())

    def threads(self) -> list[str]:
        """Threads that have changes."""
        with self._lock:
            return sorted(thread for thread in self._threads if thread is not None)

    def image(self, digest: str) -> bytes | None:
        """The bytes with this digest, if they are kept."""
        return self._images.get(digest)

    def note(self, key: str, entry: dict[str, Any]) -> None:
        """Add an answer to the log of a key."""
        with self._lock:
            self._answers.setdefault(key, []).append((next_seq(), entry))
            if len(self._answers) > MEMORY_ANSWERS:
                self._answers.popitem(last=False)

    def notes(self, key: str) -> list[dict[str, Any]]:
        """The log of a key in order."""
        with self._lock:
            return [entry for _, entry in self._answers.get(key, ())]

    def sizes(self) -> dict[str, tuple[int, int]]:
        """For each image: its bytes; when it was last used is not kept, since nobody else can be using it."""
        return {digest: (size, 0) for digest, size in self._images.sizes().items()}

    def sweep(self, changes: Sequence[Change], images: Sequence[str], unused_since: int, notes_before: int) -> int:
        """Remove changes, images that no change refers to by now, and answers older than a time."""
        del unused_since
        with self._lock:
            for change in changes:
                self._forget(change)
            for key in [key for key, log in self._answers.items() if log[-1][0] < notes_before]:
                del self._answers[key]
            used = {change.before for change in self._changes.values()}
        return sum(self._images.drop(digest) for digest in images if digest not in used)
