"""What the bytes of a file are: one pass in pieces, in bounded memory, that gives a `Profile` or the reason why not.

The rule, in this order:

1. A byte order mark decides. UTF-16 and UTF-32 with one must be whole code units without NUL characters; unpaired
   surrogates are kept and shown as escapes.
2. Any NUL byte otherwise is binary.
3. Valid UTF-8 is UTF-8.
4. One of the legacy encodings, with enough evidence: more than `STRAY` bytes that are not UTF-8, and more than half as
   many as there are continuation bytes in what is; all non-ASCII passages of the whole file decode in it and encode
   back to the same bytes; and a sample of them reads like the languages that are written in it (`_scripts`). Among
   several alphabets charset-normalizer chooses.
5. More than a tenth of the bytes undecodable as UTF-8 is binary.
6. Else UTF-8 with bytes that are no text: one stray byte must not turn a file into Urdu.

Content is taken in blocks of `BLOCK` bytes counted from its start, however it is fed, so `detect`, `profile` and
`Scan` say the same of the same bytes. Limits: the sample is at most `SAMPLE` bytes; once a file has shown `SETTLED`
continuation bytes of valid UTF-8, eight times what is invalid, it is UTF-8 whatever follows.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_filestate import _judged
from langchain_filestate._codec import (
    BOMS,
    DEFAULT_ENCODINGS,
    UTF8,
    Format,
    Newline,
    check_encodings,
    decode_some,
    style,
)
from langchain_filestate._kind import describe
from langchain_filestate._scripts import ALPHABET, rank, reads_well
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLOCK = 1 << 20
STRAY = 10
SETTLED = 4096
PIECE = 1 << 16  # the text of a larger one falls out of the processor's cache
SAMPLE = 1 << 15
PASSAGE = 2000
LOWEST_SECOND = 0x30  # no second byte of a character is below
AROUND = 60

_HIGH = re.compile(rb"[\x80-\xff]+")
# Two ASCII bytes after a run of others: the second byte of a character may be ASCII, and after one more every codec is
# at rest, so that such runs can be joined.
_RUNS = re.compile(rb"[\x80-\xff]+[\x00-\x7f]{0,2}")
_UNPAIRED = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Profile:
    """What one pass over a file found out.

    Args:
        digest: SHA-256 of the raw bytes, in hex.
        size: Bytes, with the byte order mark.
        lines: Lines; a last one without newline counts.
        newline: How lines end.
        final_newline: Whether the last line ends with a newline; False for an empty file.
        format: How the bytes are read as text.
        marks: Line ends before each block of `BLOCK` bytes, to find a line without reading what is before it.
    """

    digest: str
    size: int
    lines: int
    newline: Newline
    final_newline: bool
    format: Format
    marks: tuple[int, ...]


class Scan:
    """One pass over a file: feed it in pieces of any size, then finish.

    Memory is a few blocks whatever the size of the file; time for ASCII is little more than that of its SHA-256.

    Args:
        encodings: Legacy encodings to look for where it is not UTF-8; see `check_encodings`.
    """

    def __init__(self, encodings: Sequence[str] = DEFAULT_ENCODINGS) -> None:
        self._encodings = check_encodings(tuple(encodings))
        self._judge = _Judge(self._encodings)
        self._hash = hashlib.sha256()
        self._rest = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the file."""
        self._hash.update(piece)
        if len(piece) == BLOCK and not self._rest:
            self._judge.block(piece)
            return
        self._rest += piece
        while len(self._rest) >= BLOCK:
            self._judge.block(bytes(memoryview(self._rest)[:BLOCK]))
            del self._rest[:BLOCK]

    def finish(self) -> Profile:
        """Give the result.

        Raises:
            Refused: `binary`: the content is no text; the message says why, what it looks like and what to do.
        """
        return _noted(self._judge.finish(bytes(self._rest), self._hash.hexdigest()), self._encodings)


def profile(data: bytes, encodings: Sequence[str] = DEFAULT_ENCODINGS) -> Profile:
    """`Scan` of content that is in memory."""
    checked = check_encodings(tuple(encodings))
    judge = _Judge(checked)
    return _noted(judge.finish(judge.blocks(data), hashlib.sha256(data).hexdigest()), checked)


def detect(data: bytes, encodings: Sequence[str] = DEFAULT_ENCODINGS) -> Format:
    """Say how content is read as text.

    Raises:
        Refused: `binary`, as `Scan.finish`.
    """
    return judged(data, encodings)[0]


def judged(data: bytes, encodings: Sequence[str] = DEFAULT_ENCODINGS, digest: str = "") -> _judged.Judgement:
    """As `detect`, with the marks if line ends were counted; content whose digest is known is gone through once."""
    if len(data) <= BLOCK and data.isascii() and b"\0" not in data:
        return UTF8, ()
    checked = check_encodings(tuple(encodings))
    known = _judged.known(digest, checked)
    if known is None:
        judge = _Judge(checked)
        found = _noted(judge.finish(judge.blocks(data), digest), checked)
        known = found.format, found.marks
    return known


