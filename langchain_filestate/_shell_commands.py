"""What shell commands would print of which files: text in, an expectation out.

The idea: a command counts as reading only if its output can be worked out from the lines of the files that it names.
So this module knows a handful of programs with the options that keep it so (the table is in `_shell`), and for anything
else it says nothing. What it says is not believed: `_shell` compares it with the output.

Rules: words and quotes as in POSIX shells (The Open Group Base Specifications, Shell Command Language, 2.2), options as
GNU programs take them. Limits: what stands unquoted and would be expanded, redirected (but for standard error) or run
elsewhere makes the whole command unclear; so does an option that is not listed.
"""

from __future__ import annotations

import getopt
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Numbers = Literal["none", "all", "nonblank"]

_WHOLE = ((1, -1),)


@dataclass(frozen=True, slots=True)
class Shown:
    """One file that a command names, and what of it should stand in the output.

    Attributes:
        file_path: As written in the command, below the directory of a `cd` before it.
        how: The command that shows it: "cat", "head", "grep", ...
        ranges: First and last line, from 1; a negative number counts from the end (-1 is the last line). In the order
            in which they are printed. For grep: where its lines may come from.
        numbers: Whether a number stands before each line, or before each that is not empty.
        goes_on: The numbers go on from the file before (`cat -n a b`).
        prefix: The file's name and a colon before each line, if grep puts them there.
    """

    file_path: str
    how: str
    ranges: tuple[tuple[int, int], ...] = _WHOLE
    numbers: Numbers = "none"
    goes_on: bool = False
    prefix: str = ""


Piece = Shown | str  # something of a file, or a line that is known from the command alone


# From the text to commands.

_OPERATORS = frozenset("|&<>()$`*?[{}")  # unquoted, each makes the output something that is not worked out here
# Where standard error goes, and what only hides a failure, changes nothing of what a file shows.
_HARMLESS = re.compile(r"(?:2> ?(?:&1|/dev/null)|\|\| *(?:true|:))(?=[ \t\n;]|&&|$)")
_ESCAPED_IN_QUOTES = frozenset('$`"\\\n')


def _commands(text: str) -> Iterator[list[str]]:
    """Split a script into simple commands of words without quotes.

    Raises:
        ValueError: Something in it is not a plain word, `;`, `&&`, a new line or a comment.
    """
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        if word is None and (harmless := _HARMLESS.match(text, at)):
            at = harmless.end()
            continue
        char = text[at]
        at += 1
        if char in ";\n" or text.startswith("&&", at - 1):
            if word is not None:
                words.append(word)
            if words:
                yield words
            words, word = [], None
            at += char == "&"
        elif char in " \t":
            if word is not None:
                words.append(word)
            word = None
        elif char == "#" and word is None:
            end = text.find("\n", at)
            at = end if end >= 0 else len(text)
        elif char in _OPERATORS or (char == "~" and word is None):
            raise ValueError(char)
        elif char == "\\":
            if at == len(text):
                raise ValueError(char)
            if text[at] != "\n":
                word = (word or "") + text[at]
            at += 1
        elif char == "'":
            end = text.index("'", at)
            word = (word or "") + text[at:end]
            at = end + 1
        elif char == '"':
            part, at = _double_quoted(text, at)
            word = (word or "") + part
        else:
            word = (word or "") + char
    if word is not None:
        words.append(word)
    if words:
        yield words


def _double_quoted(text: str, at: int) -> tuple[str, int]:
    """Return what stands between the quote before `at` and the next one, and the place after that one."""
    part = ""
    while text[at : at + 1] != '"':
        char = text[at : at + 1]
        if char in {"", "$", "`"}:
            raise ValueError(char)
        if char == "\\" and text[at + 1 : at + 2] in _ESCAPED_IN_QUOTES:
            at += 1
            char = text[at : at + 1]
            char = "" if char == "\n" else char
        part += char
        at += 1
    return part, at + 1


# From commands to what they print.

_MAX_COMMAND = 20_000  # characters; longer ones are programs, not a look at a file


