"""Patches: built from spans, applied by three programs, moved lines counted exactly."""

from __future__ import annotations

import random
import shutil
import subprocess
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from unidiff.patch import PatchSet

from langchain_filestate import _diff, _patch, _spans
from langchain_filestate._diff import Budget, Gap, gaps
from langchain_filestate._match import Splice
from langchain_filestate._patch import (
    LineEdit,
    PatchHunk,
    StructuredPatch,
    Touched,
    line_edits,
    patch_bytes,
    patch_splices,
    patch_touched,
)
from langchain_filestate._records import View, move
from langchain_filestate._text import UTF8, Format, split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

UTF16 = Format("utf-16-le", b"\xff\xfe", lossless=True)
UTF32 = Format("utf-32-be", b"\x00\x00\xfe\xff", lossless=True)


def lines_of(data: bytes, encoding: str = "utf-8") -> list[str]:
    *whole, rest = data.decode(encoding).split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def applied(patch: StructuredPatch, before: bytes, encoding: str = "utf-8") -> bytes:
    """The file after, from nothing but the file before and the hunks; each number in the hunks is checked."""
    old = lines_of(before, encoding)
    out: list[str] = []
    at = 0
    for hunk in patch.hunks:
        start = hunk.source_start - bool(hunk.source_length)
        out += old[at:start]
        at = start
        body: list[list[str]] = []
        for entry in hunk.lines:
            if entry == "\\ No newline at end of file":
                body[-1][1] = body[-1][1][:-1]
            else:
                body.append([entry[0], entry[1:] + "\n"])
        assert hunk.source_length == sum(kind != "+" for kind, _ in body)
        assert hunk.target_length == sum(kind != "-" for kind, _ in body)
        assert len(out) == hunk.target_start - bool(hunk.target_length)
        for kind, line in body:
            if kind != "+":
                assert old[at] == line
                at += 1
            if kind != "-":
                out.append(line)
    return "".join(out + old[at:]).encode(encoding)


def spliced(before: bytes, splices: Sequence[Splice]) -> bytes:
    out, at = b"", 0
    for splice in splices:
        out += before[at : splice.start] + splice.new
        at = splice.end
    return out + before[at:]


def check_text(patch: StructuredPatch) -> None:
    """The text parses to the same objects, and everything survives the way through a checkpoint."""
    assert StructuredPatch.model_validate(patch.model_dump()) == patch
    assert StructuredPatch.model_validate_json(patch.model_dump_json()) == patch
    parsed = PatchSet(str(patch))
    assert str(parsed) == str(patch)
    if patch.hunks:
        assert list(parsed) == [patch.to_unidiff()]
        assert str(patch.to_unidiff()) == str(patch)
        assert (parsed[0].added, parsed[0].removed) == (patch.added, patch.removed)


ALPHABET = "ab\n\n\r-+\\ \x0c\x85\u2028\u0a0a"


@st.composite
def edits(draw: st.DrawFn, encoding: str) -> tuple[bytes, list[Splice]]:
    text = draw(st.text(ALPHABET, max_size=40))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    offsets = [len(text[:place].encode(encoding)) for place in places]
    splices = [
        Splice(a, b, draw(st.text(ALPHABET, max_size=4)).encode(encoding))
        for a, b in zip(offsets[::2], offsets[1::2], strict=False)
    ]
    return text.encode(encoding), splices


