"""Bytes and what the model sees of them: encoding, byte order mark, line ends, numbered windows.

The one door to three modules: `_codec` (a `Format`, text and lines of bytes), `_detect` (what the bytes of a file are,
in one pass) and `_window` (lines of it for the model). No I/O: bytes come in, or a function that reads some.
"""

from __future__ import annotations

from langchain_filestate._codec import (
    DEFAULT_ENCODINGS,
    UTF8,
    Format,
    Newline,
    check_encodings,
    count_newlines,
    decode,
    encode,
    last_newline,
    line_at,
    newline_style,
    next_newline,
    reencode,
    show,
    split_lines,
)
from langchain_filestate._detect import BLOCK, Profile, Scan, detect, judged, profile
from langchain_filestate._window import Window, window

__all__ = [
    "BLOCK",
    "DEFAULT_ENCODINGS",
    "UTF8",
    "Format",
    "Newline",
    "Profile",
    "Scan",
    "Window",
    "check_encodings",
    "count_newlines",
    "decode",
    "detect",
    "encode",
    "judged",
    "last_newline",
    "line_at",
    "newline_style",
    "next_newline",
    "profile",
    "reencode",
    "show",
    "split_lines",
    "window",
]
