"""Edits of cells, against a dump of the changed notebook in the same style."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_filestate._match import Splice, apply
from langchain_filestate._notebook import Edited, delete_cell, insert_cell, parse, replace_cell
from langchain_filestate.errors import Refused
from tests.notebook_styles import COLAB, JUPYTER, PYTHON, STYLES, VSCODE, Style, code, fit, is_valid, sample, words

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\n\r\t \"\\/<>'é\u2028\x7f\x00"), max_size=30
)
STYLE = st.builds(
    Style,
    indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    separators=st.sampled_from([None, (",", ":"), (", ", ": ")]),
    ascii_only=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    final=st.sampled_from(["", "\n", "\n\n"]),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    one_string=st.booleans(),
    keys=st.sampled_from([PYTHON, VSCODE, COLAB]),
    minor=st.sampled_from([0, 4, 5]),
)
ALL = pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
SOURCES = ["", "\n", "one line", "two\nlines\n", "import os\n\nprint('é < ü')\nmore / <b>", '\u2028 \x0c \x1b\r\n\\ "']


def done(data: bytes, edited: Edited) -> bytes:
    """The bytes after an edit, when what it says of the cells has been found true."""
    after = apply(data, edited.splices)
    assert tuple(cell.name for cell in parse(after).cells) == edited.cell_ids
    return after


def run_away(cell: dict[str, Any], source: str) -> dict[str, Any]:
    """The cell with another source: what it put out is gone."""
    cleared: dict[str, Any] = {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {}
    return {**cell, "source": source, **cleared}


def outside(data: bytes, splices: tuple[Splice, ...], span: tuple[int, int]) -> bool:
    return any(splice.start < span[0] or splice.end > span[1] for splice in splices)


@ALL
@pytest.mark.parametrize("source", SOURCES)
def test_replace_writes_what_the_notebooks_writer_would_have_written(style: Style, source: str) -> None:
    cells = sample(style)
    data = style.dump(cells)
    for index, cell in enumerate(parse(data).cells):
        if cell.source == source:
            continue
        edited = replace_cell(data, cell.name, source)
        changed = [*cells[:index], run_away(cells[index], source), *cells[index + 1 :]]
        after = done(data, edited)
        assert after == style.dump(changed)
        assert is_valid(after)
        assert not outside(data, edited.splices, cell.span)
        assert (edited.cell_id, edited.cell_no) == (cell.name, index + 1)
        back = done(after, replace_cell(after, cell.name, cell.source))
        assert back == style.dump([*cells[:index], run_away(cells[index], cell.source), *cells[index + 1 :]])


@ALL
@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
@pytest.mark.parametrize("at", range(6))
def test_insert_puts_a_cell_that_the_writer_would_have_written(style: Style, kind: str, at: int) -> None:
    cells = sample(style)
    data = style.dump(cells)
    before = parse(data)
    edited = insert_cell(data, before.cells[at - 1].name if at else None, "a é\n<b> '/", kind)
    after = done(data, edited)
    new: dict[str, Any] = {"cell_type": kind, "id": edited.cell_id, "metadata": {}, "source": "a é\n<b> '/"}
    if kind == "code":
        new.update(execution_count=None, outputs=[])
    assert after == style.dump([*cells[:at], *fit(style, [new]), *cells[at:]])
    assert is_valid(after)
    assert (len(edited.splices), edited.cell_no) == (1, at + 1)
    assert edited.splices[0].start == edited.splices[0].end
    if style.minor < 5:
        assert edited.cell_ids == tuple(f"cell-{n}" for n in range(6))
    else:
        assert edited.cell_ids == (
            *(c.name for c in before.cells[:at]),
            edited.cell_id,
            *(c.name for c in before.cells[at:]),
        )
    assert done(after, delete_cell(after, edited.cell_id)) == data


@ALL
def test_delete_takes_the_cell_and_one_comma(style: Style) -> None:
    cells = sample(style)
    data = style.dump(cells)
    for index, cell in enumerate(parse(data).cells):
        edited = delete_cell(data, cell.name)
        assert done(data, edited) == style.dump(cells[:index] + cells[index + 1 :])
        assert (edited.cell_id, edited.cell_no) == (cell.name, index + 1)
    while cells:
        name = parse(data).cells[0].name
        del cells[0]
        data = done(data, delete_cell(data, name))
        assert data == style.dump(cells)
        assert is_valid(data)


@ALL
@pytest.mark.parametrize("kind", ["code", "markdown", "raw"])
def test_the_first_cell_of_an_empty_notebook(style: Style, kind: str) -> None:
    edited = insert_cell(style.dump([]), None, "a\nb", kind)
    after = done(style.dump([]), edited)
    new: dict[str, Any] = {"cell_type": kind, "id": edited.cell_id, "metadata": {}, "source": "a\nb"}
    if kind == "code":
        new.update(execution_count=None, outputs=[])
    assert (
        json.loads(after.decode("utf-8-sig"))["cells"]
        == json.loads(Style(keys=PYTHON, minor=style.minor).dump(fit(style, [new])))["cells"]
    )
    assert is_valid(after)
    if style.keys != COLAB and not style.one_string:  # nothing to learn these from
        assert after == style.dump(fit(style, [new]))


@ALL
def test_type_and_fields_change_together(style: Style) -> None:
    cells = sample(style)
    data = style.dump(cells)
    for index, cell in enumerate(parse(data).cells):
        for kind in ("code", "markdown", "raw"):
            if kind == cell.cell_type:
                continue
            for source in (cell.source, "other"):
                edited = replace_cell(data, cell.name, source, kind)
                new = {**cells[index], "cell_type": kind, "source": source}
                if kind == "code":
                    new.pop("attachments", None)
                    new.update(execution_count=None, outputs=[])
                elif cell.cell_type == "code":
                    del new["execution_count"], new["outputs"]
                after = done(data, edited)
                expected = style.dump([*cells[:index], new, *cells[index + 1 :]])
                if style.keys == COLAB:  # outputs stand after the source there, which a cell without them does not show
                    assert json.loads(after) == json.loads(expected)
                else:
                    assert after == expected
                assert is_valid(after)
                assert not outside(data, edited.splices, cell.span)


@settings(deadline=None, max_examples=120)
@given(STYLE, st.lists(st.tuples(TEXT, st.booleans()), max_size=4), TEXT, st.data())
def test_any_source_in_any_style(style: Style, texts: list[tuple[str, bool]], source: str, data: st.DataObject) -> None:
    cells = [words("é < two\nlines")] + [
        code(text, n + 1) if is_code else words(text, f"w{n}") for n, (text, is_code) in enumerate(texts)
    ]
    cells = fit(style, cells)
    before = style.dump(cells)
    index = data.draw(st.integers(0, len(cells) - 1))
    cell = parse(before).cells[index]
    new = run_away(cells[index], source)
    if cell.source != source:
        after = done(before, replace_cell(before, cell.name, source))
        assert after == style.dump([*cells[:index], new, *cells[index + 1 :]])
        assert parse(after).cells[index].source == source
    edited = insert_cell(before, cell.name, source, cells[index]["cell_type"])
    new = {**new, "metadata": {}, "id": edited.cell_id}
    after = done(before, edited)
    assert after == style.dump([*cells[: index + 1], *fit(style, [new]), *cells[index + 1 :]])
    assert done(after, delete_cell(after, edited.cell_id)) == before


# ---- lines that stay ------------------------------------------------------------------------------------------------


def with_source(source: str, more: str = "") -> bytes:
    return (
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": ['
        f'{{"cell_type": "markdown", "metadata": {{}}, "source": {source}}}{more}]}}'
    ).encode()


@pytest.mark.parametrize(
    ("old", "source", "new"),
    [
        (r'["\u0041\n",  "b\n", "c"]', "A\nB\nc", r'["\u0041\n",  "B\n", "c"]'),
        (r'["\u0041\n",  "b\n", "c"]', "A\nc", r'["\u0041\n", "c"]'),
        (r'["a\n",  "\u0062\n", "c"]', "0\na\nb\nc", r'["0\n",  "a\n",  "\u0062\n", "c"]'),
        (r'["\u0061\n",  "b"]', "a\n\nb", r'["\u0061\n",  "\n",  "b"]'),
        (r'["\u0061\n",  "b"]', "a\nb\nc", r'["\u0061\n",  "b\n",  "c"]'),
        (r'["\u0061\n",  "b\n"]', "a\nb\nc", r'["\u0061\n",  "b\n",  "c"]'),
        (r'["x\n",  "\u0062"]', "b", r'["\u0062"]'),
        (r'["a\nb", "c"]', "a\nbcd", r'["a\n", "bcd"]'),
        (r'["a"]', "", "[]"),
        ("[ ]", "a\nb", r'["a\n", "b"]'),
        (r'[ "a" ]', "b\nc", r'[ "b\n", "c" ]'),
        ('"a"', "b\nc", r'"b\nc"'),
        ('""', "b", '"b"'),
    ],
)
def test_lines_that_do_not_change_keep_their_bytes(old: str, source: str, new: str) -> None:
    before = with_source(old)
    assert done(before, replace_cell(before, "cell-0", source)) == with_source(new)


def test_only_what_changes_is_spliced() -> None:
    data = JUPYTER.dump([code("a\nb\nc\n", 3)])
    splices = replace_cell(data, "code-3", "a\nB\nc\n").splices
    assert [data[splice.start : splice.end] for splice in splices][::2] == [b"3", b'"b\\n"']
    assert [splice.new for splice in splices] == [b"null", b"[]", b'"B\\n"']


def test_a_writer_that_puts_single_lines_on_one_line() -> None:
    single = b'{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "raw", "source": ["a"]}, {"cell_type": "raw", "source": [\n  "b\\n",\n  "c"\n]}]}'
    plural = single.replace(b'["a"]', b'[\n  "a\\n",\n  "z"\n]')
    assert done(single, replace_cell(single, "cell-0", "a\nz")) == plural
    single = single.replace(b'"a"', b'"1"')
    both = plural.replace(b"[{", b'[{"cell_type": "raw", "source": ["0"]}, {')
    assert b'"source": ["x"]}' in done(both, replace_cell(both, "cell-1", "x"))


def test_indentation_of_its_own_is_kept() -> None:
    data = b'{"nbformat": 4, "cells": [{"cell_type": "raw", "source": [\n      "a"\n    ]},\n{"cell_type": "raw", "source": [\n"b\\n",\n"c"\n]}]}'
    after = done(data, replace_cell(data, "cell-0", "x\ny"))
    assert after == data.replace(b'"a"', b'"x\\n",\n      "y"')


def test_the_form_of_the_sources_is_that_of_the_others() -> None:
    strings = with_source('"a"', more=', {"cell_type": "raw", "metadata": {}}, {"cell_type": "raw", "source": []}')
    assert b'"source": "x\\ny"}, {"cell_type": "raw", "source": []}' in done(
        strings, replace_cell(strings, "cell-1", "x\ny")
    )
    assert b'"source": ["x\\n", "y"]}]' in done(strings, replace_cell(strings, "cell-2", "x\ny"))
    empty = with_source('""')
    assert b'"source": "x"' in done(empty, insert_cell(empty, None, "x", "raw"))


# ---- what nbformat asks of a cell -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "metadata", "to", "kept"),
    [
        ("markdown", {"collapsed": "yes", "tags": ["a"]}, "code", {"tags": ["a"]}),
        ("markdown", {"collapsed": True, "scrolled": "auto", "execution": {"a": "b"}}, "code", None),
        ("markdown", {"scrolled": 1, "execution": {"a": 1}}, "code", {}),
        ("raw", {"a": 1, "scrolled": "up", "b": 2}, "code", {"a": 1, "b": 2}),
        ("code", {"format": 1, "name": "x"}, "raw", {"name": "x"}),
        ("code", {"format": "text/html"}, "raw", None),
        ("code", {"jupyter": {"source_hidden": True}}, "markdown", None),
    ],
)
def test_metadata_that_the_new_type_forbids_goes(kind: str, metadata: Any, to: str, kept: Any) -> None:
    cell = code("x", 1, metadata=metadata) if kind == "code" else words("x", kind=kind, metadata=metadata)
    data = JUPYTER.dump([cell])
    assert is_valid(data)
    after = done(data, replace_cell(data, "cell-0", "x", to))
    assert json.loads(after)["cells"][0]["metadata"] == (metadata if kept is None else kept)
    assert is_valid(after)


def test_attachments_and_metadata_stay() -> None:
    cell = words("![](attachment:a)", "w", metadata={"deep": {"é": [1]}}, attachments={"a": {"image/png": "AA=="}})
    data = JUPYTER.dump([cell])
    after = done(data, replace_cell(data, "w", "y", "raw"))
    assert json.loads(after)["cells"] == [{**cell, "source": ["y"], "cell_type": "raw"}]
    assert "attachments" not in json.loads(done(data, replace_cell(data, "w", "y", "code")))["cells"][0]


def test_every_order_of_fields_converts() -> None:
    for fields in (
        "outputs execution_count cell_type source",
        "execution_count source outputs cell_type",
        "source cell_type",
    ):
        values = {"outputs": "[1]", "execution_count": "7", "cell_type": '"code"', "source": '"a"'}
        cell = ", ".join(f'"{key}": {values[key]}' for key in fields.split())
        data = f'{{"nbformat": 4, "cells": [{{{cell}}}]}}'.encode()
        after = done(data, replace_cell(data, "cell-0", "b", "markdown"))
        assert json.loads(after)["cells"] == [{"cell_type": "markdown", "source": "b"}]
        back = json.loads(done(after, replace_cell(after, "cell-0", "a", "code")))["cells"]
        assert back == [{"cell_type": "code", "source": "a", "outputs": [], "execution_count": None}]


def test_a_cell_without_a_source_gets_one() -> None:
    data = b'{"nbformat": 4, "cells": [{"outputs": [], "cell_type": "code"}]}'
    expected = b'{"nbformat": 4, "cells": [{"outputs": [], "source": ["a"], "cell_type": "code"}]}'
    assert done(data, replace_cell(data, "cell-0", "a")) == expected
    expected = b'{"nbformat": 4, "cells": [{"cell_type": "raw", "source": ["a"]}]}'
    assert done(data, replace_cell(data, "cell-0", "a", "raw")) == expected


def test_a_type_from_the_future_stays_and_its_source_can_change() -> None:
    data = b'{"nbformat": 4, "cells": [{"cell_type": "hologram", "key": 1}]}'
    after = done(data, replace_cell(data, "cell-0", "a"))
    assert json.loads(after)["cells"] == [{"cell_type": "hologram", "source": ["a"], "key": 1}]
    with pytest.raises(Refused, match="later format") as refused:
        replace_cell(data, "cell-0", "a", "code")
    assert refused.value.code == "bad_arguments"


def test_outputs_that_are_empty_already_are_left_alone() -> None:
    data = b'{"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [ ], "execution_count": null, "source": "a"}]}'
    assert done(data, replace_cell(data, "cell-0", "b", "code")) == data.replace(b'"a"', b'"b"')


# ---- ids ------------------------------------------------------------------------------------------------------------


def test_an_insert_goes_after_the_cell_named_and_without_one_to_the_top() -> None:
    data = JUPYTER.dump([words("1", "c1"), words("2", "c2"), words("3", "c3")])
    top = insert_cell(data, None, "new", "raw")
    assert top.cell_ids == (top.cell_id, "c1", "c2", "c3")
    after = insert_cell(data, "c1", "new", "raw")
    assert after.cell_ids == ("c1", after.cell_id, "c2", "c3")
    with pytest.raises(Refused, match="in order: c1, c2, c3"):
        insert_cell(data, "c4", "new", "raw")


def test_ids_twice_are_refused_and_reached_by_position() -> None:
    data = JUPYTER.dump([words("a", "1"), words("b", "1")])
    edits: list[Callable[[], Edited]] = [
        lambda: replace_cell(data, "1", "c"),
        lambda: insert_cell(data, "1", "c", "raw"),
        lambda: delete_cell(data, "1"),
    ]
    for edit in edits:
        with pytest.raises(Refused) as refused:
            edit()
        assert refused.value.code == "ambiguous"
    edited = replace_cell(data, "cell-1", "c")
    assert edited.cell_id == "cell-1"
    assert done(data, edited) == JUPYTER.dump([words("a", "1"), words("c", "1")])
    edited = delete_cell(data, "cell-1")
    assert (edited.cell_id, edited.cell_ids) == ("cell-1", ("1",))


@pytest.mark.parametrize("cell_id", [None, "not valid", 7])
def test_ids_that_are_none_are_left_alone(cell_id: Any) -> None:
    data = JUPYTER.dump([{**words("a"), "id": cell_id}])
    assert done(data, replace_cell(data, "cell-0", "b")) == JUPYTER.dump([{**words("b"), "id": cell_id}])
    edited = insert_cell(data, "cell-0", "b", "markdown")
    expected = [{**words("a"), "id": cell_id}, words("b", edited.cell_id)]
    assert done(data, edited) == JUPYTER.dump(expected)


def test_no_id_is_added_before_4_5_and_none_to_an_old_cell_after() -> None:
    cell = {"cell_type": "raw", "metadata": {}, "source": "a"}
    old, new = Style(minor=4).dump([cell]), JUPYTER.dump([cell])
    assert b'"id"' not in done(old, insert_cell(old, "cell-0", "b", "code"))
    after = json.loads(done(new, insert_cell(new, "cell-0", "b", "raw")))["cells"]
    assert list(after[0]) == ["cell_type", "metadata", "source"]
    assert list(after[1]) == ["cell_type", "id", "metadata", "source"]
    assert b'"id"' not in done(new, replace_cell(new, "cell-0", "b", "code"))


def test_new_ids_are_unique_and_the_same_plan_gives_the_same_id() -> None:
    data = JUPYTER.dump([])
    first = insert_cell(data, None, "same", "code")
    assert insert_cell(data, None, "same", "code") == first
    seen: set[str] = set()
    for _ in range(30):
        edited = insert_cell(data, None, "same", "code")
        assert edited.cell_id not in seen
        seen.add(edited.cell_id)
        data = done(data, edited)
    assert is_valid(data)


def test_an_id_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter([b"\x01" * 32, b"\x02" * 32])

    class Digest:
        def digest(self) -> bytes:
            return next(digests)

    monkeypatch.setattr("langchain_filestate._notebook.hashlib.sha256", lambda _: Digest())
    data = JUPYTER.dump([words("a", "01010101")])
    assert insert_cell(data, None, "b", "raw").cell_id == "02020202"


# ---- refusals -------------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    data = JUPYTER.dump([words("a", "w")])
    edits: list[tuple[str, Callable[[], Edited]]] = [
        ("no_change", lambda: replace_cell(data, "w", "a")),
        ("no_change", lambda: replace_cell(data, "w", "a", "markdown")),
        ("bad_arguments", lambda: replace_cell(data, "w", "b", "heading")),
        ("bad_arguments", lambda: insert_cell(data, None, "b", "")),
        ("encoding", lambda: replace_cell(data, "w", "b\ud800")),
        ("encoding", lambda: insert_cell(data, "w", "\udfff", "raw")),
        ("cell_not_found", lambda: replace_cell(data, "x", "b")),
        ("cell_not_found", lambda: delete_cell(data, "cell-1")),
        ("bad_notebook", lambda: replace_cell(b"", "x", "b")),
        ("bad_notebook", lambda: insert_cell(b"{}", None, "b", "raw")),
        ("bad_notebook", lambda: delete_cell(b"[" * 10**5, "x")),
    ]
    for code_, edit in edits:
        with pytest.raises(Refused) as refused:
            edit()
        assert refused.value.code == code_
    with pytest.raises(Refused, match=r"No changes to make: .*"):
        replace_cell(data, "w", "a")
    with pytest.raises(Refused, match=r"U\+D800 at character 2"):
        replace_cell(data, "w", "b\ud800")


def test_a_surrogate_that_the_file_has_as_an_escape_is_no_obstacle() -> None:
    data = with_source(r'["\ud800\n", "b"]')
    assert done(data, replace_cell(data, "cell-0", "a\nb")) == with_source(r'["a\n", "b"]')
    other = with_source(r'["\ud800"]', more=', {"cell_type": "raw", "source": ["x"]}')
    assert done(other, replace_cell(other, "cell-1", "é")) == other.replace(b'"x"', '"é"'.encode())
