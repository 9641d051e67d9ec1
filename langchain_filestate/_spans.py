"""Byte spans and the lines they stand in: which lines an edit touches, which differ, what stands around them.

The idea: a splice names bytes, everything that people and records speak of is lines. Each splice is widened to the
whole lines it touches, splices that touch the same line become one group, and only inside a group are lines compared.
Line numbers come from counting line ends up to each group, once along the file, or from the nearest block of which the
count is known already; nothing else of the file is looked at.

Rules: only LF ends a line (CRLF does too, its CR belongs to the line). A splice touches the lines of which it replaces
bytes and those that it joins to others. One that begins and ends at line starts and puts in whole lines touches no
more than the lines it replaces; an insertion of whole lines at a line start touches none.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate._diff import gaps
from langchain_filestate._match import Splice
from langchain_filestate._text import BLOCK, count_newlines, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_filestate._diff import Budget
    from langchain_filestate._text import Format

CONTEXT = 3
"""Unchanged lines shown on each side of a change."""
CONTEXT_BYTES = 16_384
"""Bytes of them in one hunk above which one line on each side must do (`git apply` asks for that one)."""
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Which old lines splices touch, and what stands there afterwards. All other lines are as before.

    The lines from `first + old_count` on move by `new_count - old_count`.
    """

    first: int
    """Number of the first line touched, before the change, from 1; where none is touched, the line that moves down."""
    old_count: int
    """How many old lines are touched."""
    new_count: int
    """How many lines stand there afterwards."""
    head_partial: bool
    """True if the first of the new lines holds text of an old one, beside its line end or a BOM."""
    tail_partial: bool
    """True if the last of the new lines does."""
    kept: tuple[tuple[int, int], ...]
    """Each new line that holds text of an old one, with the old line's number: `(after, before)`. Between several
    splices there may be such lines in the middle too, and a line joined from two has two entries."""


@dataclass(frozen=True, slots=True)
class Group:
    """Whole lines that one or more splices touch, and the bytes that stand there afterwards."""

    line: int
    """Number of the first line touched, before the change, from 1."""
    start: int
    """Where they begin in the old file; always a line start."""
    end: int
    """Where they end; a line start or the end of the file."""
    old_count: int
    new: bytes
    kept: tuple[tuple[int, int], ...]
    """As in `LineEdit`, both counted from 0 at the top of the group."""


class Block(NamedTuple):
    """Neighbouring lines that differ."""

    line: int
    """Number of the first of them before the change, from 1; where nothing is taken out, of the line below."""
    start: int
    """Where they stand in the old file."""
    end: int
    gone: Sequence[bytes]
    new: Sequence[bytes]


class RawHunk(NamedTuple):
    """Blocks with the lines around them, not decoded yet."""

    line: int
    """Number of the first entry before the change, from 1."""
    target: int
    """The same after the change."""
    entries: list[tuple[str, bytes]]
    """Kind (space, minus or plus) and the bytes of the line with its end."""


class LineEnds:
    """How many line ends stand before a place of a file; no part of it is counted twice.

    Args:
        data: The whole file, with its BOM.
        fmt: How it is encoded.
        marks: Line ends before each block of it, as `Profile` has them; empty if nobody has counted yet.
    """

    def __init__(self, data: bytes, fmt: Format, marks: Sequence[int] = ()) -> None:
        self.data, self.fmt = data, fmt
        self._counts = list(marks) or [0]
        self._places = [block * BLOCK for block in range(len(self._counts))]

    def before(self, place: int) -> int:
        """Line ends whose last byte is before this offset."""
        at = bisect_right(self._places, place) - 1
        known, count = self._places[at], self._counts[at]
        if known < place:
            above = self._places[at + 1] if at + 1 < len(self._places) else len(self.data)
            if at + 1 < len(self._places) and above - place < place - known:  # the next one is nearer
                count = self._counts[at + 1] - count_newlines(self.data, self.fmt, place, above)
            else:
                count += count_newlines(self.data, self.fmt, known, place)
            self._places.insert(at + 1, place)
            self._counts.insert(at + 1, count)
        return count


