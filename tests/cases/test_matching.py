"""Old text is matched exactly, new text is written as given, and a miss says what differs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import pytest

from tests.cases.steps import Desk, code

MISS = "String to replace not found in file."


# ---- MA-01: indentation ---------------------------------------------------------------------------------------------

INDENTS: dict[str, tuple[str, str, list[str]]] = {
    "tabs, given spaces": ("\tif x:\n\t\ty()\n", "    if x:\n        y()", ["tab", "space"]),
    "tabs, given two": ("\tif x:\n\t\ty()\n", "  if x:\n    y()", ["tab", "space"]),
    "spaces, given tabs": ("    if x:\n        y()\n", "\tif x:\n\t\ty()", ["tab", "space"]),
    "tab within a line": ("a\tb\n", "a b", ["tab", "space"]),
    "two spaces within": ("a  b\n", "a b", ["2 spaces", "1 space"]),
    "trailing blank": ("a \nb\n", "a\nb", ["space"]),
    "trailing tab": ("a\t\nb\n", "a\nb", ["tab"]),
    "mixed": (" \tx = 1\n", "        x = 1", ["tab", "space"]),
    "one level off": ("        x = 1\n        y = 2\n", "    x = 1\n    y = 2\n", ["8 spaces", "4 spaces"]),
    "no indent given": ("\tif x:\n\t\ty()\n", "if x:\n\ty()", ["tab"]),
    "blank line with blanks": ("a\n   \nb\n", "a\n\nb", ["space"]),
}


@pytest.mark.parametrize(("text", "old", "words"), INDENTS.values(), ids=INDENTS)
def test_ma_01_blanks_are_named_and_never_repaired(
    desk: Callable[..., Desk], text: str, old: str, words: list[str]
) -> None:
    d = desk()
    path = d.put("f", ("# head\n" + text).encode())
    assert text.rstrip("\n").split("\n")[0] in d.read(path).content  # raw, after the gutter
    message = d.edit(path, old, "new text")
    if code(message) is None:  # a piece of a line may match
        pytest.fail("blanks were folded")
    assert code(message) == "no_match"
    assert str(message.content).startswith(MISS)
    for word in words:
        assert word in message.content, message.content
    assert message.artifact["lines"], message.content
    assert path.read_bytes() == ("# head\n" + text).encode()


def test_ma_01_the_gutter_is_fixed(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"\ta\n  b\n\n" + b"x\n" * 2000)
    lines = str(d.read(path, limit=3).content).split("\n")
    assert lines[:3] == ["     1\t\ta", "     2\t  b", "     3\t"]


# ---- MA-02: copied from a read --------------------------------------------------------------------------------------

ENDS = {
    "crlf": (b"one\r\ntwo\r\nthree\r\n", b"1\r\n2\r\nthree\r\n"),
    "lf": (b"one\ntwo\nthree\n", b"1\n2\nthree\n"),
    "mixed": (b"one\r\ntwo\nthree\r\n", b"1\r\n2\nthree\r\n"),
    "mixed the other way": (b"one\ntwo\r\nthree\n", b"1\n2\r\nthree\n"),
    "crlf, no end": (b"one\r\ntwo", b"1\r\n2"),
    "bom": (b"\xef\xbb\xbfone\r\ntwo\r\n", b"\xef\xbb\xbf1\r\n2\r\n"),
    "utf-16": ("\ufeffone\r\ntwo\r\n".encode("utf-16-le"), "\ufeff1\r\n2\r\n".encode("utf-16-le")),
    "utf-16-be": ("\ufeffone\r\ntwo\r\n".encode("utf-16-be"), "\ufeff1\r\n2\r\n".encode("utf-16-be")),
    "utf-32": ("\ufeffone\r\ntwo\r\n".encode("utf-32-le"), "\ufeff1\r\n2\r\n".encode("utf-32-le")),
}


@pytest.mark.parametrize(("before", "after"), ENDS.values(), ids=ENDS)
def test_ma_02_text_copied_from_a_read_matches(desk: Callable[..., Desk], before: bytes, after: bytes) -> None:
    d = desk()
    path = d.put("f", before)
    shown = [line.split("\t", 1)[1] for line in str(d.read(path).content).split("\n") if "\t" in line]
    assert shown[:2] == ["one", "two"]
    assert d.edit(path, "\n".join(shown[:2]), "1\n2").status == "success"
    assert path.read_bytes() == after


def test_ma_02_crlf_given_matches_crlf(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"one\r\ntwo\r\n")
    d.read(path)
    assert d.edit(path, "one\r\ntwo", "1\r\n2").status == "success"
    assert path.read_bytes() == b"1\r\n2\r\n"


def test_ma_02_crlf_given_for_an_lf_file_says_so(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"one\ntwo\n")
    d.read(path)
    message = d.edit(path, "one\r\ntwo", "1\r\n2")
    assert code(message) == "no_match"
    assert "CRLF" in message.content
    assert path.read_bytes() == b"one\ntwo\n"


# ---- MA-03: look-alikes ---------------------------------------------------------------------------------------------

TWINS = {
    "NBSP": ("list in\u00a0current\n", "list in current", "U+00A0"),
    "narrow NBSP": ("1\u202f000\n", "1 000", "U+202F"),
    "curly quotes": ("say \u201chi\u201d\n", 'say "hi"', "U+201C"),
    "apostrophe": ("It\u2019s\n", "It's", "U+2019"),
    "straight, given curly": ("It's\n", "It\u2019s", "U+2019"),
    "dash": ("a \u2013 b\n", "a - b", "U+2013"),
    "minus": ("a \u2212 b\n", "a - b", "U+2212"),
    "ellipsis": ("wait\u2026\n", "wait...", "U+2026"),
    "zero width space": ("foo\u200bbar\n", "foobar", "U+200B"),
    "soft hyphen": ("foo\u00adbar\n", "foobar", "U+00AD"),
    "BOM inside": ("foo\ufeffbar\n", "foobar", "U+FEFF"),
    "direction mark": ("foo\u200ebar\n", "foobar", "U+200E"),
    "decomposed": ("cafe\u0301 au lait\n", "caf\u00e9 au lait", "NFD"),
    "composed": ("caf\u00e9 au lait\n", "cafe\u0301 au lait", "NFC"),
    "wide": ("\uff21\uff22\uff23 = 1\n", "ABC = 1", "U+FF21"),
    "Cyrillic": ("c\u043ede = 1\n", "code = 1", "U+043E"),
    "Greek question mark": ("end\u037e\n", "end;", "U+037E"),
    "variation selector": ("\u2764\ufe0f love\n", "\u2764 love", "U+FE0F"),
    "ideographic space": ("\u4e2d\u3000\u6587\n", "\u4e2d \u6587", "U+3000"),
    "line separator": ("a\u2028b\n", "a\nb", "U+2028"),
    "next line": ("a\u0085b\n", "a\nb", "U+0085"),
    "form feed": ("a\x0cb\n", "a\nb", "form feed"),
    "case": ("Hello World\n", "hello world", "case"),
}


@pytest.mark.parametrize(("text", "old", "word"), TWINS.values(), ids=TWINS)
def test_ma_03_a_miss_names_the_character_and_its_place(
    desk: Callable[..., Desk], text: str, old: str, word: str
) -> None:
    d = desk()
    path = d.put("f", ("first\n\n" + text + "last\n").encode())
    d.read(path)
    message = d.edit(path, old, "x")
    assert code(message) == "no_match"
    assert word in message.content, message.content
    assert "line 3" in message.content, message.content
    assert 3 in message.artifact["lines"]
    assert path.read_bytes() == ("first\n\n" + text + "last\n").encode()


CHANGES = {
    "straight to curly": ("'%s'\n", "'%s'", "\u2018%s\u2019"),
    "curly to straight": ("\u2018%s\u2019\n", "\u2018%s\u2019", "'%s'"),
    "space to NBSP": ("a b\n", "a b", "a\u00a0b"),
    "NBSP to space": ("a\u00a0b\n", "a\u00a0b", "a b"),
    "NFC to NFD": ("caf\u00e9\n", "caf\u00e9", "cafe\u0301"),
    "NFD to NFC": ("cafe\u0301\n", "cafe\u0301", "caf\u00e9"),
    "tabs to spaces": ("\tx\n", "\tx", "    x"),
    "a trailing blank away": ("a  \nb\n", "a  \n", "a\n"),
    "dash": ("a-b\n", "a-b", "a\u2013b"),
    "case": ("abc\n", "abc", "ABC"),
    "zero width away": ("a\u200bb\n", "a\u200bb", "ab"),
    "wide": ("\uff21\n", "\uff21", "A"),
}


@pytest.mark.parametrize(("text", "old", "new"), CHANGES.values(), ids=CHANGES)
def test_ma_03_a_change_between_look_alikes_is_a_change(
    desk: Callable[..., Desk], text: str, old: str, new: str
) -> None:
    d = desk()
    path = d.put("f", text.encode())
    d.read(path)
    assert d.edit(path, old, new).status == "success"
    assert path.read_bytes() == text.replace(old, new).encode()
    if len(new.encode()) != len(old.encode()) or old != new:
        other = d.write("g", new)
        assert other.status == "success"
        assert (d.root / "g").read_bytes() == new.encode()


def test_ma_03_curly_text_is_written_as_it_is(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.write("f", "It\u2019s")
    assert (d.root / "f").read_bytes() == "It\u2019s".encode()


# ---- MA-04: the last line -------------------------------------------------------------------------------------------


def test_ma_04_no_newline_at_the_end(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"# Role\nhelper")
    assert "No newline at end of file" in str(d.read(path).content)
    message = d.edit(path, "# Role\nhelper\n", "# Role\nother\n")
    assert code(message) == "no_match"
    assert "no final newline" in message.content
    assert d.edit(path, "# Role\nhelper", "# Role\nother").status == "success"
    assert path.read_bytes() == b"# Role\nother"


@pytest.mark.parametrize("old", ["return foo\n", "return foobar\n", "foobar\n\n", "return foo\r\n"])
def test_ma_04_a_line_break_is_never_dropped_from_old_text(desk: Callable[..., Desk], old: str) -> None:
    d = desk()
    path = d.put("f", b"return foobar")
    d.read(path)
    assert code(d.edit(path, old, "x\n")) == "no_match"
    assert path.read_bytes() == b"return foobar"


@pytest.mark.parametrize("end", [b"\n", b"\n\n", b"\r\n", b"\n\n\n"])
def test_ma_04_a_newline_that_is_there_is_not_missed(desk: Callable[..., Desk], end: bytes) -> None:
    d = desk()
    path = d.put("f", b"a\nb" + end)
    assert "No newline" not in str(d.read(path).content)
    assert d.edit(path, "b\n", "c\n").status == "success"
    assert path.read_bytes() == b"a\nc" + end


# ---- MA-05: the gutter ----------------------------------------------------------------------------------------------

GUTTERS = {
    "both": ("     2\tfoo", "     2\tfoo\n     3\tbar"),
    "both, no padding": ("2\tfoo", "2\tfoo\n3\tbar"),
    "only old": ("     2\tfoo", "foo\nbar"),
    "two lines": ("     1\thead\n     2\tfoo", "     1\thead\n     2\tfoo\n     3\tbar"),
    "arrow": ("     2\u2192foo", "     2\u2192foo\n     3\u2192bar"),
    "begins inside a line": ("head\n     2\tfoo", "head\n     2\tbar"),
    "cat -n, colon": ("1: head\n2: foo", "1: head\n2: bar"),
    "bar": ("1|head\n2|foo", "1|head\n2|bar"),
}


@pytest.mark.parametrize(("old", "new"), GUTTERS.values(), ids=GUTTERS)
def test_ma_05_line_numbers_are_refused_and_named(desk: Callable[..., Desk], old: str, new: str) -> None:
    d = desk()
    path = d.put("f", b"head\nfoo\ntail\n")
    d.read(path)
    for message in (d.edit(path, old, new), d.many(path, ("tail", "TAIL"), (old, new))):
        assert code(message) == "no_match"
        assert "gutter" in message.content, message.content
    assert path.read_bytes() == b"head\nfoo\ntail\n"


def test_ma_05_only_the_new_text_has_them(desk: Callable[..., Desk]) -> None:
    """The gutter in the new text alone: line numbers that go on from the read are no text that anybody wants."""
    d = desk()
    path = d.put("f", b"head\nfoo\ntail\n")
    d.read(path)
    message = d.edit(path, "foo", "     2\tfoo\n     3\tbar")
    assert message.status == "success" or "gutter" in message.content
    if message.status == "success":  # verbatim, always; what was written stands in the patch
        assert path.read_bytes() == b"head\n     2\tfoo\n     3\tbar\ntail\n"


def test_ma_05_numbered_text_that_is_there_is_text(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"     1\tapple\n     2\tpear\n")
    d.read(path)
    assert d.edit(path, "     2\tpear", "     2\tplum").status == "success"
    assert path.read_bytes() == b"     1\tapple\n     2\tplum\n"


# ---- MA-07: literally -----------------------------------------------------------------------------------------------

LITERAL = [
    r'print("a\nb")', r"\title", "&amp; &lt;", "$& $$ $1 $`", r"\1 \g<0> \0 \\", "%s {x} %% {{}}", r"\u00e9 \x41 \N{BULLET}",
    "<&lt;>&quot;&#39;", "$'", "${HOME} $(id) `id`", "\\", "\\\\n", "a\\\nb", "\t\\t", "\x0c\x0b\x1c\u2028\u0085x", "\ufeffx",
    "\x1b[31mred\x1b[0m", "\x01\x7f", "\u202eevil", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467", "e\u0301",
    "line\n", "\n\n", " ", "\t", '"""', "'''", "```\ncode\n```", "<cell>", "--- a\n+++ b\n@@ -1 +1 @@\n", "%20", "\\r\\n", "{'a': 1}",
    "[object Object]", "null", "@@", "?", ".*", "(", "[", "^$", "\\d+", "..", "~", "#!", "//", "END\nEOF\n",
]  # fmt: skip


