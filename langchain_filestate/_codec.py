"""Bytes of a file as text and back, and its lines.

A `Format` says how the bytes of one file are to be read. Whatever the bytes, `reencode(decode(data)) == data`: those
that are no UTF-8 travel as lone surrogates U+DC80..U+DCFF (PEP 383), and unpaired surrogates of a UTF-16 or UTF-32 file
as themselves. They never reach the model as such: `show` writes them as escapes, and `encode`, which is for text that
the model gave, refuses them.

A line ends with LF or CRLF and with nothing else: a bare CR, a form feed, NEL, U+2028 are characters like others
(`str.splitlines` would cut at ten of them, `grep -n` and compilers at one). In UTF-16 and UTF-32 an LF is an aligned
code unit. Data given here may begin with the byte order mark, since its length is a multiple of the unit; slices must
begin at a multiple of it.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Literal

from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_ENCODINGS = ("gb18030", "cp932", "euc_jp", "cp949", "big5", "cp1252")
"""Legacy encodings that are looked for where a file is not UTF-8, as Python names them."""

Newline = Literal["lf", "crlf", "mixed", "none"]

_UNITS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_LONE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Format:
    """How the bytes of one file are read as text.

    Args:
        encoding: Python's codec name, as results show it: "utf-8", "utf-16-le", "gb18030", ...; never one that writes a
            byte order mark of its own.
        bom: The byte order mark that the file begins with, `b""` if none.
        lossless: Whether all bytes are text. False: some are shown as escapes.
    """

    encoding: str
    bom: bytes
    lossless: bool
    # What follows from the encoding is asked for many times for each change of a file, and so found out once.
    unit: int = field(init=False, repr=False, compare=False)
    """Bytes of the code unit that ends a line."""
    newline: bytes = field(init=False, repr=False, compare=False)
    """LF in this encoding."""
    errors: str = field(init=False, repr=False, compare=False)
    """The codec error handler under which any bytes of this file survive decoding and encoding."""

    def __post_init__(self) -> None:
        unit = _UNITS.get(self.encoding, 1)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "newline", "\n".encode(self.encoding))
        object.__setattr__(self, "errors", "surrogateescape" if unit == 1 else "surrogatepass")

    @property
    def raw(self) -> bool:
        """Whether text can be searched in the raw bytes: a match is one of whole characters."""
        return self.encoding == "utf-8" or single_byte(self.encoding)


UTF8 = Format("utf-8", b"", True)

BOMS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@lru_cache
def single_byte(encoding: str) -> bool:
    """Whether each byte is one character in this encoding."""
    return encoding not in _UNITS and len(bytes(range(128, 256)).decode(encoding, "replace")) == 128  # noqa: PLR2004


@lru_cache
def check_encodings(encodings: tuple[str, ...]) -> tuple[str, ...]:
    """Check a list of legacy encodings to look for.

    Args:
        encodings: Python codec names. Each must leave ASCII as it is, and have no multi-byte character that ends in a
            CR or LF byte: both are needed to find lines and evidence in raw bytes.

    Returns:
        The same tuple.

    Raises:
        WiringError: A name is unknown or an encoding will not do.
    """
    for name in encodings:
        if not _extends_ascii(name):
            message = (
                f"encodings: {name!r} is no Python codec of an encoding that extends ASCII. Use names like those in "
                f"{DEFAULT_ENCODINGS}; UTF-8, and UTF-16 and UTF-32 with a byte order mark, are always recognised."
            )
            raise WiringError(message)
    return encodings


def _extends_ascii(name: str) -> bool:
    plain = bytes(range(128)) + b'\x1b$B$"\x1b(B ~{<:~} \\u0041'  # with the shifts of ISO 2022 and HZ, and an escape
    try:
        if plain.decode("ascii").encode(name) != plain or plain.decode(name) != plain.decode("ascii"):
            return False
    except (LookupError, UnicodeError):
        return False
    for lead in range(128, 256):
        for end in b"\r\n":
            try:
                if len(bytes([lead, end]).decode(name)) == 1:
                    return False
            except UnicodeError:
                continue
    return True


def decode(data: bytes, fmt: Format) -> str:
    """Decode bytes of a file, without its byte order mark; never raises.

    `reencode` gives the same bytes back, provided that `data` holds whole code units (and, in a legacy encoding,
    whole characters); a broken unit of UTF-16 or UTF-32 becomes U+FFFD.
    """
    try:
        return data.decode(fmt.encoding, fmt.errors)
    except UnicodeDecodeError:
        return data.decode(fmt.encoding, "replace")


def decode_some(data: bytes, fmt: Format, *, final: bool) -> tuple[str, int]:
    """Decode whole characters; returns the text and how many bytes it is made of."""
    if not final and not data.isascii():
        decoder = codecs.getincrementaldecoder(fmt.encoding)(fmt.errors)
        text = decoder.decode(data)
        return text, len(data) - len(decoder.getstate()[0])
    return decode(data, fmt), len(data)


def reencode(text: str, fmt: Format) -> bytes:
    """Give back the bytes that `decode` made `text` from."""
    return text.encode(fmt.encoding, fmt.errors)


def encode(text: str, fmt: Format) -> bytes:
    r"""Encode text that the model gave, without a byte order mark; line endings stay as they are.

    Raises:
        Refused: `encoding`: a character that the file's encoding cannot hold, a lone surrogate (half of a character
            beyond U+FFFF, as a broken `\ud83d` in JSON makes it), or a NUL, which would make the file binary.
    """
    if "\0" in text:
        raise Refused("The text holds a NUL character, which no text file can have. Leave it out.", code="encoding")
    try:
        data = text.encode(fmt.encoding)
    except UnicodeEncodeError as error:
        at = error.start
    else:
        if fmt.encoding == "utf-8" or fmt.unit > 1:
            return data
        back = data.decode(fmt.encoding, "replace")
        if back == text:
            return data
        # Some codecs write two characters as one byte: euc_jp has U+00A5 and the backslash as 5C.
        at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), 0)
    char = text[at]
    where = f"character {at + 1} of the text (line {text.count(chr(10), 0, at) + 1} of it)"
    if _LONE.match(char):
        message = (
            f"The text holds a lone surrogate U+{ord(char):04X}, half of a character, at {where}. Write the whole "
            f"character instead."
        )
    else:
        message = (
            f"The file is encoded in {fmt.encoding}, which cannot hold {char} (U+{ord(char):04X}), {where}. Write it "
            f"another way, or convert the file to UTF-8 first."
        )
    raise Refused(message, code="encoding")


def show(text: str, fmt: Format = UTF8) -> str:
    r"""Write decoded text for the model: bytes that are no text as `\xff`, lone surrogates as `\ud800`."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF and fmt.unit == 1 else f"\\u{code:04x}"  # noqa: PLR2004

    return text if text.isascii() else _LONE.sub(escape, text)


