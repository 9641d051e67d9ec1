"""Old text in raw bytes: spans, splices, refusals, and what is said about a miss."""

from __future__ import annotations

import codecs
import random
import re
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langchain_filestate import _match, _mismatch, _nearmiss, _search, _slips, _text
from langchain_filestate._match import Splice, apply, find, near_miss, replace, replace_many
from langchain_filestate._text import UTF8, Format
from langchain_filestate.errors import Refused

UTF8_BOM = Format("utf-8", codecs.BOM_UTF8, True)
ESCAPED = Format("utf-8", b"", False)
LATIN = "abc é=ñ x\t-"
FORMATS = {
    "utf-8": (UTF8, "ab é中\u00a0💥-x"),
    "utf-8-bom": (UTF8_BOM, "ab é中💥-x"),
    "utf-16-le": (Format("utf-16-le", codecs.BOM_UTF16_LE, True), "ab é中💥\u0101\u0d0a\u0a0d"),
    "utf-16-be": (Format("utf-16-be", codecs.BOM_UTF16_BE, True), "ab é中💥\u0101\u0d0a\u0a0d"),
    "utf-32-le": (Format("utf-32-le", codecs.BOM_UTF32_LE, True), "ab é中💥\u0101"),
    "utf-32-be": (Format("utf-32-be", codecs.BOM_UTF32_BE, True), "ab é中💥\u0101"),
    "gb18030": (Format("gb18030", b"", True), "ab 中文乗é|\\"),
    "cp932": (Format("cp932", b"", True), "ab 表ソ能ｱ|\\x"),
    "euc_jp": (Format("euc_jp", b"", True), "ab 表ソ能ｱ|x"),
    "cp949": (Format("cp949", b"", True), "ab 한글똠A|x"),
    "big5": (Format("big5", b"", True), "ab 功許中|\\x"),
    "cp1252": (Format("cp1252", b"", True), "ab é“”€|x"),
}


def edited(data: bytes, fmt: Format, old: str, new: str, replace_all: bool = False) -> bytes:
    return apply(data, replace(data, fmt, old, new, replace_all=replace_all))


def refused(data: bytes, old: str, new: str = "new", fmt: Format = UTF8, replace_all: bool = False) -> Refused:
    with pytest.raises(Refused) as caught:
        replace(data, fmt, old, new, replace_all=replace_all)
    return caught.value


def coded(text: str, fmt: Format) -> bytes:
    return fmt.bom + text.encode(fmt.encoding)


# ---- spans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "old", "spans"),
    [
        (b"abc", "b", [(1, 2)]),
        (b"abc", "x", []),
        (b"abc", "", []),
        (b"aaa", "aa", [(0, 2), (1, 3)]),
        (b"one\r\ntwo\r\n", "one\ntwo", [(0, 8)]),
        (b"one\r\ntwo\n", "one\ntwo\n", [(0, 9)]),
        (b"one\ntwo\n", "one\r\ntwo", []),
        (b"one\r\ntwo\none\ntwo", "one\r\ntwo", [(0, 8)]),
        (b"a\r\nb\nc\r\n", "a\r\nb\nc", [(0, 6)]),
        (b"a\nb\r\nc\r\n", "a\r\nb\nc", []),
        (b"a\r\nb\r\na\nb\r\na\r\nb\n", "a\r\nb\n", [(0, 6), (11, 16)]),
        (b"x\r\ny", "\ny", [(1, 4)]),  # the whole line break, not its second half
        (b"x\r\r\ny", "\ny", [(2, 5)]),
        (b"x\r\ry", "\ny", []),  # a bare CR is data
        (b"x\ry", "x\ry", [(0, 3)]),
        (b"\r\n\r\n\n", "\n\n", [(0, 4), (2, 5)]),
        (b"\r\n\n\r\n", "\n", [(0, 2), (2, 3), (3, 5)]),
        (b"a\r\n" * 12, "a\na\n", [(3 * n, 3 * n + 6) for n in range(11)]),
        (b"\xc3\xa9", "é", [(0, 2)]),
    ],
)
def test_spans(data: bytes, old: str, spans: list[tuple[int, int]]) -> None:
    assert find(data, UTF8, old) == spans


@pytest.mark.parametrize(
    ("name", "text", "old", "count"),
    [
        ("cp932", "表\\x表", "\\", 1),  # the second byte of the character is a backslash
        ("big5", "功\\功", "\\", 1),
        ("gb18030", "乗|\\", "\\", 1),
        ("gb18030", "中文中文", "文中", 1),
        ("utf-16-le", "\u0101\u0101\u0101", "\u0101", 3),
        ("utf-16-le", "\u0a0d\r\na", "\na", 1),
        ("utf-16-be", "\u0d00\u0a00a\nb", "a\nb", 1),
        ("utf-32-le", "a\r\nb", "a\nb", 1),
    ],
)
def test_no_match_begins_inside_a_character(name: str, text: str, old: str, count: int) -> None:
    fmt = FORMATS[name][0]
    data = coded(text, fmt)
    spans = find(data, fmt, old)
    assert len(spans) == count
    for start, end in spans:
        assert data[start:end].decode(fmt.encoding).replace("\r\n", "\n") == old


def test_the_byte_order_mark_is_no_text() -> None:
    data = codecs.BOM_UTF8 + b"\xef\xbb\xbfx=1"
    assert find(data, UTF8_BOM, "\ufeff") == [(3, 6)]
    assert find(data[:3] + b"x", UTF8_BOM, "\ufeffx") == []


def test_co_03_first_line_of_a_file_with_a_byte_order_mark() -> None:
    assert edited(codecs.BOM_UTF8 + b"x=1\n", UTF8_BOM, "x=1", "x=2") == codecs.BOM_UTF8 + b"x=2\n"
    fmt = FORMATS["utf-16-le"][0]
    assert edited(coded("x=1\r\ny\r\n", fmt), fmt, "x=1\ny", "x=2\nz") == coded("x=2\r\nz\r\n", fmt)