class Touched:
    """The lines that the splices of one edit touch, found once: for the patch, the views, and how many there are then.

    Args:
        before: The whole file before, with its BOM.
        splices: Spans of it and the bytes that replace them; not overlapping.
        fmt: How the file is encoded, before and after.
        marks: As in `LineEnds`.
    """

    def __init__(self, before: bytes, splices: Iterable[Splice], fmt: Format, marks: Sequence[int] = ()) -> None:
        self.before, self.fmt = before, fmt
        self._splices = sorted(splices, key=lambda s: (s.start, s.end))
        self._ends = LineEnds(before, fmt, marks)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The splices widened to whole lines, those that touch the same line together, in order."""
        return tuple(_grouped(self._ends, self._splices))

    def edits(self) -> tuple[LineEdit, ...]:
        """What the splices do to lines: for moving what is known about lines across an edit.

        Returns:
            One entry for all splices that touch the same line, in order; no old line is in two of them.
        """
        edits: list[LineEdit] = []
        moved, fmt = 0, self.fmt
        for group in self.groups:
            # A byte order mark alone is no line: the file is empty.
            count = 0 if fmt.bom and group.new == fmt.bom else _count_lines(group.new, fmt)
            lines = {new for new, _ in group.kept}
            kept = tuple((group.line + moved + new, group.line + old) for new, old in group.kept)
            edits.append(LineEdit(group.line, group.old_count, count, 0 in lines, count - 1 in lines, kept))
            moved += count - group.old_count
        return tuple(edits)

    def newlines(self) -> int:
        """How many line ends the file has afterwards."""
        before, fmt = self.before, self.fmt
        if self._splices:  # the first group will ask from there; what is before it is not counted again then
            self._ends.before(_line_start(before, fmt.newline, self._splices[0].start))
        come = sum(count_newlines(s.new, fmt) - count_newlines(before, fmt, s.start, s.end) for s in self._splices)
        return self._ends.before(len(before)) + come


def line_edits(before: bytes, splices: Iterable[Splice], fmt: Format) -> tuple[LineEdit, ...]:
    """`Touched.edits` of splices of which nothing else is asked."""
    return Touched(before, splices, fmt).edits()


def _grouped(ends: LineEnds, splices: Iterable[Splice]) -> Iterator[Group]:
    before, fmt = ends.data, ends.fmt
    growing: _Growing | None = None
    for splice in splices:
        if growing is not None and growing.takes(splice.start):
            growing.add(splice)
            continue
        if growing is not None:
            yield growing.done()
        start = _line_start(before, fmt.newline, splice.start)
        growing = _Growing(before, fmt, ends.before(start) + 1, start, splice)
    if growing is not None:
        yield growing.done()


class _Growing:
    """A group that splices are still added to."""

    def __init__(self, before: bytes, fmt: Format, line: int, start: int, splice: Splice) -> None:
        self.before, self.fmt, self.newline, self.line = before, fmt, fmt.newline, line
        self.start = self.end = self.place = start
        self.pieces: list[bytes] = []  # what stands there afterwards, up to `place` of the old file
        self.old_line = self.new_line = 0  # where `place` is, from the top of the group
        self.kept: list[tuple[int, int]] = []
        self.add(splice)

    def add(self, splice: Splice) -> None:
        self._keep(splice.start)
        if splice.new:
            self.pieces.append(splice.new)
        self.new_line += count_newlines(splice.new, self.fmt)
        self.old_line += count_newlines(self.before, self.fmt, self.place, splice.end)
        self.place = splice.end
        if self._at_line_start(self.place) and not self._open():
            self.end = self.place
        elif self.place >= self.end:
            self.end = _line_end(self.before, self.newline, self.place)

    def takes(self, start: int) -> bool:
        """Whether a splice that begins there touches a line of this group."""
        if start != self.end:
            return start < self.end
        return not self._at_line_start(start) or (self.place == start and self._open())

    def done(self) -> Group:
        self._keep(self.end)
        lines = self.old_line + (self.end > self.start and not self._at_line_start(self.end))
        return Group(self.line, self.start, self.end, lines, b"".join(self.pieces), tuple(self.kept))

    def _keep(self, end: int) -> None:
        """Let the old bytes from `place` to `end` stand. They are of one line; its end may be among them."""
        old = self.before[self.place : end]
        if not old:
            return
        bare = old.removesuffix(self.newline).removesuffix("\r".encode(self.fmt.encoding))
        pair = (self.new_line, self.old_line)
        if bare and not (self.place == 0 and bare == self.fmt.bom) and pair not in self.kept[-1:]:
            self.kept.append(pair)
        self.pieces.append(old)
        if old.endswith(self.newline):
            self.new_line, self.old_line = self.new_line + 1, self.old_line + 1
        self.place = end

    def _at_line_start(self, place: int) -> bool:
        return place == 0 or self.before.startswith(self.newline, place - len(self.newline))

    def _open(self) -> bool:
        """Whether what stands there so far ends within a line."""
        return bool(self.pieces) and not self.pieces[-1].endswith(self.newline)


def difference(before: bytes, after: bytes, fmt: Format) -> Splice:
    """The one splice that makes the second content of the first, with what both ends share cut off."""
    width = len(fmt.newline)
    room = min(len(before), len(after))
    head = _shared(before, after, room, tail=False)
    head -= head % width
    tail = _shared(before, after, room - head, tail=True)
    tail = 0 if (len(before) - len(after)) % width else tail - (tail - len(before)) % width
    tail = max(tail, 0)
    return Splice(head, len(before) - tail, after[head : len(after) - tail])


def compare(line: int, start: int, old: Sequence[bytes], new: Sequence[bytes], budget: Budget) -> list[Block]:
    """The lines that differ, where the first old one is line `line` at byte `start`."""
    parts: list[Block] = []
    place, done = start, 0
    for i, j, k, m in gaps(old, new, budget):
        place += sum(map(len, old[done:i]))
        end = place + sum(map(len, old[i:j]))
        parts.append(Block(line + i, place, end, old[i:j], new[k:m]))
        place, done = end, j
    return parts


def hunks(before: bytes, parts: Sequence[Block], fmt: Format) -> Iterator[RawHunk]:
    """Blocks with their context; those whose contexts meet together."""
    run: list[Block] = []
    moved = 0
    for block in parts:
        if run and block.line - run[-1].line - len(run[-1].gone) > 2 * CONTEXT:
            yield _hunk(before, run, fmt, moved)
            moved += sum(len(b.new) - len(b.gone) for b in run)
            run = []
        run.append(block)
    if run:
        yield _hunk(before, run, fmt, moved)


def _hunk(before: bytes, run: list[Block], fmt: Format, moved: int) -> RawHunk:
    top, bottom = run[0].start, run[-1].end
    for _ in range(CONTEXT):
        top = _line_start(before, fmt.newline, top - len(fmt.newline)) if top else 0
        bottom = _line_end(before, fmt.newline, bottom)
    lead, trail = split_lines(before[top : run[0].start], fmt), split_lines(before[run[-1].end : bottom], fmt)
    if sum(map(len, lead)) + sum(map(len, trail)) > CONTEXT_BYTES:
        lead, trail = lead[-1:], trail[:1]
    entries = [(" ", line) for line in lead]
    place = run[0].start
    for block in run:
        entries += [(" ", line) for line in split_lines(before[place : block.start], fmt)]
        entries += [("-", line) for line in block.gone]
        entries += [("+", line) for line in block.new]
        place = block.end
    entries += [(" ", line) for line in trail]
    line = run[0].line - len(lead)
    return RawHunk(line, line + moved, entries)


def _line_start(data: bytes, newline: bytes, place: int) -> int:
    """Where the line that holds byte `place` begins."""
    at = data.rfind(newline, 0, place)
    while at > 0 and at % len(newline):  # half of one character and half of the next
        at = data.rfind(newline, 0, at + len(newline) - 1)
    return at + len(newline) if at >= 0 else 0


def _line_end(data: bytes, newline: bytes, place: int) -> int:
    """Where the line that holds byte `place` ends, its line end included."""
    at = data.find(newline, place)
    while at > 0 and at % len(newline):
        at = data.find(newline, at + 1)
    return at + len(newline) if at >= 0 else len(data)


def _count_lines(data: bytes, fmt: Format) -> int:
    return count_newlines(data, fmt) + bool(data and not data.endswith(fmt.newline))


def _shared(a: bytes, b: bytes, room: int, *, tail: bool) -> int:
    """How many bytes both have in common at one end, `room` at most. Slices compare at the speed of memory."""

    def same(size: int, done: int) -> bool:
        if tail:
            return a[len(a) - size : len(a) - done] == b[len(b) - size : len(b) - done]
        return a[done:size] == b[done:size]

    done = 0
    while done < room and same(min(done + CHUNK, room), done):
        done = min(done + CHUNK, room)
    low, high = done, min(done + CHUNK, room)
    while low < high:
        middle = (low + high + 1) // 2
        if same(middle, done):
            low = middle
        else:
            high = middle - 1
    return low
