"""What holds for any file, through the tools as a program or a model uses them."""

from __future__ import annotations

import hashlib
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_filestate import (
    FileToolkit,
    StructuredPatch,
    _detect,
    _disk,
    _judged,
    _planning,
    _search,
    _spans,
    _sums,
    parse_result,
)
from tests.long.packages import replay
from tests.scripted import edit, many, read, write

pieces = st.sampled_from(
    [b"a", b"b", b"  ", b"\t", b"\n", b"\r\n", b"\r", b"\x0c", b"\x0b", b"\xc3\xa9", b"\xe4\xb8\xad", b"\xe2\x80\xa8",
     b"\xc2\x85", b"\xff", b"-- x", b"++ y", b"\\ No newline at end of file", b"@@ -1 +1 @@", b"0\t"]
)  # fmt: skip
contents = st.lists(pieces, max_size=40).map(b"".join)


class Bench:
    """Tools on a folder of their own."""

    def __init__(self, root: str, **policy: Any) -> None:
        self.root = Path(root)
        self.toolkit = FileToolkit(root, **policy)
        self.tools = {tool.name: tool for tool in self.toolkit.get_tools()}
        self.path = self.root / "file.txt"

    def __call__(self, call: dict[str, Any]) -> Any:
        message = self.tools[call["name"]].invoke(call)
        return message, parse_result(message)


