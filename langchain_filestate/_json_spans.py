"""Where the values of a JSON text stand, and how its author spells them.

To change one value and leave every other byte alone, one needs the value's span and the habits of the text around it.
`walk` gives the spans of the outer levels and leaves what lies deeper to the standard decoder, so the grammar is that
of `json.loads` (RFC 8259, plus `NaN` and `Infinity`, which Jupyter writes) and large outputs are passed over in C.
`Layout` is the white space between the elements of one container, `Spelling` the way characters are written inside
strings: both are learned from examples in the same text, never assumed where an example exists.

All positions here are characters of the decoded text; only `splices` turns them into bytes. Nesting is bounded by the
interpreter: what `json.loads` would answer with `RecursionError` is a `JsonError` here, and so is every other defect.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_filestate._match import Splice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")  # the white space of JSON; Python's \s is wider
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")
# An escape of something beyond ASCII that need not be one: half a surrogate pair always is.
_BEYOND_ASCII = re.compile(r"\\u(?:[dD][89abAB]..\\u[dD][c-fC-F]|(?!00[0-7]|[dD][89a-fA-F])[0-9a-fA-F]{4})")
_HEX = re.compile(r"\\u([0-9a-f]{4})")


class JsonError(ValueError):
    """The text is not JSON, or nested too deeply to be decoded; the message says which and where."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value and where it stands: `text[start:end]`.

    `children` are the elements of an array or the members of an object, as far as `walk` looked into it, else empty.
    A member has its key, and `key_start` and `key_end` around the key with its quotes; for anything else `key_start`
    is `start`, so `text[key_start:end]` is always the whole element.
    """

    start: int
    end: int
    value: Any
    children: tuple[Node, ...] = ()
    key: str = ""
    key_start: int = 0
    key_end: int = 0

    def member(self, key: str) -> Node | None:
        """The member with this key; the last one, as for `json.loads`, where there are several."""
        return next((child for child in reversed(self.children) if child.key == key), None)


def walk(text: str, start: int = 0, levels: int = 1) -> Node:
    """Decode the value at `start`.

    Args:
        text: A JSON text.
        start: Where the value begins, white space skipped.
        levels: How many levels of containers get `children`; 1 for this value's own elements alone.

    Raises:
        JsonError: There is no value here, or it is nested too deeply.
    """
    try:
        return _walk(text, start, levels)
    except json.JSONDecodeError as error:
        msg = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise JsonError(msg) from error
    except RecursionError as error:
        msg = "nested too deeply"
        raise JsonError(msg) from error
    except ValueError as error:  # an integer of thousands of digits, which Python refuses to convert
        raise JsonError(str(error)) from error


def only(text: str, levels: int) -> Node:
    """Decode a text that holds one value and nothing else; like `walk` besides.

    Raises:
        JsonError: It is not one JSON value.
    """
    node = walk(text, _skip(text, 0), levels)
    rest = _skip(text, node.end)
    if rest != len(text):
        line, column = text.count("\n", 0, rest) + 1, rest - text.rfind("\n", 0, rest)
        msg = f"Extra data at line {line}, column {column}"
        raise JsonError(msg)
    return node


def _walk(text: str, start: int, levels: int) -> Node:
    bracket = text[start : start + 1]
    if not levels or bracket not in ("{", "["):
        value, end = _DECODER.raw_decode(text, start)
        return Node(start, end, value, key_start=start)
    closing = "}" if bracket == "{" else "]"
    children: list[Node] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing or children:  # after a comma there must be an element
        child = _member(text, at, levels) if bracket == "{" else _walk(text, at, levels - 1)
        children.append(child)
        at = _skip(text, child.end)
        mark = text[at : at + 1]
        if mark == closing:
            break
        if mark != ",":
            msg = "Expecting ',' delimiter"
            raise json.JSONDecodeError(msg, text, at)
        at = _skip(text, at + 1)
    value = {child.key: child.value for child in children} if bracket == "{" else [child.value for child in children]
    return Node(start, at + 1, value, tuple(children), key_start=start)


def _member(text: str, at: int, levels: int) -> Node:
    if text[at : at + 1] != '"':
        msg = "Expecting property name enclosed in double quotes"
        raise json.JSONDecodeError(msg, text, at)
    key, key_end = _DECODER.raw_decode(text, at)
    colon = _skip(text, key_end)
    if text[colon : colon + 1] != ":":
        msg = "Expecting ':' delimiter"
        raise json.JSONDecodeError(msg, text, colon)
    node = _walk(text, _skip(text, colon + 1), levels - 1)
    return Node(node.start, node.end, node.value, node.children, key, at, key_end)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


@dataclass(frozen=True, slots=True)
class Layout:
    """The text around the elements of a container: after its opening bracket, between two, before the closing one."""

    opening: str
    between: str
    closing: str
    colon: str = ": "

    @classmethod
    def of(cls, text: str, node: Node, like: Layout | None = None) -> Layout:
        """The layout of a container that has elements.

        Args:
            text: The text that it stands in.
            node: The container.
            like: Another container's layout, for what this one does not show: the separator where there is a single
                element, and for an array what its text has after colons. None for what `json.dumps` does.
        """
        like = like or cls("", ", ", "")
        first, last = node.children[0], node.children[-1]
        opening = text[node.start + 1 : first.key_start]
        closing = text[last.end : node.end - 1]
        colon = text[first.key_end : first.start] if first.key_end else like.colon
        if first is not last:
            between = text[first.end : node.children[1].key_start]
        elif "\n" in opening:
            comma = like.between.removesuffix(like.opening) if "\n" in like.opening else ","
            between = comma + opening
        elif "\n" in like.opening:
            between = ", " if colon.endswith(" ") else ","
        else:
            between = like.between
        return cls(opening, between, closing, colon)

    def inner(self) -> Layout:
        """What a container one level deeper looks like where the whole text is indented in the same way."""
        unit = self.opening.removeprefix(self.closing) if self.opening.startswith(self.closing) else ""
        return Layout(self.opening + unit, self.between + unit, self.opening, self.colon)

    def array(self, items: Sequence[str]) -> str:
        """An array of elements that are JSON texts already."""
        return f"[{self.opening}{self.between.join(items)}{self.closing}]" if items else "[]"

    def object(self, members: Iterable[tuple[str, str]]) -> str:
        """An object of at least one member, the values being JSON texts already."""
        pairs = self.between.join(self.member(key, value) for key, value in members)
        return f"{{{self.opening}{pairs}{self.closing}}}"

    def member(self, key: str, value: str) -> str:
        """One member, its value being a JSON text already."""
        return f"{json.dumps(key)}{self.colon}{value}"


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a text writes characters in strings.

    `ascii_only` says that everything beyond ASCII is escaped, `upper` that escapes have capital hex digits. `known`
    holds escapes seen in the text that `json.dumps` would not make: Colab escapes `<`, .NET `'`, PHP `/`.
    """

    ascii_only: bool
    upper: bool
    known: dict[str, str]

    @classmethod
    def of(cls, text: str, tokens: Iterable[str]) -> Spelling:
        """Learn it from string tokens; where these leave open whether to escape, from the whole text."""
        raw = "".join(tokens)
        plain = _ESCAPE.sub("", raw)
        found = Counter(_ESCAPE.findall(raw))
        seen = {json.loads(f'"{escape}"'): escape for escape, _ in reversed(found.most_common())}
        if not plain.isascii():
            ascii_only = False
        elif any(map(_BEYOND_ASCII.match, found)):
            ascii_only = True
        else:  # without escaped backslashes, each backslash begins an escape
            ascii_only = text.isascii() and bool(_BEYOND_ASCII.search(text.replace("\\\\", "")))
        hexes = "".join(escape.replace("\\u", "") for escape in seen.values() if "\\u" in escape[:2])
        upper = hexes.isupper()
        # What is also found unescaped is no habit, unless it must be escaped and so can only belong to the layout.
        habits = {char: escape for char, escape in seen.items() if char not in plain or char in '"\\' or char < " "}
        learned = cls(ascii_only, upper, {})
        return cls(ascii_only, upper, {char: e for char, e in habits.items() if learned.string(char)[1:-1] != e})

    def string(self, value: str) -> str:
        """A string token for `value`, which holds no lone surrogates."""
        if not self.upper and self.known.keys().isdisjoint(value):
            return json.dumps(value, ensure_ascii=self.ascii_only)
        return f'"{"".join(self.known.get(char) or self._char(char) for char in value)}"'

    def _char(self, char: str) -> str:
        escaped = json.dumps(char, ensure_ascii=self.ascii_only)[1:-1]
        return _HEX.sub(lambda match: "\\u" + match[1].upper(), escaped) if self.upper else escaped


