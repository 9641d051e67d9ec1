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

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate._diff import gaps
from langchain_filestate._match import Splice, Spliced
from langchain_filestate._text import BLOCK, count_newlines, last_newline, next_newline, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_filestate._diff import Budget
    from langchain_filestate._text import Format

CONTEXT = 3
"""Unchanged lines shown on each side of a change."""
CONTEXT_BYTES = 16_384
"""Bytes of them in one hunk above which one line on each side must do (`git apply` asks for that one)."""
CHUNK = 1 << 16
MANY = 10_000
"""Splices above which they are not followed one by one: each takes some 20 microseconds, and a patch has an end."""


class LineEdit(NamedTuple):
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
    rough: bool = False
    """True if there were too many splices to follow each: all lines from the first to the last one stand here, and
    `kept` is empty. With as many lines before as after, each holds text of the one with its number; else nothing is
    known of any."""


class Group(NamedTuple):
    """Whole lines that one or more splices touch, and the bytes that stand there afterwards."""

    edit: LineEdit
    """Which lines they are."""
    start: int
    """Where they begin in the old file; always a line start."""
    end: int
    """Where they end; a line start or the end of the file."""
    new: bytes
    come: int
    """How many more line ends stand there afterwards."""


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
    """Number of the first line before the change, from 1."""
    target: int
    """The same after the change."""
    kinds: list[str]
    """What each line is: space, minus or plus."""
    lines: list[bytes]
    """The lines, each with its end."""