@pytest.mark.parametrize("wrap", ["{}", "a{}b\n"])
def test_ma_07_new_text_is_written_as_it_is(desk: Callable[..., Desk], wrap: str) -> None:
    d = desk()
    for n, literal in enumerate(LITERAL):
        new = wrap.replace("{}", literal, 1)
        path = d.put(f"{n}", b"<X>\n")
        d.read(path)
        for message in (d.edit(path, "X", new), d.write(f"w{n}", new)):
            assert message.status == "success", (new, message.content)
        assert path.read_bytes() == b"<" + new.encode() + b">\n", new
        assert (d.root / f"w{n}").read_bytes() == new.encode(), new
        assert hashlib.sha256(path.read_bytes()).hexdigest() == d.read(path).artifact["digest"]


def test_ma_07_old_text_is_taken_as_it_is(desk: Callable[..., Desk]) -> None:
    d = desk()
    for n, literal in enumerate(LITERAL):
        path = d.put(f"{n}", b"<" + literal.encode() + b"> <y>\n")
        d.read(path)
        message = d.edit(path, f"<{literal}>", "<z>")
        assert message.status == "success", (literal, message.content)
        assert path.read_bytes() == b"<z> <y>\n", literal
        other = d.put(f"o{n}", f"<{literal}>\n<{literal}>\n".encode())
        d.read(other)
        assert d.edit(other, f"<{literal}>", f"[{literal}]", replace_all=True).artifact["replacements"] == 2
        assert other.read_bytes() == f"[{literal}]\n[{literal}]\n".encode()


