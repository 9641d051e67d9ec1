"""What became of cells: which are told, which count as seen, against what is known of how the notebook was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_filestate import _celldiff
from langchain_filestate._celldiff import CellDiff, between
from langchain_filestate._records import View, covers, evidence_of, move
from tests.notebook_styles import JUPYTER, Style, code, words

OLD4 = Style(minor=4)


def difference(old: list[dict[str, Any]], new: list[dict[str, Any]], style: Style = JUPYTER) -> CellDiff:
    found = between("n.ipynb", style.dump(old), style.dump(new))
    assert found is not None
    return found


def plain(source: str, name: str = "", kind: str = "markdown") -> dict[str, Any]:
    made = words(source, name, kind)
    if not name:
        del made["id"]
    return made


A, B, C = (plain(f"text of {name}\nmore", name) for name in "abc")


@pytest.mark.parametrize(
    ("old", "new", "kinds", "text"),
    [
        ([A, B], [A, B], [], "The text of its cells is the same."),
        ([A, B], [A, plain("text of b\nless", "b")], [("changed", "b")],
         'Cell "b" (markdown) was changed:\n@@ -1,2 +1,2 @@\n text of b\n-more\n+less'),
        ([A, B], [A, C, B], [("new", "c")], 'Cell "c" (markdown) is new, after "a":\n+text of c\n+more'),
        ([A], [C, A], [("new", "c")], 'Cell "c" (markdown) is new, at the top:\n+text of c\n+more'),
        ([A, B, C], [A, C], [("gone", "b")], 'Cell "b" (markdown) is gone.'),
        ([A, B, C], [C, A, B], [("moved", "c")], 'Cell "c" (markdown) was moved and is now at the top.'),
        ([A, B], [A, plain("text of b\nmore", "b", "raw")], [("changed", "b")], 'Cell "b" (raw) was markdown before.'),
        ([code("x", 1)], [{**code("x", 1), "outputs": [], "execution_count": 7}], [], "Only outputs changed: code-1."),
        ([], [A], [("new", "a")], 'Cell "a" (markdown) is new, at the top:\n+text of a\n+more'),
        ([A], [], [("gone", "a")], 'Cell "a" (markdown) is gone.'),
        # Ids that were added are no change, and without ids place and text tell.
        ([plain("x"), plain("y")], [plain("x", "p"), plain("y", "q")], [], "The text of its cells is the same."),
        ([plain("x"), plain("y")], [plain("x"), plain("z")], [("changed", "cell-1")],
         'Cell "cell-1" (markdown) was changed:\n@@ -1 +1 @@\n-y\n+z'),
        ([plain("x"), plain("")], [plain("")], [("gone", "cell-0")], 'Cell "cell-0" (markdown) is gone.'),
        ([plain(""), plain(""), plain("x")], [plain(""), plain("x")], [("gone", "cell-1")],
         'Cell "cell-1" (markdown) is gone.'),
        ([plain("x")], [plain("y", "", "raw")], [("gone", "cell-0"), ("new", "cell-0")],
         'Cell "cell-0" (markdown) is gone.\nCell "cell-0" (raw) is new, at the top:\n+y'),
    ],
)  # fmt: skip
def test_what_is_told(old: Any, new: Any, kinds: list[tuple[str, str]], text: str) -> None:
    found = difference(old, new)
    assert [(change.kind, change.name) for change in found.changes] == kinds
    told, shown = found.text(60)
    assert told == text
    assert shown == {name for kind, name in kinds if kind != "gone"}
    assert found.numbers == tuple(
        n for n, cell in enumerate(new, 1) if cell.get("id") in shown or f"cell-{n - 1}" in shown
    )


def test_what_is_no_notebook_has_no_cells() -> None:
    book = JUPYTER.dump([A])
    assert between("n.py", book, book) is None
    assert between("n.ipynb", None, book) is None
    assert between("n.ipynb", b"{", book) is None
    assert between("N.IPYNB", book, book) is not None


def test_the_text_is_bounded_and_says_what_it_leaves_out() -> None:
    old = [plain(f"{n}\n" * 5, f"c{n}") for n in range(30)]
    new = [plain(f"{n}!\n" * 5, f"c{n}") for n in range(30)]
    text, shown = difference(old, new).text(30)
    assert len(text.split("\n")) <= 30
    assert shown == {"c0", "c1"}
    assert text.endswith("Not shown here, too: changed: c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 18 more.")
    assert difference(old, new).text(1) == (
        "Not shown here, but different: changed: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 20 more.", frozenset()
    )  # fmt: skip
    assert difference(old, new).summary() == "cells changed: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 20 more"
    assert difference([A], [A]).summary() == "outside the text of its cells"
    run = {**code("x", 1), "outputs": []}
    assert difference([A, code("x", 1)], [B, run]).summary() == "cells new: b; gone: a; only outputs: code-1"


@pytest.mark.parametrize("source", ["x" * 400, "a\ud800b", "\n" * 3000])
def test_what_is_cut_or_shown_as_an_escape_is_not_shown_in_full(source: str) -> None:
    ascii_only = Style(ascii_only=True)
    found = difference([A], [A, plain(source, "x")], ascii_only)
    text, shown = found.text(60)
    assert not shown
    assert len(text) < 500
    text.encode()
    (edit,) = found.edits(shown)
    assert move((View(1, 1, "old"),), (edit,), "new") == (View(1, 1, "old"),)


def test_many_new_cells_are_not_set_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_celldiff, "MOST", 3)
    old = [plain(f"{n}", f"c{n}") for n in range(9)]
    found = difference(old, [old[0], *reversed(old[1:8]), old[8]])
    assert {change.kind for change in found.changes} == {"moved"}
    assert found.spans == ((1, 8, 1, 8),)


# ---- what counts as seen --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edits:
    """A notebook and another state of it, with the number of the old cell that each new one came from."""

    old: list[dict[str, Any]]
    new: list[dict[str, Any]]


@st.composite
def edits(draw: st.DrawFn) -> Edits:
    with_ids = draw(st.booleans())
    count = draw(st.integers(0, 6))
    texts = st.sampled_from(["", "x", "x\ny", "z", "import os", "# head"])
    old = [
        plain(draw(texts), f"c{n}" if with_ids else "", draw(st.sampled_from(["markdown", "raw"])))
        for n in range(count)
    ]
    new = [dict(cell) for cell in draw(st.permutations(old))] if draw(st.booleans()) else [dict(cell) for cell in old]
    for n in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(new) - 1, 0)))
        what = draw(st.sampled_from(["insert", "delete", "change", "twice"]))
        if what == "insert" or not new:
            new.insert(at, plain(draw(texts), f"n{n}" if with_ids else ""))
        elif what == "delete":
            del new[at]
        elif what == "change":
            new[at] = {**new[at], "source": draw(texts)}
        else:
            new.insert(at, dict(new[at]))
    return Edits(old, new)


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return bool(one["source"] == two["source"] and one["cell_type"] == two["cell_type"])


@given(edits(), st.data())
def test_what_counts_after_the_move_was_seen_or_shown(case: Edits, data: st.DataObject) -> None:
    """Each cell stands on evidence that holds its text: of an old cell with the same text, or of one and its change."""
    found = difference(case.old, case.new)
    seen = data.draw(st.sets(st.integers(1, max(len(case.old), 1)))) if case.old else set()
    views = [View(n, n, f"old-{n}") for n in sorted(seen)]
    _, shown = found.text(data.draw(st.sampled_from([2, 5, 100])))
    moved = move(views, found.edits(shown), "new")
    changed = {change.new.index: change for change in found.changes if change.new is not None}
    for n, cell in enumerate(case.new):
        for name in evidence_of(moved, n + 1):
            if name == "new":
                assert changed[n].kind == "new"
                assert changed[n].name in shown
                continue
            before = case.old[int(name.removeprefix("old-")) - 1]
            assert same(before, cell) or changed[n].name in shown
            assert before.get("id") == cell.get("id") or "id" not in before or same(before, cell)
    if not found.changes:
        assert [(c["cell_type"], c["source"]) for c in case.old] == [(c["cell_type"], c["source"]) for c in case.new]
    assert all(view.last <= len(case.new) for view in moved)
    _, all_shown = found.text(100)
    everything = move([View(n, n, "old") for n in range(1, len(case.old) + 1)], found.edits(all_shown), "new")
    assert covers(everything, 1, len(case.new))