# ---- replacing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        pytest.param(b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", b"1\r\n2\r\nthree\r\n", id="ma_02"),
        pytest.param(b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n", id="co_01_a"),
        pytest.param(b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n", id="co_01_b"),
        pytest.param(b"alpha\nbeta \xff gamma\n", "alpha", "ALPHA", b"ALPHA\nbeta \xff gamma\n", id="co_04"),
        pytest.param(b"a\nb", "a", "A", b"A\nb", id="co_07_a"),
        pytest.param(b"a\nb\n", "b", "B", b"a\nB\n", id="co_07_b"),
        pytest.param(b"a", "a", "a\nb", b"a\nb", id="co_07_c"),
        pytest.param(b"a\n\n\n", "a", "A", b"A\n\n\n", id="co_07_d"),
        (b"'%s'\n", "'%s'", "\u2018%s\u2019", "\u2018%s\u2019\n".encode()),
        (b"a\nb\n", "a\n", "a\r\n", b"a\r\nb\n"),  # given explicitly, so it stays
        (b"a\r\nb\r\n", "a", "x\r\ny\nz", b"x\r\ny\r\nz\r\nb\r\n"),
        (b"a\r\nb\nc\r\nd", "a\nb\nc", "A\nB\nC", b"A\r\nB\nC\r\nd"),  # line by line
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nB\nc\nd\n", b"a\r\nB\nc\r\nd\n"),
        (b"a\nb\r\nc\r\n", "a\nb\nc\n", "a\nx\ny\nb\nc\n", b"a\nx\r\ny\r\nb\r\nc\r\n"),  # the last lines keep theirs
        (b"a\r\nb\nc\n", "a\nb\nc\n", "b\nc\n", b"b\nc\n"),
        (b"a\nb\r\nc\r\n", "a\n", "a\nx\n", b"a\nx\nb\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\nc\r\n"),  # the neighbours differ: the majority
        (b"a\r\nb\nc\n", "b", "x\ny", b"a\r\nx\ny\nc\n"),
        (b"a\r\nb\nc", "c", "x\ny", b"a\r\nb\nx\ny"),  # only one neighbour
        (b"ab\r\n\nc", "a", "x\ny", b"x\r\nyb\r\n\nc"),
        (b"x\r\ny\r\n", "\ny", "\n1\n2", b"x\r\n1\r\n2\r\n"),
        (b"a\rb", "b", "x\ny", b"a\rx\ny"),  # bare CR ends no line: LF
    ],
)
def test_one_replacement(data: bytes, old: str, new: str, after: bytes) -> None:
    assert edited(data, UTF8, old, new) == after


@pytest.mark.parametrize(
    "new",
    [r'print("a\nb")', r"\title", "&amp; &lt;", "$& $$ $1 $`", r"\1 \g<0>", "%s {x}", "\u2019", "\x85\u2028"],
)
def test_ma_07_new_text_is_taken_literally(new: str) -> None:
    assert edited(b"a X b\n", UTF8, "X", new) == b"a " + new.encode() + b" b\n"


@pytest.mark.parametrize(
    ("data", "old", "new", "after", "count"),
    [
        (b"aaaa", "aa", "b", b"bb", 2),
        (b"a a a a", "a a", "b", b"b b", 2),
        (b"-----", "--", "-", b"---", 2),
        (b"x\r\nx\nx", "x", "y\nz", b"y\r\nz\r\ny\nz\ny\nz", 3),
        (b"\n\r\n\n", "\n", ";\n", b";\n;\r\n;\n", 3),
        (b"a\r\nb\r\na\nb\n", "a\nb\n", "c\n", b"c\r\nc\n", 2),
        (b"a\r\nb\r\na\nb\n", "a\r\nb\n", "c\n", b"c\r\na\nb\n", 1),
    ],
)
def test_ed_03_replace_all_goes_left_to_right(data: bytes, old: str, new: str, after: bytes, count: int) -> None:
    splices = replace(data, UTF8, old, new, replace_all=True)
    assert (apply(data, splices), len(splices)) == (after, count)


def test_line_endings_around_many_spans_in_a_mixed_file() -> None:
    data = b"k k\r\nk k\nk\nk\r\n"
    assert edited(data, UTF8, "k", "1\n2", replace_all=True) == (
        b"1\r\n2 1\r\n2\r\n1\n2 1\n2\n1\n2\n1\n2\r\n"  # a tie between the neighbours and in the file: LF
    )


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "code", "begins"),
    [
        ("", "X", "empty_old_string", "old_string is empty"),
        ("b", "b", "no_change", "No changes to make: old_string and new_string are exactly the same."),
        ("", "", "empty_old_string", "old_string is empty"),
        ("z", "x", "no_match", "String to replace not found in file. "),
        ("\ud83d", "x", "encoding", "The text holds a lone surrogate U+D83D"),
        ("b", "A\ud800", "encoding", "The text holds a lone surrogate U+D800"),
    ],
)
def test_ed_01_and_co_06_degenerate_arguments(old: str, new: str, code: str, begins: str) -> None:
    for everywhere in (False, True):
        refusal = refused(b"abc", old, new, replace_all=everywhere)
        assert refusal.code == code
        assert refusal.message.startswith(begins)


def test_find_refuses_lone_surrogates() -> None:
    with pytest.raises(Refused, match="lone surrogate"):
        find(b"abc", UTF8, "\udcff")


def test_text_that_the_encoding_cannot_hold() -> None:
    fmt = FORMATS["cp1252"][0]
    assert refused(b"a - b", "a", "中", fmt).code == "encoding"
    miss = refused(b"price = 10 - 2\n", "price = 10 \u2212 2", "x", fmt)  # no match, and no refusal of another kind
    assert miss.code == "no_match"
    assert "U+2212 MINUS SIGN" in miss.message


def test_bytes_that_do_not_come_back() -> None:
    fmt = FORMATS["cp932"][0]
    data = b"a \x87\x90 b\n"  # one of two codes for the same character; the codec writes the other
    assert refused(data, "b", "c", fmt).code == "encoding"
    assert refused(data, "z", "c", fmt).code == "no_match"


@pytest.mark.parametrize("data", [b"a\r\nb\r\n", b"a\r\nb\n"])
def test_no_change_in_the_bytes(data: bytes) -> None:
    refusal = refused(data, "a\r\n", "a\n")
    assert refusal.code == "no_change"
    assert refusal.message.startswith("No changes to make: ")