def script(command: str) -> list[Piece]:
    """Say what a command prints, piece by piece; empty if that cannot be said."""
    try:
        commands = list(_commands(command)) if len(command) <= _MAX_COMMAND and "\0" not in command else []
        match commands:
            case [[("bash" | "sh" | "dash" | "zsh"), ("-c" | "-lc"), inner]]:
                commands = list(_commands(inner))
        pieces: list[Piece] = []
        directory = ""
        for name, *words in commands:
            if pieces and isinstance(pieces[-1], Shown) and pieces[-1].how == "grep":
                return []
            if name == "cd":
                directory = _changed_directory(directory, words)
            else:
                program = name.removeprefix("/usr").removeprefix("/bin/")
                pieces += [_below(directory, piece) for piece in _PROGRAMS[program](program, words)]
    except (ValueError, KeyError, getopt.GetoptError):
        return []
    return pieces


def _changed_directory(directory: str, words: list[str]) -> str:
    # After a link, `cd ..` goes back to where the link stands, and the joined path does not: not followed.
    if len(words) != 1 or words[0] in {"", "-"} or words[0][0] == "-" or (directory and ".." in words[0].split("/")):
        raise ValueError("cd")
    return posixpath.join(directory, words[0])


def _below(directory: str, piece: Piece) -> Piece:
    if isinstance(piece, str) or not directory:
        return piece
    return replace(piece, file_path=posixpath.join(directory, piece.file_path))


