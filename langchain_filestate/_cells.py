"""The cells of a notebook, as read from the bytes of an .ipynb and as shown to a model.

The format is Jupyter's nbformat 4 (https://nbformat.readthedocs.io/en/latest/format_description.html). A cell is
called by its id where that is of use: a string as nbformat 4.5 wants it, and no other cell has it. Any cell can be
called `cell-N` by its position, from 0, as long as no cell has exactly that id. Ids are read from older notebooks too.

What a model sees of a cell is its source, verbatim and without line numbers (a cell is replaced as a whole, and a
number copied along would be an error), and its outputs as bounded text; of images and other data only a note. The
counted unit of views is the cell, from 1.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from langchain_filestate import _text
from langchain_filestate._json_spans import JsonError, Node, byte_offsets, only
from langchain_filestate._outputs import as_dict, as_list, is_text, joined, output_text, shorten
from langchain_filestate.errors import Refused

_BOM = b"\xef\xbb\xbf"
_USABLE_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BY_POSITION = re.compile(r"cell-([0-9]{1,9})")
_IDS_LISTED = 50
_SUPPORTED = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        index: Position, from 0.
        name: What it is called in a tool call: its id, or `cell-N`.
        cell_type: "code", "markdown" or "raw", or what a later format calls it.
        source: The text, lines joined.
        outputs: One text per output, bounded; images and other data as a note like `[image/png, 12 kB]`.
        span: Byte offsets of the cell's object in the file, from its `{` to after its `}`.
    """

    index: int
    name: str
    cell_type: str
    source: str
    outputs: tuple[str, ...]
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Notebook:
    """What a notebook file holds.

    Attributes:
        cells: In order.
        nbformat: The format's major number, always 4.
        nbformat_minor: Its minor number, 0 if there is none.
        language: Of the kernel, "" if not said.
        ids: The raw id of each cell, whatever it is; None for none.
    """

    cells: tuple[Cell, ...]
    nbformat: int
    nbformat_minor: int
    language: str
    ids: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed notebook with its text and where everything stands in it: what an edit needs."""

    text: str
    bom: int
    root: Node
    cells: Node
    notebook: Notebook


def parse(data: bytes) -> Notebook:
    """Read the cells of a notebook.

    Args:
        data: The file's bytes; a UTF-8 BOM is passed over.

    Raises:
        Refused: `bad_notebook`, with what is wrong: not UTF-8, not JSON, nested too deeply, no list of cells, a format
            other than 4, a cell that is none, or a key twice in the notebook or in a cell (programs differ on which
            of the two counts, so that an edit might change the one that nobody sees).
    """
    return load(data).notebook


def load(data: bytes) -> Document:
    """`parse`, with the spans."""
    bom = len(_BOM) if data.startswith(_BOM) else 0
    try:
        text = data[bom:].decode()
        root = only(text, 3)  # the notebook, its cells, their members
    except UnicodeDecodeError as error:
        raise _bad(f"it is not UTF-8 (byte {bom + error.start})") from error
    except JsonError as error:
        raise _bad(f"it is not JSON ({error})") from error
    cells = _check(root)
    edges = byte_offsets(text, [edge for node in cells.children for edge in (node.start, node.end)], bom)
    ids = tuple(node.value.get("id") for node in cells.children)
    parsed = tuple(
        Cell(
            index,
            name,
            node.value["cell_type"],
            joined(node.value.get("source", "")),
            tuple(output_text(output) for output in as_list(node.value.get("outputs"))),
            (edges[2 * index], edges[2 * index + 1]),
        )
        for index, (name, node) in enumerate(zip(names(ids), cells.children, strict=True))
    )
    minor = root.value.get("nbformat_minor")
    notebook = Notebook(parsed, _SUPPORTED, minor if type(minor) is int else 0, _language(root.value), ids)
    return Document(text, bom, root, cells, notebook)


def _check(root: Node) -> Node:
    """The node of the cells, once everything that edits and views rely on has been made sure of."""
    if not isinstance(root.value, dict):
        raise _bad("it is not a JSON object")
    _no_key_twice(root, "the notebook")
    major = root.value.get("nbformat")
    if type(major) is not int:
        raise _bad("it has no nbformat number")
    if major != _SUPPORTED:
        advice = "; convert it with `jupyter nbconvert --to notebook --inplace`" if major < _SUPPORTED else ""
        raise _bad(f"its format is nbformat {major}, only nbformat 4 is supported{advice}")
    cells = root.member("cells")
    if cells is None or not isinstance(cells.value, list):
        raise _bad("it has no list of cells")
    for index, node in enumerate(cells.children):
        where = f"cell-{index}"
        if not isinstance(node.value, dict):
            raise _bad(f"{where} is not an object")
        _no_key_twice(node, where)
        if not isinstance(node.value.get("cell_type"), str):
            raise _bad(f"{where} has no cell_type")
        if not is_text(node.value.get("source", "")):
            raise _bad(f"the source of {where} is neither a string nor a list of strings")
    return cells


def _no_key_twice(node: Node, where: str) -> None:
    if len(node.value) != len(node.children):
        key = Counter(child.key for child in node.children).most_common(1)[0][0]
        raise _bad(f"{where} has the key {_text.show(key[:40])!r} twice")


def _bad(why: str) -> Refused:
    return Refused(f"This file is not a notebook that can be read by cells: {why}.", code="bad_notebook")


def _language(notebook: dict[str, Any]) -> str:
    metadata = as_dict(notebook.get("metadata"))
    said = (as_dict(metadata.get("language_info")).get("name"), as_dict(metadata.get("kernelspec")).get("language"))
    return next((name for name in said if isinstance(name, str)), "")


def names(ids: tuple[Any, ...]) -> tuple[str, ...]:
    """What the cells with these ids are called.

    A position whose name another cell has as its id is written with a leading zero more, so that each cell has a name.
    """
    count = Counter(cell_id for cell_id in ids if isinstance(cell_id, str))
    result = []
    for index, cell_id in enumerate(ids):
        if isinstance(cell_id, str) and count[cell_id] == 1 and _USABLE_ID.fullmatch(cell_id):
            result.append(cell_id)
            continue
        digits = str(index)
        while f"cell-{digits}" in count:
            digits = "0" + digits
        result.append(f"cell-{digits}")
    return tuple(result)


def find_cell(notebook: Notebook, cell_id: str) -> Cell:
    """The cell that a model calls by its id, or by its position as `cell-N`; an id that is exactly so comes first.

    Raises:
        Refused: `cell_not_found` with the names that there are, or `ambiguous` if several cells have this id, with
            the positions of these.
    """
    matches = [cell for cell, raw in zip(notebook.cells, notebook.ids, strict=True) if raw == cell_id]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = _bounded([cell.name for cell in matches])
        msg = f"{len(matches)} cells have this id. Call the one that is meant by its position instead: {listed}."
        raise Refused(msg, code="ambiguous", lines=[cell.index + 1 for cell in matches])
    position = _BY_POSITION.fullmatch(cell_id)
    if position and int(position[1]) < len(notebook.cells):
        return notebook.cells[int(position[1])]
    if not notebook.cells:
        raise Refused("There is no such cell: the notebook has no cells.", code="cell_not_found")
    msg = f"There is no cell with this id. The cells are, in order: {_bounded([c.name for c in notebook.cells])}."
    raise Refused(msg, code="cell_not_found")


def _bounded(listed: list[str]) -> str:
    more = len(listed) - _IDS_LISTED
    return ", ".join(listed[:_IDS_LISTED]) + (f" and {more} more" if more > 0 else "")


# ---- what is shown --------------------------------------------------------------------------------------------------


def render(
    notebook: Notebook,
    *,
    offset: int = 1,
    limit: int | None = None,
    column: int = 1,
    max_chars: int,
    max_output_chars: int = 2_000,
) -> _text.Window:
    """Show cells to a model.

    Args:
        notebook: What to show.
        offset: The first cell, from 1; 0 is taken as 1, negative counts from the end.
        limit: How many cells; None for as many as fit.
        column: The first character of the first cell's source, from 1: to go on inside a cell that is too long.
        max_chars: The most characters of source and outputs in all. A cell is shown whole or left for the next
            window, unless it is the first one.
        max_output_chars: The most characters of one cell's outputs.

    Returns:
        The window; its lines are cells. `seen` holds the cells whose source was shown whole.

    Raises:
        Refused: `out_of_range`, if the notebook has no cell at `offset` or the cell no character at `column`.
    """
    total = len(notebook.cells)
    kind = f"nbformat 4.{notebook.nbformat_minor}" + (f", {notebook.language}" if notebook.language else "")
    if not total:
        none = f"Notebook ({_text.show(kind)}) without cells."
        return _text.Window(text="", notes=(none,), first_line=0, last_line=0, seen=(), complete=True)
    first = max(offset, 1) if offset >= 0 else max(total + offset + 1, 1)
    if first > total:
        msg = f"The notebook has {total} cell{'s' * (total > 1)}; there is no cell {first}."
        raise Refused(msg, code="out_of_range")
    last = total if limit is None else min(total, first + max(limit, 1) - 1)
    source = _text.show(notebook.cells[first - 1].source)
    begin = max(column, 1) - 1
    if begin and begin >= len(source):
        msg = f"The source of cell {first} has {len(source)} characters; there is no character {column}."
        raise Refused(msg, code="out_of_range")
    end = min(len(source), begin + max_chars)
    whole = (begin, end) == (0, len(source))
    shown = [_show(notebook.cells[first - 1], source[begin:end], max_output_chars if end == len(source) else 0)]
    room = max_chars - len(shown[0])
    number = first
    while number < last and end == len(source):
        cell = notebook.cells[number]
        shown.append(_show(cell, _text.show(cell.source), max_output_chars))
        room -= len(shown[-1]) + 1
        if room < 0:
            shown.pop()
            break
        number += 1
    notes = [f"Notebook ({_text.show(kind)}), cells {first}-{number} of {total}."]
    if not whole:
        notes.append(f"Characters {begin + 1}-{end} of the {len(source)} in cell {first}.")
    following = None
    if end < len(source):
        following = (first, end + 1)
        notes.append(f"Go on with offset={first}, column={end + 1}.")
    elif number < total:
        following = (number + 1, 1)
        notes.append(f"Go on with offset={number + 1}.")
    seen = (first if whole else first + 1, number)
    return _text.Window(
        text="\n".join(shown),
        notes=tuple(notes),
        first_line=first,
        last_line=number,
        seen=(seen,) if seen[0] <= seen[1] else (),
        complete=seen == (1, total),
        following=following,
    )


def _show(cell: Cell, source: str, max_output_chars: int) -> str:
    lines = [f'<cell id="{cell.name}" type="{_text.show(cell.cell_type)}">', source, "</cell>"]
    outputs = "\n".join(output.rstrip("\n") for output in cell.outputs) if max_output_chars else ""
    if outputs:
        lines += [f'<output of="{cell.name}">', shorten(_text.show(outputs), max_output_chars), "</output>"]
    return "\n".join(lines).replace("\0", "\\u0000")  # JSON has it as an escape too; many stores cannot hold it
