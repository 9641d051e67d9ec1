"""A history on any LangGraph `BaseStore`.

Layout, under one root label (labels are hex or fixed words, since a label must not contain "." and a thread id may
contain anything):

    changes/<thread>     <seq>-<id>   the change, as text           by thread
    paths/<path>         <seq>-<id>   its digests and where it is    by path
    calls                <id>         where the call's newest change is
    threads              <thread>     the thread's id
    images               <digest>     size, size as stored, when last used
    blobs                <digest>     the bytes, zlib level 1, base64
    asked/<key>          <seq>        one answer

One `batch` writes a change, and it holds writes only: SQLite cannot always turn a reading transaction into a writing
one when another process writes. No entry is ever read to be written again, so processes need no lock between them; the
rows of a batch are sorted, so that two batches cannot wait for each other. An image that this process wrote a short
time ago is not written again, only its use is noted. Listings are never paged by offset (rows move between two pages
while others write): the limit grows until everything came in one answer. `index=False`, no time to live.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import weakref
import zlib
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from langchain_filestate._changes import Change, by_seq, label, next_seq

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from langchain_filestate._changes import Mark

KNOWN_SECONDS = 600.0
ROOT = "filestate"
_FIRST_LIMIT = 1_000
_PAGE = 100
_MOST_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class _StoreMark:
    before: str | None
    after: str | None
    seq: int
    thread: str
    key: str


# `InMemoryStore` walks its dictionaries without a lock, and even a `get` may add to them.
_unlocked: weakref.WeakKeyDictionary[BaseStore, threading.Lock] = weakref.WeakKeyDictionary()
_unlocked_guard = threading.Lock()


def _lock_of(store: BaseStore) -> AbstractContextManager[Any]:
    if type(store).__module__ != "langgraph.store.memory":
        return nullcontext()
    with _unlocked_guard:
        return _unlocked.setdefault(store, threading.Lock())


def _put(namespace: tuple[str, ...], key: str, value: dict[str, Any] | None) -> PutOp:
    return PutOp(namespace, key, value, index=False, ttl=None)


class StoreShelf:
    """On a LangGraph store. Its methods block; an asynchronous store takes them from any thread but its loop's."""

    def __init__(self, store: BaseStore) -> None:
        self.limit: int | None = None
        self._store = store
        self._guard = _lock_of(store)
        self._known: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._known_lock = threading.Lock()

    def _batch(self, ops: Iterable[GetOp | SearchOp | PutOp]) -> list[Any]:
        with self._guard:
            return self._store.batch(ops)

    def _get(self, namespace: tuple[str, ...], key: str) -> dict[str, Any] | None:
        (item,) = self._batch([GetOp(namespace, key)])
        return None if item is None else item.value

    def _all(self, *prefix: str) -> list[tuple[tuple[str, ...], str, dict[str, Any]]]:
        limit = _FIRST_LIMIT
        while True:
            (items,) = self._batch([SearchOp((ROOT, *prefix), limit=limit)])
            if len(items) < limit:
                return [(item.namespace, item.key, item.value) for item in items]
            limit *= 10

    def _lately(self, what: str) -> int | None:
        """The size as stored of what this process wrote a short time ago; None if it did not."""
        with self._known_lock:
            when, stored = self._known.get(what, (-KNOWN_SECONDS, 0))
            return stored if time.monotonic() - when < KNOWN_SECONDS else None

    def _noted(self, what: str, stored: int) -> None:
        with self._known_lock:
            self._known[what] = (time.monotonic(), stored)
            self._known.move_to_end(what)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    @staticmethod
    def _place(change: Change) -> tuple[str, str]:
        thread = "none" if change.thread_id is None else label(change.thread_id)
        return thread, f"{change.seq:019d}-{label(change.id)}"

    def put(self, change: Change, before: bytes | None) -> None:
        """Keep a change, and the bytes before it if they are given: one batch of writes."""
        thread, key = self._place(change)
        where = {"thread": thread, "key": key}
        mark = {"before": change.before, "after": change.after, "seq": change.seq, **where}
        ops = [
            _put((ROOT, "changes", thread), key, {"change": change.to_json()}),
            _put((ROOT, "paths", label(change.path)), key, mark),
        ]
        if change.id:
            ops.append(_put((ROOT, "calls"), label(change.id), where))
        wrote: dict[str, int] = {}
        if change.thread_id is not None and self._lately(thread) is None:
            ops.append(_put((ROOT, "threads"), thread, {"id": json.dumps(change.thread_id)}))
            wrote[thread] = 0
        if before is not None and (digest := change.before) is not None:
            stored = self._lately(digest)
            if stored is None:
                packed = base64.b64encode(zlib.compress(before, 1)).decode()
                ops.append(_put((ROOT, "blobs"), digest, {"zlib": packed}))
                stored = wrote[digest] = len(packed)
            row = {"size": len(before), "stored": stored, "used": change.seq}
            ops.append(_put((ROOT, "images"), digest, row))
        ops.sort(key=lambda op: (op.namespace, op.key))
        self._batch(ops)
        for what, stored in wrote.items():
            self._noted(what, stored)

    def drop(self, change: Change, older: Change | None) -> None:
        """Forget a change; `older` is then the newest of its call. Its image stays until a `sweep`."""
        thread, key = self._place(change)
        call = None if older is None else dict(zip(("thread", "key"), self._place(older), strict=True))
        self._batch(
            [
                _put((ROOT, "calls"), label(change.id), call),
                _put((ROOT, "changes", thread), key, None),
                _put((ROOT, "paths", label(change.path)), key, None),
            ],
        )

    def find(self, call: str) -> Change | None:
        """The newest change of a call."""
        where = self._get((ROOT, "calls"), label(call))
        value = where and self._get((ROOT, "changes", where["thread"]), where["key"])
        return Change.from_json(value["change"]) if value else None

    def reread(self, change: Change) -> Change | None:
        """A change as it is kept; None if it is not."""
        thread, key = self._place(change)
        value = self._get((ROOT, "changes", thread), key)
        return Change.from_json(value["change"]) if value else None

    def marks(self, path: str) -> Sequence[Mark]:
        """All changes of a path by `seq`, as far as digests go."""
        return by_seq([_StoreMark(**value) for _, _, value in self._all("paths", label(path))])

    def load(self, marks: Sequence[Mark]) -> list[Change]:
        """The changes behind marks of `marks`."""
        ops = [GetOp((ROOT, "changes", m.thread), m.key) for m in marks if isinstance(m, _StoreMark)]
        items = [item for at in range(0, len(ops), _PAGE) for item in self._batch(ops[at : at + _PAGE])]
        return self._changes(item.value for item in items if item is not None)

    @staticmethod
    def _changes(values: Iterable[dict[str, Any]]) -> list[Change]:
        loaded = (Change.from_json(value["change"]) for value in values)
        return by_seq([change for change in loaded if change is not None])

    def of_thread(self, thread_id: str | None) -> list[Change]:
        """All changes of a thread by `seq`; of None those without a thread."""
        thread = "none" if thread_id is None else label(thread_id)
        return self._changes(value for _, _, value in self._all("changes", thread))

    def all(self) -> list[Change]:
        """All changes by `seq`."""
        return self._changes(value for _, _, value in self._all("changes"))

    def threads(self) -> list[str]:
        """Threads that have changes."""
        return sorted(json.loads(value["id"]) for _, _, value in self._all("threads"))

    def image(self, digest: str) -> bytes | None:
        """The bytes with this digest, if they are kept; what has been damaged in the store is not."""
        value = self._get((ROOT, "blobs"), digest)
        if value is None:
            return None
        try:
            data = zlib.decompress(base64.b64decode(value["zlib"]))
        except (ValueError, zlib.error):
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def note(self, key: str, entry: dict[str, Any]) -> None:
        """Add an answer to the log of a key."""
        self._batch([_put((ROOT, "asked", label(key)), f"{next_seq():019d}", {"entry": json.dumps(entry)})])

    def notes(self, key: str) -> list[dict[str, Any]]:
        """The log of a key in order."""
        rows = sorted(self._all("asked", label(key)), key=lambda row: row[1])
        return [json.loads(value["entry"]) for _, _, value in rows]

    def sizes(self) -> dict[str, tuple[int, int]]:
        """For each image: bytes as stored, and when it was last used in nanoseconds since the epoch."""
        return {key: (value["stored"], value["used"]) for _, key, value in self._all("images")}

    def _in_pages(self, ops: Sequence[PutOp]) -> None:
        for at in range(0, len(ops), _PAGE):
            self._batch(ops[at : at + _PAGE])

    def mark_pruned(self, newest: Mapping[tuple[str, str], int], drop_threads: Collection[str]) -> None:
        """Remember the `seq` of the newest change of a thread and path that is removed; forget those of threads."""
        ops = [
            _put((ROOT, "pruned", label(thread)), label(path), {"path": json.dumps(path), "seq": seq})
            for (thread, path), seq in newest.items()
        ]
        for thread in drop_threads:
            ops += [_put(namespace, key, None) for namespace, key, _ in self._all("pruned", label(thread))]
        self._in_pages(ops)

    def pruned(self, thread_id: str) -> dict[str, int]:
        """Paths of a thread of which changes were removed, and the `seq` of the newest of these."""
        return {json.loads(value["path"]): value["seq"] for _, _, value in self._all("pruned", label(thread_id))}

    def sweep(self, changes: Sequence[Change], images: Sequence[str], unused_since: int, notes_before: int) -> int:
        """Remove changes, images not used since a time, and answers older than a time. How many images went."""
        ops = []
        for change in changes:
            thread, key = self._place(change)
            ops += [_put((ROOT, "changes", thread), key, None), _put((ROOT, "paths", label(change.path)), key, None)]
            call = self._get((ROOT, "calls"), label(change.id))
            if call == {"thread": thread, "key": key}:
                ops.append(_put((ROOT, "calls"), label(change.id), None))
        ops += [_put(ns, key, None) for ns, key, _ in self._all("asked") if int(key) < notes_before]
        self._in_pages(ops)
        gone = 0
        for at in range(0, len(images), _PAGE):
            page = images[at : at + _PAGE]
            # Looked at again just before: a process may have used one since it was listed.
            rows = self._batch([GetOp((ROOT, "images"), digest) for digest in page])
            old = [row.key for row in rows if row is not None and row.value["used"] <= unused_since]
            self._batch([_put((ROOT, kind), digest, None) for kind in ("blobs", "images") for digest in old])
            gone += len(old)
        for _, key, _ in self._all("threads"):
            (left,) = self._batch([SearchOp((ROOT, "changes", key), limit=1)])
            if not left and self._lately(key) is None:
                self._batch([_put((ROOT, "threads"), key, None)])
        return gone