@pytest.mark.parametrize("fmt", [UTF8, UTF16, UTF32], ids=lambda fmt: fmt.encoding)
@given(st.data())
@settings(max_examples=100, deadline=None)
def test_any_splices(fmt: Format, data: st.DataObject) -> None:
    before, splices = data.draw(edits(fmt.encoding))
    after = spliced(before, splices)
    patch = patch_splices("dir/name", before, splices, fmt)
    assert applied(patch, before, fmt.encoding) == after
    assert patch.exact
    assert not patch.truncated
    assert patch.hunks or before == after  # splices beside each other may undo each other
    check_text(patch)

    # the lines that an edit does not touch are the same, moved by what the edits in front of them added
    old, new = lines_of(before, fmt.encoding), lines_of(after, fmt.encoding)
    end = moved = 0
    for edit in line_edits(before, splices, fmt):
        first = edit.first - 1
        assert first >= end
        assert old[end:first] == new[end + moved : first + moved]
        for line, origin in edit.kept:
            assert first + moved < line <= first + moved + edit.new_count
            assert first < origin <= first + edit.old_count
        held = {line for line, _ in edit.kept}
        assert edit.head_partial == (first + moved + 1 in held)
        assert edit.tail_partial == (first + moved + edit.new_count in held)
        end, moved = first + edit.old_count, moved + edit.new_count - edit.old_count
    assert old[end:] == new[end + moved :]


def known_origin(before: str, splices: Sequence[tuple[int, int, str]]) -> set[tuple[int, int]]:
    """Which touched lines hold which old ones, told character by character."""
    touched: set[tuple[int, int]] = set()
    chars: list[tuple[str, int | None]] = []
    at, line = 0, 1
    numbers = []
    for char in before:
        numbers.append(line)
        line += char == "\n"
    for start, end, new in splices:
        chars += [(before[i], i) for i in range(at, start)] + [(char, None) for char in new]
        at = end
    chars += [(before[i], i) for i in range(at, len(before))]
    rows: list[list[tuple[str, int | None]]] = [[]]
    for place in chars:
        rows[-1].append(place)
        if place[0] == "\n":
            rows.append([])
    for number, row in enumerate(rows, 1):
        own = [i for char, i in row if i is not None and char not in "\r\n"]
        whole = {tuple(range(m.start, m.stop)) for m in _ranges(before)}
        if tuple(i for _, i in row) in whole:
            continue  # an old line as it was
        touched |= {(number, numbers[i]) for i in own}
    return touched


def _ranges(text: str) -> list[range]:
    ends = [0, *(i + 1 for i, char in enumerate(text) if char == "\n"), len(text)]
    return [range(a, b) for a, b in pairwise(ends)]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_kept_text_is_told_by_line(data: st.DataObject) -> None:
    text = data.draw(st.text("abc\n", max_size=25))
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    plain = [(a, b, data.draw(st.text("xy\n", max_size=3))) for a, b in zip(places[::2], places[1::2], strict=False)]
    told = {
        pair
        for edit in line_edits(text.encode(), [Splice(a, b, new.encode()) for a, b, new in plain], UTF8)
        for pair in edit.kept
    }
    assert known_origin(text, plain) <= told


def edit(first: int, old: int, new: int, *kept: tuple[int, int]) -> LineEdit:
    lines = {line for line, _ in kept}
    return LineEdit(first, old, new, first in lines, first + new - 1 in lines, kept)