def apply(patch: StructuredPatch, before: bytes) -> bytes:
    """A patch applied by hand, over lines that end in LF."""
    old = before.split(b"\n")
    lines = [line + b"\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    out: list[bytes] = []
    at = 0
    for hunk in patch.hunks:
        first = hunk.source_start - (1 if hunk.source_length else 0)
        out += lines[at:first]
        at = first
        last = ""
        for entry in hunk.lines:
            mark, data = entry[0], entry[1:].encode() + b"\n"
            if mark == "\\":
                if last in "+ ":
                    out[-1] = out[-1][:-1]
                continue
            if mark in "- ":
                assert lines[at].rstrip(b"\n") == data[:-1]
                at += 1
            if mark in "+ ":
                out.append(data)
            last = mark
    return b"".join(out + lines[at:])


@settings(max_examples=150, deadline=None)
@given(contents, st.data())
def test_an_edit_changes_its_span_and_nothing_else(before: bytes, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root)
        bench.path.write_bytes(before)
        _, result = bench(read(bench.path))
        if result.kind == "failure":
            assert result.code == "binary"
            return
        text = before.decode("utf-8", "surrogateescape")
        start = data.draw(st.integers(0, len(text)))
        old = text[start : start + data.draw(st.integers(1, 12))]
        new = data.draw(st.sampled_from(["", "x", "x\n", "\n", "y\nz", "\u4e2d", old + old]))
        message, result = bench(edit(bench.path, old, new))
        after = bench.path.read_bytes()
        if message.status == "error":
            assert after == before
            return
        if not old:
            assert (before, after) == (b"", new.encode())  # an empty text fills an empty file
            return
        assert result.replacements == 1
        head = text[:start].encode("utf-8", "surrogateescape")
        if old.startswith("\n") and head.endswith(b"\r"):
            head = head[:-1]  # a "\n" of the old text stands for the whole line ending
        tail = text[start + len(old) :].encode("utf-8", "surrogateescape")
        if before.count(old.encode("utf-8", "surrogateescape")) == 1:
            assert after.startswith(head)
            assert after.endswith(tail)
            put = after[len(head) : len(after) - len(tail)]
            assert put.replace(b"\r\n", b"\n") == new.encode("utf-8", "surrogateescape").replace(b"\r\n", b"\n")
        if result.patch.exact:
            assert apply(result.patch, before) == after


@settings(max_examples=80, deadline=None)
@given(contents, st.lists(st.sampled_from(["a", "b", "\n", "é", "@@", "  "]), min_size=1, max_size=3), st.booleans())
def test_a_large_file_is_edited_as_a_small_one(before: bytes, olds: list[str], everywhere: bool) -> None:
    large = {
        _planning: ("_WHOLE", -1),
        _search: ("_LARGE", -1),
        _disk: ("STEP", 0),
        _sums: ("STEP", 1),
        _detect: ("BLOCK", 8),
        _spans: ("BLOCK", 8),
    }
    found: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as root:
        for bounds in ({}, large):
            with pytest.MonkeyPatch.context() as patch:
                for module, (name, value) in bounds.items():
                    patch.setattr(module, name, value)
                patch.setattr(_judged, "_known", {})
                bench = Bench(root)
                bench.path.write_bytes(before)
                seen = [bench(read("file.txt"))[1]]
                for number, old in enumerate(olds):
                    seen.append(bench(edit("file.txt", old, f"<{number}>\n", replace_all=everywhere))[1])
                    data = bench.path.read_bytes()
                    seen.append(data)
                    if seen[-2].kind == "edit":
                        assert seen[-2].after == hashlib.sha256(data).hexdigest()
                        assert bench.toolkit.history.content(seen[-2].after) == data
                seen.append(bench(read("file.txt"))[1])
                found.append(seen)
    assert found[0] == found[1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c d", "", "e\r", "\tf"]), max_size=15), st.data())
def test_patch_1_agrees(lines: list[str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root)
        before = "\n".join(lines).encode()
        bench.path.write_bytes(before)
        bench(read(bench.path))
        content = "\n".join(data.draw(st.lists(st.sampled_from(["a", "b", "new", ""]), max_size=15)))
        message, result = bench(write(bench.path, content))
        assert message.status == "success"
        assert bench.path.read_bytes() == content.encode()
        if before == content.encode():
            return
        assert apply(result.patch, before) == content.encode()
        copy = Path(root) / "copy"
        copy.write_bytes(before)
        done = subprocess.run(
            ["patch", "--binary", "--posix", str(copy)],
            input=str(result.patch).encode(),
            capture_output=True,
            check=False,
        )
        assert (done.returncode, copy.read_bytes() if copy.exists() else b"") == (0, content.encode()), done.stdout


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(1, 7))
def test_windows_put_together_are_the_file_and_lines_have_one_number(before: bytes, size: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root)
        bench.path.write_bytes(before)
        _, whole = bench(read(bench.path))
        if whole.kind == "failure":
            return
        lines: dict[int, str] = {}
        for first in range(1, whole.total_lines + 1, size):
            message, part = bench(read(bench.path, offset=first, limit=size))
            body = str(message.content).split("\n\n(")[0]
            if part.unchanged or not part.last_line:
                continue
            for row in body.split("\n")[: part.last_line - part.first_line + 1]:
                number, _, text = row.partition("\t")
                lines[int(number)] = text
        assert list(lines) == list(range(1, whole.total_lines + 1))
        raw = before.split(b"\n")
        ends = before.count(b"\n")
        for n, text in lines.items():
            if b"\xff" not in before:
                assert text == (raw[n - 1].removesuffix(b"\r") if n <= ends else raw[n - 1]).decode()


def test_every_tool_counts_lines_alike() -> None:
    odd = "line0\n\x0cline1\nx\x0by\x1cz\u2028w\u0085v\rq\nline3\n"
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root)
        bench.path.write_bytes(odd.encode())
        message, result = bench(read(bench.path))
        assert result.total_lines == 4
        assert "     4\tline3" in message.content
        _, failure = bench(edit(bench.path, "line", "x"))
        assert failure.lines == (1, 2, 4)
        _, result = bench(edit(bench.path, "line3", "LINE3"))
        (hunk,) = result.patch.hunks
        entries = [entry for entry in hunk.lines if entry[0] in " -"]
        assert hunk.source_start + entries.index("-line3") == 4
        _, result = bench(read(bench.path, offset=4))
        assert (result.first_line, result.last_line) == (4, 4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab\n", min_size=1, max_size=4), min_size=1, max_size=4), contents)
def test_many_edits_are_all_or_none(olds: list[str], before: bytes) -> None:
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root, require_read="never")
        bench.path.write_bytes(before)
        edits = [(old, f"<{n}>") for n, old in enumerate(olds)]
        message, _ = bench(many(bench.path, *edits))
        after = bench.path.read_bytes()
        if message.status == "error":
            assert after == before
        else:
            assert all(f"<{n}>".encode() in after for n in range(len(olds)))


def test_sources_replayed_hunk_by_hunk_are_the_new_version_byte_for_byte() -> None:
    """The short form of `python -m tests.long packages`: installed sources, changed at random, in each line ending."""
    import unidiff

    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as root:
        toolkit = FileToolkit(root)
        for source in sorted(Path(unidiff.__file__).parent.glob("*.py")):
            lines = source.read_text(encoding="utf-8").split("\n")
            half = len(lines) // 2
            for ending in ("lf", "crlf", "mixed"):
                ends = [
                    "\n" if ending == "lf" or (ending == "mixed" and n > half) else "\r\n" for n in range(len(lines))
                ]
                old = [line + end for line, end in zip(lines, ends, strict=True)]
                new = [line for n, line in enumerate(old) if rng.random() > 0.02 or abs(n - half) < 9]
                for _ in range(8):
                    at = rng.randrange(1, len(new) - 1)
                    if abs(at - half) > 9:  # where the endings meet, a new line may take either
                        new.insert(at, f"    # {rng.random()}" + new[at - 1][len(new[at - 1].rstrip("\r\n")) :])
                path = Path(root) / ending / source.name
                found = replay("".join(old).encode(), "".join(new).encode(), path, toolkit)
                assert found == "same", (source.name, ending)
