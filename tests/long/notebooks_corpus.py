"""Notebooks of real packages: each cell replaced and put back, and one edited through the tools.

    python -m tests.long notebooks-corpus [sdist:NAME | wheel:NAME ...]

Packages are fetched with pip; without names, a list of those that bring notebooks of many writers and versions. Those
of the installed packages and of this project are taken too, and each notebook once more as another writer would have
dumped it. What is looked at:

- each cell: another source, and its own again. Only bytes of the cell may change; in the end the file is what it was,
  but for the outputs of a code cell, which are cleared.
- a cell inserted after each cell and deleted again: the file is what it was.
- validity: what nbformat accepted before it accepts afterwards, and the same errors stay.
- the tools: read to the end, one cell replaced, and the patch touches no line outside of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from langchain_filestate import FileToolkit, NotebookResult, parse_result
from langchain_filestate import _match as match
from langchain_filestate import _notebook as notebooks
from langchain_filestate.errors import Refused
from tests.scripted import call, read

PACKAGES = [
    *(f"sdist:{name}" for name in ("nbconvert", "nbclient", "nbformat", "papermill", "nbval", "seaborn", "nbsphinx")),
    *(f"wheel:{name}" for name in ("nbdime", "nbgrader")),
]
PROBE = 'a "new" source \\ with é\nand\ttwo lines'
HERE = Path(__file__).parents[2]


def main(argv: list[str]) -> int:
    count: Counter[str] = Counter()
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, package in enumerate(argv or PACKAGES):
            fetch(package, folder / "fetched" / str(number))
        for where, data in found(folder / "fetched"):
            for style, text in dumped(data):
                count["files"] += 1
                bad += [f"{where} ({style}): {line}" for line in look_at(text, folder / "work", count)]
    for line in bad:
        print("   ", line)
    print(", ".join(f"{key}: {value:,}" for key, value in sorted(count.items())))
    print(f"{len(bad)} faults")
    return 1 if bad or not count["files"] else 0


def fetch(package: str, into: Path) -> None:
    kind, _, name = package.partition(":")
    only = ["--no-binary", ":all:"] if kind == "sdist" else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(into), *only, name]
    subprocess.run(command, check=True)


def found(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each notebook once."""
    seen: set[bytes] = set()
    for where, data in (*packed(folder), *installed()):
        if data not in seen:
            seen.add(data)
            yield where, data


def packed(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".ipynb"):
                        yield f"{path.name}/{name}", archive.read(name)
        elif path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.name.endswith(".ipynb") else None
                    if file is not None:
                        yield member.name, file.read()


def installed() -> Iterator[tuple[str, bytes]]:
    for folder in (Path(sysconfig.get_path("purelib")), HERE / "notebooks"):
        for path in sorted(folder.rglob("*.ipynb")):
            if path.is_file():
                yield str(path.relative_to(folder)), path.read_bytes()


def dumped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """As it is, and as other writers would have written it."""
    yield "as it is", data
    try:
        book = json.loads(data)
    except ValueError:
        return
    yield "two spaces, no newline", json.dumps(book, indent=2, ensure_ascii=False).encode(errors="surrogatepass")
    yield "ASCII, CRLF", (json.dumps(book, indent=1) + "\n").replace("\n", "\r\n").encode()
    yield "minified", json.dumps(book, separators=(",", ":")).encode()