@pytest.mark.parametrize(
    ("data", "old", "count", "lines"),
    [
        (b"aaa", "aa", 2, (1,)),
        (b"x\ny\nx\nx x\n", "x", 4, (1, 3, 4)),
        (b"x\r\ny\r\nx\r\ny\r\n", "x\ny", 2, (1, 3)),
        (b"q\n" * 30, "q", 30, tuple(range(1, 11))),
        (b"ab" * 10, "ab", 10, (1,)),
    ],
)
def test_ambiguous(data: bytes, old: str, count: int, lines: tuple[int, ...]) -> None:
    refusal = refused(data, old)
    assert (refusal.code, refusal.lines) == ("ambiguous", lines)
    assert refusal.message.startswith(f"Found {count} matches of the string to replace, but replace_all is false. ")
    assert ("there are more" in refusal.message) is (count > 10)
    for line in lines:
        assert re.search(rf"\b{line}\b", refusal.message)


def test_counting_is_bounded() -> None:
    refusal = refused(b"a" * 300_000, "a")
    assert refusal.message.startswith("Found more than 199999 matches of the string to replace, but")
    long = refused(b"a" * 150_000, "a" * 100_000)
    assert long.message.startswith("Found more than 999 matches")


def test_ambiguous_lines_in_a_wide_encoding() -> None:
    fmt = FORMATS["utf-16-be"][0]
    assert refused(coded("x\r\n\u0a0a\nx\n", fmt), "x", "y", fmt).lines == (1, 3)


def test_apply_wants_its_splices_in_order() -> None:
    with pytest.raises(ValueError, match="not in order"):
        apply(b"abc", [Splice(1, 2, b""), Splice(0, 1, b"")])
    with pytest.raises(ValueError, match="past the end"):
        apply(b"abc", [Splice(1, 9, b"")])


# ---- several edits --------------------------------------------------------------------------------------------------


def many(data: bytes, *edits: tuple[str, str] | tuple[str, str, bool], fmt: Format = UTF8) -> bytes:
    return apply(data, replace_many(data, fmt, [(edit[0], edit[1], len(edit) > 2) for edit in edits]))


def many_refused(data: bytes, *edits: tuple[str, str] | tuple[str, str, bool], fmt: Format = UTF8) -> Refused:
    with pytest.raises(Refused) as caught:
        many(data, *edits, fmt=fmt)
    return caught.value


def test_cc_03_all_edits_are_matched_against_the_file_as_it_is() -> None:
    assert many(b"a b\n", ("a", "b"), ("b", "c")) == b"b c\n"
    assert many(b"one two three\n", ("three", "3"), ("one", "1")) == b"1 two 3\n"
    assert many(b"abcd", ("ab", "1"), ("cd", "2")) == b"12"  # they may touch
    assert many(b"x a x a\r\n", ("x", "1\n2", True), ("\n", ";\n")) == b"1\r\n2 a 1\r\n2 a;\r\n"
    fmt = FORMATS["cp932"][0]
    assert many(coded("表\\x表", fmt), ("\\", "能"), ("x", "y"), fmt=fmt) == coded("表能y表", fmt)


@pytest.mark.parametrize(
    ("data", "edits", "code", "says"),
    [
        (b"A\n", [("A", "AA"), ("missing", "x")], "no_match", ["String to replace not found in file.", "edit 2 of 2"]),
        (b"A\n", [("A", "B"), ("B", "C")], "no_match", ["text that edit 1 puts in", "edit 2 of 2"]),
        (b"x x\n", [("x", "y"), (" ", "")], "ambiguous", ["Found 2 matches", "edit 1 of 2"]),
        (b"ab\n", [("a", "A"), ("b", "b")], "no_change", ["exactly the same", "edit 2 of 2"]),
        (b"ab\n", [("a", "A"), ("", "b")], "empty_old_string", ["edit 2 of 2"]),
        (b"ab\n", [("a", "A"), ("b", "\ud800")], "encoding", ["U+D800", "edit 2 of 2"]),
        (b"k\nabcd\n", [("k", "K"), ("abc", "x"), ("cd", "y")], "overlap", ["Edits 2 and 3 overlap", "line 2"]),
        (b"abcd\n", [("cd", "y"), ("abc", "x")], "overlap", ["Edits 1 and 2 overlap"]),
        (b"abcd\n", [("bc", "y"), ("bc", "z")], "overlap", ["Edits 1 and 2 overlap"]),
        (b"abcd\n", [("bc", "y"), ("bc", "y")], "overlap", ["Edits 1 and 2 overlap"]),
        (b"abcdefg\n", [("abcdef", "y"), ("bc", "y"), ("e", "z")], "overlap", ["Edits 1 and 2 overlap"]),
        (b"abcdefg\n", [("abcdef", "y"), ("g", "G"), ("e", "z")], "overlap", ["Edits 1 and 3 overlap"]),
        (b"ab\n", [("a", "ab"), ("b", "")], "no_change", ["exactly the same bytes"]),
        (b"ab\n", [], "no_change", ["there are no edits"]),
    ],
)
def test_cc_03_all_or_nothing(data: bytes, edits: list[tuple[str, str]], code: str, says: list[str]) -> None:
    refusal = many_refused(data, *edits)
    assert refusal.code == code
    for text in says:
        assert text in refusal.message


def test_overlap_names_the_line_in_decoded_files_too() -> None:
    fmt = FORMATS["utf-16-le"][0]
    assert many_refused(coded("k\nabcd", fmt), ("abc", "x"), ("cd", "y"), fmt=fmt).lines == (2,)


# ---- properties -----------------------------------------------------------------------------------------------------

WORDS = st.text(alphabet="ab\n -", max_size=60)


def ended(text: str, ends: list[bool]) -> str:
    """The text with a CRLF where `ends` (repeated) says so."""
    parts = text.split("\n")
    return "".join(part + ("\r\n" if ends[i % len(ends)] else "\n") for i, part in enumerate(parts[:-1])) + parts[-1]


@given(
    text=WORDS,
    old=st.text(alphabet="ab\n -", min_size=1, max_size=4),
    new=WORDS,
    ends=st.lists(st.booleans(), min_size=1),
)
@example(text="\n\n\n", old="\n\n", new="\n", ends=[True, False])
@settings(max_examples=150)
def test_replacing_all_is_str_replace_whatever_the_line_endings(
    text: str, old: str, new: str, ends: list[bool]
) -> None:
    data = ended(text, ends).encode()
    spans = find(data, UTF8, old)
    assert len(spans) == len(re.findall(f"(?={re.escape(old)})", text))
    for start, end in spans:
        assert data[start:end].replace(b"\r\n", b"\n") == old.encode()
        assert not (data[start : start + 1] == b"\n" and data[start - 1 : start] == b"\r")
    splices = allowed(data, UTF8, text, old, new)
    if splices is None:
        return
    after = apply(data, splices)
    assert after.replace(b"\r\n", b"\n").decode() == text.replace(old, new)
    assert len(splices) == text.count(old)
    outside(data, splices, after)
    if len(set(ends)) == 1 and "\n" in text:  # what is all CRLF or all LF stays so
        assert b"\n" not in after.replace(b"\r\n", b"") if ends[0] else b"\r" not in after