SLIPS = {
    "a line break as two characters": ("a\nb\n", "a\\nb", "\\n"),
    "two characters as a line break": ('print("a\\nb")\n', 'print("a\nb")', "\\n"),
    "a tab as two characters": ("a\tb\n", "a\\tb", "\\t"),
    "entities": ("if a < b && c\n", "if a &lt; b &amp;&amp; c", "entit"),
    "entities in the file": ("<p>a &amp; b</p>\n", "<p>a & b</p>", "entit"),
    "quotes escaped": ('say "hi"\n', 'say \\"hi\\"', "backslash"),
    "a backslash too few": ('re.compile("\\\\d+")\n', 're.compile("\\d+")', "backslash"),
    "a backslash too many": ("C:\\dir\n", "C:\\\\dir", "backslash"),
    "a template literal": ("`${x}`\n", "\\`\\${x}\\`", "backslash"),
    "a slash escaped": ("a/b\n", "a\\/b", "backslash"),
}


@pytest.mark.parametrize(("text", "old", "word"), SLIPS.values(), ids=SLIPS)
def test_ma_07_slips_are_named_and_never_repaired(desk: Callable[..., Desk], text: str, old: str, word: str) -> None:
    d = desk()
    path = d.put("f", b"head\n" + text.encode())
    d.read(path)
    message = d.edit(path, old, "x")
    assert code(message) == "no_match"
    assert word in message.content, message.content
    assert "2" in message.content
    assert path.read_bytes() == b"head\n" + text.encode()


