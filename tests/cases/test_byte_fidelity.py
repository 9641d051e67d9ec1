"""Outside the edited span every byte stays, and what is written is what was given."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable

import pytest

from langchain_filestate import parse_result
from tests.cases.steps import Desk, code

# ---- CO-01 ----------------------------------------------------------------------------------------------------------

# before, old, new, after
ENDINGS: dict[str, tuple[bytes, str, str, bytes]] = {
    "mixed, one byte": (b"a\r\nb\nc\r\n", "b", "B", b"a\r\nB\nc\r\n"),
    "crlf, new break": (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
    "lf, new break": (b"a\nb\nc\n", "b", "x\ny", b"a\nx\ny\nc\n"),
    "crlf, no break anywhere": (b"ab", "a", "x\ny", b"x\ny" + b"b"),
    "crlf, end of file": (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
    "crlf, a line more at the end": (b"a\r\nb\r\n", "b\n", "b\nc\n", b"a\r\nb\r\nc\r\n"),
    "crlf, a line less": (b"a\r\nb\r\nc\r\n", "b\n", "", b"a\r\nc\r\n"),
    "crlf, two joined": (b"a\r\nb\r\n", "a\nb", "ab", b"ab\r\n"),
    "crlf given for crlf": (b"a\r\nb\r\n", "a\r\nb", "x\r\ny\r\nz", b"x\r\ny\r\nz\r\n"),
    "mixed, the neighbour counts": (b"a\r\nb\nc\nd\r\ne\r\nf\n", "e", "e\nE", b"a\r\nb\nc\nd\r\ne\r\nE\r\nf\n"),
    "between two kinds the majority counts": (b"a\nb\nc\r\n", "c", "c\nC", b"a\nb\nc\nC\r\n"),
    "lone cr stays": (b"a\rb\nc\n", "c", "C", b"a\rb\nC\n"),
    "cr cr lf stays": (b"a\r\r\nb\r\r\nc\r\n", "c", "C", b"a\r\r\nb\r\r\nC\r\n"),
    "only lone cr": (b"a\rb\rc", "b", "B", b"a\rB\rc"),
    "trailing blanks stay": (b"a  \r\n\tb\t\r\n  \r\n", "b", "B", b"a  \r\n\tB\t\r\n  \r\n"),
    "nel and separators stay": ("a\u0085b\u2028c\n".encode(), "c", "C", "a\u0085b\u2028C\n".encode()),
    "no match across a lone cr": (b"a\r\nb\rc\r\n", "b\rc", "x", b"a\r\nx\r\n"),
}


@pytest.mark.parametrize(("before", "old", "new", "after"), ENDINGS.values(), ids=ENDINGS)
def test_co_01_line_endings_of_others_stay(
    desk: Callable[..., Desk], before: bytes, old: str, new: str, after: bytes
) -> None:
    d = desk()
    path = d.put("f", before)
    d.read(path)
    message = d.edit(path, old, new)
    assert message.status == "success", message.content
    assert path.read_bytes() == after
    other = d.put("g", before)
    d.read(other)
    assert d.many(other, (old, new)).status == "success"
    assert other.read_bytes() == after


@pytest.mark.parametrize("everywhere", [True, False])
def test_co_01_each_replacement_takes_its_own_neighbours_ending(desk: Callable[..., Desk], everywhere: bool) -> None:
    d = desk()
    path = d.put("f", b"x\r\n-\r\n-\nx\n-\n-\r\nx\r\n" if everywhere else b"x\r\n-\r\n-\ny\n-\n-\r\nz\r\n")
    d.read(path)
    if everywhere:
        assert d.edit(path, "x", "1\n2", replace_all=True).status == "success"
    else:
        assert d.many(path, ("x", "1\n2"), ("y", "1\n2"), ("z", "1\n2")).status == "success"
    assert path.read_bytes() == b"1\r\n2\r\n-\r\n-\n1\n2\n-\n-\r\n1\r\n2\r\n"


@pytest.mark.parametrize(
    ("before", "given", "changed"),
    [
        (b"a\r\nb\r\n", "a\nb\n", True), (b"a\nb\n", "a\r\nb\r\n", True), (b"a\r\nb\n", "a\nb\n", True),
        (b"a\r\nb\r\n", "a\r\nb\r\nc\r\n", False), (b"a\r\n", "a", False), (b"a", "a\r\n", False),
    ],
)  # fmt: skip
def test_co_01_a_write_takes_what_was_given_and_says_so(
    desk: Callable[..., Desk], before: bytes, given: str, changed: bool
) -> None:
    d = desk()
    path = d.put("f", before)
    d.read(path)
    message = d.write(path, given)
    assert path.read_bytes() == given.encode()
    assert message.artifact["newline_changed"] is changed
    assert ("Line endings changed" in str(message.content)) is changed


# ---- CO-03 ----------------------------------------------------------------------------------------------------------

MARKS = {
    "utf-8": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "utf-32-be": (codecs.BOM_UTF32_BE, "utf-32-be"),
}


@pytest.mark.parametrize(("bom", "encoding"), MARKS.values(), ids=MARKS)
def test_co_03_a_byte_order_mark_stays_and_is_not_shown(desk: Callable[..., Desk], bom: bytes, encoding: str) -> None:
    d = desk()
    text = "x=1\r\n# \u4e2d\U0001f600\r\ny=2\r\n"

    def data(text: str) -> bytes:
        return bom + text.encode(encoding)

    path = d.put("f", data(text))
    shown = d.read(path)
    assert str(shown.content).startswith("     1\tx=1\n")
    assert "\ufeff" not in str(shown.content)
    assert (shown.artifact["bom"], shown.artifact["encoding"]) == (True, encoding)
    assert d.edit(path, "x=1", "x=3").status == "success"
    assert path.read_bytes() == data(text.replace("x=1", "x=3"))
    assert d.edit(path, "x=3\n", "").status == "success"  # the whole first line
    assert path.read_bytes() == data(text.replace("x=1\r\n", ""))
    assert d.edit(path, "\U0001f600", "\U0001f601").status == "success"
    assert d.write(path, "new \u00e9\n").status == "success"
    assert path.read_bytes() == data("new \u00e9\n")
    assert d.write(path, "\ufeffagain\n").status == "success"  # a mark that was given is not doubled
    assert path.read_bytes() == data("again\n")
    assert d.write(path, "").status == "success"
    assert path.read_bytes() == bom
    shown = d.read(path)
    assert "empty" in str(shown.content)
    assert d.write(path, "back\n").status == "success"
    assert path.read_bytes() == data("back\n")


def test_co_03_only_a_mark_at_the_beginning_is_one(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", "a\ufeffb\n".encode())
    assert "\ufeff" in str(d.read(path).content) or "\\ufeff" in str(d.read(path).content)
    assert d.edit(path, "a\ufeffb", "c").status == "success"
    path = d.put("g", codecs.BOM_UTF8 * 2 + b"x=1\n")
    d.read(path)
    assert d.edit(path, "x=1", "x=2").status == "success"
    assert path.read_bytes() == codecs.BOM_UTF8 * 2 + b"x=2\n"


def test_co_03_a_new_file_gets_no_mark_unless_given(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.write("f", "x\n")
    d.write("g", "\ufeffx\n")
    assert (d.root / "f").read_bytes() == b"x\n"
    assert (d.root / "g").read_bytes() == codecs.BOM_UTF8 + b"x\n"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_co_03_without_a_mark_it_is_binary_and_says_why(desk: Callable[..., Desk], encoding: str) -> None:
    d = desk()
    data = "some text\r\nmore of it\r\n".encode(encoding)
    path = d.put("f", data)
    for message in (d.read(path), d.edit(path, "some", "x"), d.write(path, "x")):
        assert code(message) == "binary"
        assert "UTF-" in str(message.content) or "NUL" in str(message.content)
    assert path.read_bytes() == data


def test_co_03_a_character_that_the_encoding_has_not(desk: Callable[..., Desk]) -> None:
    d = desk()
    text = "h\u00e9llo w\u00f6rld, na\u00efve caf\u00e9s \u2013 d\u00e9j\u00e0 vu\n" * 20
    path = d.put("f", text.encode("cp1252"))
    d.read(path)
    before = path.read_bytes()
    for message in (d.edit(path, "h\u00e9llo", "\u4e2d", replace_all=True), d.write(path, "\u4e2d")):
        assert code(message) == "encoding"
        assert "U+4E2D" in str(message.content)
    assert path.read_bytes() == before


LEGACY = {
    "cp1252": ("cp1252", "L'\u00e9t\u00e9 \u00e0 la fran\u00e7aise \u2013 \u201cd\u00e9j\u00e0 vu\u201d, na\u00efve fa\u00e7ade.\n"),
    "gb18030": ("gb18030", "\u8fd9\u662f\u4e00\u4e2a\u7b80\u5355\u7684\u4e2d\u6587\u6587\u4ef6\uff0c\u7528\u6765\u6d4b\u8bd5\u7f16\u7801\u3002\n"),
    "cp932": ("cp932", "\u3053\u308c\u306f\u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8\u30d5\u30a1\u30a4\u30eb\u3067\u3059\u3002\u8868\u793a\u3092\u78ba\u8a8d\u3057\u307e\u3059\u3002\n"),
    "euc_jp": ("euc_jp", "\u3053\u308c\u306f\u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8\u30d5\u30a1\u30a4\u30eb\u3067\u3059\u3002\u8868\u793a\u3092\u78ba\u8a8d\u3057\u307e\u3059\u3002\n"),
    "cp949": ("cp949", "\uc774\uac83\uc740 \ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8 \ud30c\uc77c\uc785\ub2c8\ub2e4. \uc778\ucf54\ub529\uc744 \uc2dc\ud5d8\ud569\ub2c8\ub2e4.\n"),
    "big5": ("big5", "\u9019\u662f\u4e00\u500b\u7e41\u9ad4\u4e2d\u6587\u7684\u6e2c\u8a66\u6a94\u6848\uff0c\u7528\u4f86\u6aa2\u67e5\u7de8\u78bc\u3002\n"),
}  # fmt: skip


@pytest.mark.parametrize(("encoding", "line"), LEGACY.values(), ids=LEGACY)
def test_co_03_legacy_encodings_are_kept_byte_for_byte(desk: Callable[..., Desk], encoding: str, line: str) -> None:
    d = desk()
    text = "# head\r\n" + line.replace("\n", "\r\n") * 12 + "end\r\n"
    path = d.put("f", text.encode(encoding))
    shown = d.read(path)
    assert line.rstrip() in str(shown.content), shown.content
    assert d.edit(path, "end", "END").status == "success"
    assert path.read_bytes() == text.replace("end", "END").encode(encoding)
    mine = line[2:6]
    assert d.edit(path, "# head", f"# {mine}").status == "success"
    assert path.read_bytes() == text.replace("end", "END").replace("# head", f"# {mine}").encode(encoding)


# ---- CO-04 ----------------------------------------------------------------------------------------------------------

BAD = {
    "one byte": b"alpha\nbeta \xff gamma\n",
    "at the beginning": b"\xffbeta gamma delta\nalpha\n",
    "at the end": b"alpha beta gamma\xff",
    "a cut character": b"alpha caf\xc3\nbeta gamma delta\n",
    "a surrogate": b"alpha beta gamma delta \xed\xa0\xbd epsilon zeta eta theta\n",
    "overlong": b"alpha beta gamma delta \xc0\xaf epsilon zeta\n",
    "latin-1 among utf-8": "alpha \u4e2d\u6587 beta gamma ".encode() + b"caf\xe9\n",
    "beyond Unicode": b"alpha beta gamma delta epsilon zeta eta \xf4\x90\x80\x80 theta iota kappa\n",
    "beside a line break": b"alpha beta gamma\xff\r\ndelta\r\n",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_co_04_bad_bytes_stay_and_are_shown_as_escapes(desk: Callable[..., Desk], data: bytes) -> None:
    d = desk()
    path = d.put("f", data)
    shown = d.read(path)
    assert shown.status == "success", shown.content
    text = str(shown.content)
    assert "\ufffd" not in text
    assert "shown as escapes" in text
    message = d.edit(path, "alpha", "ALPHA")
    assert message.status == "success"
    assert path.read_bytes() == data.replace(b"alpha", b"ALPHA")
    patch = parse_result(message).patch  # type: ignore[union-attr]
    assert "\ufffd" not in str(patch)
    str(patch).encode()


def test_co_04_the_question_shows_it_too(desk: Callable[..., Desk]) -> None:
    d = desk(require_read="never")
    d.put("f", b"alpha \xff beta gamma delta\n")
    text = d.toolkit.describe_change(
        {"name": "edit_file", "args": {"file_path": "f", "old_string": "alpha", "new_string": "ALPHA"}}
    )
    assert "+ALPHA \\xff beta" in text
    assert "\ufffd" not in text


def test_co_04_a_whole_write_says_that_the_bytes_are_gone(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"alpha\nbeta \xff gamma\n")
    d.read(path)
    message = d.write(path, "alpha\nbeta ? gamma\n")
    assert message.status == "success"
    assert "not valid text" in str(message.content)
    assert path.read_bytes() == b"alpha\nbeta ? gamma\n"


def test_co_04_an_escape_is_no_way_to_write_a_byte(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"alpha\nbeta \xff gamma\n")
    d.read(path)
    message = d.edit(path, "beta \\xff gamma", "x")
    assert code(message) == "no_match"
    assert "\\x" in str(message.content)  # what it is, and to choose text beside it
    assert d.edit(path, "beta ", "BETA ").status == "success"
    assert d.edit(path, "alpha", "\\xff").status == "success"  # four characters, as given
    assert path.read_bytes() == b"\\xff\nBETA \xff gamma\n"


# ---- CO-06 ----------------------------------------------------------------------------------------------------------


HALVES = {
    "first": "\ud800",
    "last": "\udfff",
    "of a smile": "\ud83d",
    "a byte that is no text": "\udcff",
    "wrong order": "\ude00\ud83d",
}


@pytest.mark.parametrize("which", HALVES)
def test_co_06_half_a_character_never_touches_the_disk(desk: Callable[..., Desk], which: str) -> None:
    d = desk()
    half = HALVES[which]
    path = d.put("f", b"KEEP")
    d.read(path)
    for message in (
        d.write(path, "A" * 20000 + half),
        d.write("new", half),
        d.edit(path, "KEEP", half),
        d.edit(path, half, "x"),
        d.edit("other", "", half),
        d.many(path, ("K", "k"), ("EEP", half)),
        d.cell("n.ipynb", "c", half),
        d.read(f"f{half}"),
        d.write(f"f{half}", "x"),
    ):
        assert message.status == "error"
        assert code(message) in {"encoding", "bad_path", "bad_arguments", "not_found"}, message.content
        str(message.content).encode()
    assert path.read_bytes() == b"KEEP"
    assert [p.name for p in d.root.iterdir()] == ["f"]


def test_co_06_a_whole_character_in_two_halves_of_json_is_one(desk: Callable[..., Desk]) -> None:
    d = desk()
    assert d.write("f", "\U0001f600").status == "success"
    assert (d.root / "f").read_bytes() == "\U0001f600".encode()


def test_co_06_noncharacters_and_private_ones_are_characters(desk: Callable[..., Desk]) -> None:
    d = desk()
    text = "\ufffe\uffff\ue000\U0010ffff\ufffd\n"
    assert d.write("f", text).status == "success"
    assert (d.root / "f").read_bytes() == text.encode()
    d.read("f")
    assert d.edit("f", "\ufffd", "x").status == "success"


@pytest.mark.parametrize("name", ["f", "f16"])
def test_co_06_nul_never_shuts_a_file(desk: Callable[..., Desk], name: str) -> None:
    """With a NUL it would be binary for these very tools, and NUL breaks stores that keep JSON."""
    d = desk()
    d.put("f", b"KEEP\n")
    d.put("f16", "\ufeffKEEP\n".encode("utf-16-le"))
    before = (d.root / name).read_bytes()
    d.read(name)
    out = [
        d.edit(name, "KEEP", "a\0b"),
        d.many(name, ("KE", "x"), ("EP", "\0")),
        d.write(name, "a\0"),
        d.write("new", "a\0b"),
        d.edit("made", "", "\0"),
    ]
    assert [code(m) for m in out] == ["encoding"] * 5
    assert all("NUL" in str(m.content) for m in out)
    assert (d.root / name).read_bytes() == before
    assert sorted(p.name for p in d.root.iterdir()) == ["f", "f16"]


def test_co_06_old_text_with_nul_is_a_miss(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"KEEP\n")
    d.read("f")
    assert code(d.edit("f", "KE\0EP", "x")) in {"encoding", "no_match"}


# ---- CO-07 ----------------------------------------------------------------------------------------------------------

TAILS: dict[str, tuple[bytes, str, str, bytes]] = {
    "none stays none": (b"a\nb", "a", "A", b"A\nb"),
    "one stays one": (b"a\nb\n", "b", "B", b"a\nB\n"),
    "insert after the last line": (b"a", "a", "a\nb", b"a\nb"),
    "insert after the last line, one": (b"a\n", "a\n", "a\nb\n", b"a\nb\n"),
    "blank lines stay": (b"a\n\n\n", "a", "A", b"A\n\n\n"),
    "only newlines": (b"\n\n\nx", "x", "y", b"\n\n\ny"),
    "the last line goes": (b"a\nb\n", "b\n", "", b"a\n"),
    "the last line goes, none": (b"a\nb", "\nb", "", b"a"),
    "everything goes": (b"a\n", "a\n", "", b""),
    "a newline is added": (b"a\nb", "b", "b\n", b"a\nb\n"),
    "a newline is taken": (b"a\nb\n", "b\n", "b", b"a\nb"),
    "crlf, none": (b"a\r\nb", "a", "A", b"A\r\nb"),
    "crlf, blank lines": (b"a\r\n\r\n", "a", "A", b"A\r\n\r\n"),
    "blanks at the end": (b"a\n  ", "a", "A", b"A\n  "),
    "a lone cr at the end": (b"a\nb\r", "a", "A", b"A\nb\r"),
    "a form feed at the end": (b"a\nb\x0c", "a", "A", b"A\nb\x0c"),
    "ctrl-z at the end": (b"a\r\nb\r\n\x1a", "a", "A", b"A\r\nb\r\n\x1a"),
}


@pytest.mark.parametrize(("before", "old", "new", "after"), TAILS.values(), ids=TAILS)
def test_co_07_the_end_of_the_file_stays(
    desk: Callable[..., Desk], before: bytes, old: str, new: str, after: bytes
) -> None:
    d = desk()
    path = d.put("f", before)
    d.read(path)
    message = d.edit(path, old, new)
    assert message.status == "success", message.content
    assert path.read_bytes() == after
    assert message.artifact["after"] == hashlib.sha256(after).hexdigest()
    # And back, by the same rule.
    if new and new not in before.decode() and after.decode().count(new) == 1:
        assert d.edit(path, new, old).status == "success"
        assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["x", "x\n", "\n", "", "x\n\n\n", "x\r\n", "x\r", "x\n ", " ", "\n\n"])
def test_co_07_a_write_is_verbatim(desk: Callable[..., Desk], text: str) -> None:
    d = desk()
    assert d.write("new", text).status == "success"
    assert (d.root / "new").read_bytes() == text.encode()
    path = d.put("f", b"old\n")
    d.read(path)
    assert d.write(path, text).status == "success"
    assert path.read_bytes() == text.encode()
    assert d.edit("made", "", text).status == "success"
    assert (d.root / "made").read_bytes() == text.encode()