@pytest.mark.parametrize(
    ("before", "splices", "expected"),
    [
        ("a\nb\nc\n", [("b\n", "x\ny\n")], [edit(2, 1, 2)]),
        ("a\nb\nc\n", [("b\n", "")], [edit(2, 1, 0)]),
        ("a\nb\nc\n", [("b", "x")], [edit(2, 1, 1)]),  # only the line end stays
        ("a\nb\r\nc\n", [("b", "x")], [edit(2, 1, 1)]),
        ("a\nkey: x = 1;\n", [("x = 1", "x = 2")], [edit(2, 1, 1, (2, 2))]),
        ("a\nx = 1;\n", [("x = 1", "y\nz")], [edit(2, 1, 2, (3, 2))]),
        ("a\nkey: x\n", [("x", "y\nz")], [edit(2, 1, 2, (2, 2))]),
        ("a\nkey: x;\n", [("x", "y\nz")], [edit(2, 1, 2, (2, 2), (3, 2))]),
        ("a\nb\nc\n", [((2, 2), "new\n")], [edit(2, 0, 1)]),
        ("a\nb\nc\n", [((0, 0), "new\n")], [edit(1, 0, 1)]),
        ("a\nb\nc\n", [((6, 6), "new\n")], [edit(4, 0, 1)]),
        ("a\nb\nc\n", [((6, 6), "new")], [edit(4, 0, 1)]),
        ("a\nb", [((3, 3), "new")], [edit(2, 1, 1, (2, 2))]),
        ("a\nb", [((3, 3), "\nnew")], [edit(2, 1, 2, (2, 2))]),
        ("a\nb\nc\n", [((2, 2), "new")], [edit(2, 1, 1, (2, 2))]),
        ("a\nb\nc\n", [((1, 2), "")], [edit(1, 2, 1, (1, 1), (1, 2))]),
        ("a\nb\nc\n", [("a\nb\n", "")], [edit(1, 2, 0)]),
        ("a\nb", [((0, 3), "")], [edit(1, 2, 0)]),
        ("a\nb", [((1, 3), "")], [edit(1, 2, 1, (1, 1))]),
        ("", [((0, 0), "x\ny")], [edit(1, 0, 2)]),
        ("\ufeffa\nb\n", [("a", "x")], [edit(1, 1, 1)]),  # only the byte order mark stays
        ("1 = 2 = 3\nx\n", [("1", "one"), ("3", "three")], [edit(1, 1, 1, (1, 1))]),
        ("a = b\nc = d\ne\n", [("b\nc", "B\nC"), ("d\n", "D\n")], [edit(1, 2, 2, (1, 1), (2, 2))]),
        ("a\nb\nc\nd\n", [("b\n", "x\ny\n"), ("d\n", "")], [edit(2, 1, 2), LineEdit(4, 1, 0, False, False, ())]),
        ("a\nb\nc\n", [("a\n", "x\n"), ("b\n", "y\n")], [edit(1, 1, 1), edit(2, 1, 1)]),
        ("a", [("a", ""), ((1, 1), "b")], [edit(1, 1, 1)]),
        ("a\n", [((1, 2), ""), ((2, 2), "b")], [edit(1, 1, 1, (1, 1))]),
        # a line held in the middle is told although it is neither head nor tail
        ("a\nb\nc\n", [("a\n", "1\n2"), ("\nc\n", "\n3\n")], [LineEdit(1, 3, 3, False, False, ((2, 2),))]),
    ],
)
def test_line_edits(before: str, splices: list[tuple[str | tuple[int, int], str]], expected: list[LineEdit]) -> None:
    data = before.encode()
    fmt = Format("utf-8", b"\xef\xbb\xbf", lossless=True) if before.startswith("\ufeff") else UTF8
    found = []
    for where, new in splices:
        old = where.encode() if isinstance(where, str) else b""
        start, end = (data.index(old), data.index(old) + len(old)) if isinstance(where, str) else where
        found.append(Splice(start, end, new.encode()))
    assert list(line_edits(data, found[::-1], fmt)) == expected


# ---- whole contents -----------------------------------------------------------------------------------------------

contents = st.text("ab\n\n\n\r-+\\", max_size=30).map(str.encode)