# ---- MA-08: no more than asked --------------------------------------------------------------------------------------


def test_ma_08_blanks_after_the_match_are_not_swallowed(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"foo   bar baz\n")
    d.read(path)
    assert code(d.edit(path, "foo bar", "XY")) == "no_match"
    assert path.read_bytes() == b"foo   bar baz\n"


def test_ma_08_anchors_do_not_span(desk: Callable[..., Desk]) -> None:
    d = desk()
    block = "BEGIN\n" + "".join(f"line {n}\n" for n in range(200)) + "END\n"
    path = d.put("f", (block + "BEGIN\nx\nEND\n").encode())
    d.read(path)
    assert d.edit(path, "BEGIN\nx\nEND", "y").status == "success"
    assert path.read_bytes() == (block + "y\n").encode()
    assert code(d.edit(path, "BEGIN\nx\nEND", "y")) == "no_match"
    assert path.read_bytes() == (block + "y\n").encode()


NEARLY = ["foo bar baz", "foo  bar", "foo\nbar", "FOO BAR", "foo bar ", " foo bar", "foo bar\n", "oo ba", "foo.bar"]


@pytest.mark.parametrize("old", NEARLY)
def test_ma_08_nearly_is_not_there(desk: Callable[..., Desk], old: str) -> None:
    d = desk()
    text = "head\n[foo bar]\ntail\n"
    path = d.put("f", text.encode())
    d.read(path)
    message = d.edit(path, old, "<x>")
    if old in text:
        assert path.read_text() == text.replace(old, "<x>")
    else:
        assert code(message) == "no_match"
        assert path.read_text() == text


