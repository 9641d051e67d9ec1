from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from langchain_filestate._records import Record, View
from langchain_filestate._siblings import _MAX_MESSAGES, BUSY_SECONDS, GRACE_SECONDS, Place, Siblings

KEY = ("thread", "checkpoint", "message")


def record(seq: int) -> Record:
    return Record("d", 1, 1, (), seq, "read")


def test_a_call_waits_for_an_earlier_one_that_has_begun() -> None:
    siblings, order = Siblings(), []
    siblings.begin(Place(KEY, 0))

    def second() -> None:
        siblings.begin(Place(KEY, 1))
        siblings.wait(Place(KEY, 1), [0], 10)
        order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    time.sleep(2 * GRACE_SECONDS)
    order.append("first")
    siblings.end(Place(KEY, 0))
    thread.join(5)
    assert order == ["first", "second"]


def test_a_call_that_never_begins_is_waited_for_briefly() -> None:
    siblings = Siblings()
    began = time.monotonic()
    siblings.wait(Place(KEY, 1), [0], 10)
    assert GRACE_SECONDS * 0.9 <= time.monotonic() - began < 5


def test_time_in_which_threads_are_kept_from_running_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stopped for longer than the grace each time that it waits: the other call could not begin."""
    siblings, clock = Siblings(), [0.0]
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock[0] += 3 * GRACE_SECONDS if len(waits) < 4 else max(seconds, 0.001)
        if len(waits) == 3:
            siblings.begin(Place(KEY, 0))
        if len(waits) == 4:
            siblings.end(Place(KEY, 0))

    monkeypatch.setattr("langchain_filestate._siblings.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(siblings._changed, "wait", wait)
    siblings.wait(Place(KEY, 1), [0], 10)
    assert len(waits) == 4
    waits.clear()
    ended = clock[0]
    siblings.wait(Place(KEY, 3), [2], 10)  # it never begins, and there is an end to that too
    assert clock[0] - ended < 2 * BUSY_SECONDS


def test_a_finished_call_is_not_waited_for_and_a_hanging_one_only_so_long() -> None:
    siblings = Siblings()
    siblings.begin(Place(KEY, 0))
    began = time.monotonic()
    siblings.wait(Place(KEY, 1), [0], 0.05)
    assert 0.04 <= time.monotonic() - began < 5
    siblings.end(Place(KEY, 0))
    began = time.monotonic()
    siblings.wait(Place(KEY, 1), [0], 10)
    assert time.monotonic() - began < GRACE_SECONDS


def test_one_that_is_interrupted_while_it_is_waited_for_counts_as_finished() -> None:
    siblings = Siblings()
    siblings.begin(Place(KEY, 0))
    timer = threading.Timer(0.02, siblings.end, [Place(KEY, 0)], {"interrupted": True})
    timer.start()
    began = time.monotonic()
    siblings.wait(Place(KEY, 1), [0], 10)
    assert time.monotonic() - began < 5
    timer.join()


def test_one_that_was_interrupted_before_may_run_again_and_is_waited_for() -> None:
    siblings = Siblings()
    siblings.begin(Place(KEY, 0))
    siblings.end(Place(KEY, 0), interrupted=True)
    done = []

    def again() -> None:
        siblings.begin(Place(KEY, 0))
        time.sleep(2 * GRACE_SECONDS)
        done.append(True)
        siblings.end(Place(KEY, 0))

    thread = threading.Thread(target=again)
    thread.start()
    siblings.wait(Place(KEY, 1), [0], 10)
    assert done == [True]
    thread.join()
    siblings.begin(Place(KEY, 0))
    siblings.end(Place(KEY, 0), interrupted=True)
    began = time.monotonic()
    siblings.wait(Place(KEY, 1), [0], 10)
    assert time.monotonic() - began < 5


def test_records_pass_on_by_the_order_of_the_message() -> None:
    siblings = Siblings()
    siblings.note(Place(KEY, 1), "a", "/p", record(5), "fs-1", written=True)
    siblings.note(Place(KEY, 0), "a", "/p", record(4), "fs-0", written=False)
    assert siblings.record(Place(KEY, 0), "a", "/p") is None
    assert siblings.record(Place(KEY, 1), "a", "/p") == record(4)
    assert siblings.record(Place(KEY, 2), "a", "/p") == record(5)
    assert siblings.record(Place(KEY, 2), "b", "/p") is None
    assert siblings.record(Place(("t", "c", "other"), 2), "a", "/p") is None
    assert siblings.evidence(Place(KEY, 1)) == {"fs-0": False, "fs-1": True}  # what was written is known at once
    assert siblings.evidence(Place(KEY, 0)) == {"fs-1": True}
    assert siblings.evidence(Place(KEY, 2)) == {"fs-0": False, "fs-1": True}
    assert siblings.evidence(Place(("t", "c", "other"), 2)) == {}


def test_old_messages_are_forgotten() -> None:
    siblings = Siblings()
    for n in range(_MAX_MESSAGES + 1):
        siblings.note(Place(("t", "c", str(n)), 0), "a", "/p", record(n), "e", written=False)
    assert siblings.record(Place(("t", "c", "0"), 1), "a", "/p") is None
    assert siblings.record(Place(("t", "c", "1"), 1), "a", "/p") == record(1)


def test_a_later_call_that_ran_first_passes_on_what_it_wrote_and_not_what_was_read_for_it() -> None:
    siblings = Siblings()
    views = (View(1, 1, "fs-read"), View(2, 2, "fs-write"), View(3, 3, "old"))
    siblings.note(Place(KEY, 1), "a", "/p", record(5), "fs-read", written=False)
    assert siblings.overtaking(Place(KEY, 0), "a", "/p") is None
    siblings.note(Place(KEY, 2), "a", "/p", record(6)._replace(lines=3, views=views), "fs-write", written=True)
    found = siblings.overtaking(Place(KEY, 0), "a", "/p")
    assert found is not None
    assert found.views == views[1:]
    assert siblings.overtaking(Place(KEY, 2), "a", "/p") is None
    assert siblings.overtaking(Place(("t", "c", "other"), 0), "a", "/p") is None


# ---- in an event loop -------------------------------------------------------------------------------------------------


async def test_in_an_event_loop_calls_wait_without_a_thread() -> None:
    siblings, order = Siblings(), []

    async def edit(index: int, delay: float) -> None:
        await asyncio.sleep(delay)
        place = Place(KEY, index)
        async with siblings.turn(place, range(index), 10):
            await asyncio.to_thread(siblings.wait, place, range(index), 10)
            order.append(index)
            await asyncio.to_thread(siblings.end, place)

    await asyncio.gather(*(edit(index, 0.002 * (8 - index)) for index in range(8)))
    assert order == list(range(8))
    assert not siblings._of(KEY).wakers
    assert not siblings._of(KEY).waited


async def test_in_an_event_loop_the_same_bounds_hold_and_hold_once() -> None:
    siblings = Siblings()
    siblings.begin(Place(KEY, 0))  # and hangs
    began = time.monotonic()
    async with siblings.turn(Place(KEY, 2), [0, 1], 0.05):
        assert 0.04 <= time.monotonic() - began < 5
        began = time.monotonic()
        siblings.wait(Place(KEY, 2), [0, 1], 10)
        assert time.monotonic() - began < 5
        siblings.end(Place(KEY, 2))
    began = time.monotonic()
    siblings.wait(Place(KEY, 2), [1], 10)  # it runs again, and waits again
    assert GRACE_SECONDS * 0.9 <= time.monotonic() - began < 5


async def _queued(siblings: Siblings, index: int, taken_up: Callable[[], object] = int) -> None:
    """A call whose turn has come and that no thread takes up."""
    async with siblings.turn(Place(KEY, index), range(index), 10):
        taken_up()
        await asyncio.sleep(3600)


@pytest.mark.parametrize("busy", [True, False], ids=["for its turn", "for a thread"])
async def test_a_call_that_is_cancelled_while_it_waits_is_not_waited_for(busy: bool) -> None:
    siblings = Siblings()
    (siblings.begin if busy else siblings.end)(Place(KEY, 0))
    task = asyncio.create_task(_queued(siblings, 1))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.monotonic()
    siblings.wait(Place(KEY, 2), [1], 10)
    assert time.monotonic() - began < 5
    assert not siblings._of(KEY).wakers


async def test_a_call_that_is_cancelled_while_a_thread_carries_it_out_is_waited_for() -> None:
    siblings = Siblings()
    siblings.end(Place(KEY, 0))
    task = asyncio.create_task(_queued(siblings, 1, lambda: siblings.begin(Place(KEY, 1))))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.monotonic()
    siblings.wait(Place(KEY, 2), [1], 0.2)
    assert time.monotonic() - began > 0.19


def test_a_loop_that_is_closed_is_not_woken() -> None:
    siblings = Siblings()
    siblings.begin(Place(KEY, 0))
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(_queued(siblings, 1))
    loop.run_until_complete(asyncio.sleep(0.01))
    (wake,) = siblings._of(KEY).wakers
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    wake()
    siblings._of(KEY).wakers.add(wake)
    siblings.end(Place(KEY, 0))