def allowed(data: bytes, fmt: Format, text: str, old: str, new: str) -> tuple[Splice, ...] | None:
    """All replacements, None if rightly refused."""
    try:
        return replace(data, fmt, old, new, replace_all=True)
    except Refused as refusal:
        code = refusal.code
    assert code == ("no_match" if old != new and old not in text else "no_change")
    return None


def outside(data: bytes, splices: tuple[Splice, ...], after: bytes) -> None:
    """Every byte outside the spans is where it was, moved by what was put in before it."""
    edges = [0, *(edge for splice in splices for edge in (splice.start, splice.end)), len(data)]
    moved = 0
    for n, (start, end) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        assert after[start + moved : end + moved] == data[start:end]
        if n < len(splices):
            moved += len(splices[n].new) - (splices[n].end - splices[n].start)
    assert all(first.end <= second.start for first, second in pairwise(splices))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40)
@given(values=st.data())
def test_all_encodings(name: str, values: st.DataObject) -> None:
    fmt, alphabet = FORMATS[name]
    text = values.draw(st.text(alphabet=alphabet + "\n", max_size=40))
    old = values.draw(st.text(alphabet=alphabet + "\n", min_size=1, max_size=3))
    new = values.draw(st.text(alphabet=alphabet + "\n", max_size=5))
    ends = values.draw(st.lists(st.booleans(), min_size=1, max_size=3))
    data = coded(ended(text, ends), fmt)
    assert len(find(data, fmt, old)) == len(re.findall(f"(?={re.escape(old)})", text))
    splices = allowed(data, fmt, text, old, new)
    if splices is None:
        return
    after = apply(data, splices)
    assert after.startswith(fmt.bom)
    assert after[len(fmt.bom) :].decode(fmt.encoding).replace("\r\n", "\n") == text.replace(old, new)
    outside(data, splices, after)


@given(data=st.binary(max_size=80), old=st.text(min_size=1, max_size=3), new=st.text(max_size=4), known=st.booleans())
def test_any_bytes(data: bytes, old: str, new: str, known: bool) -> None:
    if known:
        old = data[2:5].decode("ascii", "ignore") or "a"
    fmt = _text.UTF8 if data.decode("utf-8", "ignore").encode() == data else ESCAPED
    try:
        splices = replace(data, fmt, old, new, replace_all=True)
    except Refused:
        return
    outside(data, splices, apply(data, splices))
    for splice in splices:
        assert data[splice.start : splice.end].replace(b"\r\n", b"\n") == old.replace("\r\n", "\n").encode()


@given(text=st.text(alphabet="ab\n", max_size=30), cuts=st.lists(st.integers(0, 29), max_size=6, unique=True))
def test_many_edits_are_one_replacement_at_a_time(text: str, cuts: list[int]) -> None:
    letters = "".join(chr(0x4E00 + n) for n in range(len(text)))  # all different, so each edit is unique
    data = letters.encode()
    edits = [(letters[n], text[n], False) for n in cuts if n < len(letters)]
    wanted = "".join(text[n] if n in cuts else char for n, char in enumerate(letters))
    if edits:
        assert apply(data, replace_many(data, UTF8, edits)).decode() == wanted


# ---- near misses ----------------------------------------------------------------------------------------------------