def _noted(found: Profile, encodings: tuple[str, ...]) -> Profile:
    """Remember what a large file is."""
    if found.size > BLOCK and found.digest:
        _judged.note(found.digest, encodings, (found.format, found.marks))
    return found


class _Judge:
    """The evidence so far, block by block."""

    def __init__(self, encodings: tuple[str, ...]) -> None:
        self._encodings = encodings
        self._head = b""
        self._tail = b""
        self._size = 0
        self._marks: list[int] = []
        self._newlines = 0
        self._crlf = 0
        self._bom = b""
        self._encoding = "utf-8"
        self._reason = ""
        self._pending = b""  # the beginning of a character at the end of the block before
        self._bad = 0
        self._good = 0
        self._settled = False
        self._early: list[bytes] = []
        self._candidates: list[_Candidate] | None = None
        self._sample: list[bytes] = []
        self._room = SAMPLE
        self._last = ""

    def blocks(self, data: bytes) -> bytes:
        """Take all whole blocks of `data`; returns what is left."""
        if len(data) < BLOCK:
            return data
        at = 0
        while at + BLOCK <= len(data):
            self.block(data[at : at + BLOCK])
            at += BLOCK
        return data[at:]

    def block(self, data: bytes, *, final: bool = False) -> None:
        """Take the next `BLOCK` bytes, or what is left at the end."""
        first = not self._size
        if first:
            self._head = data[:512]
            for bom, encoding in BOMS:
                if data.startswith(bom):
                    self._bom, self._encoding = bom, encoding
                    break
        self._size += len(data)
        self._marks.append(self._newlines)
        self._take(data, first=first, final=final)
        self._tail = data[-4:]

    def _take(self, data: bytes, *, first: bool, final: bool) -> None:
        if self._reason:
            return
        if self._encoding in _WIDE:
            self._wide(data[len(self._bom) :] if first else data, final=final)
        else:
            self._narrow(data, first=first, final=final)

    def _wide(self, data: bytes, *, final: bool) -> None:
        data, name = self._pending + data, self._encoding.upper()
        if final and len(data) % (2 if "16" in name else 4):
            self._reason = f"it begins with a byte order mark of {name} but ends inside a character"
            return
        decoder = _WIDE[self._encoding]
        try:
            text, used = decoder(data, "strict", final)
        except UnicodeDecodeError:
            try:
                text, used = decoder(data, "surrogatepass", final)
            except UnicodeDecodeError:
                self._reason = f"it begins with a byte order mark of {name} but is not that"
                return
            self._bad += 2 * len(_UNPAIRED.findall(text))
        self._pending = data[used:]
        if "\0" in text:
            self._reason = f"it is {name} with NUL characters"
            return
        self._newlines += text.count("\n")
        self._crlf += text.count("\r\n") + (text.startswith("\n") and self._last == "\r")
        self._last = text[-1:]

    def _narrow(self, data: bytes, *, first: bool, final: bool) -> None:
        if b"\0" in data:
            self._reason = "it holds NUL bytes"
            return
        mixed = 0 < self._crlf < self._newlines
        self._newlines += data.count(b"\n")
        if not mixed and b"\r" in data:  # counting pairs takes longer than all else
            self._crlf += data.count(b"\r\n")
        if self._tail.endswith(b"\r") and data.startswith(b"\n"):
            self._crlf += 1
        if data.isascii() and not self._pending:
            if self._candidates:
                self._prove(data[:2])
            elif self._early:
                self._early.append(data[:2])
            return
        for at in range(0, len(data) or 1, PIECE):
            piece = data[at : at + PIECE]
            if self._pending or not piece.isascii():
                self._utf8(piece, final=final and at + PIECE >= len(data))
        if self._settled or self._bom:
            return
        if self._good > SETTLED and self._good > 8 * self._bad:
            self._settled, self._candidates, self._early = True, None, []
        elif self._candidates != []:
            self._evidence(data, first=first)

    def _utf8(self, piece: bytes, *, final: bool) -> None:
        """Count bytes that are not UTF-8, and continuation bytes of characters that are."""
        raw = self._pending + piece
        try:
            text, used = codecs.utf_8_decode(raw, "strict", final)
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(raw, "surrogateescape", final)
            self._bad += (len(text.encode("utf-8", "surrogatepass")) - used) // 2  # an escape has three bytes for one
        self._good += used - len(text)
        self._pending = raw[used:]

    def _evidence(self, data: bytes, *, first: bool) -> None:
        """Keep what is needed to judge legacy encodings: proof that each still fits, and a sample of natural text."""
        if self._candidates is not None:
            self._prove(_runs(data) if len(self._candidates) > 1 else data)
        elif self._bad:
            self._candidates = [_Candidate(name) for name in self._encodings]
            self._prove(b"".join([*self._early, _runs(data)]))
            self._early = []
        else:
            self._early.append(_runs(data))
        for passage in _passages(data, first=first) if self._room > 0 else ():
            self._sample.append(passage)
            self._room -= len(passage)
            if self._room <= 0:
                break
        if self._room <= 0 and self._candidates and len(self._candidates) > 1:
            best = _best([c.name for c in self._candidates], self._sample)  # the others need no more proof
            self._candidates = [c for c in self._candidates if c.name == best]

    def _prove(self, data: bytes) -> None:
        self._candidates = [c for c in self._candidates or () if c.fits(data)]

    def finish(self, rest: bytes, digest: str) -> Profile:
        """Take what is left and judge."""
        if rest or not self._size:
            self.block(rest, final=True)
        else:
            self._take(b"", first=False, final=True)
        fmt = self._format()
        newline = "\n".encode(fmt.encoding)
        final_newline = self._size > len(self._bom) and self._tail.endswith(newline)
        return Profile(
            digest=digest,
            size=self._size,
            lines=self._newlines + (self._size > len(self._bom) and not final_newline),
            newline=style(self._newlines, self._crlf),
            final_newline=final_newline,
            format=fmt,
            marks=tuple(self._marks),
        )

    def _format(self) -> Format:
        reason = self._reason
        if not reason and self._bad > STRAY and 2 * self._bad > self._good and self._candidates:
            fitting = [c.name for c in self._candidates if c.fits(b"", final=True)]
            best = _best(fitting, self._sample)
            if best:
                return Format(best, b"", lossless=True)
        if not reason and self._bad * 10 > self._size:
            reason = f"{self._bad} of its bytes are no {self._encoding.upper()}, and no other encoding fits"
        if reason:
            raise Refused(describe(reason, self._head, self._size), code="binary")
        return Format(self._encoding, self._bom, lossless=not self._bad) if self._bom or self._bad else UTF8