def errors(data: bytes) -> list[str]:
    """What nbformat says against it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            book = json.loads(data)
            minor = book.get("nbformat_minor")
            check: Any = nbformat.validator.iter_validate
            return sorted({error.message[:60] for error in check(book, version=4, version_minor=minor)})
        except (nbformat.ValidationError, ValueError, TypeError, AttributeError) as error:
            return [type(error).__name__]


def look_at(data: bytes, work: Path, count: Counter[str]) -> Iterator[str]:
    try:
        book = notebooks.parse(data)
    except Refused as refused:
        why = refused.message.rpartition(": ")[2][:40]
        count[f"refused ({why})"] += 1
        return
    before = errors(data)
    count["valid"] += not before
    count["cells"] += len(book.cells)
    for cell in book.cells:
        try:
            yield from replaced(data, cell, before, count)
            yield from inserted(data, cell, before)
        except Refused as refused:
            yield f"{cell.name}: {refused.code}: {refused.message[:200]}"
    if book.cells:
        yield from through_tools(data, work, count)


def replaced(data: bytes, cell: notebooks.Cell, before: list[str], count: Counter[str]) -> Iterator[str]:
    (start, end), size = cell.span, len(data)
    there = match.apply(data, notebooks.replace_cell(data, cell.name, PROBE).splices)
    back = match.apply(there, notebooks.replace_cell(there, cell.name, cell.source).splices)
    for text in (there, back):
        if text[:start] != data[:start] or text[len(text) - (size - end) :] != data[end:]:
            yield f"{cell.name}: bytes outside of the cell changed"
    if notebooks.parse(there).cells[cell.index].source != PROBE:
        yield f"{cell.name}: the source is not what was given"
    if set(errors(there)) - set(before) or set(errors(back)) - set(before):
        yield f"{cell.name}: not valid any more: {errors(there)[:2]}"
    if back == data:
        count["put back: the same bytes"] += 1
        return
    old, new = json.loads(data[start:end]), json.loads(back[start : len(back) - (size - end)])
    cleared: dict[str, Any] = {
        key: ([] if key == "outputs" else None) for key in ("outputs", "execution_count") if key in old
    }
    if cell.cell_type == "code" and {**old, **cleared} == new:
        count["put back: the same but for outputs"] += 1
    elif {**old, **cleared, "source": cell.source} == {**new, "source": "".join(new["source"])}:
        count["put back: lines are cut otherwise"] += 1
    else:
        yield f"{cell.name}: not the same when put back"


def inserted(data: bytes, cell: notebooks.Cell, before: list[str]) -> Iterator[str]:
    for kind in ("code", "markdown"):
        made = notebooks.insert_cell(data, cell.name, PROBE, kind)
        there = match.apply(data, made.splices)
        new = notebooks.parse(there).cells
        if (new[cell.index + 1].source, len(set(made.cell_ids))) != (PROBE, len(new)):
            yield f"{cell.name}: the new cell is not where it should be"
        if set(errors(there)) - set(before):
            yield f"{cell.name}: not valid with a new {kind} cell: {errors(there)[:2]}"
        if match.apply(there, notebooks.delete_cell(there, made.cell_id).splices) != data:
            yield f"{cell.name}: not the same after the new cell is deleted"


def through_tools(data: bytes, work: Path, count: Counter[str]) -> Iterator[str]:
    work.mkdir(exist_ok=True)
    path = work / "n.ipynb"
    path.write_bytes(data)
    tools = {tool.name: tool for tool in FileToolkit(work).get_tools()}
    book = notebooks.parse(data)
    offset, column = 1, 1
    while offset <= len(book.cells):
        shown = tools["read_file"].invoke(read(path, offset=offset, column=column))
        if shown.status == "error":
            yield f"read at {offset}: {shown.content[:200]}"
            return
        count["windows"] += 1
        notes = shown.content.rpartition("Go on with offset=")
        if not notes[1]:
            break
        place = notes[2].split(".")[0].split(", column=")
        offset, column = int(place[0]), int(place[1]) if len(place) > 1 else 1
    cell = book.cells[len(book.cells) // 2]
    edit = call("edit_notebook", file_path=str(path), cell_id=cell.name, new_source=PROBE)
    done = tools["edit_notebook"].invoke(edit)
    if done.status == "error" and done.artifact["code"] == "partially_read":
        count["a cell too long for one window"] += 1
        return
    result = parse_result(done)
    if not isinstance(result, NotebookResult):
        yield f"{cell.name}: {done.content[:200]}"
        return
    first, last = (data[:at].count(b"\n") + 1 for at in cell.span)
    for hunk in result.patch.hunks:
        line = hunk.source_start
        for text in hunk.lines:
            if text[0] == "-" and not first <= line <= last:
                yield f"{cell.name}: the patch touches line {line}, the cell is in {first}-{last}"
            line += text[0] in " -"
    count["edited through the tools"] += 1
