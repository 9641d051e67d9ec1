"""What content that is no text looks like, for the refusal that names it: by signature, never by the file's name.

A notebook is text; only what its name says stands here, so that the modules for cells are loaded where there is one.

Signatures are those of the formats' own specifications, as `file` (magic(5)) lists them.
"""

from __future__ import annotations

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"\x00\x00\x01\x00", "an ICO image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (also .docx, .xlsx, .odt, .jar, .whl)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\x00", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.doc, .xls, .ppt)"),
    (b"OggS", "an Ogg sound or video"),
    (b"ID3", "an MP3 sound"),
    (b"fLaC", "a FLAC sound"),
    (b"\x80\x05\x95", "a Python pickle"),
    (b"\x80\x04\x95", "a Python pickle"),
)


def is_notebook(path: str) -> bool:
    """True if the name says that the file is a Jupyter notebook."""
    return path.lower().endswith(".ipynb")


def describe(reason: str, head: bytes, size: int) -> str:
    """Say why content is no text, what it looks like and what to do.

    Args:
        reason: Why, as half a sentence.
        head: The first few hundred bytes.
        size: Bytes in all.
    """
    wide = _wide(head) if b"\0" in head and head[:2] not in {b"\xff\xfe", b"\xfe\xff"} else None
    if wide:
        name, codec = wide
        return (
            f"Not a text file that can be read: it looks like {name} without a byte order mark ({size} bytes). Convert "
            f"it first, for example with `iconv -f {codec} -t UTF-8`."
        )
    kind = next((name for signature, name in _SIGNATURES if head.startswith(signature)), "")
    if head[:4] == b"RIFF":
        kind = {b"WEBP": "a WebP image", b"WAVE": "a WAV sound"}.get(head[8:12], "a RIFF container")
    elif head[4:8] == b"ftyp":
        kind = "an MP4 or HEIF container"
    if kind:
        advice = f"It looks like {kind}: it cannot be shown or edited as text; use a program made for its type."
    else:
        advice = "If it is text in another encoding, convert it to UTF-8 first, for example with iconv."
    return f"Not a text file: {reason} ({size} bytes). {advice}"


def _wide(head: bytes) -> tuple[str, str] | None:
    """Name UTF-16 that has no byte order mark: every other byte of mostly Latin text is NUL."""
    half = len(head) // 2
    if half < 2:  # noqa: PLR2004
        return None
    even, odd = head[0 : 2 * half : 2].count(0), head[1 : 2 * half : 2].count(0)
    if odd * 10 > half * 7 and even * 10 < half:
        return "UTF-16 (little-endian)", "UTF-16LE"
    if even * 10 > half * 7 and odd * 10 < half:
        return "UTF-16 (big-endian)", "UTF-16BE"
    return None
