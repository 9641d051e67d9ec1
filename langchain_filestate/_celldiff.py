"""What became of the cells between two states of a notebook: for a model that sees cells, and for the views of them.

The idea: a diff of the raw file says little to an agent that was shown cells, and its lines are not those that the
views count. So cells are set against each other: by their ids where both states have them, else by their text and
place. A run that changed outputs only leaves what was seen as seen, and so does every cell that nobody touched.

Rules: a change counts as shown only if its text stands there in full; a changed cell is then known by what was seen of
it before together with the difference. Outputs are no part of what is compared, only named.
Limits: where cells have no ids, a cell that was moved and changed is one that is gone and one that is new. Notebooks in
which more than `MOST` cells have no partner at their ends, and cells of more than `MOST_LINES` lines, are not compared.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_filestate import _text
from langchain_filestate._kind import is_notebook
from langchain_filestate._notebook import parse
from langchain_filestate._patch import LineEdit
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from langchain_filestate._notebook import Cell, Notebook

MOST = 1000
"""Cells without a partner, in each state, that are set against each other."""
MOST_LINES = 2000
"""Lines of one cell that are compared."""
LISTED = 10
"""Cells that one sentence names."""
_CONTEXT = 2
_MAX_CHARS = 300

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell that is not what it was.

    Attributes:
        kind: What became of it.
        name: What it is called now; one that is gone, what it was called.
        old: As it was; None if it is new.
        new: As it is; None if it is gone.
        before: What the cell in front of it is called now; None at the top.
    """

    kind: Literal["changed", "new", "moved", "gone"]
    name: str
    old: Cell | None
    new: Cell | None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class CellDiff:
    """The difference between two states of a notebook.

    Attributes:
        changes: In the order of the cells as they are now; one that is gone where it was.
        outputs: Names of the cells of which only outputs differ.
        spans: Ranges of cells that stand for others: first and end, from 0, of the old ones and of the new ones.
        origins: For each new cell in a span the old one that it was, from 0; None for one that is new.
    """

    changes: tuple[CellChange, ...]
    outputs: tuple[str, ...]
    spans: tuple[tuple[int, int, int, int], ...]
    origins: tuple[tuple[int, int | None], ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The cells that are changed or new, from 1."""
        return tuple(change.new.index + 1 for change in self.changes if change.new is not None)

    def same_place(self, index: int) -> bool:
        """True if a new cell, from 0, was as many cells from the top before."""
        return (index, index) in self.origins

    def edits(self, shown: Collection[str]) -> tuple[LineEdit, ...]:
        """The change in cells, so that views can be moved across it.

        Args:
            shown: Names of the changed and new cells whose change the model was shown in full.
        """
        changed = {change.new.index: change for change in self.changes if change.new is not None}
        origins = dict(self.origins)
        edits = []
        for i, j, k, m in self.spans:
            kept = []
            for new in range(k, m):
                change = changed.get(new)
                if change is not None and change.name not in shown:
                    kept.append((new + 1, 0))  # on the evidence of no cell, that is on none
                elif (old := origins.get(new)) is not None:
                    kept.append((new + 1, old + 1))
            edits.append(LineEdit(i + 1, j - i, m - k, False, False, tuple(kept)))
        return tuple(edits)

    def text(self, max_lines: int) -> tuple[str, frozenset[str]]:
        """What is different, for the model.

        Args:
            max_lines: Most lines of text, two at the least.

        Returns:
            The text, and the names of the changed and new cells that it shows in full.
        """
        lines: list[str] = []
        shown: set[str] = set()
        cut: list[CellChange] = []
        for change in self.changes:
            body, full = _body(change)
            if len(lines) + len(body) + 1 > max_lines - 1 - bool(self.outputs):
                cut.append(change)
                continue
            lines += [_head(change), *body]
            if full and change.new is not None:
                shown.add(change.name)
        if cut:
            lines.append(f"Not shown here, {'too' if lines else 'but different'}: {_by_kind(cut)}.")
        if self.outputs:
            lines.append(f"Only outputs changed: {listed(self.outputs)}.")
        return "\n".join(lines) or "The text of its cells is the same.", frozenset(shown)

    def summary(self) -> str:
        """In which cells the difference is."""
        said = [_by_kind(self.changes)] if self.changes else []
        if self.outputs:
            said.append(f"only outputs: {listed(self.outputs)}")
        return f"cells {'; '.join(said)}" if said else "outside the text of its cells"


_KINDS: tuple[Literal["changed", "new", "moved", "gone"], ...] = ("changed", "new", "moved", "gone")


def _by_kind(changes: Sequence[CellChange]) -> str:
    kinds = {kind: [change.name for change in changes if change.kind == kind] for kind in _KINDS}
    return "; ".join(f"{kind}: {listed(found)}" for kind, found in kinds.items() if found)


def listed(found: Sequence[str]) -> str:
    """Some names of cells."""
    more = len(found) - LISTED
    return ", ".join(found[:LISTED]) + (f" and {more} more" if more > 0 else "")


def between(path: str, old: bytes | None, new: bytes | None) -> CellDiff | None:
    """Compare two states of a file.

    Args:
        path: Its name says whether it may be a notebook.
        old: Its bytes before; None if they are not known.
        new: Its bytes now.

    Returns:
        None if one of the two is not a notebook.
    """
    if old is None or new is None or not is_notebook(path):
        return None
    try:
        return compare(parse(old), parse(new))
    except Refused:
        return None


def compare(old: Notebook, new: Notebook) -> CellDiff:
    """Compare two notebooks."""
    before, after = _keys(old, new)
    blocks = [*_blocks(before, after)]
    pairs = {k + n: i + n for i, j, k, m in blocks if before[i:j] == after[k:m] for n in range(j - i)}
    others = {block for block in blocks if block[2] not in pairs or block[2] == block[3]}
    moved = _moved(before, after, pairs)
    for i, j, k, m in others:
        used = {*moved.values()}
        rest = [a for a in range(i, j) if a not in used], [b for b in range(k, m) if b not in moved]
        if len(rest[0]) == len(rest[1]):  # without ids those of one type may be the same with another text
            paired = [(a, b) for a, b in zip(*rest, strict=True) if not (old.ids[a] and new.ids[b])]
            pairs |= {b: a for a, b in paired if before[a][:2] == after[b][:2]}
    origins = {**pairs, **moved}
    gone = set(range(len(before))) - {*origins.values()}
    changes: list[CellChange] = []
    outputs: list[str] = []
    spans: list[tuple[int, int, int, int]] = []
    for i, j, k, m in blocks:
        whole = (i, j, k, m) in others
        if whole:
            spans.append((i, j, k, m))
            changes += [CellChange("gone", old.cells[a].name, old.cells[a], None) for a in range(i, j) if a in gone]
        for b in range(k, m):
            one, two = old.cells[origins[b]] if b in origins else None, new.cells[b]
            front = new.cells[b - 1].name if b else None
            if one is None or b in moved:
                changes.append(CellChange("new" if one is None else "moved", two.name, one, two, front))
            elif (one.cell_type, one.source) != (two.cell_type, two.source):
                changes.append(CellChange("changed", two.name, one, two, front))
                if not whole:
                    spans.append((b - k + i, b - k + i + 1, b, b + 1))
            elif one.outputs != two.outputs:
                outputs.append(two.name)
    return CellDiff(tuple(changes), tuple(outputs), tuple(spans), tuple(origins.items()))


def _moved(before: list[_Key], after: list[_Key], pairs: Mapping[int, int]) -> dict[int, int]:
    """The new cells that were elsewhere before, and where."""
    used = {*pairs.values()}
    left: dict[_Key, list[int]] = {}
    for a in reversed(range(len(before))):
        if a not in used:
            left.setdefault(before[a], []).append(a)
    return {b: left[key].pop() for b, key in enumerate(after) if b not in pairs and left.get(key)}


def _keys(old: Notebook, new: Notebook) -> tuple[list[_Key], list[_Key]]:
    """What each cell is known by: an id that both states have, else its text."""
    ids = [
        {cell.name for cell, raw in zip(book.cells, book.ids, strict=True) if raw == cell.name} for book in (old, new)
    ]
    both = ids[0] & ids[1]

    def keys(book: Notebook) -> list[_Key]:
        return [
            ("id", cell.name, "") if raw == cell.name and raw in both else ("text", cell.cell_type, cell.source)
            for cell, raw in zip(book.cells, book.ids, strict=True)
        ]

    return keys(old), keys(new)


def _blocks(before: list[_Key], after: list[_Key]) -> Iterator[tuple[int, int, int, int]]:
    """Ranges that are the same, and those between them: first and end of the old ones and of the new ones."""
    most = min(len(before), len(after))
    head = next((n for n in range(most) if before[n] != after[n]), most)
    rest = most - head
    tail = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    low, high = before[head : len(before) - tail], after[head : len(after) - tail]
    if head:
        yield 0, head, 0, head
    if max(len(low), len(high)) > MOST:
        yield head, head + len(low), head, head + len(high)
    elif low or high:
        for _, i, j, k, m in difflib.SequenceMatcher(None, low, high, autojunk=False).get_opcodes():
            yield head + i, head + j, head + k, head + m
    if tail:
        yield len(before) - tail, len(before), len(after) - tail, len(after)


def _head(change: CellChange) -> str:
    cell = change.new or change.old
    called = f'Cell "{change.name}"' + (f" ({_text.show(cell.cell_type)})" if cell is not None else "")
    place = "at the top" if change.before is None else f'after "{change.before}"'
    if change.kind == "gone":
        return f"{called} is gone."
    if change.kind == "new":
        return f"{called} is new, {place}:"
    if change.kind == "moved":
        return f"{called} was moved and is now {place}{':' if _differs(change) else '.'}"
    if change.old is not None and change.new is not None and change.old.cell_type != change.new.cell_type:
        return f"{called} was {_text.show(change.old.cell_type)} before{':' if _differs(change) else '.'}"
    return f"{called} was changed:"


def _differs(change: CellChange) -> bool:
    return change.old is None or change.new is None or change.old.source != change.new.source


def _body(change: CellChange) -> tuple[list[str], bool]:
    """The lines of the difference, and whether they are all of it."""
    if change.new is None or not _differs(change):
        return [], True
    new = change.new.source.split("\n")
    old = change.old.source.split("\n") if change.old is not None else []
    if max(len(old), len(new)) > MOST_LINES:
        return ["(too long to be compared)"], False
    if change.old is None:
        raw = [f"+{line}" for line in new]
    else:
        raw = [*difflib.unified_diff(old, new, n=_CONTEXT, lineterm="")][2:]
    lines = [_text.show(line) for line in raw]
    full = lines == raw and all(len(line) <= _MAX_CHARS for line in lines)
    return [line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]} ... (cut)" for line in lines], full
