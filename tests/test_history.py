from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from langchain_filestate import _history, _shelves, _store_shelf
from langchain_filestate._changes import Change, change_id, next_seq, standing, trace
from langchain_filestate._history import FileHistory, process_history
from langchain_filestate._match import Splice, Spliced
from langchain_filestate._shelves import Images, MemoryShelf
from langchain_filestate._store_shelf import ROOT, StoreShelf
from tests.postgres import database, empty_store, open_store, postgres_url  # noqa: F401  a fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langgraph.store.base import BaseStore, Result

STORES = ["memory", "store", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., FileHistory]]:
    """Opens the same history again and again, as several processes would."""
    kind = getattr(request, "param", "store")
    with ExitStack() as stack:
        shelf, store = MemoryShelf(), InMemoryStore()
        url = ""
        if kind == "postgres":
            url = request.getfixturevalue("postgres_url")
            stack.enter_context(empty_store(url))

        def again(**options: Any) -> FileHistory:
            if kind == "memory":
                history = FileHistory(**options)
                history._shelf = shelf
                return history
            if kind == "store":
                return FileHistory(store, **options)
            if kind == "sqlite":
                opened: BaseStore = stack.enter_context(SqliteStore.from_conn_string(str(tmp_path / "history.db")))
            else:
                opened = stack.enter_context(open_store(url))
            return FileHistory(opened, **options)

        yield again


@pytest.fixture
def history(opener: Callable[..., FileHistory]) -> FileHistory:
    return opener()


everywhere = pytest.mark.parametrize("opener", STORES, indirect=True)


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def change(before: bytes | None, after: bytes | None, call: str = "c", **given: Any) -> Change:
    thread = given.get("thread_id", "t")
    values: dict[str, Any] = {
        "id": change_id(thread, "m", call),
        "path": "/w/a.txt",
        "before": digest(before),
        "after": digest(after),
        "mode": None if before is None else 0o644,
        "seq": next_seq(),
        "agent": "main",
        "tool": "edit_file",
        "thread_id": thread,
        "checkpoint_id": "cp",
        "tool_call_id": call,
    }
    return Change(**{**values, **given})


def made(history: FileHistory, before: bytes | None, after: bytes | None, call: str = "c", **given: Any) -> Change:
    return history.record(change(before, after, call, **given), before)


# ---- chains, by digests alone


@dataclass(frozen=True)
class Step:
    before: str | None
    after: str | None
    seq: int = 0


def steps(text: str) -> list[Step]:
    """ "A>B B>C": "-" is no file."""
    names = [[None if name == "-" else name for name in pair.split(">")] for pair in text.split()]
    return [Step(before, after, i) for i, (before, after) in enumerate(names)]


def shown(found: list[Step] | None) -> str | None:
    return None if found is None else " ".join(f"{s.before or '-'}>{s.after or '-'}" for s in found)


@pytest.mark.parametrize(
    ("marks", "end", "wanted"),
    [
        ("", "A", ""),
        ("A>B", "B", "A>B"),
        ("A>B B>C", "C", "A>B B>C"),
        ("->A A>-", None, "->A A>-"),
        ("A>B", "X", None),  # somebody wrote on top
        ("A>B", None, None),  # somebody deleted
        ("A>B X>C", "C", None),  # somebody between
        ("A>B X>A", "A", None),  # back by way of somebody else's bytes
        ("A>B", "A", ""),  # a phantom: nothing stands
        ("A>B A>C", "C", "A>C"),  # a phantom first
        ("A>B B>C", "B", "A>B"),  # a phantom last
        ("A>B B>X B>C", "C", "A>B B>C"),  # a phantom between
        ("A>B A>X B>C", "C", "A>B B>C"),  # planned before another process wrote, recorded after
        ("A>B A>B", "B", "A>B"),  # killed, then carried out
        ("A>B B>A A>B", "B", "A>B B>A A>B"),  # rewound and applied again
        ("A>X B>C C>D", "D", None),  # a phantom on bytes from before: rather a conflict
        ("A>A A>B", "B", "A>B"),  # nothing happened
        ("->A A>B", "B", "->A A>B"),
        ("->A", None, ""),
    ],
)
def test_standing(marks: str, end: str | None, wanted: str | None) -> None:
    assert shown(standing(steps(marks), end)) == wanted