@given(contents, contents, st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_any_contents(before: bytes, after: bytes, budget: int) -> None:
    for patch in (patch_bytes("n", before, after), patch_bytes("n", before, after, budget=budget)):
        assert applied(patch, before) == after
        assert patch.exact
        check_text(patch)
        if patch.truncated:
            assert len(patch.hunks) == 1
    assert not patch_bytes("n", before, after).truncated


def test_absent_sides() -> None:
    made = patch_bytes("/root/new.txt", None, b"a\nb")
    assert (made.source, made.target, made.added, made.removed) == ("/dev/null", "b/root/new.txt", 2, 0)
    assert str(made) == ("--- /dev/null\n+++ b/root/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n")
    assert made.to_unidiff().is_added_file
    gone = patch_bytes("/root/new.txt", b"a\n", None)
    assert (gone.source, gone.target, gone.added, gone.removed) == ("a/root/new.txt", "/dev/null", 0, 1)
    assert gone.to_unidiff().is_removed_file
    nothing = patch_bytes("n", None, None)
    assert (str(nothing), nothing.hunks, nothing.exact) == ("", [], True)
    assert str(patch_bytes("n", b"a", b"a")) == ""
    assert patch_splices("n", b"a\n", [], UTF8).hunks == []


def test_frozen() -> None:
    patch = patch_bytes("n", b"a\n", b"b\n")
    with pytest.raises(ValidationError):
        patch.added = 3  # type: ignore[misc]
    with pytest.raises(ValidationError):
        PatchHunk(source_start=-1, source_length=0, target_start=0, target_length=0, lines=[])


def test_section_header_is_kept() -> None:
    hunk = PatchHunk(
        source_start=1, source_length=1, target_start=1, target_length=1, section_header="def f():", lines=["-a", "+b"]
    )
    patch = StructuredPatch(source="a/n", target="b/n", added=1, removed=1, hunks=[hunk])
    assert "@@ -1,1 +1,1 @@ def f():\n" in str(patch)
    check_text(patch)


# ---- programs -----------------------------------------------------------------------------------------------------

NAMES = [
    "n.txt",
    "my file.txt",
    "tab\there",
    'quo"te',
    "back\\slash",
    "new\nline",
    "日本語.txt",
    "é b",
    "\x01\x7f\u200b",
    "blank behind ",
]
CONTENTS = [
    (b"a\nb\nc\nd\ne\nf\ng\n", b"a\nb\nc\nX\ne\nf\ng\n"),
    (b"a\nb", b"a\nc"),
    (b"a\nb", b"a\nb\n"),
    (b"a\nb\n", b"a\nb"),
    (b"a\n\x0cb\n\xc2\x85\xe2\x80\xa8c\n", b"a\n\x0cB\n\xc2\x85\xe2\x80\xa8c\n"),
    (b"x\rY\nz\n", b"x\rZ\nz\n"),
    (b"a\r\nb\r\nc\n", b"a\r\nB\r\nc\n"),
    (b"-- x\n++ y\n--- a\n+++ b\n", b"++ x\n-- y\n+++ b\n"),
    (b"\\ No newline at end of file\nx", b"x\n\\ No newline at end of file"),
    (b"", b"now\n"),
    (b"now", b""),
    (None, b"made\nnow"),
    (b"all\ngone\n", None),
    (None, b""),
    (b"", None),
    (b"\xef\xbb\xbfa\nb\n", b"a\nb\nc\n"),
    (b"@@ -1 +1 @@\n\n\n \n", b"@@ -1 +1 @@\n\n \n"),
    (b"".join(b"%d\n" % i for i in range(40)), b"".join(b"%d\n" % i for i in range(40) if i not in {3, 20, 39}) + b"z"),
]


@pytest.mark.parametrize("program", [["patch", "--binary", "-p1", "-s"], ["git", "apply"]], ids=["patch", "git"])
def test_programs_apply_it(program: list[str], tmp_path: Path) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip("not installed")
    cases = [("n.txt", *pair) for pair in CONTENTS] + [(name, *CONTENTS[0]) for name in NAMES]
    cases += [(name, None, b"made\n") for name in NAMES] + [(name, b"gone", None) for name in NAMES]
    text: list[str] = []
    last: list[str] = []
    for i, (name, before, after) in enumerate(cases):
        place = tmp_path / str(i) / name
        place.parent.mkdir()
        if before is not None:
            place.write_bytes(before)
        patch = patch_bytes(f"{i}/{name}", before, after)
        (text if patch.hunks else last).append(str(patch))
    # one call for all: a file that was mistaken for another's patch shows too
    done = subprocess.run(program, input="".join(text + last).encode(), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    for i, (name, _, after) in enumerate(cases):
        place = tmp_path / str(i) / name
        assert (place.read_bytes() if place.exists() else None) == after, (i, name)
        # nothing else is there; the programs remove a directory that they emptied
        assert [found.name for found in (tmp_path / str(i)).glob("*")] == [name] * (after is not None), (i, name)


def test_names_stay_whole() -> None:
    for name in NAMES:
        patch = patch_bytes(name, b"a\n", b"b\n")
        assert patch.to_unidiff().path == name
        (file,) = PatchSet(str(patch))
        assert (file.added, file.removed) == (1, 1)
    assert str(patch_bytes("bad\udcff", b"a\n", b"b\n")).startswith('--- "a/bad\\377"\n+++ "b/bad\\377"\n')
    assert str(patch_bytes("a b", b"", b"x\n")).startswith("--- a/a b\t\n+++ b/a b\t\n")


def test_very_many_splices_that_leave_a_byte_order_mark_leave_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_spans, "MANY", 0)
    fmt = Format("utf-8", b"\xef\xbb\xbf", lossless=True)
    touched = Touched(fmt.bom + b"aaa", [Splice(at, at + 1, b"") for at in (3, 4, 5)], fmt)
    assert touched.edits() == (LineEdit(1, 1, 0, False, False, (), rough=True),)


@settings(max_examples=100)
@given(
    st.lists(st.text("ab\n", min_size=1, max_size=6), min_size=1, max_size=20).map("".join),
    st.sampled_from(["b", "x", "xy", "", "\n", "x\ny"]),
    st.sampled_from(["utf-8", "utf-16-le"]),
)
def test_very_many_splices_have_a_right_patch_and_no_more_credit(text: str, new: str, encoding: str) -> None:
    fmt = Format(encoding, b"", lossless=True)
    before, width = text.encode(encoding), len("a".encode(encoding))
    places = [at * width for at, char in enumerate(text) if char == "a"]
    assume(places)
    splices = [Splice(at, at + width, new.encode(encoding)) for at in places]
    exact = Touched(before, splices, fmt)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_spans, "MANY", 0)
        rough = Touched(before, splices, fmt)
    assert rough.newlines() == exact.newlines()
    assert applied(patch_touched("n", rough), before, encoding) == text.replace("a", new).encode(encoding)
    (edit,), lines = rough.edits(), len(split_lines(before, fmt))
    assert edit.rough
    moved = [sum(e.new_count - e.old_count for e in edits) for edits in (rough.edits(), exact.edits())]
    assert moved[0] == moved[1]
    views = [View(first, min(first + 1, lines), f"e{first}") for first in range(1, lines + 1, 2)]
    credit = {(line, v.evidence) for v in move(views, rough.edits(), "new") for line in range(v.first, v.last + 1)}
    right = {(line, v.evidence) for v in move(views, exact.edits(), "new") for line in range(v.first, v.last + 1)}
    assert {line for line, _ in credit} <= {line for line, _ in right}
    assert edit.head_partial is ("\n" not in new and edit.old_count == edit.new_count)
    assert not edit.head_partial or credit >= {(line, name) for line, name in right if name != "new"}


