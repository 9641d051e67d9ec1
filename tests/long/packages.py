"""The history of real sources, replayed through the tools: two versions of some packages, each hunk as an edit.

The old version is put down, read, and brought to the new one by `edit_file`, hunk by hunk; then every file must be the
new one byte for byte, whatever its line endings.

    python -m tests.long packages [name==old..new ...]

Packages are fetched with pip as wheels; without names, a list that holds LF, CRLF and mixed files.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from langchain_filestate import FileToolkit, Refused
from langchain_filestate import _text as text
from tests.scripted import edit, read

PACKAGES = [
    "unidiff==0.7.3..0.7.5",
    "pyreadline3==3.4.1..3.5.4",
    "xlrd==1.2.0..2.0.1",
    "docutils==0.20.1..0.21.2",
    "pygments==2.17.2..2.19.1",
    "pyserial==3.4..3.5",
    "structlog==23.1.0..24.1.0",
    "xlsxwriter==3.1.9..3.2.0",
    "jedi==0.18.2..0.19.1",
    "django==4.2.1..5.0.1",
]


def fetch(name: str, version: str, into: Path) -> Path:
    """Download and unpack one wheel; the directory with its files."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(into),
         f"{name}=={version}"],
        check=True,
    )  # fmt: skip
    (archive,) = into.glob("*.whl")
    zipfile.ZipFile(archive).extractall(into / "unpacked")
    return into / "unpacked"


def hunks(old: str, new: str) -> list[tuple[int, int, str]]:
    """What to replace, from the end of the file to its start: line range of the old text, and the new lines."""
    a, b = old.split("\n"), new.split("\n")
    a = [line + "\n" for line in a[:-1]] + ([a[-1]] if a[-1] else [])
    b = [line + "\n" for line in b[:-1]] + ([b[-1]] if b[-1] else [])
    blocks = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(i, j, "".join(b[k:m])) for kind, i, j, k, m in reversed(blocks) if kind != "equal"]


def replay(before: bytes, after: bytes, path: Path, toolkit: FileToolkit) -> str:
    """Bring one file from its old bytes to its new ones; what came of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    try:
        formats = text.detect(before), text.detect(after)
    except Refused:
        return "binary"
    if formats[0] != formats[1] or not before:
        return "another encoding"
    fmt = formats[0]
    styles = {text.newline_style(before, fmt), text.newline_style(after, fmt)}
    old, new = (text.decode(data[len(fmt.bom) :], fmt) for data in (before, after))
    if len(styles - {"none"}) == 1 and "mixed" not in styles:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if tools["read_file"].invoke(read(path)).status == "error":
        return "unread"
    lines = [line + "\n" for line in old.split("\n")[:-1]]
    lines += [rest] if (rest := old.rpartition("\n")[2]) else []
    for first, last, put in hunks(old, new):
        low, high = first, last
        while True:
            span = "".join(lines[low:high])
            here = "".join(lines)
            if span and here.count(span) == 1 and here.find(span) >= 0:
                break
            if low == 0 and high == len(lines):
                break
            low, high = max(0, low - 1), min(len(lines), high + 1)
        want = "".join(lines[low:first]) + put + "".join(lines[last:high])
        message = tools["edit_file"].invoke(edit(path, span, want))
        if message.status == "error":
            return f"refused: {message.artifact['code']}"
        lines[first:last] = [put] if put else []
        lines = [line + "\n" for line in "".join(lines).split("\n")[:-1]] + (
            [rest] if (rest := "".join(lines).rpartition("\n")[2]) else []
        )
    return "same" if path.read_bytes() == after else "different"


def compare(old: Path, new: Path) -> tuple[Counter[str], Counter[str], list[str]]:
    """Replay all files that both versions have and that differ."""
    outcome: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        toolkit = FileToolkit(root)
        for source in sorted(old.rglob("*")):
            relative = source.relative_to(old)
            target = new / relative
            if not source.is_file() or source.is_symlink() or not target.is_file():
                continue
            before, after = source.read_bytes(), target.read_bytes()
            if before == after:
                continue
            found = replay(before, after, Path(root) / relative, toolkit)
            outcome[found] += 1
            if found != "binary":
                endings[text.newline_style(before, text.UTF8)] += 1
            if found not in {"same", "binary", "another encoding"}:
                bad.append(f"{relative}: {found}")
    return outcome, endings, bad


def main(argv: list[str]) -> int:
    failed = 0
    for spec in argv or PACKAGES:
        name, _, versions = spec.partition("==")
        old, _, new = versions.partition("..")
        with tempfile.TemporaryDirectory() as scratch:
            places = []
            for version in (old, new):
                into = Path(scratch) / version
                into.mkdir()
                places.append(fetch(name, version, into))
            outcome, endings, bad = compare(*places)
        print(f"{spec:32s} {dict(outcome)}  line endings {dict(endings)}")
        for line in bad:
            print("   ", line)
        failed += len(bad)
    return 1 if failed else 0
