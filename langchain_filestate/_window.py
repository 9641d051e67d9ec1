"""A window of a file as numbered lines, and the way on from it.

Only `LINE<tab>TEXT` lines are content; everything else (where to go on, what was cut, what is shown in another way)
is in `notes`, beside it. Rules:

- The view stops before a line that no longer fits into `max_chars`, and says which `offset` comes next.
- A line longer than `max_line_chars` is cut, the view goes on, and a note says how to read the rest of that line.
  Where one line is asked for (`limit=1`, a `column`, the last line) it may use all of `max_chars`; what does not fit
  then is reached with `offset` and `column`.
- So following the notes neither skips nor repeats a character. At least one character is always delivered.
- A line end is shown as the end of the shown line, CRLF like LF. Any other character is shown as it is, a bare CR too:
  text copied from here is text that is found in the file. Only bytes that are no text are shown as escapes.

A column counts characters (code points) of the line from 1; a byte that is no text is one character. Memory is bounded
by a block of the file or four times `max_chars`, whatever the length of lines.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, pairwise
from operator import add
from typing import TYPE_CHECKING

from langchain_filestate._codec import decode, decode_some, last_newline, nth_newline, reencode, show
from langchain_filestate._detect import BLOCK, Profile
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MAX_LISTED = 12
GUTTER = 6
PAGE = 500
CHANGED = "The file changed while it was read. Read it again."


@dataclass(frozen=True, slots=True)
class Window:
    """What is shown of a file.

    Args:
        text: Numbered lines, joined by newlines, none at the end.
        notes: What to know beside it, for the model.
        first_line: Number of the first line shown, 0 if none.
        last_line: Number of the last line shown, if only in part, 0 if none.
        seen: Ranges of lines delivered whole.
        complete: Whether the whole file was delivered whole.
        following: Offset and column to go on at; None at the end of the file.
    """

    text: str
    notes: tuple[str, ...]
    first_line: int
    last_line: int
    seen: tuple[tuple[int, int], ...]
    complete: bool
    following: tuple[int, int] | None = None


def window(
    read: Callable[[int, int], bytes],
    profile: Profile,
    *,
    offset: int = 1,
    limit: int | None = None,
    column: int = 1,
    max_lines: int = 2000,
    max_chars: int = 100_000,
    max_line_chars: int = 2000,
) -> Window:
    """Show lines of a file.

    Args:
        read: Gives `size` bytes of the file from a byte offset, fewer at its end; the file is the one of `profile`.
        profile: What the scan of these bytes found.
        offset: First line, from 1; 0 is taken as 1, a negative one counts from the end (-1 is the last line).
        limit: Lines at most; None: as many as fit.
        column: First character of the first line, from 1; 0 is taken as 1.
        max_lines: Lines at most, whatever `limit` says.
        max_chars: Characters of `text` at most, line numbers included.
        max_line_chars: Characters of one line, in a view of several.

    Raises:
        Refused: `out_of_range`: the file has no such line, or the line no such column. `bad_arguments`: a limit below 1
            or a negative column.
    """
    if limit is not None and limit < 1:
        raise Refused("limit must be 1 or more, or be left out.", code="bad_arguments")
    if column < 0:
        raise Refused(
            "column must be 1 or more: it counts characters from the start of the line.", code="bad_arguments"
        )
    total = profile.lines
    first = max(1, total + 1 + offset) if offset < 0 else offset or 1
    column = column or 1
    if not total and first == 1 and column == 1:
        return Window("", ("The file is empty.",), 0, 0, (), complete=True)
    if first > total:
        message = f"offset={offset} is past the end of the file, which has {total} line(s). Give a smaller offset."
        if not total:
            message = "The file is empty, so it has no such place. Read it without offset and column."
        raise Refused(message, code="out_of_range")
    last = min(total, first + min(max_lines, limit or max_lines) - 1)
    view = _View(read, profile, first, column, last, max_chars)
    one = column > 1 or last == first
    view.fill(max_chars if one else max_line_chars, max_line_chars)
    return view.window(once=limit == 1)


@dataclass(slots=True)
class _View:
    """A window in the making."""

    read: Callable[[int, int], bytes]
    profile: Profile
    first: int
    column: int
    last: int
    room: int
    shown: list[str] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    escaped: list[int] = field(default_factory=list)
    returns: bool = False
    cap: int = 0
    following: tuple[int, int] | None = None

    def start_of(self, line: int) -> int:
        """Byte offset of a line; that of the one after the last is the size."""
        fmt, marks = self.profile.format, self.profile.marks
        if line == 1:
            return len(fmt.bom)
        if line > self.profile.lines:
            return self.profile.size
        block = bisect_left(marks, line - 1) - 1
        at = block * BLOCK
        try:
            return at + nth_newline(self.bytes_at(at, BLOCK), fmt, line - 1 - marks[block])
        except ValueError:
            raise Refused(CHANGED, code="busy") from None

    def bytes_at(self, at: int, size: int) -> bytes:
        """Read bytes of the file that was profiled, fewer only at its end."""
        size = min(size, self.profile.size - at)
        data = self.read(at, size) if size > 0 else b""
        if not data or len(data) != size:
            raise Refused(CHANGED, code="busy")
        return data

    def offset_of(self, line: int, column: int) -> int:
        """Byte offset of a character of a line."""
        start = self.start_of(line)
        if column == 1:
            return start
        fmt, end = self.profile.format, self.start_of(line + 1)
        for char in "\n\r":
            unit = char.encode(fmt.encoding)
            if end - len(unit) >= start and self.bytes_at(end - len(unit), len(unit)) == unit:
                end -= len(unit)
            else:
                break
        at, skip = start, column - 1
        while at < end:
            data = self.bytes_at(at, min(BLOCK, end - at))
            text, used = decode_some(data, fmt, final=at + len(data) == end)
            if skip < len(text):
                return at + (skip if used == len(text) else len(reencode(text[:skip], fmt)))
            at, skip = at + used, skip - len(text)
        message = (
            f"column={column} is past the end of line {line}, which has {column - 1 - skip} character(s). "
            "Give a smaller column."
        )
        raise Refused(message, code="out_of_range", lines=(line,))

    def fill(self, cap: int, later: int) -> None:
        """Show lines until the view is full; `cap` is the bound for the first line, `later` for the others."""
        fmt, line, self.cap = self.profile.format, self.first, later
        at = self.offset_of(line, self.column)
        while line <= self.last:
            data = self.bytes_at(at, 4 * self.room + 4096)  # no character is longer, so this holds all that fits
            used = len(data) if at + len(data) >= self.profile.size else last_newline(data, fmt)
            text = decode(data[:used], fmt) if used else decode_some(data, fmt, final=False)[0]
            if "\r" in text:
                text = text.replace("\r\n", "\n")
                self.returns = self.returns or "\r" in text
            lines = text.removesuffix("\n").split("\n", self.last - line + 1)[: self.last - line + 1]
            if not self._show_all(lines, line, min(cap, later), partial=not used):
                for number, content in enumerate(lines, line):
                    self._show(number, content, cap if number == self.first else later, partial=not used)
                    if self.following:
                        return
            line += len(lines)
            at = at + used if used or line > self.last else self.start_of(line)
        if line <= self.profile.lines:
            self.following = (line, 1)

    def _show_all(self, lines: list[str], line: int, cap: int, *, partial: bool) -> bool:
        """Show lines that all fit, as nearly always; else do nothing."""
        width = max(GUTTER, len(str(line + len(lines)))) + 2
        need = sum(map(len, lines)) + width * len(lines)
        if partial or need > self.room or max(map(len, lines)) > cap:
            return False
        if not self.profile.format.lossless and any(show(content) != content for content in lines):
            return False
        self.shown += map(add, gutters(line, len(lines)), lines)
        self.room -= need
        return True

    def _show(self, number: int, content: str, cap: int, *, partial: bool) -> None:
        """Show a line as far as it fits, or say that the view is full."""
        fmt, gutter = self.profile.format, next(gutters(number, 1))
        room = self.room - len(gutter) - bool(self.shown)
        piece = content[:cap]
        text = show(piece, fmt)
        full = len(text) > room
        if full and self.shown:
            self.following = (number, 1)
            return
        while len(text) > room and len(piece) > 1:
            piece = piece[: -max(1, (len(text) - room) // 6)]  # an escape has six characters at most
            text = show(piece, fmt)
        self.shown.append(gutter + text)
        self.room = max(0, room - len(text))
        if text != piece:
            self.escaped.append(number)
        if partial or len(piece) < len(content):
            if full:
                self.following = (number, self.column + len(piece))
            else:
                self.cut.append(number)

    def window(self, *, once: bool) -> Window:
        """Give what was shown, with the notes."""
        last = self.first + len(self.shown) - 1
        broken = self.following is not None and self.following[1] > 1
        partial = {*self.cut, *([last] if broken else ()), *([self.first] if self.column > 1 else ())}
        edges = [self.first - 1, *sorted(partial), last + 1]
        seen = tuple((a + 1, b - 1) for a, b in pairwise(edges) if a + 1 < b)
        return Window(
            text="\n".join(self.shown),
            notes=tuple(self._notes(last, once=once)),
            first_line=self.first,
            last_line=last,
            seen=seen,
            complete=seen == ((1, self.profile.lines),),
            following=self.following,
        )

    def _notes(self, last: int, *, once: bool) -> Iterator[str]:
        if self.cut:
            yield (
                f"Cut after {self.cap} characters: {listed(self.cut, most=len(self.cut))}. Read the rest of such a "
                f"line N with offset=N, column={self.cap + 1}, limit=1. (Or all of it with offset=N, limit=1: only a "
                f"line that was shown whole counts as read.)"
            )
        if self.following:
            line, column = self.following
            if column > 1:
                yield f"Line {line} goes on. Read on with offset={line}, column={column}{', limit=1' if once else ''}."
            else:
                what = f"line {last}" if last == self.first else f"lines {self.first}-{last}"
                yield f"Shown: {what} of {self.profile.lines}. Read on with offset={line}."
        elif not self.profile.final_newline:
            yield "No newline at end of file."
        if self.escaped:
            what = "Bytes that are not UTF-8" if self.profile.format.unit == 1 else "Halves of characters"
            yield f"{what} are shown as escapes and stay as they are in the file: {listed(self.escaped)}."
        if self.returns:
            returns = [n for n, text in enumerate(self.shown, self.first) if "\r" in text]
            yield f"Carriage returns that end no line are part of the text: {listed(returns)}."


def gutters(first: int, count: int) -> Iterator[str]:
    """Line numbers as they stand before lines; made once for many reads, since making them is most of the work."""
    pages = range(first // PAGE, (first + count - 1) // PAGE + 1)
    return islice(chain.from_iterable(map(_page, pages)), first % PAGE, first % PAGE + count)


@lru_cache(maxsize=16)
def _page(page: int) -> tuple[str, ...]:
    return tuple(f"{number:>{GUTTER}}\t" for number in range(page * PAGE, (page + 1) * PAGE))


def listed(numbers: list[int], most: int = MAX_LISTED) -> str:
    """Name lines in a text, as ranges, so many at most."""
    parts = ranges(numbers)
    names = [str(a) if a == b else f"{a}-{b}" for a, b in parts[:most]]
    more = sum(b - a + 1 for a, b in parts[most:])
    return f"line{'s' * (len(numbers) > 1)} {', '.join(names)}" + (f" and {more} more" if more else "")


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Join ascending numbers that follow each other to ranges."""
    out: list[tuple[int, int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1] = (out[-1][0], number)
        else:
            out.append((number, number))
    return out