# ---- encodings ----------------------------------------------------------------------------------------------------


def test_bytes_that_are_no_text() -> None:
    before = b"a\xff\n" + b"ok\n" * 40
    patch = patch_bytes("n", before, before + b"\xfe\n")
    assert patch.exact is False
    assert patch.hunks[0].lines[-1] == "+\\xfe"
    assert patch.truncated is False
    str(patch).encode()
    # not shown, so nothing is said of it
    assert patch_bytes("n", before, before + b"new\n").exact


def test_binary() -> None:
    for before, after in [(b"\0\1", b"a\n"), (b"a\n", b"\0\1"), (b"\0", b"\0\0"), (None, b"\0")]:
        patch = patch_bytes("n", before, after)
        assert (patch.hunks, patch.exact, patch.truncated, patch.added, patch.removed) == ([], False, True, 0, 0)
        assert patch.to_unidiff().is_binary_file
        (file,) = PatchSet(str(patch))
        assert file.is_binary_file
    same = patch_bytes("n", b"\0", b"\0")
    assert (str(same), same.exact, same.truncated) == ("", True, False)


JAPANESE = "こんにちは、世界。今日は良い天気ですね。\n" * 20
FRENCH = "Où est l'hôtel ? Près de la forêt, à côté du château.\nÇa va très bien, merci à vous.\n" * 10