FILE, OLD = "the file has", "old_string has"
NEAR = [
    ("tabs", b"x\n\tif x:\n\t\ty()\n", "    if x:\n        y()", (2,), ["lines 2-3", "1 tab in the file, with 4 spaces", "2 tabs in the file, with 8 spaces"]),
    ("spaces", b"    if x:\n", "\tif x:", (1,), ["indented with 4 spaces in the file, with 1 tab"]),
    ("block shift", b"class A:\n    def f():\n        return 1\n\n    g = 2\n", "def f():\n    return 1\n\ng = 2", (2,), ["lines 3 to 5 are indented by 4 spaces more in the file"]),
    ("block shift less", b"a:\n  b\n  c\n", "a:\n    b\n    c\n", (1,), ["lines 2 to 3 are indented by 2 spaces less in the file"]),
    ("many indents", b"a\n b\n  c\n   d\n\te\n", "a\n\tb\n\tc\n\td\n  e", (1,), ["line 2 is indented with 1 space in the file, with 1 tab", "2 more lines up to line 5"]),
    ("inner blanks", b"foo   bar baz\n", "foo bar", (1,), ["line 1, column 4", f"{FILE} 3 spaces, {OLD} 1 space"]),
    ("trailing blanks", b"a = 1  \nb = 2\n", "a = 1\nb = 2", (1,), ["line 1 ends with 2 spaces in the file, with no blanks in old_string"]),
    ("trailing in old", b"a = 1\nb = 2\n", "a = 1 \nb = 2", (1,), ["line 1 ends with no blanks in the file, with 1 space"]),
    ("blank line", b"a = 1\n  \nb = 2\n", "a = 1\n\nb = 2", (1,), ["line 2 is indented with 2 spaces in the file, with no blanks"]),
    ("mixture", b"a: \t \t \tb\n", "a: b", (1,), ["a mixture of 3 tabs and 3 spaces"]),
    ("two kinds", b"\t  key = 1\n", "\tkey = 2", (1,), ["from line 1, column 10, on the file has `1`"]),
    ("empty lines more", b"def f():\n    pass\n\n\ndef g():\n", "    pass\n\ndef g():", (2,), ["after line 2 the file has 1 empty line more than old_string"]),
    ("empty lines less", b"abc\ndef\n", "abc\n\n\ndef", (1,), ["after line 1 old_string has 2 empty lines more than the file"]),
    ("joined", b"foo(a,\n    b)\n", "foo(a, b)", (1,), ["line 1 ends before column 7 in the file, where old_string goes on"]),
    ("broken", b"foo(a, b)\n", "foo(a,\n    b)", (1,), ["line 1 goes on at column 7 in the file, where old_string has a line break"]),
    ("ma_03 nbsp", "list in\u00a0current\n".encode(), "list in current", (1,), ["line 1, column 8", f"{FILE} U+00A0 NO-BREAK SPACE, {OLD} a space"]),
    ("curly quotes", "a = \u2018%s\u2019\n".encode(), "a = '%s'", (1,), ["column 5", "U+2018 LEFT SINGLE QUOTATION MARK", "U+0027 APOSTROPHE", "column 8", "U+2019"]),
    ("straight quotes", b'say "hello you"\n', "say \u201chello you\u201d", (1,), [f"{FILE} U+0022 QUOTATION MARK, {OLD} U+201C"]),
    ("dashes", "pages 1\u20132 or so\n".encode(), "pages 1-2 or so", (1,), [f"{FILE} U+2013 EN DASH, {OLD} U+002D HYPHEN-MINUS"]),
    ("zero width", "foo\u200bbar = 1\n".encode(), "foobar = 1", (1,), ["column 4", f"{FILE} U+200B ZERO WIDTH SPACE, {OLD} nothing"]),
    ("homoglyph", "p\u0430yload = 1\n".encode(), "payload = 1", (1,), ["column 2", "U+0430 CYRILLIC SMALL LETTER A", "U+0061 LATIN SMALL LETTER A"]),
    ("homoglyph at the end", "payload is \u0430\n".encode(), "payload is a", (1,), ["column 12", "U+0430 CYRILLIC SMALL LETTER A"]),
    ("full width", "中文，测试文本\n第二行\n".encode(), "中文,测试文本\n第二行\n", (1,), ["column 3", "U+FF0C FULLWIDTH COMMA", "U+002C COMMA"]),
    ("other script", "первая строка и вторая\n".encode(), "первая  строка и вторая", (1,), ["column 7", f"{FILE} 1 space, {OLD} 2 spaces"]),
    ("nfd", "cafe\u0301 noir\n".encode(), "caf\u00e9 noir", (1,), ["decomposed (NFD), those of old_string composed (NFC)"]),
    ("nfc", "caf\u00e9 noir\n".encode(), "cafe\u0301 noir", (1,), ["composed (NFC), those of old_string decomposed (NFD)"]),
    ("nfd and more", "the cafe\u0301 noir  is here\n".encode(), "the caf\u00e9 noir is here", (1,), ["column 8", "decomposed (NFD) letters"]),
    ("nfc and more", "the caf\u00e9 noir  is here\n".encode(), "the cafe\u0301 noir is here", (1,), ["column 8", "composed (NFC) letters"]),
    ("nfd in a gap", "x = 'a' \u0041\u030a\n".encode(), "x = 'a' \u00c5", (1,), ["decomposed (NFD)"]),
    ("crlf given", b"a\nb\n", "a\r\nb", (1,), ["CRLF (\\r\\n) where the file has LF"]),
    ("crlf given in part", b"a1\r\nb2\nc3\r\nd4\n", "a1\r\nb2\r\nc3", (1,), ["CRLF (\\r\\n) where the file has LF"]),
    ("bare cr", b"a\rb\rc\n", "a\nb\nc", (1,), ["lone CR"]),
    ("gutter", b"x\nfoo\nbar\n", "     2\tfoo\n     3\tbar", (2,), ["line numbers", "read_file", "`cat -n`", "in line 2"]),
    ("gutter, first line cut", b"x\nfoo\nbar\n", "oo\n     3\tbar", (2,), ["line numbers"]),
    ("gutter, arrow", b"x\nfoo\n", "2\u2192foo", (2,), ["line numbers"]),
    ("gutter and more", b"foo one\nbar  two\n", "     1\tfoo one\n     2\tbar two", (1,), ["line numbers", f"{FILE} 2 spaces, {OLD} 1 space"]),
    ("gutter, grep", b"x\nfoo\nbar\n", "2:foo\n3:bar", (2,), ["line numbers"]),
    ("escaped break", b"a\nb\n", "a\\nb", (1,), ["has the line break or tab itself where old_string has \\n"]),
    ("escaped quotes", b'say "hi" now\n', 'say \\"hi\\" now', (1,), ["without the backslash that old_string has before quotes"]),
    ("escaped all", b'a\t"b" c\n', 'a\\t\\"b\\" c', (1,), ["has the characters themselves"]),
    ("break in a literal", b'print("a\\nb")\n', 'print("a\nb")', (1,), ["has \\n as two characters where old_string has a line break"]),
    ("tab in a literal", b'print("a\\tb")\n', 'print("a\tb")', (1,), ["has \\t as two characters where old_string has a tab"]),
    ("quotes in a literal", b"x = 'it\\'s \\\"a\\\"'\n", "it's \"a\"", (1,), ["a backslash before the quotes"]),
    ("double quotes in a literal", b'{"a": "say \\"hi\\" it\'s"}\n', 'say "hi" it\'s', (1,), ["a backslash before the double quotes"]),
    ("json string", b'{"a": "one\\n\\"two\\""}\n', 'one\n"two"', (1,), ["as in a string literal"]),
    ("doubled backslash", b"path = C:\\\\dir\\\\x\n", "path = C:\\dir\\x", (1,), ["two backslashes where old_string has one"]),
    ("break in part", b'print("a\\nb", "x\ny")\n', 'print("a\nb", "x\ny")', (1,), [f"{FILE} \\n as two characters, {OLD} a line break itself"]),
    ("escape in part", b'foo("a\nb", "x\\ny")\n', 'foo("a\\nb", "x\\ny")', (1,), [f"{FILE} a line break itself, {OLD} \\n as two characters"]),
    ("entities in old", b"if a & b < c:\n", "if a &amp; b &lt; c:", (1,), ["entities such as &amp; in old_string"]),
    ("entities in file", b"<p>a &amp; b</p> and &lt; c\n", "a & b", (1,), [f"{FILE} entities such as &amp;"]),
    ("quote entities", b"t(&quot;a &amp; b&quot;)\n", '"a & b"', (1,), [f"{FILE} entities such as &amp;"]),
    ("entity in part", b"first & second and then third &lt; x\n", "first &amp; second and then third &lt; x", (1,), ["entity &amp; of old_string"]),
    ("entity in part of the file", b"one long text &lt; two & three\n", "one long text < two & three", (1,), [f"{FILE} the entity &lt;"]),
    ("entity in part of old", b"one long text < two & three\n", "one long text &lt; two & three &lt;", (1,), ["entity &lt; of old_string"]),
    ("entity before", b"x &lt; y and then a long text\n", "x < y and then a long text &lt;", (1,), [f"{FILE} the entity &lt;"]),
    ("no entity", b"some text &unknown; and more\n", "some text & known; and more", (1,), ["from line 1, column 12, on the file has `unknown;"]),
    ("entity elsewhere", b"qq &amp; alpha.beta(first, second)\n", "zz &amp; gamma.beta(first, second)", (1,), ["`qq &amp; alph`"]),
    ("jamo", unicodedata.normalize("NFD", "value = '한'  # a note\n").encode(), "value = '한' # a note", (1,), ["column 10", "decomposed (NFD) letters"]),
    ("ideograph", "value = '中'  # a note\n".encode(), "value = '国' # a note", (1,), ["U+4E2D", "U+56FD"]),
    ("case", b"def HelloWorld(x):\n", "def helloworld(X):", (1,), ["column 5, the file has `HelloWorld`, old_string has other upper or lower case"]),
    ("ma_04 final newline", b"# Role\nhelper", "# Role\nhelper\n", (1,), ["no final newline"]),
    ("final newline, more", b"# Role\n  helper", "# Role\n helper\n", (1,), ["no final newline"]),
    ("ma_04 not the end", b"return foobar", "return foo\n", (1,), ["line 1 goes on at column 11"]),
    ("line breaks at the end", b"abc = 1\n", "abc = 1\n\n", (1,), ["1 line break less than old_string at its end"]),
    ("bad byte", b"alpha\nbeta \xff gamma\n", "beta \\xff gamma", (2,), ["\\x escapes stand for bytes"]),
    ("bad byte left out", b"alpha\nbeta \xff gamma\n", "beta gamma", (2,), ["column 6", "the byte 0xff"]),
    ("byte order mark", b"foo\n", "\ufefffoo", (1,), ["U+FEFF"]),
    ("word", b"x = compute(alpha, beta)\nreturn x\n", "x = compute(alpha, gamma)\nreturn x\n", (1,), ["from line 1, column 20, on the file has `beta)`"]),
    ("word before", b"def foo(a, b):\n    return a + b\n", "xdef foo(a, b):\n    return a + b", (1,), ["begins otherwise", "from line 1, column 1"]),
    ("word before, same line", b"result = other(first, second)\n", "result = wrong(first, second)", (1,), ["column 10, on the file has `other(first"]),
    ("begins otherwise", b"alpha.beta(first, second)\n", "gamma.beta(first, second)", (1,), ["before line 1, column 5, the file has `alph`"]),
    ("line left out", b"import os\nimport sys\nimport re\n", "import os\nimport re\n", (1,), ["from line 2, column 8, on the file has `sys`"]),
    ("end of file", b"first line\nsecond line\n", "first line\nsecond line\nthird line\n", (1,), ["the file ends at line 3, column 1"]),
    ("ma_08 far anchors", b"BEGIN\n" + b"line\n" * 200 + b"END\nBEGIN\nxy\nEND", "BEGIN\nx\nEND", (203,), ["line 204 goes on at column 2"]),
    ("several places", b"\tfoo(x)\n\tbar\n\tfoo(x)\n", "    foo(x)", (1, 3), ["also similar: line 3"]),
    ("bracket, tab", b"if x {\n\ta;\n\t}\nfoo\n\t}\n", "    }\n", (3, 5), ["indented with 1 tab in the file, with 4 spaces in old_string"]),
    ("bracket, tabs", b"\t\t)\n", "        )", (1,), ["indented with 2 tabs"]),
    ("character, nbsp before", "\u00a0x\n".encode(), " x", (1,), ["column 1", "U+00A0"]),
    ("character, nbsp behind", "a\u00a0".encode(), "a ", (1,), ["column 2", "U+00A0"]),
    ("character in a word", b"x = a + b\n", "\ta", (), ["Nothing in the file is similar"]),
    ("nothing", b"foo\n", "totally different thing", (), ["Nothing in the file is similar"]),
    ("one character", b"foo\n", "=", (), ["Nothing in the file is similar"]),
    ("blanks only", b"foo\n", "   ", (), ["Nothing in the file is similar"]),
    ("empty file", b"", "x", (), ["The file is empty"]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "old", "lines", "says"), [pytest.param(*row[1:], id=row[0]) for row in NEAR])
