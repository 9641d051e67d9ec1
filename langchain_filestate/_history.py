"""Every change once, findable by call, by path and by thread, with the bytes that were there before.

A change is recorded *before* its commit. Then it stands, or is withdrawn by the same process, or, after a crash in
between, is a phantom that `_changes` recognises by its digests. From this follow:

- exactly once: a call that runs again finds its change and sees by the bytes on disk whether it took effect (`effect`);
- who: the change whose `after` is on disk names the agent and the thread (`writer`, `chain`);
- rewind: the bytes before the first change since a checkpoint (`changes`, `content`; see `_rewind`).

Before-images are kept up to a size each; bytes that were only read are remembered in this process and never stored.
A history without a store is in memory, and there is one for the whole process, so that agents side by side know each
other's writes.

All methods block and are safe to call from several threads. With an asynchronous store they must run outside of its
event loop's thread, as tools do. Errors of the store are the developer's to see and are not caught.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from langchain_filestate._changes import (
    Change,
    by_seq,
    change_id,
    newest_of,
    next_seq,
    standing,
    thread_name,
    trace,
)
from langchain_filestate._shelves import Images, MemoryShelf, Pruned
from langchain_filestate.errors import WiringError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from langgraph.store.base import BaseStore

    from langchain_filestate._match import Spliced
    from langchain_filestate._shelves import Shelf

__all__ = ["Change", "FileHistory", "Pruned", "next_seq", "process_history", "standing"]

MAX_IMAGE_BYTES = 64 * 2**20
REMEMBERED_BYTES = 64 * 2**20
GRACE_SECONDS = 3600
_CALLS = 4096


@cache
def _process_shelf() -> MemoryShelf:
    return MemoryShelf()


def _store_shelf(store: BaseStore) -> Shelf:
    from langgraph.store.base import BaseStore  # noqa: PLC0415  most processes have no store

    from langchain_filestate._store_shelf import StoreShelf  # noqa: PLC0415  likewise

    if not isinstance(store, BaseStore):
        raise WiringError("FileHistory takes a LangGraph store, such as InMemoryStore() or SqliteStore(...), or None.")
    return StoreShelf(store)


@cache
def process_history() -> FileHistory:
    """The history of this process, in memory: what a toolkit uses that is given none."""
    return FileHistory()


class FileHistory:
    """The changes that file tools made, and the bytes before each.

    Args:
        store: Any LangGraph store; `SqliteStore` or `PostgresStore` to survive the process and to share between
            several. None: the memory of this process, which all histories without a store share; the newest 256 MB of
            before-images and 100,000 changes.
        max_bytes: Largest before-image that is kept, in bytes. A change of a larger file is recorded with `kept=False`
            and cannot be rewound.
    """

    def __init__(self, store: BaseStore | None = None, *, max_bytes: int = MAX_IMAGE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._shelf: Shelf = _process_shelf() if store is None else _store_shelf(store)
        self._read = Images(REMEMBERED_BYTES)
        self._calls: OrderedDict[str, Change | None] = OrderedDict()
        self._older: OrderedDict[tuple[str, int], Change] = OrderedDict()
        self._lock = threading.Lock()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)

    change_id = staticmethod(change_id)

    # ---- a change and its call

    def find(self, change_id: str, thread_id: str | None = None) -> Change | None:
        """The newest change of a call, whichever process made it.

        Args:
            change_id: Name of the call, from `change_id`.
            thread_id: Its thread. The id is enough to find it; a change of another thread is not returned.
        """
        change = self._shelf.find(change_id)
        if change is not None and thread_id is not None and change.thread_id != thread_name(thread_id):
            return None
        self._note_call(change_id, change)
        return None if change is None else replace(change, result=copy.deepcopy(change.result))

    def _note_call(self, call: str, change: Change | None) -> Change | None:
        """Remember the newest change of a call; returns the one before, as far as this process knows."""
        if not call:
            return None
        with self._lock:
            older = self._calls.pop(call, None)
            self._calls[call] = change
            if len(self._calls) > _CALLS:
                self._calls.popitem(last=False)
            return older

    def record(self, change: Change, before: bytes | None) -> Change:
        """Write a change down, before its commit.

        A call that is applied again (after a rewind, say) keeps its older change beside the new one. If nothing
        happened to the path since an equal older change, that one was a phantom, left by a crash, and the new one
        takes its place.

        Args:
            change: The change. `kept` is set here.
            before: The bytes before it; None if there was no file, or if they are not known.

        Returns:
            The change as it is kept.
        """
        limit = self.max_bytes if self._shelf.limit is None else min(self.max_bytes, self._shelf.limit)
        fits = before is not None and len(before) <= limit
        if change.kept != (change.before is None or fits):
            change = replace(change, kept=not change.kept)
        older = self._note_call(change.id, change)
        if older is not None and (older.before, older.after, older.path) == (change.before, change.after, change.path):
            marks = self._shelf.marks(change.path)
            if marks and marks[-1].seq == older.seq:
                self._shelf.drop(older, None)
                older = None
        if older is not None:
            with self._lock:
                self._older[change.id, change.seq] = older
                if len(self._older) > _CALLS:
                    self._older.popitem(last=False)
        if before is not None and change.before is not None:
            self._read.put(change.before, before)
        self._shelf.put(change, before if fits else None)
        return change

    def withdraw(self, change: Change) -> None:
        """Take a change back whose commit did not happen. The bytes on disk were then somebody else's all along."""
        with self._lock:
            older = self._older.pop((change.id, change.seq), None)
        self._note_call(change.id, older)
        self._shelf.drop(change, older)

    def amend(self, change: Change) -> None:
        """Give a recorded change another `result`; nothing else of it can change. A withdrawn one stays away."""
        kept = self._shelf.reread(change)
        if kept is not None:
            self._shelf.put(replace(kept, result=change.result), None)

    def effect(self, change: Change, digest: str | None) -> Literal["pending", "applied", "unknown"]:
        """Whether a recorded change is in the bytes that are on disk.

        Args:
            change: A change from `find`.
            digest: SHA-256 of the bytes on disk; None if there is no file.

        Returns:
            "pending": the disk is as before the change. "applied": it is as after the change, or recorded changes made
            later lead from there to the disk; also if the disk is as before, where only calls of the same message lead
            there: they run again as well, or not at all. "unknown": neither; somebody else wrote, or the change was
            rewound.
        """
        if digest == change.after:
            return "applied"
        later = [mark for mark in self._shelf.marks(change.path) if mark.seq > change.seq]
        run = trace(later, change.after, digest)
        if digest == change.before:
            return "applied" if run and all(map(change.is_mate, self._shelf.load(run))) else "pending"
        if run is None:
            return "unknown"
        back = self._shelf.load([mark for mark in run if mark.after == change.before])
        return "unknown" if any(each.tool == "rewind" for each in back) else "applied"

    # ---- a path

    def chain(
        self, path: str, start: str | None, end: str | None, *, thread_id: str | None = None, since: int = 0
    ) -> list[Change] | None:
        """The recorded changes that lead from one digest to another.

        Args:
            path: Real, absolute path.
            start: Digest to begin with; None for "no file".
            end: Digest to arrive at, as a rule the one on disk.
            thread_id: Only if all of them are this thread's; None for any thread.
            since: Only changes with a higher `seq`.

        Returns:
            The newest such run in order, without phantoms; empty if the digests are the same; None if there is none.
        """
        if start == end:
            return []
        run = trace([mark for mark in self._shelf.marks(path) if mark.seq > since], start, end)
        if run is None:
            return None
        changes = self._shelf.load(run)
        if len(changes) != len(run) or (thread_id is not None and any(c.thread_id != thread_id for c in changes)):
            return None
        return changes

    def writer(self, path: str, digest: str | None, before: int | None = None) -> Change | None:
        """The newest change that put the bytes with this digest at this path; None if nobody we know did.

        Args:
            path: Real, absolute path.
            digest: Of the bytes; None for no file.
            before: Only changes with a lower `seq`; None for any.
        """
        found = [mark for mark in self._shelf.marks(path) if mark.after == digest]
        marks = [mark for mark in found if before is None or mark.seq < before]
        return next(iter(self._shelf.load(marks[-1:])), None)

    # ---- bytes

    def content(self, digest: str) -> bytes | None:
        """The bytes with this digest: a before-image, or what this process remembers; None if neither is there."""
        found = self._read.get(digest)
        if found is None:
            found = self._shelf.image(digest)
            if found is not None:
                self._read.put(digest, found)
        return found

    def remember(self, data: bytes | Spliced, digest: str) -> None:
        """Keep bytes that were only read, in this process, for diffs "since your read". The newest 64 MB are kept."""
        self._read.put(digest, data)

    def remembered(self, digest: str) -> tuple[bytes, str] | None:
        """Bytes with this digest, if this process has them at hand; the store is not asked."""
        data = self._read.get(digest)
        return None if data is None else (data, digest)

    # ---- listings

    def changes(self, thread_id: str | None = None, path: str | None = None) -> list[Change]:
        """Recorded changes in the order in which they were made.

        Args:
            thread_id: Only of this thread; None for all.
            path: Only of this real, absolute path; None for all.
        """
        thread_id = thread_name(thread_id)
        if path is not None:
            found = self._shelf.load(self._shelf.marks(path))
            return [change for change in found if thread_id is None or change.thread_id == thread_id]
        return self._shelf.all() if thread_id is None else self._shelf.of_thread(thread_id)

    def pruned(self, thread_id: str) -> dict[str, int]:
        """Paths of a thread of which older changes are no longer kept, and the `seq` of the newest of these."""
        return self._shelf.pruned(thread_id)

    def threads(self) -> list[str]:
        """Ids of the threads that have changes, sorted."""
        return self._shelf.threads()

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        max_total_bytes: int | None = None,
        keep_threads: Collection[str] = (),
        drop_threads: Collection[str] = (),
        grace: float = GRACE_SECONDS,
    ) -> Pruned:
        """Make the history smaller.

        The rule: changes of `drop_threads` go, then those older than `older_than`, then the oldest ones while the
        images of those that stay are together larger than `max_total_bytes`; changes of `keep_threads` stay in any
        case. An image goes when no change that stays refers to it, and stays otherwise. Without arguments only images
        without a change go (those of withdrawn changes).

        Args:
            older_than: Age of a change; None for no limit. Answers to approvals go by it, too.
            max_total_bytes: Bytes of all images as they are kept (on a store: compressed, in base64); None for no
                limit.
            keep_threads: Threads whose changes all stay.
            drop_threads: Threads whose changes all go, such as threads that the checkpointer has deleted.
            grace: Seconds since its last use in which an image stays on a store, even if no change refers to it:
                another process may be about to. Not less than the 600 for which a process trusts that an image it
                wrote is still there, except where no other process is using the store.

        Returns:
            What went.
        """
        keep_threads, drop_threads = {*map(str, keep_threads)}, {*map(str, drop_threads)}
        now = time.time_ns()
        oldest = 0 if older_than is None else now - int(older_than.total_seconds() * 1e9)
        gone: list[Change] = []
        stay: list[Change] = []
        for change in self._shelf.all():
            expired = change.thread_id in drop_threads or change.seq < oldest
            kept = change.thread_id is not None and change.thread_id in keep_threads
            (gone if expired and not kept else stay).append(change)
        sizes = self._shelf.sizes()
        if max_total_bytes is not None:
            gone += _over(stay, {d: size for d, (size, _) in sizes.items()}, max_total_bytes, keep_threads)
            went = {(change.id, change.seq) for change in gone}
            stay = [change for change in stay if (change.id, change.seq) not in went]
        used = {change.before for change in stay}
        loose = [digest for digest in sizes if digest not in used]
        with self._lock:
            self._calls.clear()
            self._older.clear()
        # Before they go: that there was something must not be forgotten in between.
        self._shelf.mark_pruned(newest_of(each for each in gone if each.thread_id not in drop_threads), drop_threads)
        images = self._shelf.sweep(by_seq(gone), loose, now - int(grace * 1e9), oldest)
        left = self._shelf.sizes()
        size = sum(sizes[digest][0] for digest in loose if digest not in left)
        return Pruned(changes=len(gone), images=images, size=size)

    # ---- approvals

    def asked(self, key: str) -> list[dict[str, Any]]:
        """What `note_asked` was told under this key, in order."""
        return self._shelf.notes(key)

    def note_asked(self, key: str, entry: dict[str, Any]) -> None:
        """Add to the log of what was shown to a person and what they answered.

        Args:
            key: What it belongs to, such as the id of a call.
            entry: Plain JSON.
        """
        self._shelf.note(key, entry)


def _over(changes: Sequence[Change], sizes: dict[str, int], limit: int, keep_threads: Collection[str]) -> list[Change]:
    """The oldest changes whose going brings the images of the others to `limit` bytes."""
    uses: dict[str, int] = {}
    for change in changes:
        if change.before in sizes:
            uses[change.before] = uses.get(change.before, 0) + 1
    total = sum(sizes[digest] for digest in uses)
    gone = []
    for change in changes:
        if total <= limit:
            break
        if change.thread_id is not None and change.thread_id in keep_threads:
            continue
        gone.append(change)
        if change.before in uses:
            uses[change.before] -= 1
            total -= 0 if uses[change.before] else sizes[change.before]
    return gone