def test_ma_08_text_that_is_there_already_is_said_to_be(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"def f():\n    return 1\n")
    d.read(path)
    d.edit(path, "return 1", "return 2  # changed")
    message = d.edit(path, "return 1", "return 2  # changed")
    assert code(message) == "no_match"
    assert "already" in message.content


@pytest.mark.parametrize("size", [10, 100_000])
def test_ma_08_a_miss_is_short(desk: Callable[..., Desk], size: int) -> None:
    d = desk()
    path = d.put("f", b"".join(b"value_%d = compute(%d)\n" % (n, n) for n in range(size)))
    d.read(path, limit=5)
    for old in (
        "value_7 = compute(8)",
        "nothing like it",
        "x" * 50_000,
        "value_1 = compute(1)\n" * 300,
        "\n" * 40 + "!",
    ):
        message = d.edit(path, old, "y" * 50_000)
        assert code(message) == "no_match"
        assert len(str(message.content)) < 1500
        assert not re.search(r"y{100}|x{100}", str(message.content))


def test_ma_08_an_ambiguous_text_says_where(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"a\nx\nb\nx\nc\nx x\n")
    d.read(path)
    message = d.edit(path, "x", "y")
    assert str(message.content).startswith("Found 4 matches of the string to replace, but replace_all is false.")
    assert "2, 4, 6" in message.content
    assert list(message.artifact["lines"]) == [2, 4, 6]


def test_ma_08_a_match_that_overlaps_itself_is_two(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"aaa\n")
    d.read(path)
    assert code(d.edit(path, "aa", "b")) == "ambiguous"
