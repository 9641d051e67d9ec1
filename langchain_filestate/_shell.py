"""What a shell command shows of which file: no I/O, a command and its output in, line ranges out.

The idea: the command only says what to expect; what counts is the output. For the few commands whose output is a plain
function of the file's lines (the table below), that output is worked out from the lines of the file as it is now and
compared with what came back, from the first character to the last. Equal: those lines count as shown. Anything else:
nothing counts. So a command that is misread here, an alias, another directory, a changed file, a cut or altered output
can cost credit but never give false credit: every line that is returned stands in the output, whole and in its place.

    cat, less, more          whole files; `cat -n`, `cat -b` with numbers
    nl                       numbered, all lines (`-ba`) or those that are not empty
    head, tail               `-n N`, `-N`, `-n -N` (head), `-n +N` (tail); several files with their `==> name <==`
    sed                      `-n 'A,Bp'` and the like (`$`, `A,+N`, several of them, `Nq`), one file
    grep, egrep, fgrep, rg   the lines that match; context only with `-n`; several files with their names in front
    cd DIR, echo WORDS       before or between them; `bash -c '...'` around all of it

Sequences with `;`, `&&` and new lines are followed, if nothing comes after a `grep` (the length of its output is not
known beforehand). Pipes, redirections, globs, substitutions, variables, here-documents, background jobs, subshells,
assignments and every option that is not listed here count for nothing.

Limits: what a pattern matches is not worked out. Each line of `grep -n` is compared with the line of that number;
without numbers the output must be exactly all lines of the file whose text occurs in it. Two lines run together (a file
without a final newline in the middle of `cat a b`), lone carriage returns that a tool made into newlines, and trailing
empty lines that a tool cut off count for nothing, and neither do bytes that are no text.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from langchain_filestate._shell_commands import Piece, Shown, script

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Shown", "attribute", "named_files", "shown_lines"]


def named_files(command: str) -> tuple[Shown, ...]:
    """Say which files a shell command shows, and how.

    Args:
        command: As given to the shell (POSIX quoting).

    Returns:
        In the order of the output, a file perhaps more than once; () if the command is not one of the table above.
    """
    return tuple(piece for piece in script(command) if isinstance(piece, Shown))


def attribute(command: str, output: str, files: Mapping[str, Sequence[str]]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Say which lines of which files stand in the output of one command.

    Args:
        command: As given to the shell.
        output: What the model was given: the command's output, perhaps with the notes on exit code and standard error
            that LangChain's shell tool and deepagents' `execute` add.
        files: For each `Shown.file_path` the lines of the file, decoded, without line ends and byte order mark. A file
            that could not be read is left out, and then must have shown nothing.

    Returns:
        For each file that was shown its line ranges, from 1, sorted and joined. An empty file that was shown has ().
        Empty if the output is not exactly what the command prints for these lines.
    """
    return _compare(script(command), output, files)


