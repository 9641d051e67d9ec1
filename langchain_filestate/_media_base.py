"""What a binary file is, by its bytes, and the ground that the decoders of pictures and PDFs stand on: no I/O.

The idea: the content decides, never the name. `kind_of` knows the five kinds that models can be shown, by their
signatures, strictly enough that a text which merely begins with such a word stays a text; `describe` names a few dozen
more for the note that says why a file cannot be shown. `decoding` is the one place where the decoders' habits are
contained: they warn, log, follow switches that are global to the process, and take memory.

Limits: a signature says what a file claims to be, not that it is whole. Archives are told apart by the names of the
entries near their ends. Sources: the formats' specifications (PNG 5.2, GIF89a 17 and 18, JFIF, RIFF, ISO 32000 7.5.2)
and the magic numbers of file(1).
"""

from __future__ import annotations

import contextlib
import logging
import re
import struct
import threading
import warnings
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["png", "jpeg", "gif", "webp", "pdf"]

NAMES: dict[Kind, str] = {
    "png": "PNG image",
    "jpeg": "JPEG image",
    "gif": "GIF image",
    "webp": "WebP image",
    "pdf": "PDF document",
}


@dataclass(frozen=True, slots=True)
class Media:
    """What a model is given of one picture or document.

    Attributes:
        blocks: LangChain's standard content blocks, of type "image" or "file" with `base64` and `mime_type`; without
            ids, so that the same file gives the same blocks. Empty for a PDF that is given as text.
        notes: What is not in it, or not as in the file: scaled down, first frame only, where to go on.
        text: One line about a picture or a file block; the text of a PDF's pages.
        pages: Of a PDF the first and the last page that are shown, and how many there are; None for a picture.
    """

    blocks: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    text: str | None = None
    pages: tuple[int, int, int] | None = None


def kind_of(data: bytes) -> Kind | None:
    """Say which kind of media this is, by signature.

    Args:
        data: The file, or its first 32 bytes.

    Returns:
        None for everything else, texts and other binaries alike.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    # A GIF's size, flags and pixel ratio follow, and some of their bytes are no characters.
    if data[:6] in {b"GIF87a", b"GIF89a"} and re.search(rb"[\x00-\x08\x0e-\x1f]", data[6:13]):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if re.match(rb"\s*%PDF-[0-9]\.[0-9]", data[:32]):
        return "pdf"
    return None


# Offset, bytes, name. The first that fits is taken.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"MZ", "Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"\xce\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"!<arch>\n", "ar archive or static library"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (0, b"\x04\x22\x4d\x18", "LZ4 data"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft Office document (old format)"),
    (0, b"PAR1", "Parquet file"),
    (0, b"ARROW1", "Arrow file"),
    (0, b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    (0, b"\x93NUMPY", "NumPy array"),
    (0, b"GGUF", "GGUF model"),
    (0, b"DIRC", "git index"),
    (0, b"PACK", "git pack"),
    (0, b"BM", "BMP image"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (0, b"\0\0\x01\0", "icon"),
    (0, b"8BPS", "Photoshop image"),
    (0, b"\xff\x0a", "JPEG XL image"),
    (0, b"ID3", "MP3 audio"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"OggS", "Ogg audio or video"),
    (8, b"WAVE", "WAV audio"),
    (8, b"AVI ", "AVI video"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
    (4, b"ftypheic", "HEIC image"),
    (4, b"ftypavif", "AVIF image"),
    (4, b"ftyp", "MP4 or QuickTime video"),
    (0, b"\0\x01\0\0\0", "TrueType font"),
    (0, b"OTTO", "OpenType font"),
    (0, b"wOFF", "web font"),
    (0, b"wOF2", "web font"),
    (0, b"PK\x05\x06", "ZIP archive without entries"),
)
_IN_ZIP: tuple[tuple[bytes, str], ...] = (
    (b"word/document.xml", "Word document (docx)"),
    (b"xl/workbook", "Excel workbook (xlsx)"),
    (b"ppt/presentation.xml", "PowerPoint presentation (pptx)"),
    (b"opendocument.text", "OpenDocument text (odt)"),
    (b"opendocument.spreadsheet", "OpenDocument spreadsheet (ods)"),
    (b"opendocument.presentation", "OpenDocument presentation (odp)"),
    (b"application/epub+zip", "EPUB book"),
    (b".dist-info/", "Python wheel"),
    (b"AndroidManifest.xml", "Android package"),
    (b"META-INF/MANIFEST.MF", "Java archive"),
)
_ZIP_NAMES = 65_536  # bytes at each end in which the names of a zip's entries are looked for


def describe(data: bytes, size: int | None = None) -> str:
    """Name a binary file for a note: its type, if known, and its size.

    Args:
        data: The file, or its beginning (with 300 bytes most types are known).
        size: Its size in bytes, if `data` is not all of it.

    Returns:
        Such as "ZIP archive, 12,345 bytes".
    """
    return f"{_type_name(data)}, {len(data) if size is None else size:,} bytes"


def _type_name(data: bytes) -> str:
    kind = kind_of(data)
    if kind:
        return NAMES[kind]
    if data.startswith(b"PK\x03\x04"):
        ends = data[:_ZIP_NAMES] + data[-_ZIP_NAMES:]
        return next((name for mark, name in _IN_ZIP if mark in ends), "ZIP archive")
    for offset, mark, name in _SIGNATURES:
        if data.startswith(mark, offset):
            return name
    return "binary file" if data else "empty file"


def refuse(data: bytes, why: str, cause: BaseException | None = None) -> NoReturn:
    """Refuse to show a file, with its type and size in the text."""
    raise Refused(f"Cannot show this file ({describe(data)}): {why}.", code="binary") from cause


# What decoders raise over broken files, besides errors of their own. pypdf says so itself ("broken PDF files might
# cause other exceptions"), and Pillow's plugins read their headers with plain indexing and struct.
BROKEN = (
    OSError, EOFError, SyntaxError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError,
    MemoryError, RuntimeError, struct.error, zlib.error,
)  # fmt: skip

_ONE_AT_A_TIME = threading.Lock()


class _Heard(logging.Handler):
    """Keeps what pypdf would log."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextlib.contextmanager
def decoding() -> Iterator[list[str]]:
    """Keep a decoder's warnings and logs to itself, one file at a time in this process.

    One at a time bounds the memory, and the switches for warnings and for pypdf's logger are global to the process: so
    they are put back as they were. While it lasts they also hold for other threads.

    Yields:
        What pypdf has to say about the file, growing while it reads: flaws that it has passed over.
    """
    heard = _Heard()
    logger = logging.getLogger("pypdf")
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        level, propagate, handlers = logger.level, logger.propagate, logger.handlers
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.handlers = [heard]
        try:
            yield heard.said
        finally:
            logger.setLevel(level)
            logger.propagate = propagate
            logger.handlers = handlers


def page_span(offset: int, limit: int | None) -> tuple[int, int]:
    """Say which pages an offset and a limit in the manner of `read_file` mean.

    Args:
        offset: First page, from 1; 0 is taken as 1, negative counts from the end.
        limit: Number of pages; None for all that follow.

    Returns:
        First and last page for `blocks`; -1 is the last page of the document.
    """
    if limit is None:
        return offset, -1
    last = max(offset, 1) + limit - 1 if offset >= 0 else min(offset + limit - 1, -1)
    return offset, last
