from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_filestate import _records
from langchain_filestate._patch import LineEdit
from langchain_filestate._records import (
    MAX_RECORDS,
    MAX_VIEWS,
    Record,
    View,
    covers,
    known,
    load,
    merge_records,
    move,
    tidy,
)


def record(seq: int = 1, digest: str = "d", views: tuple[View, ...] = (View(1, 3, "e"),), lines: int = 9) -> Record:
    return Record(digest, 10, lines, views, seq, "read")


def test_a_record_survives_its_plain_form() -> None:
    assert load(record().to_state()) == record()


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {**record().to_state(), "v": 2},
        {**record().to_state(), "digest": 1},
        {**record().to_state(), "origin": "dream"},
        {**record().to_state(), "views": [[1, 2]]},
        {**record().to_state(), "views": [[2, 1, "e"]]},
        {**record().to_state(), "views": [[1, 10, "e"]]},
        {**record().to_state(), "views": None},
        {**record().to_state(), "seq": "1"},
        {**record().to_state(), "lines": None},
        {**record().to_state(), "lines": -1, "views": []},
        {**record().to_state(), "size": -1},
        {**record().to_state(), "seq": True},
        {**record().to_state(), "views": [[True, 1, "e"]]},
    ],
)
def test_unknown_versions_and_broken_shapes_count_as_not_read(broken: Any) -> None:
    assert load(broken) is None


# ---- merging --------------------------------------------------------------------------------------------------------

records = st.builds(
    lambda seq, digest: record(seq, digest).to_state(), st.integers(0, 20), st.sampled_from(["a", "b", "c"])
)
states = st.dictionaries(st.sampled_from(["x", "y"]), st.dictionaries(st.sampled_from(["/p", "/q", "/r"]), records))
odd = st.one_of(states, st.none(), st.just([]), st.just({"x": None}), st.just({"x": {"/p": None}}), st.just({1: {}}))


@given(st.lists(odd, max_size=4))
def test_merging_is_the_same_in_any_order_and_twice(updates: list[Any]) -> None:
    results = []
    for order in itertools.islice(itertools.permutations(updates), 24):
        state: Any = {}
        for update in order:
            before = repr((state, update))
            merged = merge_records(state, update)
            assert repr((state, update)) == before
            assert merge_records(merged, update) == merged
            state = merged
        results.append({agent: kept for agent, kept in state.items() if kept})
    assert all(result == results[0] for result in results[1:])


@given(odd, odd, odd)
def test_merging_is_the_same_however_batched(a: Any, b: Any, c: Any) -> None:
    assert merge_records(merge_records(a, b), c) == merge_records(a, merge_records(b, c))


def test_the_oldest_records_go_first() -> None:
    many = {"a": {f"/{i}": record(i).to_state() for i in range(2000)}}
    kept = merge_records({}, many)["a"]
    assert len(kept) == MAX_RECORDS
    assert min(int(path[1:]) for path in kept) == 2000 - MAX_RECORDS
    state: Any = {}
    for path, value in many["a"].items():
        state = merge_records(state, {"a": {path: value}})
    assert state["a"] == kept


# ---- views ----------------------------------------------------------------------------------------------------------

views_of = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 8), st.sampled_from("abc")).map(
        lambda t: View(t[0], min(30, t[0] + t[1]), t[2])
    ),
    max_size=6,
)


def spelled(views: Any) -> dict[int, set[str]]:
    lines: dict[int, set[str]] = {}
    for view in views:
        for line in range(view.first, view.last + 1):
            lines.setdefault(line, set()).add(view.evidence)
    return lines


@given(views_of)
def test_tidying_keeps_what_every_line_stands_on(views: list[View]) -> None:
    tidied = tidy(views)
    assert spelled(tidied) == spelled(views)
    assert list(tidied) == sorted(tidied)
    assert spelled(tidy(views, {"a"})) == spelled(v for v in views if v.evidence == "a")


@given(views_of, st.integers(1, 31), st.integers(0, 31))
def test_covering_is_line_by_line(views: list[View], first: int, last: int) -> None:
    assert covers(views, first, last) == all(line in spelled(views) for line in range(first, last + 1))


def test_the_smallest_views_are_dropped_first() -> None:
    views = [View(10 * i + 1, 10 * i + 1 + (i % 5), f"e{i}") for i in range(300)]
    tidied = tidy(views)
    assert len(tidied) == MAX_VIEWS
    assert min(v.last - v.first for v in tidied) >= 2
    assert len(repr(Record("0" * 64, 10**9, 10**7, tidied, 10**18, "read").to_state())) < 6000


def test_a_file_read_whole_is_a_small_record() -> None:
    whole = Record("0" * 64, 123_456, 4567, (View(1, 4567, "fs-0123456789ab"),), 1_790_000_000_000_000_000, "read")
    assert len(repr(whole.to_state())) <= 250