def shown_lines(shown: Shown, output: str, lines: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Say which lines of one file stand in the output of a command that showed this file only.

    Args:
        shown: From `named_files`.
        output: As for `attribute`.
        lines: The lines of the file, as for `attribute`.

    Returns:
        Line ranges, from 1, sorted and joined; () if the output is not exactly what the command prints.
    """
    return _compare([shown], output, {shown.file_path: lines}).get(shown.file_path, ())


_STATUS = re.compile(r"\n\[Command (?:succeeded|failed) with exit code -?\d+\]\Z")  # deepagents, after the output as is
_EXIT_CODE = re.compile(r"\n\nExit code: -?\d+\Z")  # both, after an output without its trailing white space
_NO_OUTPUT = "<no output>"
_SURROGATE = re.compile("[\ud800-\udfff]")  # alone they stand for bytes that are no text
_STDERR = "[stderr] "  # both, before each line of standard error


def _bodies(output: str) -> Iterator[tuple[str, bool]]:
    """Take the notes off that tools add: each reading of the output, and whether the command said nothing else.

    A note that cuts something off ("... Output truncated at ...") is not taken off, and so no reading fits.
    """
    yield output, True
    body = _STATUS.sub("", output)
    if body != output:
        yield body, True
    if body == _NO_OUTPUT:
        yield "", True
    plain = _EXIT_CODE.sub("", body)
    if plain != body:
        yield "" if plain == _NO_OUTPUT else plain, False
    kept = [line for line in plain.split("\n") if not line.startswith(_STDERR)]
    if len(kept) <= plain.count("\n"):
        yield "\n".join(kept), False


class _Different(Exception):  # noqa: N818  an answer inside this module
    """The output is not what these pieces print."""


def _compare(
    pieces: Sequence[Piece], output: str, files: Mapping[str, Sequence[str]]
) -> dict[str, tuple[tuple[int, int], ...]]:
    if not pieces or _SURROGATE.search(output):
        return {}
    for body, clean in _bodies(output):
        try:
            return _walk(pieces, body, files, clean=clean)
        except _Different:
            continue
    return {}


def _walk(
    pieces: Sequence[Piece], body: str, files: Mapping[str, Sequence[str]], *, clean: bool
) -> dict[str, tuple[tuple[int, int], ...]]:
    printed = body.split("\n")
    if not printed[-1]:
        printed.pop()
    credit: dict[str, set[int]] = {}
    at = number = 0
    for piece in pieces:
        if isinstance(piece, str):
            if printed[at : at + 1] != [piece]:
                raise _Different
            at += 1
            continue
        lines = files.get(piece.file_path)
        if lines is None:
            continue
        if piece.how == "grep":
            seen, at = _matched(piece, printed, at, lines)
        else:
            seen, at, number = _printed(piece, printed, at, lines, number if piece.goes_on else 0)
        if seen or (not lines and clean and piece.ranges and piece.how != "grep"):
            credit.setdefault(piece.file_path, set()).update(seen)
    if at != len(printed):
        raise _Different
    return {path: _joined(sorted(seen)) for path, seen in credit.items()}


def _printed(
    piece: Shown, printed: list[str], at: int, lines: Sequence[str], number: int
) -> tuple[list[int], int, int]:
    """Compare with commands that print given lines; return those lines, the place after them, and the last number."""
    wanted: list[int] = []
    for first, last in piece.ranges:
        start = first if first > 0 else max(len(lines) + first + 1, 1)
        wanted += range(start, min(last if last > 0 else len(lines) + last + 1, len(lines)) + 1)
    if any(later <= earlier for earlier, later in pairwise(wanted)):
        raise _Different  # sed prints a line twice
    if at + len(wanted) > len(printed):
        raise _Different
    for index in wanted:
        got = printed[at]
        at += 1
        if piece.numbers != "none":
            # A "\r" makes a line not empty for `nl` and `cat -b`, but it is not part of the line's text here.
            blank = piece.numbers == "nonblank" and not lines[index - 1]
            before, tab, text = got.partition("\t")
            if tab and before.strip(" ") == str(number + 1):
                number += 1
                got = text
            elif blank:
                got = got.strip(" ")
            else:
                raise _Different
        if not _same(got, lines[index - 1], index):
            raise _Different
    return wanted, at, number


def _matched(piece: Shown, printed: list[str], at: int, lines: Sequence[str]) -> tuple[list[int], int]:
    """Compare with the lines that grep found; return their numbers and the place after them."""
    ours: list[str] = []
    while at < len(printed) and printed[at].startswith(piece.prefix):
        ours.append(printed[at].removeprefix(piece.prefix))
        at += 1
    if piece.numbers == "none":
        # The same text matches everywhere or nowhere: all lines that have one of these texts, and no others.
        texts = {line.removesuffix("\r") for line in ours}
        seen = [index for index, line in enumerate(lines, 1) if line.removesuffix("\r") in texts]
        if len(seen) != len(ours) or not all(_same(got, lines[i - 1], i) for got, i in zip(ours, seen, strict=True)):
            raise _Different
        return seen, at
    seen = [0]
    for got in ours:
        if got == "--" and not piece.prefix:
            continue
        found = re.match(r"([0-9]{1,12})[:-]", got)
        index = int(found[1]) if found else 0
        if found is None or not seen[-1] < index <= len(lines):
            raise _Different
        if not _same(got[found.end() :], lines[index - 1], index):
            raise _Different
        seen.append(index)
    return seen[1:], at


def _same(got: str, line: str, index: int) -> bool:
    """Whether a line of the output is this line of the file, whose line end and byte order mark are not in `line`."""
    return got in {line, line + "\r"} or (index == 1 and got.removeprefix("\ufeff").removesuffix("\r") == line)


def _joined(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Join neighbouring line numbers to ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)