def _options(words: list[str], short: str, *long: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Read options as GNU programs do; an unknown one raises, and so does a file that is standard input."""
    options, paths = getopt.gnu_getopt(words, short, list(long))
    if not paths or "-" in paths or "" in paths:
        raise ValueError("standard input")
    return options, paths


def _bare_number(words: list[str], option: str) -> list[str]:
    """Spell `-5` as an option with its value, where it is not itself the value of the word before."""
    before = ["", *words]
    return [
        option + word[1:] if re.fullmatch(r"-[0-9]+", word) and not re.fullmatch(r"-[nemABC]|--.*", previous) else word
        for previous, word in zip(before, words, strict=False)
    ]


def _last(options: list[tuple[str, str]], names: str, default: str) -> str:
    """Return the value of the option given last among these names."""
    return next((value for key, value in reversed(options) if key in names.split()), default)


def _given(options: list[tuple[str, str]], names: str) -> bool:
    """Whether one of these options was given."""
    return any(key in names.split() for key, _ in options)


def _echo(_program: str, words: list[str]) -> list[Piece]:
    line = " ".join(words)
    if re.match(r"-[neE]", line) or "\\" in line:  # options and escapes, in some shells and not in others
        raise ValueError(line)
    return [*line.split("\n")]


def _cat(program: str, words: list[str]) -> list[Piece]:
    options, paths = _options(words, "nbu", "number", "number-nonblank")
    numbers: Numbers = "none"
    if _given(options, "-n --number"):
        numbers = "all"
    if _given(options, "-b --number-nonblank"):
        numbers = "nonblank"
    return [Shown(path, program, numbers=numbers, goes_on=at > 0) for at, path in enumerate(paths)]


def _pager(program: str, words: list[str]) -> list[Piece]:
    _, (path,) = _options(words, "")
    return [Shown(path, program)]


def _nl(program: str, words: list[str]) -> list[Piece]:
    options, paths = _options(words, "b:", "body-numbering=")
    style: dict[str, Numbers] = {"a": "all", "t": "nonblank"}
    numbers = style[_last(options, "-b --body-numbering", "t")]
    return [Shown(path, program, numbers=numbers, goes_on=at > 0) for at, path in enumerate(paths)]


def _ends(program: str, words: list[str]) -> list[Piece]:
    """Read head and tail."""
    words = _bare_number(words, "-n")
    options, paths = _options(words, "n:qv", "lines=", "quiet", "silent", "verbose")
    count = _last(options, "-n --lines", "10")
    if not re.fullmatch(r"-?[0-9]{1,9}" if program == "head" else r"[-+]?[0-9]{1,9}", count):  # no units
        raise ValueError(count)
    number = abs(int(count))
    ranges: tuple[tuple[int, int], ...]
    if program == "head" and count[0] == "-":
        ranges = ((1, -number - 1),)
    elif count[0] == "+":
        ranges = ((max(number, 1), -1),)
    elif number == 0:
        ranges = ()
    else:
        ranges = ((1, number),) if program == "head" else ((-number, -1),)
    headers = {"": len(paths) > 1, "v": True, "q": False}
    asked = "".join("q" if _given([option], "-q --quiet --silent") else "v" for option in options if not option[1])
    pieces: list[Piece] = []
    for path in paths:
        if headers[asked[-1:]]:
            pieces += [*([""] if pieces else []), f"==> {path} <=="]
        pieces.append(Shown(path, program, ranges))
    return pieces


_SED_PART = re.compile(r"(?:([0-9]{1,9}|\$)(?:,(\+?[0-9]{1,9}|\$))?)?p|([0-9]{1,9})q")


def _sed(program: str, words: list[str]) -> list[Piece]:
    options, paths = _options(words, "nEre:s", "quiet", "silent", "regexp-extended", "expression=")
    scripts = [value for key, value in options if key in {"-e", "--expression"}] or [paths.pop(0)]
    (path,) = paths
    printing = _given(options, "-n --quiet --silent")
    ranges: list[tuple[int, int]] = []
    quit_at: int | None = None
    for part in re.sub(r"[ \t]", "", ";".join(scripts).replace("\n", ";")).strip(";").split(";"):
        found = _SED_PART.fullmatch(part)
        if found is None or quit_at is not None:
            raise ValueError(part)
        if found[3]:
            quit_at = int(found[3])
        else:
            ranges.append(_sed_range(found[1], found[2]))
    if printing != bool(ranges) or quit_at == 0:
        raise ValueError(program)
    if quit_at is not None:
        ranges = [(first, _sooner(last, quit_at)) for first, last in ranges or _WHOLE if 0 < first <= quit_at]
    return [Shown(path, program, tuple(ranges))]


def _sed_range(first: str | None, last: str | None) -> tuple[int, int]:
    if first is None:
        return _WHOLE[0]
    start = -1 if first == "$" else int(first)
    if start == 0:
        raise ValueError(first)
    if last is None or first == "$":
        return (start, start)
    if last == "$":
        return (start, -1)
    return (start, start + int(last) if last[0] == "+" else max(start, int(last)))


def _sooner(last: int, quit_at: int) -> int:
    if last < 0:  # the end of the file or the line of the `q`, whichever comes first
        return quit_at
    return min(last, quit_at)


_GREP = ("nivwxPshHae:m:A:B:C:EFG", "line-number", "ignore-case", "invert-match", "word-regexp", "line-regexp", "text",
         "perl-regexp", "no-messages", "no-filename", "with-filename", "regexp=", "max-count=", "after-context=",
         "before-context=", "context=", "extended-regexp", "fixed-strings", "basic-regexp", "color=")  # fmt: skip
_RG = ("nivwxPsSHIae:m:A:B:C:F", "line-number", "ignore-case", "invert-match", "word-regexp", "text",
       "line-regexp", "pcre2", "case-sensitive", "smart-case", "with-filename", "no-filename", "regexp=", "max-count=",
       "after-context=", "before-context=", "context=", "fixed-strings", "no-heading", "color=")  # fmt: skip


def _grep(program: str, words: list[str]) -> list[Piece]:
    short, *long = _RG if program == "rg" else _GREP
    words = _bare_number(words, "-C")
    options, paths = _options(words, short, *long)
    if not _given(options, "-e --regexp"):
        paths = paths[1:]
    numbered = _given(options, "-n --line-number")
    named = _given(options, "-H --with-filename") or len(paths) > 1
    unnamed = _given(options, "-h -I --no-filename")
    context = _given(options, "-A -B -C --after-context --before-context --context")
    unclear = (
        not paths
        or (named and (unnamed or context or any(":" in path or "\n" in path for path in paths)))
        or (not numbered and (context or _given(options, "-m --max-count")))
        or _last(options, "--color", "never") not in {"never", "auto"}
    )
    if unclear:
        raise ValueError(program)
    numbers: Numbers = "all" if numbered else "none"
    return [Shown(path, "grep", numbers=numbers, prefix=f"{path}:" if named else "") for path in paths]


_PROGRAMS: dict[str, Callable[[str, list[str]], list[Piece]]] = {
    "cat": _cat, "less": _pager, "more": _pager, "nl": _nl, "head": _ends, "tail": _ends, "sed": _sed, "echo": _echo,
    "grep": _grep, "egrep": _grep, "fgrep": _grep, "rg": _grep,
}  # fmt: skip