def test_near_miss(data: bytes, old: str, lines: tuple[int, ...], says: list[str]) -> None:
    assert find(data, UTF8, old) == []
    text, where = near_miss(data, UTF8, old, "something new and long")
    for fragment in says:
        assert fragment in text
    assert where == lines
    assert len(text) < 1000
    refusal = refused(data, old)
    assert refusal.code == "no_match"
    assert refusal.message.startswith("String to replace not found in file. ")
    assert refusal.lines == lines


@pytest.mark.parametrize(
    ("data", "old", "new", "lines"),
    [
        (b"a\nx = compute(a, c)\n", "x = compute(a, b)", "x = compute(a, c)", (2,)),
        (b"a\nx = compute(a, c)\r\ny\r\n", "x = compute(a, b)\ny", "x = compute(a, c)\ny", (2,)),
        ("\u2018%s\u2019\n".encode(), "'%s'", "\u2018%s\u2019", (1,)),  # only a look-alike was changed
        (b"    indented()\n", "\tindented()", "    indented()", (1,)),
        (b"nothing else is here: 123456789\n", "qqqqq", "here: 123456789", (1,)),
        (b"one\ngamma delta\n", "alpha beta", "gamma delta", (2,)),
    ],
)
def test_already_applied(data: bytes, old: str, new: str, lines: tuple[int, ...]) -> None:
    text, where = near_miss(data, UTF8, old, new)
    assert "already applied" in text
    assert where == lines


def test_new_text_elsewhere_is_said_beside_the_nearest_place() -> None:
    data = b"alpha = compute(first, second)\nx\ny\nz\nentirely = unrelated_text(here)\n"
    text, where = near_miss(data, UTF8, "alpha = compute(first, third)", "entirely = unrelated_text(here)")
    assert "already applied. Otherwise: The nearest place is line 1" in text
    assert where == (1,)