_WIDE = {
    "utf-16-le": codecs.utf_16_le_decode,
    "utf-16-be": codecs.utf_16_be_decode,
    "utf-32-le": codecs.utf_32_le_decode,
    "utf-32-be": codecs.utf_32_be_decode,
}


class _Candidate:
    """A legacy encoding that the file may have, as long as all passages decode in it and encode back the same."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._decoder = codecs.getincrementaldecoder(name)("strict")
        self._pending = b""

    def fits(self, data: bytes, *, final: bool = False) -> bool:
        raw = self._pending + data
        try:
            text = self._decoder.decode(data, final)
            self._pending = self._decoder.getstate()[0]
            return text.encode(self.name) == raw[: len(raw) - len(self._pending)]
        except UnicodeError:
            return False


def _runs(data: bytes) -> bytes:
    """What is not ASCII, and ASCII that may belong to it: all that can fail to decode, also as a piece of a file."""
    before = next((i for i in range(2) if not data[i : i + 1].isascii()), 2)
    return data[:before] + b"".join(_RUNS.findall(data))


def _passages(data: bytes, *, first: bool) -> Iterator[bytes]:
    """Passages of a block that are not ASCII, with some of what is around; each begins with a whole character."""
    start, end = -1, 0
    for match in _HIGH.finditer(data):
        at, gap = match.start(), match.start() - end
        if not at and not first:
            end = match.end()
            continue  # it may begin inside a character
        if start >= 0 and (gap > 2 * AROUND or (end - start > PASSAGE and (gap > 1 or data[end] < LOWEST_SECOND))):
            yield data[start : min(end + AROUND, at, start + 2 * PASSAGE)]
            start = -1
        if start < 0:
            start = max(end + min(gap, 2) if end else 0, at - AROUND)
        end = match.end()
    if start >= 0:
        yield data[start : min(end + AROUND, start + 2 * PASSAGE)]


def _best(names: list[str], passages: list[bytes]) -> str | None:
    """Choose among encodings that all of the file fits."""
    alphabets = []
    for name in sorted(names, key=rank):
        fmt = Format(name, b"", lossless=True)
        if reads_well(name, "\n".join(decode_some(passage, fmt, final=False)[0] for passage in passages)):
            if rank(name) < ALPHABET:
                return name
            alphabets.append(name)
    if len(alphabets) < 2:  # noqa: PLR2004
        return alphabets[0] if alphabets else None
    from charset_normalizer import from_bytes  # noqa: PLC0415  takes long to import, and few files need it

    best = from_bytes(b"\n".join(passages), cp_isolation=alphabets, preemptive_behaviour=False).best()
    return next((name for name in alphabets if best and same_codec(name, best.encoding)), None)


def same_codec(one: str, other: str) -> bool:
    """Say whether two names mean one codec: cp1252 is windows-1252."""
    return codecs.lookup(one).name == codecs.lookup(other).name
