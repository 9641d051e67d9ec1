"""What the command line prints: coloured tables and diffs on a terminal, plain text everywhere else.

On a terminal `rich` draws, if it is installed; `NO_COLOR` (https://no-color.org) turns every style off. What is piped
is plain: columns padded with blanks, no escape sequence, nothing cut to a width. File content, model output and paths
are data: control characters and bytes that are no text are shown as escapes, so that no file can steer the terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO

from langchain_filestate import _text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Everything that steers a terminal, also the direction of writing; newline and tab may stay."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


class Stop(Exception):  # noqa: N818  an end, not always an error
    """The command ends here, with one line for the user.

    Args:
        message: What is wrong and what to do.
        code: The exit code: 1 for refused, 2 for wrong use.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


def clean(text: str) -> str:
    """Text that a terminal can be given: what is not printable is shown as an escape; newlines and tabs stay."""
    return _CONTROLS.sub(lambda found: _escaped(found[0]), _text.show(text))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def one_line(text: str, most: int = 100) -> str:
    """Text as one line of at most so many characters."""
    line = " ".join(text.split())
    return clean(line if len(line) <= most else f"{line[: most - 4]} ...")


def bounded(text: str, most: int) -> str:
    """The first lines of a text, and how many more there are."""
    lines = text.split("\n")
    if len(lines) > most + 1:
        lines = [*lines[:most], f"... ({len(lines) - most} more lines)"]
    return "\n".join(lines)


def short(path: str) -> str:
    """A path relative to the working directory if it is below it."""
    try:
        here = os.path.join(os.path.realpath(os.getcwd()), "")
    except OSError:  # the working directory is gone
        return path
    return path[len(here) :] if path.startswith(here) and path != here else path


def moment(seq: int) -> datetime:
    """The time that a change's `seq` stands for."""
    return EPOCH + timedelta(microseconds=seq // 1000)


def clock(when: datetime) -> str:
    """A time as people here read it."""
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S")


class Screen:
    """Where a command prints.

    Args:
        out: The stream; None: `sys.stdout` as it is now.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._console = _console(self._out)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """One line or more, of texts and of pairs of text and style."""
        pairs = [(clean(part), "") if isinstance(part, str) else (clean(part[0]), part[1]) for part in parts]
        if self._console is None:
            self._out.write("".join(text for text, _ in pairs) + "\n")
            return
        from rich.text import Text  # noqa: PLC0415  only on a terminal

        self._console.print(Text.assemble(*pairs), soft_wrap=True)

    def block(self, text: str, style: str = "", indent: str = "    ") -> None:
        """Several lines, set in."""
        for line in text.rstrip("\n").split("\n"):
            self.line((f"{indent}{line}" if line else "", style))

    def diff(self, text: str, indent: str = "    ") -> None:
        """The text of a patch."""
        for line in text.rstrip("\n").split("\n"):
            header = line.startswith(("--- ", "+++ ", "diff --git "))
            self.line((f"{indent}{line}", "bold" if header else _DIFF_STYLES.get(line[:1], "")))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table; a column whose name begins with `#` holds numbers."""
        cells = [[clean(cell).replace("\n", "\\n") for cell in row] for row in rows]
        numbers = [name.startswith("#") for name in columns]
        names = [name.lstrip("#") for name in columns]
        if self._console is not None:
            from rich import box  # noqa: PLC0415  only on a terminal
            from rich.table import Table  # noqa: PLC0415
            from rich.text import Text  # noqa: PLC0415

            drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
            for name, number in zip(names, numbers, strict=True):
                drawn.add_column(name, justify="right" if number else "left", overflow="fold")
            for row in cells:
                drawn.add_row(*(Text(cell, style=_cell_style(cell)) for cell in row))
            self._console.print(drawn)
            return
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        for row in [names, *cells]:
            fitted = [
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers, strict=True)
            ]
            self._out.write("  ".join(fitted).rstrip() + "\n")

    def json(self, value: Mapping[str, Any]) -> None:
        """One object on one line of ASCII."""
        self._out.write(json.dumps(value, separators=(",", ":"), default=str) + "\n")
        self._out.flush()


def _cell_style(cell: str) -> str:
    if re.fullmatch(r"\+\d+", cell):
        return "green"
    return "red" if re.fullmatch(r"-\d+", cell) else ""


def _console(out: TextIO) -> Any:
    """What draws on this stream; None for plain text."""
    if not out.isatty():
        return None
    try:
        from rich.console import Console  # noqa: PLC0415  not needed where the output is piped
    except ModuleNotFoundError:
        return None
    colours = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=out, color_system=colours, highlight=False, markup=False, emoji=False)  # type: ignore[arg-type]