@pytest.mark.parametrize("new", ["x", "", "if", "\ty"])
def test_a_short_new_text_that_is_there_by_chance_is_no_sign(new: str) -> None:
    text, _ = near_miss(b"\tif x:\n\t\ty()\n", UTF8, "    if x:\n        y()", new)
    assert "already" not in text


def test_a_table_with_numbers_is_no_gutter() -> None:
    text, _ = near_miss(b"1\tapple pie\n2\tbanana split\n", UTF8, "1\tapple pie\n2\tbanana  split", "x")
    assert "line numbers" not in text
    assert _slips.without_gutter("8080: x") is None
    assert _slips.without_gutter("1\ta\n3\tb") is None
    assert _slips.without_gutter("1\ta\nb") is None


def test_the_models_own_text_is_not_repeated() -> None:
    marker = "SECRETMARKER"
    data = b"def function_one(argument):\n    return argument * 2\n"
    for old in (
        f"def function_one(argument):\n    return {marker}",
        f"{marker}(argument):\n    return argument * 2",
        marker,
    ):
        assert marker not in near_miss(data, UTF8, old, "x")[0]


def test_many_differences_are_summed_up() -> None:
    data = "\n".join(f"key{n} = \u201cvalue {n}\u201d  # note" for n in range(50)).encode()
    old = "\n".join(f'key{n} = "value {n}"  # note' for n in range(50))
    text, lines = near_miss(data, UTF8, old, "x")
    assert "and 97 further differences" in text
    assert lines == (1,)
    one = near_miss("“a”, “b”".encode(), UTF8, '"a", "b"', "x")[0]
    assert "and 1 further difference of this kind" in one


@pytest.mark.parametrize("name", FORMATS)
def test_near_misses_in_all_encodings(name: str) -> None:
    fmt = FORMATS[name][0]
    data = coded("first\r\nvalue  of x\r\n", fmt)
    text, lines = near_miss(data, fmt, "value of x", "y")
    assert lines == (2,)
    assert "in line 2, column 6, the file has 2 spaces, old_string has 1 space" in text


def test_a_lone_surrogate_in_the_file_is_kept_and_shown_as_escape() -> None:
    fmt = FORMATS["utf-16-le"][0]
    rest = "  of ".encode("utf-16-le") + b"\x00\xd8" + "x\n".encode("utf-16-le")
    data = coded("value", fmt) + rest
    assert "value  of \\ud800x" in near_miss(data, fmt, "value of ", "y")[0]
    assert edited(data, fmt, "value", "v") == coded("v", fmt) + rest


def test_the_stretch_is_cut_between_characters() -> None:
    for shift in range(6):
        data = ("x" * shift + "长长的一行" * 200 + "value  of x" + "长长的一行" * 200).encode()
        text, _ = near_miss(data, UTF8, "value of x", "y")
        assert f"column {shift + 1006}," in text
        assert "\\x" not in text


def test_long_lines_are_quoted_around_the_place() -> None:
    data = b"start " + b"filler;" * 30_000 + b"the  needle is here;" + b"filler;" * 30_000
    text, lines = near_miss(data, UTF8, "the needle is here", "x")
    assert f"column {6 + 7 * 30_000 + 4}" in text
    assert "[...] the  needle is here;filler" in text
    assert len(text) < 500
    assert lines == (1,)


def test_blanks_and_wide_characters_do_not_shorten_the_walk() -> None:
    data = "\n".join(" " * 2000 + f"中文 line {n}" for n in range(20)).encode()
    text, lines = near_miss(data, UTF8, "\n".join(f"\t中文 line {n}" for n in range(20)), "x")
    assert "nearest place is lines 1-20" in text
    assert lines == (1,)
    chinese = "".join(f"第{n}行的中文文字\n" for n in range(300))
    text, lines = near_miss(chinese.encode(), UTF8, chinese.replace("第299", "第298"), "x")
    assert "from line 300, column 4, on the file has `9行的" in text
    assert lines == (1,)
    spaced = near_miss(b"alpha beta" + b" " * 500 + b"gamma\n", UTF8, "alpha beta delta", "x")[0]
    assert "from line 1, column 511, on the file has `gamma`" in spaced


def test_a_long_text_is_walked_in_part() -> None:
    line = "some line of a long text\n"
    old = line * 2000
    data = ("x\n" + line * 1999).encode()
    text, lines = near_miss(data, UTF8, old + "and an end", "x")
    assert f"Its first {1999 * len(line)} characters are there, from line 2 on, but not what follows: " in text
    assert "the file ends" in text
    assert lines == (2000,)


def test_a_very_long_line_is_compared_where_it_parts() -> None:
    text, lines = near_miss(("head\n" + "ab " * 20_000 + "tail\n").encode(), UTF8, "ab " * 20_000 + "tall", "x")
    assert text.startswith("Its first 60002 characters are there, from line 2 on, but not what follows: from line 2, ")
    assert "column 60003, on the file has `il`" in text
    assert lines == (2,)


def test_a_long_text_that_was_copied_with_its_line_numbers() -> None:
    lines = [f"line number {n} of the file\n" for n in range(2000)]
    old = "".join(f"{n:>6}\t{line}" for n, line in enumerate(lines[:1200], 1)).replace("er 1100", "er  1100")
    text, where = near_miss("".join(lines).encode(), UTF8, old, "x")
    assert text.startswith(_slips.GUTTER)
    assert "in line 1101, column 12, the file has 1 space, old_string has 2 spaces" in text
    assert where == (1101,)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("instead", "told"),
    [
        ("line  number 1100", "in line 1101, column 5, the file has 1 space, old_string has 2 spaces"),
        ("\tline number 1100", "line 1101"),
        ("Line number 1100", "line 1101"),
        ("line number 1l00", "from line 1101, column 14, on the file has"),
        ("», 1100", "line 1101"),
    ],
)
def test_a_long_text_is_compared_where_it_parts(newline: str, instead: str, told: str) -> None:
    lines = [f"line number {n} of the file, häßlich\n" for n in range(2000)]
    old = "".join(lines[:1200]).replace("line number 1100", instead)
    data = "".join(lines).replace("\n", newline).encode()
    text, where = near_miss(data, UTF8, old, "x")
    same = next(n for n, (one, other) in enumerate(zip(old, "".join(lines), strict=False)) if one != other)
    assert text.startswith(f"Its first {same} characters are there, from line 1 on")
    assert told in text
    assert "line number 1100 of the file" in text
    assert where in {(1100,), (1101,)}
    assert len(text) < 1000