def cut(node: Node, gone: Sequence[bool]) -> list[tuple[int, int, str]]:
    """Changes that remove the elements marked in `gone`, each with the separator that goes with it."""
    children = node.children
    if all(gone):
        return [(node.start + 1, node.end - 1, "")] if children else []
    changes = []
    for index, child in enumerate(children):
        if not gone[index]:
            continue
        if index and not all(gone[:index]):
            changes.append((children[index - 1].end, child.end, ""))
        else:
            changes.append((child.key_start, children[index + 1].key_start, ""))
    return changes


def splices(text: str, changes: Iterable[tuple[int, int, str]], bom: int) -> tuple[Splice, ...]:
    """Turn changes `(start, end, new text)` into byte splices of a UTF-8 file; those that touch become one.

    Args:
        text: The file's text without its BOM.
        changes: Spans in characters; they do not overlap, and those at one position come in the order of their texts.
        bom: Length of the BOM in bytes, 0 if there is none.
    """
    merged: list[tuple[int, int, str]] = []
    for start, end, new in sorted(changes, key=lambda change: change[:2]):
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end, merged[-1][2] + new)
        else:
            merged.append((start, end, new))
    edges = byte_offsets(text, [edge for start, end, _ in merged for edge in (start, end)], bom)
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple(Splice(*pair, change[2].encode()) for pair, change in zip(pairs, merged, strict=True))


def byte_offsets(text: str, positions: Sequence[int], bom: int) -> list[int]:
    """Offsets in a UTF-8 file with a BOM of `bom` bytes, for ascending character positions of its text."""
    if text.isascii():
        return [bom + position for position in positions]
    offsets, before, offset = [], 0, bom
    for position in positions:
        offset += len(text[before:position].encode())
        before = position
        offsets.append(offset)
    return offsets