class LineEnds:
    """How many line ends stand before places of a file, which are asked for in order; no part of it is counted twice.

    Args:
        data: The whole file, with its BOM.
        fmt: How it is encoded.
        marks: Line ends before each block of it, as `Profile` has them; empty if nobody has counted yet.
    """

    def __init__(self, data: bytes, fmt: Format, marks: Sequence[int] = ()) -> None:
        self.data, self.fmt, self._marks = data, fmt, marks or (0,)
        self._last = (0, 0)  # the place asked for last, and the line ends before it

    def before(self, place: int) -> int:
        """Line ends whose last byte is before this offset."""
        block = min(place // BLOCK, len(self._marks) - 1)
        known, count = max(self._last, (block * BLOCK, self._marks[block]))
        above = (block + 1) * BLOCK
        if above - place < place - known and block + 1 < len(self._marks):  # the next one is nearer
            count = self._marks[block + 1] - count_newlines(self.data, self.fmt, place, above)
        else:
            count += count_newlines(self.data, self.fmt, known, place)
        self._last = (place, count)
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
        self._ends = LineEnds(before, fmt, marks)
        ordered = sorted(splices, key=attrgetter("start", "end"))
        self.groups = [_roughly(self._ends, ordered)] if len(ordered) > MANY else _grouped(self._ends, ordered)
        """The splices widened to whole lines, those that touch the same line together, in order."""

    def edits(self) -> tuple[LineEdit, ...]:
        """What the splices do to lines: for moving what is known about lines across an edit.

        Returns:
            One entry for all splices that touch the same line, in order; no old line is in two of them.
        """
        return tuple([group.edit for group in self.groups])

    def newlines(self) -> int:
        """How many line ends the file has afterwards."""
        return self._ends.before(len(self.before)) + sum([group.come for group in self.groups])


def line_edits(before: bytes, splices: Iterable[Splice], fmt: Format) -> tuple[LineEdit, ...]:
    """`Touched.edits` of splices of which nothing else is asked."""
    return Touched(before, splices, fmt).edits()


def _grouped(ends: LineEnds, splices: Iterable[Splice]) -> list[Group]:
    groups: list[Group] = []
    growing: _Growing | None = None
    moved = 0
    for splice in splices:
        if growing is None or not growing.takes(splice.start):
            if growing is not None:
                groups.append(growing.done())
                moved += groups[-1].edit.new_count - groups[-1].edit.old_count
            growing = _Growing(ends, last_newline(ends.data, ends.fmt, splice.start), moved)
        growing.add(splice)
    if growing is not None:
        groups.append(growing.done())
    return groups


def _roughly(ends: LineEnds, splices: Sequence[Splice]) -> Group:
    """One group from the line of the first splice to that of the last one."""
    data, fmt = ends.data, ends.fmt
    start, end = last_newline(data, fmt, splices[0].start), next_newline(data, fmt, splices[-1].end)
    new = bytes(Spliced(data[:end], splices))[start:]
    first, below = ends.before(start), ends.before(end)
    gone, come = below - first, count_newlines(new, fmt)
    old_count = gone + (end > start and not data.endswith(fmt.newline, start, end))
    new_count = 0 if new == fmt.bom else come + (not new.endswith(fmt.newline))  # a byte order mark alone is no line
    # Where no new text has a line end and there are as many as before, no old text had one either.
    same = old_count == new_count and not any(fmt.newline in text for text in {splice.new for splice in splices})
    edit = LineEdit(first + 1, old_count, new_count, same, same, (), rough=True)
    return Group(edit, start, end, new, come - gone)


class _Growing:
    """A group that splices are still added to."""

    def __init__(self, ends: LineEnds, start: int, moved: int) -> None:
        self.before, self.fmt = ends.data, ends.fmt
        self.start = self.end = self.place = start
        self.pieces: list[bytes] = []  # what stands there afterwards, up to `place` of the old file
        self.open = False  # whether that ends within a line
        self.first = self.old_line = ends.before(start) + 1  # where the group begins, and where `place` is
        self.top = self.new_line = self.first + moved  # the same after the change
        self.kept: list[tuple[int, int]] = []

    def add(self, splice: Splice) -> None:
        start, end, new = splice
        if start > self.place:
            self._keep(start)
        if new:
            self.pieces.append(new)
            self.open = not new.endswith(self.fmt.newline)
            self.new_line += count_newlines(new, self.fmt)
        self.old_line += count_newlines(self.before, self.fmt, self.place, end)
        self.place = end
        if not self.open and self._at_line_start(end):
            self.end = end
        elif end >= self.end:
            self.end = next_newline(self.before, self.fmt, end)

    def takes(self, start: int) -> bool:
        """Whether a splice that begins there touches a line of this group."""
        if start != self.end:
            return start < self.end
        return not self._at_line_start(start) or (self.place == start and self.open)

    def done(self) -> Group:
        if self.end > self.place:
            self._keep(self.end)
        gone, come, new = self.old_line - self.first, self.new_line - self.top, b"".join(self.pieces)
        old_count = gone + (self.end > self.start and not self._at_line_start(self.end))
        # A byte order mark alone is no line: the file is empty.
        new_count = 0 if new == self.fmt.bom else come + self.open
        partial = [line for line, _ in self.kept]
        head, tail = self.top in partial, self.top + new_count - 1 in partial
        edit = LineEdit(self.first, old_count, new_count, head, tail, tuple(self.kept))
        return Group(edit, self.start, self.end, new, come - gone)

    def _keep(self, end: int) -> None:
        """Let the old bytes from `place` to `end` stand. They are of one line; its end may be among them."""
        old = self.before[self.place : end]
        newline = self.fmt.newline
        bare = old.removesuffix(newline).removesuffix("\r".encode(self.fmt.encoding))
        pair = (self.new_line, self.old_line)
        if bare and not (self.place == 0 and bare == self.fmt.bom) and pair not in self.kept[-1:]:
            self.kept.append(pair)
        self.pieces.append(old)
        self.open = not old.endswith(newline)
        if not self.open:
            self.new_line, self.old_line = self.new_line + 1, self.old_line + 1
        self.place = end

    def _at_line_start(self, place: int) -> bool:
        return place == 0 or self.before.endswith(self.fmt.newline, 0, place)


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
        gone = old[i:j]
        place += sum(map(len, old[done:i]))
        end = place + sum(map(len, gone))
        parts.append(Block(line + i, place, end, gone, new[k:m]))
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
    top, bottom = start, end = run[0].start, run[-1].end
    for _ in range(CONTEXT):
        top = last_newline(before, fmt, top - fmt.unit) if top else 0
        bottom = next_newline(before, fmt, bottom)
    lines, trail = split_lines(before[top:start], fmt), split_lines(before[end:bottom], fmt)
    if start - top + bottom - end > CONTEXT_BYTES:
        lines, trail = lines[-1:], trail[:1]
    line = run[0].line - len(lines)
    kinds = [" "] * len(lines)
    place = start
    for block in run:
        between = split_lines(before[place : block.start], fmt)
        lines += [*between, *block.gone, *block.new]
        kinds += [" "] * len(between) + ["-"] * len(block.gone) + ["+"] * len(block.new)
        place = block.end
    lines += trail
    kinds += [" "] * len(trail)
    return RawHunk(line, line + moved, kinds, lines)


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