def test_a_very_large_file_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_nearmiss, "_FILE_LIMIT", 1000)
    data = b"x" * 2000 + b"\nvalue  of x"
    assert "Only its first 0 MB were compared" in near_miss(data, UTF8, "value of x\n", "y")[0]


def test_what_is_said_is_cut() -> None:
    data = "".join(f"\u00a0word{n:03}{'w' * 100}\n" for n in range(9)).encode()
    text, _ = near_miss(data, UTF8, "".join(f" word{n:03}{'w' * 100}\n" for n in range(9)), "x")
    assert len(text) < 1000


@given(
    data=st.text(alphabet="ab\n \t\"'\\&;-é\u00a0\u0301n", max_size=60),
    old=st.text(alphabet="ab\n \t\"'\\&;-é\u00a0\u0301n", min_size=1, max_size=20),
    new=st.text(alphabet="ab\n", max_size=8),
    crlf=st.booleans(),
)
@settings(max_examples=150)
def test_a_miss_always_has_a_short_text(data: str, old: str, new: str, crlf: bool) -> None:
    raw = (data.replace("\n", "\r\n") if crlf else data).encode()
    if find(raw, UTF8, old):
        return
    text, lines = near_miss(raw, UTF8, old, new)
    assert 0 < len(text) < 1000
    assert all(1 <= line <= raw.count(b"\n") + 1 for line in lines)


@given(
    data=st.binary(max_size=300),
    old=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
)
def test_a_miss_in_any_bytes(data: bytes, old: str) -> None:
    if not find(data, ESCAPED, old):
        near_miss(data, ESCAPED, old, "new")[0].encode()


@given(
    lines=st.lists(st.text(alphabet="abcdefgh =().,", min_size=8, max_size=30), min_size=3, max_size=12),
    values=st.data(),
)
def test_the_nearest_place_is_the_right_one(lines: list[str], values: st.DataObject) -> None:
    """Distinct lines, indentation lost: whatever the text, the place is found."""
    lines = [f"line{n} {line} end{n}" for n, line in enumerate(lines)]
    data = "\n".join(f"    {line}" for line in lines).encode()
    first = values.draw(st.integers(0, len(lines) - 2))
    old = "\n".join(f"\t{line}" for line in lines[first : first + 2])
    text, where = near_miss(data, UTF8, old, "x")
    assert where == (first + 1,)
    assert "4 spaces in the file, with 1 tab in old_string" in text


@given(data=st.binary(max_size=200), size=st.sampled_from([3, 7, 1 << 16]))
def test_positions_in_the_skeleton_are_positions_in_the_file(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_nearmiss, "_CHUNK", size)
        skeleton = _nearmiss._Skeleton(data, _nearmiss._ASCII)
        kept = [at for at, byte in enumerate(data) if byte not in _nearmiss._ASCII.dropped]
        assert [skeleton.offset(at) for at in range(len(skeleton.bytes))] == kept
        assert skeleton.bytes == bytes(data[at] for at in kept).lower()


def test_forms_keep_the_same_in_bytes_and_text() -> None:
    for form in (_nearmiss._ASCII, _nearmiss._OTHER):
        assert {chr(b) for b in range(128) if b not in form.dropped} == set(
            form.keep.findall(bytes(range(128)).decode())
        )


def test_names_of_characters_and_blanks() -> None:
    assert _mismatch.name("") == "nothing"
    assert _mismatch.name("\udcff") == "the byte 0xff (no text)"
    assert _mismatch.name("\x80") == "U+0080 without a name"
    assert _mismatch.blanks("\t\t ") == "2 tabs and 1 space"
    assert _mismatch.blanks("") == "no blanks"


def test_misses_in_large_files() -> None:
    """Normal, one line, repetitive: 2 MB each, and a text that is not there, one that nearly is."""
    draw = random.Random(7)
    words = ["alpha", "beta", "return", "self.x", "foo(bar)", "value", "items[index]", "None"]
    normal = "\n".join(" ".join(draw.choices(words, k=8)) for _ in range(45_000))
    middle = "\n".join(normal.split("\n")[40_000:40_004])
    for data in (normal, normal.replace("\n", ";"), "    x = foo(bar, 1)\n" * 100_000, "a" * 2_000_000):
        for old in (middle.replace(" ", "\t"), "nowhere at all is this text to be found", "a" * 40 + "b" + "a" * 40):
            text, _ = near_miss(data.encode(), UTF8, old, "new text")
            assert len(text) < 1000
    assert near_miss(normal.encode(), UTF8, middle.replace(" ", "\t"), "new text")[1] == (40_001,)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"aa", b"ab", b"b", b"c", b"aac"]), max_size=80).map(b"".join),
    st.lists(st.sampled_from([b"a", b"ab", b"b", b"c"]), min_size=1, max_size=4).map(b"".join),
    st.sampled_from([1, 2, 400]),
    st.integers(0, 3),
)
def test_large_content_is_searched_as_any_other(hay: bytes, needle: bytes, sparse: int, tries: int) -> None:
    plain = list(_search._each(hay, needle, 0, 1))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"_LARGE": -1, "_SPARSE": sparse, "_TRIES": tries}.items():
            patch.setattr(_search, name, value)
        assert list(_search._each(hay, needle, 0, 1)) == plain


def test_what_is_rare_in_the_sample_only_does_not_slow_the_search_down(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    class Hay(bytes):
        def find(self, what: Any, *at: Any) -> int:
            looked_at.append(1)
            return super().find(what, *at)

    monkeypatch.setattr(_search, "_LARGE", 10_000)
    for hay, most in ((b"a" * 90_000 + b"xy", 2), (b"a" * 40_000 + b"x" * 8000 + b"a" * 100_000 + b"xy", 110)):
        looked_at.clear()
        assert list(_search._each(Hay(hay), b"xy", 0, 1)) == [hay.index(b"xy")]
        assert len(looked_at) <= most


def test_long_text_is_searched_as_ever_since_each_try_of_it_would_cost_its_length() -> None:
    hay = (b"x" * 499 + b"Q") * 10_000
    assert _search._finder(hay, b"x" * 10 + b"Q") != hay.find
    assert _search._finder(hay, hay[:20_000]) == hay.find


def test_public_names() -> None:
    assert set(_match.__all__) == {"Splice", "Spliced", "apply", "find", "near_miss", "replace", "replace_many"}