@pytest.mark.parametrize(
    ("before", "after", "encoding", "exact"),
    [
        ("\ufeffa\nb\n", "\ufeffa\nc\n", "utf-16-le", True),
        ("\ufeffa\r\nb\r\n", "\ufeffa\r\nc\r\n", "utf-32-be", True),
        ("\ufeff\u0a0a\u0a00\n\u000a\u0a0ab", "\ufeff\u0a0a\u0a00\n\u000a\u0a0ac\n", "utf-16-be", True),
        (JAPANESE, JAPANESE + "終わり\n", "cp932", True),
        (FRENCH, "plain\n" + FRENCH, "cp1252", True),
        (FRENCH, "plain\n", "cp1252", True),
        ("plain\n", "plain\n" + FRENCH, "cp1252", True),
    ],
)
def test_other_encodings(before: str, after: str, encoding: str, exact: bool) -> None:
    patch = patch_bytes("n", before.encode(encoding), after.encode(encoding))
    assert patch.exact is exact
    assert applied(patch, before.encode(encoding), encoding) == after.encode(encoding)
    assert (patch.added, patch.removed) == counts(before, after)
    check_text(patch)


def counts(before: str, after: str) -> tuple[int, int]:
    patch = patch_bytes("n", before.encode(), after.encode())
    return patch.added, patch.removed


def test_recoded_files() -> None:
    for new in (FRENCH.encode(), b"\xff\xfe" + FRENCH.encode("utf-16-le")):
        patch = patch_bytes("n", FRENCH.encode("cp1252"), new)
        assert (patch.exact, patch.truncated) == (False, False)
        assert patch.added == 20
        check_text(patch)
    wide = Format("utf-16-le", b"\xff\xfe", lossless=False)
    halves = "\ufeff\u0a0aa\u000a\u000ab\u0a00\u0a0ac\n".encode("utf-16-be")  # 0A 0A and 00 0A across characters
    be = Format("utf-16-be", b"\xfe\xff", lossless=True)
    place = halves.index(b"\0b")
    patch = patch_splices("n", halves, [Splice(place, place + 2, b"\0B")], be)
    assert patch.hunks[0].lines == [" \ufeff\u0a0aa", " ", "-b\u0a00\u0a0ac", "+B\u0a00\u0a0ac"]
    patch = patch_splices("n", "a\ua000\u0a62c\n".encode("utf-16-be"), [Splice(6, 8, b"\0B")], be)
    assert patch.hunks[0].lines == ["-a\ua000\u0a62c", "+a\ua000\u0a62B"]
    lone = "\ufeffa\n".encode("utf-16-le") + b"\x00\xd8\n\0"
    patch = patch_splices("n", lone, [Splice(2, 4, b"b\0")], wide)
    assert patch.exact is False
    assert patch.hunks[0].lines == ["-\ufeffa", "+\ufeffb", " \\ud800"]
    assert patch_splices("n", lone[:-1], [Splice(2, 4, b"b\0")], wide).hunks
    cut_short = patch_bytes("n", lone[:4], lone[:4] + b"b")
    assert (cut_short.hunks, cut_short.exact) == ([], False)


def test_odd_mixture_is_not_exact() -> None:
    # a codec that decodes what it would not write
    fmt = Format("cp932", b"", lossless=True)
    data = b"\x87\x90\nx\n"  # NEC's and IBM's duplicates of one sign
    patch = patch_splices("n", data, [Splice(3, 4, b"y")], fmt)
    assert patch.exact is (data[:2].decode("cp932").encode("cp932") == data[:2])