def split_lines(data: bytes, fmt: Format) -> list[bytes]:
    """Split into lines, each with its line end; joined again they are `data`. No line after a final newline."""
    if fmt.unit == 1:
        return BytesIO(data).readlines()  # `splitlines` would cut at a bare CR too
    ends = list(_wide_ends(data, fmt, 0, len(data)))
    if not ends or ends[-1] < len(data):
        ends.append(len(data))
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False) if a < b]


def count_newlines(data: bytes, fmt: Format, start: int = 0, end: int | None = None) -> int:
    """Count the line ends whose last byte is in `data[start:end]`; a CRLF counts once."""
    if fmt.unit == 1:
        return data.count(b"\n", start, end)
    return sum(1 for _ in _wide_ends(data, fmt, start, len(data) if end is None else end))


def nth_newline(data: bytes, fmt: Format, count: int) -> int:
    """Find the offset after the `count`-th line end of `data`, from 1, in linear time.

    Raises:
        ValueError: There are fewer.
    """
    low, high = 0, len(data)
    while high - low > 4096:  # noqa: PLR2004  halving keeps memory flat where `split` would make a list
        middle = (low + high) // 2 // 4 * 4
        before = count_newlines(data, fmt, low, middle)
        if before >= count:
            high = middle
        else:
            low, count = middle, count - before
    if fmt.unit == 1:
        for _ in range(count):
            low = data.index(b"\n", low) + 1
        return low
    ends = list(islice(_wide_ends(data, fmt, low, len(data)), count))
    if len(ends) < count:
        raise ValueError("fewer line ends")
    return ends[-1]


def last_newline(data: bytes, fmt: Format, end: int | None = None) -> int:
    """Find the offset after the last line end of `data[:end]`, 0 if there is none."""
    if fmt.unit == 1:
        return data.rfind(b"\n", 0, end) + 1
    at = len(data) if end is None else end
    while (at := data.rfind(fmt.newline, 0, at)) >= 0:
        if at % fmt.unit == 0:
            return at + fmt.unit
        at += fmt.unit - 1  # half of one character and half of the next
    return 0


def next_newline(data: bytes, fmt: Format, start: int) -> int:
    """Find the offset after the first line end of `data[start:]`, the end of `data` if there is none."""
    if fmt.unit == 1:
        return data.find(b"\n", start) + 1 or len(data)
    return next(_wide_ends(data, fmt, start + fmt.unit - 1, len(data)), len(data))


def line_at(data: bytes, fmt: Format, offset: int) -> int:
    """Say which line, from 1, holds the byte at `offset`; a line end belongs to the line that it ends."""
    return 1 + count_newlines(data, fmt, 0, offset)


def newline_style(data: bytes, fmt: Format) -> Newline:
    """Say how the lines end; "none" if there is no line end."""
    if fmt.unit == 1:
        return style(data.count(b"\n"), data.count(b"\r\n"))
    text = decode(data, fmt)
    return style(text.count("\n"), text.count("\r\n"))


def style(newlines: int, crlf: int) -> Newline:
    """Name the style of `newlines` line ends of which `crlf` are CRLF."""
    if not newlines:
        return "none"
    return "lf" if not crlf else "crlf" if crlf == newlines else "mixed"


def _wide_ends(data: bytes, fmt: Format, start: int, end: int) -> Iterator[int]:
    """Offsets after each LF code unit that ends in `data[start:end]` and is aligned."""
    newline, unit = fmt.newline, fmt.unit
    at = data.find(newline, max(0, start - unit + 1), end)
    while at >= 0:
        if at % unit == 0:
            yield at + unit
            at = data.find(newline, at + unit, end)
        else:
            at = data.find(newline, at + 1, end)
