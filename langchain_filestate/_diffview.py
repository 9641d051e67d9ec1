"""A patch to look at: in one column or in two, and as plain text, all from the same rows.

Limits: a line is cut at `MAX_CHARS`, a patch at the lines asked for; what was left out is said.
"""

from __future__ import annotations

import html
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate import _html
from langchain_filestate._diff import Budget
from langchain_filestate._diffrows import MAX_CHARS, Line, Row, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_filestate._hunks import PatchHunk, StructuredPatch

MAX_LINES = 400
_STEPS = 200_000
"""Of pairing and marking, for one patch."""


def _line_html(line: Line, mark: str) -> str:
    """A line with its marks (`ins` or `del`) and colours, for a `<pre>`: elsewhere nbconvert takes blanks together."""
    text = line.text[:MAX_CHARS]
    cuts = {0, len(text)}
    for ranges in (line.marks, line.colours):
        cuts |= {min(edge, len(text)) for one in ranges for edge in one[:2]}
    edges = sorted(cuts)
    out: list[str] = []
    inside = False
    for start, end in pairwise(edges):
        marked = any(a <= start < b for a, b in line.marks)
        if marked != inside:
            out.append(f"<{mark}>" if marked else f"</{mark}>")
            inside = marked
        colour = next((kind for a, b, kind in line.colours if a <= start < b), "")
        piece = text[start:end]
        out.append(_html.span(colour, piece) if colour else _html.escaped(piece))
    if inside:
        out.append(f"</{mark}>")
    return "".join(out) + _tail(line)


def _tail(line: Line) -> str:
    """What is said behind a line."""
    left = len(line.text) - MAX_CHARS
    cut = f' <span class="fs-soft">... {left} more characters</span>' if left > 0 else ""
    return cut if line.ended else f'{cut} <span class="fs-soft" title="no newline at end of file">(no newline)</span>'


def _cells(line: Line | None, kind: str, mark: str, sign: str) -> str:
    """Number, sign and text of one side."""
    if line is None:
        return '<td class="fs-n fs-none"></td><td class="fs-s fs-none"></td><td class="fs-h fs-none"></td>'
    return (
        f'<td class="fs-n {kind}">{line.number}</td><td class="fs-s {kind}">{sign}</td>'
        f'<td class="fs-h {kind}"><pre>{_line_html(line, mark)}</pre></td>'
    )


class Entry(NamedTuple):
    """A line of the unified view: its sign, the line, and its numbers before and after, as far as it has them."""

    sign: str
    line: Line
    numbers: tuple[int | None, int | None]


def _entries(found: Sequence[Row]) -> Iterator[Entry]:
    """The lines of a hunk as a unified diff has them: of each change first all that went, then all that came."""
    came: list[Entry] = []
    for row in found:
        if row.kept and row.old is not None and row.new is not None:
            yield from came
            came = []
            yield Entry(" ", row.new, (row.old.number, row.new.number))
            continue
        if row.old is not None:
            yield Entry("-", row.old, (row.old.number, None))
        if row.new is not None:
            came.append(Entry("+", row.new, (None, row.new.number)))
    yield from came


_KINDS = {" ": ("", "ins"), "-": ("fs-del", "del"), "+": ("fs-add", "ins")}


def _hunk_html(found: Sequence[Row], *, side_by_side: bool) -> Iterator[str]:
    if side_by_side:
        for row in found:
            kinds = ("", "") if row.kept else ("fs-del", "fs-add")
            signs = ("", "") if row.kept else ("-", "+")
            old, new = _cells(row.old, kinds[0], "del", signs[0]), _cells(row.new, kinds[1], "ins", signs[1])
            yield f"<tr>{old}{new}</tr>"
        return
    for sign, line, numbers in _entries(found):
        kind, mark = _KINDS[sign]
        gutter = "".join(f'<td class="fs-n {kind}">{"" if one is None else one}</td>' for one in numbers)
        text = f"<pre>{_line_html(line, mark)}</pre>"
        yield f'<tr>{gutter}<td class="fs-s {kind}">{sign.strip()}</td><td class="fs-l {kind}">{text}</td></tr>'


def _hunk_text(found: Sequence[Row]) -> Iterator[str]:
    for sign, line, numbers in _entries(found):
        gutter = " ".join(f"{'' if one is None else one:>5}" for one in numbers)
        cut = " ..." if len(line.text) > MAX_CHARS else ""
        tail = "" if line.ended else "  (no newline)"
        yield f"{gutter} {sign} {_html.clean(line.text[:MAX_CHARS])}{cut}{tail}"


def diff(patch: StructuredPatch, name: str, *, side_by_side: bool = False, max_lines: int = MAX_LINES) -> _html.Shown:
    """The hunks of a patch, without a heading: an HTML table, and text.

    Args:
        patch: Any patch.
        name: Of the file, for the colours of its language; "" for none.
        side_by_side: True: two columns, before and after; the text is the same.
        max_lines: Most lines to show.
    """
    budget = Budget(_STEPS)
    left = max_lines
    body: list[str] = []
    text: list[str] = []
    columns = 6 if side_by_side else 4
    notes = [] if not patch.truncated else ["The change is too large to be shown exactly."]
    if not patch.hunks:
        notes = [_without_hunks(patch)]
    for number, hunk in enumerate(patch.hunks):
        shown = rows(_first(hunk, left), name, budget)
        left -= len(hunk.lines)
        at = f"@@ -{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length} @@"
        body.append(f'<tr><td class="fs-at" colspan="{columns}">{html.escape(at)}</td></tr>')
        body += _hunk_html(shown, side_by_side=side_by_side)
        text += [at, *_hunk_text(shown)]
        if left < 0 or (left == 0 and number + 1 < len(patch.hunks)):
            more = sum(len(one.lines) for one in patch.hunks) - max_lines
            notes = [f"{more} more lines are not shown."]
            break
    markup = f'<table class="fs-diff"><tbody>{"".join(body)}</tbody></table>' if body else ""
    markup += "".join(f'<div class="fs-body fs-soft">{html.escape(note)}</div>' for note in notes)
    return _html.Shown(markup, "\n".join([*text, *notes]))


def _first(hunk: PatchHunk, most: int) -> PatchHunk:
    """The first entries of a hunk."""
    if len(hunk.lines) <= most:
        return hunk
    return hunk.model_copy(update={"lines": hunk.lines[: max(most, 0)]})


def _without_hunks(patch: StructuredPatch) -> str:
    if not patch.exact:
        return "Binary content; no lines to show."
    if patch.source == patch.target or "/dev/null" not in {patch.source, patch.target}:
        return "Nothing changed."
    return "An empty file is created." if patch.source == "/dev/null" else "An empty file is deleted."