@pytest.mark.parametrize(
    ("marks", "start", "end", "wanted"),
    [
        ("", "A", "A", ""),
        ("", "A", "B", None),
        ("A>B B>C", "A", "C", "A>B B>C"),
        ("A>B B>C", "B", "C", "B>C"),
        ("A>B B>C", "A", "B", "A>B"),  # the later change is phantom or undone by hand
        ("A>B B>C Q>R", "A", "C", "A>B B>C"),  # what came later does not matter
        ("A>B X>C", "A", "C", None),
        ("A>B B>A A>C", "A", "C", "A>C"),  # the newest run
        ("A>B B>C C>A A>D", "B", "D", "B>C C>A A>D"),
        ("A>B B>X B>C", "A", "C", "A>B B>C"),
        ("A>B A>X B>C", "B", "C", "B>C"),  # the phantom came before the run
        ("Q>R A>B", "A", "B", "A>B"),
        ("A>B Q>R B>C", "A", "C", None),
        ("->A A>-", None, "A", "->A"),
        ("A>B", "B", "A", None),
    ],
)
def test_trace(marks: str, start: str | None, end: str | None, wanted: str | None) -> None:
    start, end = (None if name == "-" else name for name in (start, end))
    assert shown(trace(steps(marks), start, end)) == wanted


@settings(max_examples=60)
@given(st.data())
def test_phantoms_never_break_a_chain(data: st.DataObject) -> None:
    """A walk of real changes with new bytes each, and phantoms planned on bytes that were there before."""
    bytes_so_far = ["0"]
    real: list[Step] = []
    all_marks: list[Step] = []
    for number in range(data.draw(st.integers(1, 12))):
        name = str(number + 1)
        if data.draw(st.booleans()):
            real.append(Step(bytes_so_far[-1], name, len(all_marks)))
            all_marks.append(real[-1])
            bytes_so_far.append(name)
        else:
            all_marks.append(Step(data.draw(st.sampled_from(bytes_so_far)), name, len(all_marks)))
    assert standing(all_marks, bytes_so_far[-1]) == real
    start = data.draw(st.integers(0, len(bytes_so_far) - 1))
    assert trace(all_marks, bytes_so_far[start], bytes_so_far[-1]) == real[start:]


@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD")), max_size=8), st.sampled_from("ABCD"))
def test_what_stands_is_a_chain_to_the_end(pairs: list[tuple[str, str]], end: str) -> None:
    marks = [Step(a, b, i) for i, (a, b) in enumerate(pairs)]
    found = standing(marks, end)
    if found:
        assert found[-1].after == end
        assert all(a.after == b.before for a, b in pairwise(found))
        assert found[0].before == marks[0].before  # what was there before the first is what a rewind brings back


# ---- values


@settings(max_examples=30)
@given(
    st.builds(
        Change,
        id=st.text(), path=st.text(), before=st.none() | st.text(), after=st.none() | st.text(),
        mode=st.none() | st.integers(0, 0o7777), seq=st.integers(0, 2**63), agent=st.none() | st.text(), tool=st.text(),
        thread_id=st.none() | st.text(), checkpoint_id=st.none() | st.text(), tool_call_id=st.none() | st.text(),
        result=st.dictionaries(st.text(), st.text(st.characters()) | st.lists(st.integers())), kept=st.booleans(),
    )
)  # fmt: skip
def test_json_both_ways(value: Change) -> None:
    text = value.to_json()
    assert text.isascii()
    assert "\0" not in text
    assert Change.from_json(text) == value


def test_unknown_shapes_are_left_out() -> None:
    known = json.loads(change(b"1", b"2").to_json())
    assert Change.from_json(json.dumps({**known, "v": 2})) is None
    assert Change.from_json(json.dumps({**known, "more": 1})) is None
    assert Change.from_json("[]") is None


def test_change_id() -> None:
    assert change_id("t", "m", "call_0") == change_id("t", "m", "call_0")
    others = {
        change_id("t", "m", "call_1"),
        change_id("t", "n", "call_0"),
        change_id("u", "m", "call_0"),
        change_id(None, "m", "call_0"),
    }
    assert change_id("t", "m", "call_0") not in others
    assert len(others) == 4
    assert change_id("t", None, "c") != change_id("t", None, "c")  # outside a graph nothing is a replay
    assert FileHistory.change_id is change_id


