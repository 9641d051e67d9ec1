"""Spans against `json.loads`: the same values, the same texts refused."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_filestate._json_spans import JsonError, Layout, Node, Spelling, byte_offsets, cut, only, splices, walk
from langchain_filestate._match import Splice, apply

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
INDENTS = st.sampled_from([None, 1, 2, "\t"])


def check(text: str, node: Node) -> None:
    assert json.loads(text[node.start : node.end]) == node.value
    if node.key_end:
        assert json.loads(text[node.key_start : node.key_end]) == node.key
    for child in node.children:
        check(text, child)


@settings(deadline=None, max_examples=100)
@given(VALUES, INDENTS, st.integers(0, 4), st.sampled_from(["", " ", "\r\n\t"]), st.booleans())
def test_values_and_spans_are_those_of_the_standard_decoder(
    value: Any, indent: Any, levels: int, around: str, ascii_only: bool
) -> None:
    text = around + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + around
    node = only(text, levels)
    assert node.value == value
    check(text, node)


@settings(deadline=None, max_examples=200)
@given(VALUES, st.data())
def test_the_same_texts_are_refused(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.sampled_from([*'{}[],:" \\', "1", "NaN", "\x0b", ""])) + text[at + 1 :]
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(JsonError):
            only(text, 3)
    else:
        assert json.dumps(only(text, 3).value) == json.dumps(expected)  # NaN differs from itself


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value at line 1, column 1"),
        ("[1,\n]", "Expecting value at line 2, column 1"),
        ('{"a":1,}', "Expecting property name enclosed in double quotes at line 1, column 8"),
        ('{"a" 1}', "Expecting ':' delimiter at line 1, column 6"),
        ("[1 2]", "Expecting ',' delimiter at line 1, column 4"),
        ("[1", "Expecting ',' delimiter at line 1, column 3"),
        ("{a", "Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[]\n []", "Extra data at line 2, column 2"),
        pytest.param("[" * 100_000, "nested too deeply", id="deep array"),
        pytest.param('{"a":' * 100_000, "nested too deeply", id="deep object"),
        pytest.param("9" * 5000, "Exceeds the limit", id="long integer"),
    ],
)
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    with pytest.raises(JsonError, match=why.replace("[", r"\[")):
        only(text, 3)


def test_the_last_of_two_members_counts() -> None:
    node = walk('{"a": 1, "a": 2}')
    member = node.member("a")
    assert member is not None
    assert member.value == 2
    assert len(node.children) == 2
    assert node.member("b") is None


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(), min_size=2, max_size=4),
    st.sampled_from([(None, (",", ":")), (None, (", ", ": ")), (1, None), ("\t", None), (4, (" ,", " : "))]),
)
def test_layout_writes_what_was_dumped(items: list[int], how: Any) -> None:
    indent, separators = how
    value = {"outer": items, "other": 1}
    text = json.dumps(value, indent=indent, separators=separators)
    node = walk(text, levels=2)
    outer = Layout.of(text, node)
    inner = Layout.of(text, node.children[0], outer)
    texts = [str(item) for item in items]
    assert inner == outer.inner()
    assert outer.object([("outer", inner.array(texts)), ("other", "1")]) == text
    assert inner.array([]) == "[]"


@pytest.mark.parametrize(
    ("text", "outer", "between"),
    [
        ("[1]", None, ", "),
        ("[ 1 ]", None, ", "),
        ("[\n 1\n]", None, ",\n "),
        ("[\n  1\n]", Layout("\n ", ",\n ", "\n"), ",\n  "),
        ("[\n  1\n]", Layout("\n ", " , \n ", "\n"), " , \n  "),
        ("[1]", Layout("\n ", ",\n ", "\n"), ", "),
        ("[1]", Layout("\n ", ",\n ", "\n", ":"), ","),
        ("[1]", Layout("", ",", "", ":"), ","),
    ],
)
def test_the_separator_after_a_single_element_is_inferred(text: str, outer: Layout | None, between: str) -> None:
    assert Layout.of(text, walk(text), outer).between == between


def test_no_deeper_indentation_is_made_up() -> None:
    assert Layout("", ", ", " ").inner() == Layout("", ", ", "")


@pytest.mark.parametrize(
    ("seen", "value", "written"),
    [
        (r'"plain"', "é", '"é"'),
        (r'"\u00e9"', "é\u4e00\U0001f600", r'"\u00e9\u4e00\ud83d\ude00"'),
        (r'"\u00E9"', "é\u4e0f\x1b\n", r'"\u00E9\u4E0F\u001B\n"'),
        (r'"\ud83d\ude00"', "\U0001f600", r'"\ud83d\ude00"'),
        (r'"\u003ca\u003e \/"', "<b>/&", r'"\u003cb\u003e\/&"'),
        (r'"\u0022\u000a"', '"\n', r'"\u0022\u000a"'),
        (r'"é \u2028"', "é\u2028\u2029", '"é\\u2028\u2029"'),
        (r'"é < \u003c"', "é<", '"é<"'),
        ('"\\u001b[0m"', "é", '"é"'),
        (r'"\\u00e9"', "é", '"é"'),
    ],
)
def test_spelling_is_learned(seen: str, value: str, written: str) -> None:
    spelling = Spelling.of(seen, [seen])
    assert spelling.string(value) == written
    assert json.loads(written) == value
    assert spelling.string(json.loads(seen)) == seen or "<" in value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('["a", "é"]', '"ü"'),
        (r'["a", "\u00e9"]', r'"\u00fc"'),
        (r'["a", "\\u00e9", "\u0041\ud800"]', '"ü"'),
        (r'["a", "\\\u00e9"]', r'"\u00fc"'),
        (r'["a", "\ud83d\ude00"]', r'"\u00fc"'),
    ],
)
def test_the_whole_text_decides_where_the_strings_leave_it_open(text: str, written: str) -> None:
    assert Spelling.of(text, ['"a"']).string("ü") == written


@settings(deadline=None, max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.text(string.printable, max_size=9), INDENTS)
def test_any_string_can_be_written_in_any_spelling(value: str, seen: str, indent: Any) -> None:
    token = json.dumps(seen, indent=indent).replace("<", r"\u003C").replace("'", r"\u0027")
    assert json.loads(Spelling.of(token, [token]).string(value)) == value


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=2).map(lambda text: text + "é"), max_size=6), st.data(), INDENTS)
def test_cut_removes_the_marked_elements(items: list[str], data: st.DataObject, indent: Any) -> None:
    gone = data.draw(st.lists(st.booleans(), min_size=len(items), max_size=len(items)))
    kept = [item for item, removed in zip(items, gone, strict=True) if not removed]
    check_cut(items, gone, kept, indent)
    members = list(dict.fromkeys(items))
    marks = gone[: len(members)]
    rest = {member: 1 for member, removed in zip(members, marks, strict=True) if not removed}
    check_cut(dict.fromkeys(items, 1), marks, rest, indent)


def check_cut(value: Any, gone: list[bool], rest: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    changed = apply(text.encode(), splices(text, cut(walk(text), gone), 0)).decode()
    assert changed == json.dumps(rest, indent=indent, ensure_ascii=False)


def test_changes_that_touch_become_one_splice() -> None:
    changes = [(3, 4, "d"), (1, 1, "b"), (1, 3, "c"), (5, 5, "e")]
    assert splices("éabcdef", changes, 3) == (Splice(5, 8, b"bcd"), Splice(9, 9, b"e"))


def test_byte_offsets_count_what_stands_before() -> None:
    assert byte_offsets("aé\u4e00b", [0, 1, 2, 3, 4], 3) == [3, 4, 6, 9, 10]
    assert byte_offsets("abc", [0, 3], 0) == [0, 3]