# ---- bounds -------------------------------------------------------------------------------------------------------


def test_repetitive_file() -> None:
    before = [b"%d\n" % (i % 4) for i in range(2000)]
    after = [*before[:700], b"1\n", *before[700:]]
    patch = patch_bytes("n", b"".join(before), b"".join(after))
    assert (patch.added, patch.removed, len(patch.hunks), patch.truncated) == (1, 0, 1, False)


def test_shuffled_file_is_cut() -> None:
    before = [b"%d\n" % (i % 120) for i in range(8_000)]
    after = random.Random(1).sample(before, len(before))
    steps = Budget(100_000)
    gaps(before, after, steps)
    assert steps.exceeded
    patch = patch_bytes("n", b"".join(before), b"".join(after), max_lines=300, budget=100_000)
    assert (patch.truncated, patch.exact, len(patch.hunks), len(patch.hunks[0].lines)) == (True, False, 1, 300)
    assert 7_900 < patch.added <= 8_000
    (file,) = PatchSet(str(patch))
    assert (file.added, file.removed) == (150, 150)
    whole = patch_bytes("n", b"".join(before), b"".join(after), max_lines=100_000, budget=100_000)
    assert (whole.truncated, whole.exact) == (True, True)
    assert applied(whole, b"".join(before)) == b"".join(after)


def test_replaced_block_shows_what_changed() -> None:
    before = b"".join(b"%d\n" % i for i in range(200))
    new = b"".join(b"%d\n" % i for i in range(50, 100)).replace(b"77\n", b"seventy-seven\n")
    splice = Splice(before.index(b"50\n"), before.index(b"100\n"), new)
    patch = patch_splices("n", before, [splice], UTF8)
    assert [h.lines for h in patch.hunks] == [
        [" 74", " 75", " 76", "-77", "+seventy-seven", " 78", " 79", " 80"],
    ]
    assert (patch.hunks[0].source_start, patch.hunks[0].target_start) == (75, 75)


@pytest.mark.parametrize(("distance", "hunks"), [(6, 1), (7, 2)])
def test_neighbours_share_a_hunk(distance: int, hunks: int) -> None:
    before = b"".join(b"%03d\n" % i for i in range(60))
    splices = [Splice(4 * i, 4 * i + 3, b"new") for i in (10, 11 + distance)]
    patch = patch_splices("n", before, splices, UTF8)
    assert len(patch.hunks) == hunks
    assert applied(patch, before) == spliced(before, splices)


def test_long_lines_cost_context_first() -> None:
    before = b"".join(bytes([65 + i]) * 200_000 + b"\n" for i in range(9))
    patch = patch_bytes("n", before, before.replace(b"E" * 200_000, b"x"))
    assert (patch.exact, patch.truncated) == (True, False)
    assert [len(line) for line in patch.hunks[0].lines] == [200_001, 200_001, 2, 200_001]


def test_very_long_line_is_shortened() -> None:
    before, after = "é" * 700_000 + "\n", "é" * 700_000 + "!"
    patch = patch_bytes("n", before.encode(), after.encode(), max_lines=8)
    assert (patch.exact, patch.truncated) == (False, True)
    assert (patch.added, patch.removed) == (1, 1)
    gone, new = patch.hunks[0].lines
    assert gone.startswith("-éé")
    assert gone.endswith("é [... 1275001 more bytes]")
    assert new.startswith("+éé")
    check_text(patch)
    short = patch_bytes("n", b"a\n", b"b\n" * 50, max_lines=0)
    assert short.hunks[0].lines == ["-a", "+b"]