def test_seq_rises_in_all_threads() -> None:
    taken: list[int] = []
    threads = [threading.Thread(target=lambda: taken.extend(next_seq() for _ in range(500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 2000
    assert next_seq(after=2**62) == 2**62 + 1
    _changes_module = sys.modules["langchain_filestate._changes"]
    _changes_module._last = 0  # type: ignore[attr-defined]  # back to the clock


# ---- one suite for all places


@everywhere
def test_find_what_was_recorded(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    odd = change(
        b"1", b"2", thread_id="team.α/\0 x", path="/w/\udcff é.txt",
        result={"patch": {"lines": ["-\0", "+\ud800"]}, "made": ["/w/x"]},
    )  # fmt: skip
    assert history.find(odd.id, odd.thread_id) is None
    assert history.record(odd, b"1") == odd
    for each in (history, opener()):
        assert each.find(odd.id, odd.thread_id) == odd
        assert each.find(odd.id) == odd
        assert each.find(odd.id, "another") is None
        assert each.find(change_id("t", "m", "no"), "t") is None
        assert each.changes() == each.changes(odd.thread_id) == each.changes(path=odd.path) == [odd]
        assert each.changes("another") == each.changes(path="/w") == each.changes("another", odd.path) == []
        assert each.threads() == [odd.thread_id]


@everywhere
def test_what_find_gives_can_be_changed(history: FileHistory) -> None:
    first = made(history, b"1", b"2", result={"a": [1]})
    found = history.find(first.id)
    assert found is not None
    found.result["a"].append(2)
    again = history.find(first.id)
    assert again is not None
    assert again.result == {"a": [1]}


@everywhere
def test_without_a_thread(history: FileHistory) -> None:
    alone = made(history, None, b"1", thread_id=None, id="")
    beside = made(history, b"1", b"2", thread_id="none", id="")
    assert history.changes() == [alone, beside]
    assert history.changes("none") == [beside]
    assert history.threads() == ["none"]
    assert history._shelf.of_thread(None) == [alone]
    assert history.find("") is None  # a call without a name is no replay of another
    history.withdraw(beside)
    assert history.changes() == [alone]


@everywhere
@pytest.mark.parametrize("data", [b"", b"\0\xff\r\n", "text é".encode("utf-16"), os.urandom(70_000), b"x" * 200_000])
def test_images_survive_exactly(opener: Callable[..., FileHistory], data: bytes) -> None:
    assert made(opener(), data, b"after").kept
    other = opener()
    assert other.content(str(digest(data))) == data
    assert other.content(str(digest(data))) == data  # now from this process
    assert other.content(str(digest(b"never"))) is None


@everywhere
def test_too_large_to_keep(opener: Callable[..., FileHistory]) -> None:
    history = opener(max_bytes=10)
    big = made(history, b"x" * 11, b"y", "1")
    fits = made(history, b"x" * 10, b"y", "2", path="/w/b")
    unknown = history.record(change(b"z", b"y", "3", path="/w/c"), None)
    created = made(history, None, b"y", "4", path="/w/d")
    assert [c.kept for c in (big, fits, unknown, created)] == [False, True, False, True]
    other = opener()
    assert other.changes() == [big, fits, unknown, created]
    assert other.content(str(big.before)) is None
    assert other.content(str(fits.before)) == b"x" * 10


@everywhere
def test_withdraw(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    stays = made(history, b"1", b"2", "1")
    gone = change(b"2", b"3", "2")
    history.record(gone, b"2")
    history.withdraw(gone)
    for each in (history, opener()):
        assert each.find(gone.id) is None
        assert each.changes() == each.changes("t") == each.changes(path=gone.path) == [stays]
    history.withdraw(gone)  # twice is harmless
    assert history.changes() == [stays]


@everywhere
def test_a_call_applied_again_after_a_rewind_stands_twice(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    first = made(history, b"1", b"2")
    back = made(history, b"2", b"1", "r", tool="rewind", result={"rewind": "x"})
    assert history.find(first.id) == first
    assert history.effect(first, digest(b"1")) == "pending"
    again = made(history, b"1", b"2")
    assert again.id == first.id
    for each in (history, opener()):
        assert each.changes() == [first, back, again]
        assert each.find(first.id) == again
        assert each.chain(first.path, digest(b"2"), digest(b"2")) == []
    more = made(history, b"1", b"3", seq=next_seq())  # the same call once more, and its commit fails
    history.withdraw(more)
    for each in (history, opener()):
        assert each.changes() == [first, back, again]
        assert each.find(first.id) == again


@everywhere
def test_a_killed_call_that_runs_again_leaves_no_phantom(opener: Callable[..., FileHistory]) -> None:
    made(opener(), b"1", b"2")  # and then the process was killed
    other = opener()
    found = other.find(change_id("t", "m", "c"), "t")
    assert found is not None
    assert other.effect(found, digest(b"1")) == "pending"
    again = made(other, b"1", b"2")
    assert opener().changes() == [again]
    assert other.find(again.id) == again


@everywhere
def test_amend(opener: Callable[..., FileHistory]) -> None:
    history = opener(max_bytes=1)
    big = made(history, b"22", b"3")
    history.amend(replace(big, result={"text": "more"}, kept=True, after="x"))
    wanted = replace(big, result={"text": "more"})
    for each in (history, opener()):
        assert each.find(big.id) == wanted
        assert each.changes() == each.changes(path=big.path) == [wanted]
    history.withdraw(big)
    history.amend(big)
    assert history.changes() == []


@everywhere
def test_effect(history: FileHistory) -> None:
    first = made(history, b"1", b"2", "1")
    made(history, b"2", b"3", "2")
    made(history, b"3", b"4", "3", thread_id="u")
    effects = [history.effect(first, digest(data)) for data in (b"1", b"2", b"3", b"4", b"by hand", None)]
    assert effects == ["pending", "applied", "applied", "applied", "unknown", "unknown"]
    made(history, b"4", b"1", "r", tool="rewind")
    made(history, b"1", b"5", "4")
    assert history.effect(first, digest(b"5")) == "unknown"  # undone, and then something else


@everywhere
def test_chain_and_writer(history: FileHistory) -> None:
    a = made(history, b"1", b"2", "1")
    b = made(history, b"2", b"3", "2", thread_id="u", agent="other")
    made(history, b"9", b"3", "3", path="/w/b.txt")
    path = a.path
    assert history.chain(path, digest(b"1"), digest(b"3")) == [a, b]
    assert history.chain(path, digest(b"2"), digest(b"3"), thread_id="u") == [b]
    assert history.chain(path, digest(b"1"), digest(b"3"), thread_id="u") is None
    assert history.chain(path, digest(b"1"), digest(b"3"), since=a.seq) is None
    assert history.chain(path, digest(b"1"), digest(b"by hand")) is None
    assert history.writer(path, digest(b"3")) == b
    assert history.writer(path, digest(b"by hand")) is None
    again = made(history, b"x", b"3", "4")
    assert history.writer(path, digest(b"3")) == again


@everywhere
def test_more_than_a_page(opener: Callable[..., FileHistory], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store_shelf, "_FIRST_LIMIT", 4)
    monkeypatch.setattr(_store_shelf, "_PAGE", 7)
    history = opener()
    many = [made(history, b"%d" % i, b"%d" % (i + 1), str(i)) for i in range(25)]
    other = opener()
    assert other.changes() == other.changes("t") == other.changes(path="/w/a.txt") == many
    assert other.chain("/w/a.txt", digest(b"0"), digest(b"25")) == many
    assert other.prune(older_than=timedelta(0), grace=-10).images == 25
    assert opener().changes() == []
    assert opener().threads() in ([], ["t"])


@everywhere
def test_asked(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    assert history.asked("k.1") == []
    history.note_asked("k.1", {"digest": "\ud800\0"})
    history.note_asked("k.1", {"answer": "no"})
    history.note_asked("k", {"answer": "yes"})
    assert opener().asked("k.1") == [{"digest": "\ud800\0"}, {"answer": "no"}]
    history.prune(older_than=timedelta(days=1))
    assert opener().asked("k") == [{"answer": "yes"}]
    history.prune(older_than=timedelta(0))
    assert opener().asked("k") == []


@everywhere
def test_prune_by_age_and_thread(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    day = int(86_400e9)
    shared = b"shared"
    old = made(history, shared, b"2", "1", seq=next_seq() - 3 * day)
    lone = made(history, b"lone", b"3", "2", path="/w/b", seq=next_seq() - 2 * day)
    kept = made(history, b"kept", b"4", "3", thread_id="keep", seq=next_seq() - 2 * day)
    new = made(history, shared, b"5", "4", path="/w/c")
    pruned = history.prune(older_than=timedelta(days=1), keep_threads=["keep"], grace=-10)
    assert (pruned.changes, pruned.images) == (2, 1)
    assert pruned.size > 0
    other = opener()
    assert other.changes() == [kept, new]
    assert other.content(str(digest(shared))) == shared
    assert other.content(str(kept.before)) == b"kept"
    assert other.content(str(lone.before)) is None
    assert other.find(old.id) is None
    assert other.threads() == ["keep", "t"]
    assert other.prune(drop_threads=["t", "keep"], keep_threads=["keep"], grace=-10).changes == 1
    assert opener().changes() == [kept]


@everywhere
def test_prune_by_size_takes_the_oldest(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    images = [os.urandom(3_000) for _ in range(5)]
    many = [made(history, image, b"x", str(i), path=f"/w/{i}") for i, image in enumerate([*images, images[0]])]
    total = sum(size for size, _ in history._shelf.sizes().values())
    kept = made(history, b"k", b"x", "k", thread_id="keep", seq=1)
    assert history.prune(max_total_bytes=total * 2, grace=-10).changes == 0
    pruned = history.prune(max_total_bytes=total // 2, keep_threads=["keep"], grace=-10)
    other = opener()
    # The first change goes too, but its image is the last one's.
    assert other.changes() == [kept, *many[4:]]
    assert pruned.changes == 4
    assert pruned.images == 3
    assert other.content(str(many[5].before)) == images[0]
    assert other.content(str(many[1].before)) is None


@everywhere
def test_an_image_just_used_outlives_its_change(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    gone = change(b"1", b"2")
    history.record(gone, b"1")
    history.withdraw(gone)
    in_memory = isinstance(history._shelf, MemoryShelf)
    assert history.prune().images == (1 if in_memory else 0)
    assert history.prune(grace=-10).images == (0 if in_memory else 1)


@everywhere
def test_several_threads(opener: Callable[..., FileHistory]) -> None:
    history = opener()
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for i in range(10):
                made(history, b"%d" % i, b"%d" % (i + 1), f"{name}{i}", path=f"/w/{name}", thread_id=name)
                history.changes("a")
                history.threads()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [len(opener().changes(name)) for name in "abcd"] == [10] * 4


def test_seq_of_two_paths_may_be_the_same(history: FileHistory) -> None:
    shelf = history._shelf = MemoryShelf()
    both = [made(history, b"1", b"2", str(i), path=f"/w/{i}", seq=5) for i in range(2)]
    assert history.changes("t") == history.changes() == both
    assert shelf.marks("/w/1") == [both[1]]


# ---- memory


def test_one_memory_per_process() -> None:
    assert process_history() is process_history()
    path = "/w/one-memory-per-process"
    mine = made(process_history(), b"1", b"2", "one memory", path=path)
    assert FileHistory().changes(path=path) == [mine]
    process_history().withdraw(mine)


def test_memory_has_bounds() -> None:
    history = FileHistory()
    history._shelf = MemoryShelf(limit=100, changes=5)
    history._read = Images(0)
    many = [made(history, b"%d" % i * 30, b"x", str(i), path=f"/w/{i}") for i in range(9)]
    assert history.changes() == many[4:]
    assert history.find(many[0].id) is None
    assert history.content(str(many[5].before)) is None
    assert history.content(str(many[6].before)) == b"6" * 30
    assert not made(history, b"x" * 101, b"y", "big", path="/w/big").kept
    shelf = history._shelf
    assert isinstance(shelf, MemoryShelf)
    assert shelf._images._total == 90


def test_answers_in_memory_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_shelves, "MEMORY_ANSWERS", 2)
    history = FileHistory()
    history._shelf = MemoryShelf()
    for key in "abc":
        history.note_asked(key, {"key": key})
    assert [history.asked(key) for key in "abc"] == [[], [{"key": "b"}], [{"key": "c"}]]


def test_over_a_size() -> None:
    many = [change(None, b"0"), change(b"1", b"2", thread_id="k"), change(b"1", b"3"), change(b"2", b"4")]
    sizes = {str(digest(b"1")): 10, str(digest(b"2")): 5}
    assert _history._over(many, sizes, 15, []) == []
    assert _history._over(many, sizes, 14, []) == many[:3]  # an image goes with the last change that has it
    assert _history._over(many, sizes, 14, ["k"]) == [many[0], *many[2:]]
    assert _history._over(many, sizes, 0, []) == many


def test_images() -> None:
    images = Images(10)
    images.put("a", b"12345")
    images.put("b", b"12345")
    images.put("a", b"12345")  # is the newest again
    images.put("c", b"1")
    assert (images.get("a"), images.get("b"), images.sizes()) == (b"12345", None, {"a": 5, "c": 1})
    assert images.drop("a")
    assert not images.drop("a")
    images.put("d", b"12345678")
    assert images.sizes() == {"c": 1, "d": 8}


def test_images_hold_what_they_count() -> None:
    images = Images(10)
    images.put("a", Spliced(b"1" * 1000, [Splice(1, 1000, b"2")]))
    assert images.get("a") == b"12"
    assert images.sizes() == {"a": 2}


def test_remembered_bytes_are_not_stored(opener: Callable[..., FileHistory], monkeypatch: pytest.MonkeyPatch) -> None:
    history = opener()
    history.remember(b"read", str(digest(b"read")))
    assert history.content(str(digest(b"read"))) == b"read"
    assert opener().content(str(digest(b"read"))) is None


def test_what_a_process_remembers_of_calls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_history, "_CALLS", 2)
    history = FileHistory(InMemoryStore())
    for i in range(9):
        made(history, b"%d" % i, b"x", str(i))
        made(history, b"%d" % i, b"y", str(i))
    assert len(history._calls) == 2
    assert len(history._older) == 2


# ---- stores


class Counting(InMemoryStore):
    """Notes what it was asked for."""

    __slots__ = ("batches",)

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Any]] = []

    def batch(self, ops: Any) -> list[Result]:
        self.batches.append(list(ops))
        return super().batch(self.batches[-1])


def test_one_batch_of_writes_per_change() -> None:
    store = Counting()
    history = FileHistory(store)
    made(history, b"1" * 40_000, b"2", "1")
    (ops,) = store.batches
    assert all(type(op).__name__ == "PutOp" and op.index is False and op.ttl is None for op in ops)
    kinds = [op.namespace[1] for op in ops]
    assert kinds == sorted(kinds) == ["blobs", "calls", "changes", "images", "paths", "threads"]
    assert all("." not in part for op in ops for part in op.namespace)
    sizes = {op.namespace[1]: len(json.dumps(op.value)) for op in ops}
    assert sizes["paths"] < 350
    assert sizes["blobs"] < 400
    assert sizes["images"] < 80
    made(history, b"1" * 40_000, b"3", "2")
    assert len(store.batches) == 2
    assert [op.namespace[1] for op in store.batches[1]] == ["calls", "changes", "images", "paths"]


@pytest.mark.parametrize(
    "damaged",
    [zlib.compress(b"else"), zlib.compress(b"1")[:-2], b"no zlib", b""],
    ids=["other", "cut", "none", "empty"],
)
def test_an_image_that_was_damaged_in_the_store_is_none(damaged: bytes) -> None:
    store = InMemoryStore()
    made(FileHistory(store), b"1", b"2", "1")
    name = str(digest(b"1"))
    assert FileHistory(store).content(name) == b"1"
    (item,) = store.search((ROOT, "blobs"))
    store.put(item.namespace, name, {**item.value, "zlib": base64.b64encode(damaged).decode()})
    history = FileHistory(store)
    assert (history.content(name), history.remembered(name)) == (None, None)


def test_an_image_is_written_again_when_it_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counting()
    history = FileHistory(store)
    made(history, b"1", b"2", "1")
    monkeypatch.setattr(_store_shelf, "KNOWN_SECONDS", 0.0)
    made(history, b"1", b"2", "2")
    assert "blobs" in {op.namespace[1] for op in store.batches[-1]}


def test_what_is_known_of_a_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store_shelf, "_MOST_KNOWN", 2)
    history = FileHistory(InMemoryStore())
    for i in range(5):
        made(history, b"%d" % i, b"x", str(i))
    shelf = history._shelf
    assert isinstance(shelf, StoreShelf)
    assert len(shelf._known) == 2


def test_a_default_time_to_live_does_not_apply(tmp_path: Path) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "s.db"), ttl={"default_ttl": 0.0001}) as store:
        made(FileHistory(store), b"1", b"2")
        rows = store.conn.execute("SELECT expires_at FROM store").fetchall()
        assert len(rows) == 6
        assert all(row[0] is None for row in rows)


def test_a_change_of_a_newer_version_is_left_out() -> None:
    store = InMemoryStore()
    history = FileHistory(store)
    known = made(history, b"1", b"2")
    (item,) = store.search((ROOT, "changes"))
    store.put(item.namespace, "0", {"change": json.dumps({"v": 9})})
    assert history.changes() == [known]


def test_a_mark_without_its_change_breaks_the_chain() -> None:
    store = InMemoryStore()
    history = FileHistory(store)
    lost = made(history, b"1", b"2")
    for item in store.search((ROOT, "changes")):
        store.delete(item.namespace, item.key)
    assert history.chain(lost.path, digest(b"1"), digest(b"2")) is None
    assert history.writer(lost.path, digest(b"2")) is None
    assert history.find(lost.id) is None


def test_an_asynchronous_store_from_threads(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as store:
            await store.setup()
            history = FileHistory(store)
            first = await asyncio.to_thread(made, history, b"1", b"2")
            both = await asyncio.gather(
                *(asyncio.to_thread(made, history, b"2", b"%d" % i, str(i), path=f"/w/{i}") for i in range(5))
            )
            assert await asyncio.to_thread(history.find, first.id) == first
            assert await asyncio.to_thread(history.changes) == sorted([first, *both], key=lambda c: c.seq)
            assert await asyncio.to_thread(history.content, str(first.before)) == b"1"
            with pytest.raises(asyncio.InvalidStateError):
                history.find(first.id)

    asyncio.run(main())


@pytest.mark.postgres
def test_an_asynchronous_postgres_store_from_threads(postgres_url: str) -> None:  # noqa: F811
    from langgraph.store.postgres import AsyncPostgresStore

    async def main(url: str) -> None:
        async with AsyncPostgresStore.from_conn_string(url) as store:
            await store.setup()
            history = FileHistory(store)
            first = await asyncio.to_thread(made, history, b"1", b"2")
            assert await asyncio.to_thread(history.changes) == [first]
            assert await asyncio.to_thread(FileHistory(store).content, str(first.before)) == b"1"

    with database(postgres_url) as url:
        asyncio.run(main(url))


def test_processes_on_one_sqlite_file(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from langgraph.store.sqlite import SqliteStore
        from langchain_filestate._history import FileHistory
        from tests.test_history import made
        name = sys.argv[2]
        with SqliteStore.from_conn_string(sys.argv[1]) as store:
            history = FileHistory(store)
            for i in range(20):
                made(history, b"%d" % i, b"%d" % (i + 1), name + str(i), path="/w/" + name, thread_id=name)
        """
    )
    db = str(tmp_path / "s.db")
    with SqliteStore.from_conn_string(db) as store:
        store.conn.execute("PRAGMA journal_mode=WAL")
        store.setup()
        running = [
            subprocess.Popen([sys.executable, "-c", script, db, name], cwd=os.getcwd(), stderr=subprocess.PIPE)
            for name in "ab"
        ]
        for process in running:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors.decode()
        history = FileHistory(store)
        assert history.threads() == ["a", "b"]
        assert [len(history.changes(t)) for t in "ab"] == [20, 20]
        assert history.content(str(digest(b"7"))) == b"7"
