"""Edits of notebook cells in the raw bytes of an .ipynb.

A notebook is never dumped anew: an edit is a handful of splices inside the one cell, so that indentation, key order,
line endings, escapes, BOM and final newline of everything else stay what they were. What is written follows the
notebook's own habits: a source keeps its form (string or list of lines) and lines of it that do not change keep their
bytes; a new cell takes keys, their order and white space from its nearest neighbour of the same type, or else of any.
In a notebook without cells, the layout of the top level is continued, with the source as a list, as Jupyter has it.

What nbformat asks of a cell is seen to, and nothing else is repaired: a notebook that was valid stays valid, one that
was not is no worse. A code cell that changes loses its outputs and execution count, which belong to the old source.
Metadata and attachments are kept, except where a cell becomes one of a type that must not have them. Lines of a list
end at line feeds only, as in VS Code and JupyterLab (nbformat for Python also cuts at form feeds and the like; both
mean the same source). An edit does not depend on chance: the id of a new cell is derived from the notebook and the
source, so that a plan that is made again is the same plan.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from langchain_filestate._cells import Cell, Document, Notebook, find_cell, load, names, parse, render
from langchain_filestate._json_spans import Layout, Node, Spelling, cut, splices, walk
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_filestate._match import Splice

__all__ = [
    "Cell", "Edited", "Notebook", "delete_cell", "find_cell", "insert_cell", "parse", "render",
    "replace_cell",
]  # fmt: skip

_Change = tuple[int, int, str]  # start and end in characters of the document, new text

_FIELDS = {  # in the order of nbformat, which sorts its keys
    "code": ("cell_type", "execution_count", "id", "metadata", "outputs", "source"),
    "markdown": ("cell_type", "id", "metadata", "source"),
    "raw": ("cell_type", "id", "metadata", "source"),
}
_EMPTY = {"execution_count": "null", "outputs": "[]", "metadata": "{}"}
_FOREIGN = {  # fields that a cell of this type must not have
    "code": ("attachments",),
    "markdown": ("execution_count", "outputs"),
    "raw": ("execution_count", "outputs"),
}
_METADATA: dict[str, dict[str, Callable[[Any], bool]]] = {  # what nbformat restricts for this type and not for others
    "code": {
        "collapsed": lambda value: isinstance(value, bool),
        "scrolled": lambda value: value is True or value is False or value == "auto",
        "jupyter": lambda value: isinstance(value, dict),
        "execution": lambda value: isinstance(value, dict) and all(isinstance(at, str) for at in value.values()),
    },
    "markdown": {"jupyter": lambda value: isinstance(value, dict)},
    "raw": {
        "format": lambda value: isinstance(value, str),
        "jupyter": lambda value: isinstance(value, dict),
    },
}
_IDS_SINCE = 5  # nbformat 4.5, https://jupyter.org/enhancement-proposals/62-cell-id/cell-id.html


@dataclass(frozen=True, slots=True)
class Edited:
    """A change of one cell, to be made.

    Attributes:
        splices: What to change in the file's bytes.
        cell_id: What the cell is called, afterwards; for one that is deleted, what it was called.
        cell_ids: What the cells are called afterwards, in order.
        cell_no: Position of the cell, from 1; for one that is deleted, where it was.
    """

    splices: tuple[Splice, ...]
    cell_id: str
    cell_ids: tuple[str, ...]
    cell_no: int


def replace_cell(data: bytes, cell_id: str, new_source: str, cell_type: str | None = None) -> Edited:
    """Give a cell another source, and another type if one is given. Its id stays.

    Args:
        data: The notebook's bytes.
        cell_id: Its id, or `cell-N`.
        new_source: The whole new source, verbatim.
        cell_type: "code", "markdown" or "raw"; None for the type that it has.

    Raises:
        Refused: `no_change` if source and type are what they were; `bad_arguments` for an unknown type; `encoding` for
            a source that cannot be written; and what `parse` and `find_cell` refuse.
    """
    document = load(data)
    cell = find_cell(document.notebook, cell_id)
    node = document.cells.children[cell.index]
    _check(new_source, cell_type)
    converts = cell_type is not None and cell_type != cell.cell_type
    if cell.source == new_source and not converts:
        raise Refused("No changes to make: the cell has exactly this source and type already.", code="no_change")
    changes: list[_Change] = []
    if cell_type is not None and converts:
        if cell.cell_type not in _FIELDS:
            raise Refused("This cell is of a type that only a later format has: it stays so.", code="bad_arguments")
        changes += _convert(document, node, cell_type)
    if cell.source != new_source:
        changes += _change_source(document, cell.index, new_source, cell_type or cell.cell_type)
        for key in ("execution_count", "outputs") if cell_type in (None, cell.cell_type) else ():
            field = node.member(key)
            if field and field.value not in (None, []):
                changes.append((field.start, field.end, _EMPTY[key]))
    called = tuple(each.name for each in document.notebook.cells)
    return Edited(splices(document.text, changes, document.bom), cell.name, called, cell.index + 1)


def insert_cell(data: bytes, after: str | None, new_source: str, cell_type: str) -> Edited:
    """Add a cell.

    Args:
        data: The notebook's bytes.
        after: The cell that it comes after, its id or `cell-N`; None for the top.
        new_source: The source, verbatim.
        cell_type: "code", "markdown" or "raw".

    Raises:
        Refused: As `replace_cell`.
    """
    document = load(data)
    index = 0 if after is None else find_cell(document.notebook, after).index + 1
    _check(new_source, cell_type)
    ids = document.notebook.ids
    new_id = _new_id(ids, index, new_source) if document.notebook.nbformat_minor >= _IDS_SINCE else None
    text, cells = document.text, document.cells
    layout = _cells_layout(document)
    cell = _new_cell(document, index, cell_type, new_source, new_id)
    if not cells.children:
        change = (cells.start, cells.end, layout.array([cell]))
    elif index:
        change = (cells.children[index - 1].end,) * 2 + (layout.between + cell,)
    else:
        change = (cells.children[0].start,) * 2 + (cell + layout.between,)
    called = names((*ids[:index], new_id, *ids[index:]))
    return Edited(splices(text, [change], document.bom), called[index], called, index + 1)


def delete_cell(data: bytes, cell_id: str) -> Edited:
    """Remove a cell, with one of the commas beside it.

    Args:
        data: The notebook's bytes.
        cell_id: Its id, or `cell-N`.

    Raises:
        Refused: What `parse` and `find_cell` refuse.
    """
    document = load(data)
    cell = find_cell(document.notebook, cell_id)
    changes = cut(document.cells, [index == cell.index for index in range(len(document.cells.children))])
    ids = document.notebook.ids
    called = names(ids[: cell.index] + ids[cell.index + 1 :])
    return Edited(splices(document.text, changes, document.bom), cell.name, called, cell.index + 1)


def _check(new_source: str, cell_type: str | None) -> None:
    if cell_type is not None and cell_type not in _FIELDS:
        raise Refused("cell_type must be one of: code, markdown, raw.", code="bad_arguments")
    try:
        new_source.encode()
    except UnicodeEncodeError as error:
        code_point = f"U+{ord(new_source[error.start]):04X}"
        msg = f"new_source has {code_point} at character {error.start + 1}: half a surrogate pair, which is no text."
        raise Refused(msg, code="encoding") from error


def _new_id(ids: Sequence[Any], index: int, source: str) -> str:
    """Eight hex digits, as nbformat makes them, that no cell has."""
    seed = json.dumps([[each for each in ids if isinstance(each, str)], index, source]).encode()
    while True:
        seed = hashlib.sha256(seed).digest()
        if (new_id := seed.hex()[:8]) not in ids:
            return new_id


# ---- source ---------------------------------------------------------------------------------------------------------


def _change_source(document: Document, index: int, source: str, cell_type: str) -> list[_Change]:
    node = document.cells.children[index]
    old = node.member("source")
    if old is None:
        return [_add(document, node, cell_type, "source", _source(document, index, source))]
    if isinstance(old.value, str):
        return [(old.start, old.end, _spelling(document).string(source))]
    old = walk(document.text, old.start)
    lines = _lines(source)
    kept = _common(old.value, lines)
    if len(old.children) > 1 and len(lines) > 1 and any(kept):
        return _change_items(document, old, lines, kept)
    return [(old.start, old.end, _list(document, index, lines))]


def _common(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines stay at the beginning and how many at the end."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    return head, next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)


def _change_items(document: Document, old: Node, lines: list[str], kept: tuple[int, int]) -> list[_Change]:
    """Put other lines between those that stay, of which there is at least one."""
    head, tail = kept
    items = old.children
    gone = items[head : len(items) - tail]
    between = document.text[items[0].end : items[1].start]
    spelling = _spelling(document)
    new = between.join(spelling.string(line) for line in lines[head : len(lines) - tail])
    if not new:
        return cut(old, [head <= at < len(items) - tail for at in range(len(items))])
    if gone:
        return [(gone[0].start, gone[-1].end, new)]
    if head:
        return [(items[head - 1].end, items[head - 1].end, between + new)]
    return [(items[0].start, items[0].start, new + between)]


def _lines(source: str) -> list[str]:
    *lines, last = source.split("\n")
    return [line + "\n" for line in lines] + [last] * bool(last)


def _source(document: Document, at: float, source: str) -> str:
    """A source for a cell that has none, in the form that the others have."""
    sources = [node.value for cell in _nearest(document, at) if (node := cell.member("source"))]
    form = next((type(value) for value in sources if value), next((type(value) for value in sources), list))
    return _spelling(document).string(source) if form is str else _list(document, at, _lines(source))


def _list(document: Document, at: float, lines: list[str]) -> str:
    """A list of lines, laid out like the nearest other.

    Some writers put a list of one element on one line and longer ones on several: then it is the nearest of this kind.
    """
    sources = [node for cell in _nearest(document, at) if (node := cell.member("source")) and node.value]
    lists = [node for node in sources if isinstance(node.value, list)]
    if lists:
        alike = min(lists, key=lambda node: (len(node.value) > 1) != (len(lines) > 1))
        root = _root_layout(document)
        layout, nearest = (
            Layout.of(document.text, walk(document.text, node.start), root) for node in (alike, lists[0])
        )
        if "\n" in layout.opening and "\n" in nearest.opening:
            layout = nearest
    else:
        layout = _cell_layout(document, next(iter(_nearest(document, at)), None)).inner()
    spelling = _spelling(document)
    return layout.array([spelling.string(line) for line in lines])


def _spelling(document: Document) -> Spelling:
    sources = (cell.member("source") for cell in document.cells.children)
    return Spelling.of(document.text, (document.text[node.start : node.end] for node in sources if node))


# ---- fields ---------------------------------------------------------------------------------------------------------


def _convert(document: Document, node: Node, cell_type: str) -> list[_Change]:
    """Change the type, and the fields with it."""
    kind = node.member("cell_type")
    changes = [(kind.start, kind.end, json.dumps(cell_type))] if kind else []
    changes += cut(node, [child.key in _FOREIGN[cell_type] for child in node.children])
    changes += [
        _add(document, node, cell_type, key, _EMPTY[key])
        for key in ("execution_count", "outputs")
        if key in _FIELDS[cell_type] and not node.member(key)
    ]
    metadata = node.member("metadata")
    if metadata:
        rules = _METADATA[cell_type]
        metadata = walk(document.text, metadata.start)
        changes += cut(metadata, [key.key in rules and not rules[key.key](key.value) for key in metadata.children])
    return changes


def _add(document: Document, node: Node, cell_type: str, key: str, value: str) -> _Change:
    """A new member, after the one that it would follow if keys were sorted, as far as the cell has them."""
    fields = _FIELDS.get(cell_type, _FIELDS["raw"])
    before = reversed(fields[: fields.index(key)])
    place = next(found.end for field in before if (found := node.member(field)))  # each cell has a cell_type
    layout = _cell_layout(document, node)
    return (place, place, layout.between + layout.member(key, value))


# ---- new cells ------------------------------------------------------------------------------------------------------


def _new_cell(document: Document, index: int, cell_type: str, source: str, new_id: str | None) -> str:
    at = index - 0.6  # between two cells, nearer to the one before
    near = min(_nearest(document, at), key=lambda cell: cell.value["cell_type"] != cell_type, default=None)
    strings = {"cell_type": json.dumps(cell_type), "id": json.dumps(new_id), "source": _source(document, at, source)}
    values = {**_EMPTY, **strings}
    fields = [field for field in _FIELDS[cell_type] if field != "id" or new_id]
    order = [child.key for child in near.children if child.key in fields] if near else []
    for before, field in pairwise(["", *fields]):
        if field not in order:
            order.insert(order.index(before) + 1 if before else 0, field)
    return _cell_layout(document, near).object((field, values[field]) for field in order)


def _nearest(document: Document, at: float) -> list[Node]:
    """The cells, those nearest to a position first."""
    cells = document.cells.children
    return [cells[index] for index in sorted(range(len(cells)), key=lambda index: abs(index - at))]


def _root_layout(document: Document) -> Layout:
    return Layout.of(document.text, document.root)


def _cells_layout(document: Document) -> Layout:
    root = _root_layout(document)
    return Layout.of(document.text, document.cells, root) if document.cells.children else root.inner()


def _cell_layout(document: Document, like: Node | None) -> Layout:
    return Layout.of(document.text, like, _root_layout(document)) if like else _cells_layout(document).inner()