def test_later_hunks_are_left_out() -> None:
    before = b"".join(b"%03d\n" % i for i in range(60))
    splices = [Splice(4 * i, 4 * i + 3, b"new") for i in (10, 30, 50)]
    patch = patch_splices("n", before, splices, UTF8, max_lines=20)
    assert (len(patch.hunks), patch.added, patch.removed, patch.truncated, patch.exact) == (2, 3, 3, True, False)
    small = patch_splices("n", before, splices, UTF8, max_bytes=40)
    assert len(small.hunks) == 1
    assert small.truncated


def test_budget_is_shared_and_spent_once() -> None:
    before = b"".join(b"%d\n" % (i % 7) for i in range(600))
    block = b"".join(b"%d\n" % (i * i % 7) for i in range(100))
    start, end = before.index(b"\n") + 1, 400
    splices = [Splice(start, end, block), Splice(800, 802, b"x\n")]
    patch = patch_splices("n", before, splices, UTF8, budget=20)
    assert patch.truncated
    assert patch.exact
    assert applied(patch, before) == spliced(before, splices)


def test_only_what_is_near_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    before = b"".join(b"line %d\n" % i for i in range(100_000))
    at = before.index(b"line 99990")
    shown: list[int] = []
    plain = _patch._text

    def counting(lines: bytes, fmt: Format) -> tuple[str, bool]:
        shown.append(lines.count(b"\n"))
        return plain(lines, fmt)

    monkeypatch.setattr(_patch, "_text", counting)
    split: list[int] = []

    def splitting(data: bytes, fmt: Format) -> list[bytes]:
        assert fmt == UTF8
        split.append(len(data))
        return data.splitlines(keepends=True)

    for module in (_patch, _spans):
        monkeypatch.setattr(module, "split_lines", splitting)
    tracemalloc.start()
    patch = patch_splices("n", before, [Splice(at, at + 4, b"LINE")], UTF8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert patch.hunks[0].source_start == 99_988
    assert sum(shown) == 8
    assert sum(split) < 300
    assert peak < 100_000


# ---- the comparison -----------------------------------------------------------------------------------------------


def longest_common(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        corner = 0
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], corner + 1 if x == y else max(row[j], row[j - 1])
    return row[-1]


rows = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), max_size=14)


def check_gaps(a: list[bytes], b: list[bytes], found: list[Gap]) -> int:
    out: list[bytes] = []
    i = k = 0
    for gap in found:
        assert a[i : gap.i] == b[k : gap.k]
        assert gap.j > gap.i or gap.l > gap.k
        out += a[i : gap.i] + b[gap.k : gap.l]
        i, k = gap.j, gap.l
    assert out + a[i:] == b
    return sum(gap.j - gap.i for gap in found)


@given(rows, rows)
@settings(max_examples=150, deadline=None)
def test_script_is_shortest(a: list[bytes], b: list[bytes]) -> None:
    assert check_gaps(a, b, gaps(a, b, Budget(10_000))) == len(a) - longest_common(a, b)


@given(rows, rows, st.integers(-1, 80), st.integers(-20, 10))
@settings(max_examples=150, deadline=None)
def test_script_is_right_within_any_budget(a: list[bytes], b: list[bytes], budget: int, first: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_diff, "FIRST_TRY", first)
        check_gaps(a, b, gaps(a, b, Budget(budget)))


def test_no_more_edits_than_steps() -> None:
    steps = Budget(10)
    assert _diff._shortest([1, 2, 3, 4], [4, 3, 2, 1], steps, 2) is None
    assert _diff._shortest([1, 2], [2, 1], steps, 0) is None
    assert not steps.exceeded


def test_unique_lines_split_the_work() -> None:
    before = [b"%d" % i for i in range(6000)]
    after = [line + b"!" if i % 2 else line for i, line in enumerate(before)]
    steps = Budget(60_000)
    assert check_gaps(before, after, gaps(before, after, steps)) == 3000
    moved = before[3000:] + before[:3000]
    steps = Budget(100_000)
    assert check_gaps(before, moved, gaps(before, moved, steps)) == 3000
    assert not steps.exceeded