def edit(first: int, old: int, new: int, *kept: tuple[int, int]) -> LineEdit:
    after = {line for line, _ in kept}
    return LineEdit(first, old, new, first in after, first + new - 1 in after, kept)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([edit(4, 1, 1)], [(1, 3, "old"), (4, 4, "new"), (5, 9, "old")]),
        ([edit(4, 1, 1, (4, 4))], [(1, 9, "old")]),
        ([edit(4, 2, 0)], [(1, 7, "old")]),
        ([edit(4, 0, 3)], [(1, 3, "old"), (4, 6, "new"), (7, 12, "old")]),
        ([edit(4, 1, 3, (4, 4), (6, 4))], [(1, 4, "old"), (5, 5, "new"), (6, 11, "old")]),
        ([edit(4, 2, 1, (4, 4), (4, 5))], [(1, 8, "old")]),
        ([edit(10, 0, 1)], [(1, 9, "old"), (10, 10, "new")]),
        ([edit(1, 9, 2)], [(1, 2, "new")]),
        (
            [edit(2, 1, 5, (2, 2), (4, 2), (6, 2))],
            [(1, 2, "old"), (3, 3, "new"), (4, 4, "old"), (5, 5, "new"), (6, 13, "old")],
        ),
        ([edit(2, 1, 2), edit(5, 1, 0)], [(1, 1, "old"), (2, 3, "new"), (4, 9, "old")]),
    ],
)
def test_views_move_across_edits(edits: list[LineEdit], expected: list[tuple[int, int, str]]) -> None:
    assert list(move([View(1, 9, "old")], edits, "new")) == [View(*view) for view in expected]


def test_a_line_joined_of_two_needs_evidence_that_showed_both() -> None:
    joined = edit(1, 2, 1, (1, 1), (1, 2))
    assert move([View(1, 1, "a"), View(2, 2, "b")], [joined], "new") == ()
    assert move([View(1, 1, "a"), View(1, 2, "b")], [joined], "new") == (View(1, 1, "b"),)


def test_a_line_that_was_not_seen_is_not_seen_after_half_of_it_was_replaced() -> None:
    assert move([View(1, 3, "a")], [edit(4, 1, 1, (4, 4))], "new") == (View(1, 3, "a"),)


@given(views_of, st.integers(1, 28), st.integers(0, 3), st.integers(0, 3))
def test_untouched_lines_keep_their_evidence(views: list[View], first: int, old: int, new: int) -> None:
    before = spelled(views)
    after = spelled(move(views, [edit(first, old, new)], "new"))
    for line in range(1, 60):
        if line < first:
            assert after.get(line) == before.get(line)
        elif line < first + new:
            assert after.get(line) == {"new"}
        else:
            assert after.get(line) == before.get(line - new + old)


# ---- what is known --------------------------------------------------------------------------------------------------


def everything(evidence: Any) -> Any:
    return evidence


def nothing(_: Any) -> Any:
    return ()


def test_the_own_record_counts_always_and_its_views_only_with_evidence() -> None:
    mine = {"me": record()}
    assert known(mine, "me", "d", everything).views == (View(1, 3, "e"),)
    gone = known(mine, "me", "d", nothing)
    assert gone.record == record()
    assert gone.views == ()


def test_another_agents_record_counts_only_with_evidence() -> None:
    theirs = {"you": record()}
    assert known(theirs, "me", "d", everything).record == record()
    assert known(theirs, "me", "d", nothing).record is None


def test_a_record_of_the_bytes_on_disk_goes_first() -> None:
    both = {"me": record(9, "old"), "you": record(1, "new")}
    assert known(both, "me", "new", everything).record == both["you"]
    assert known(both, "me", "old", everything).record == both["me"]
    assert known(both, "me", "other", everything).record == both["me"]


def test_views_of_one_digest_add_up_across_agents() -> None:
    both = {"me": record(1, views=(View(1, 4, "a"),)), "you": record(2, views=(View(5, 9, "b"),))}
    found = known(both, "me", "d", everything)
    assert found.shows_all()
    assert found.shows(3, 6)
    assert known(both, "me", "d", lambda ids: {"a"} & set(ids)).shows(1, 4)
    assert not known(both, "me", "d", lambda ids: {"a"} & set(ids)).shows_all()


def test_an_empty_file_has_nothing_to_be_shown() -> None:
    assert known({"me": record(views=(), lines=0)}, "me", "d", nothing).shows_all()


def test_a_notice_without_views_shows_nothing() -> None:
    notice = Record("d", 1, 3, (), 1, "notice")
    assert known({"me": notice}, "me", "d", everything).announced_only()
    assert not known({"me": record()}, "me", "d", everything).announced_only()
    assert _records.evidence_of([View(1, 2, "a")], 3) == frozenset()
