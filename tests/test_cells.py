"""Notebooks as read and as shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_filestate._cells import Notebook, find_cell, names, parse, render
from langchain_filestate._outputs import OUTPUT_CHARS, output_text, shorten
from langchain_filestate.errors import Refused
from tests.notebook_styles import JUPYTER, STYLES, Style, code, is_valid, sample, words


def notebook(*cells: Any, **top: Any) -> bytes:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **top}).encode()


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_every_style_reads_the_same(style: Style) -> None:
    cells = sample(style)
    data = style.dump(cells)
    assert is_valid(data)
    parsed = parse(data)
    assert [(cell.cell_type, cell.source) for cell in parsed.cells] == [(c["cell_type"], c["source"]) for c in cells]
    assert [cell.index for cell in parsed.cells] == [0, 1, 2, 3, 4]
    assert parsed.cells[1].outputs == ("<1> é\n",)
    assert (parsed.nbformat, parsed.nbformat_minor, parsed.language) == (4, style.minor, "python")
    for cell, expected in zip(parsed.cells, cells, strict=True):
        value = json.loads(data[slice(*cell.span)])
        assert value["cell_type"] == expected["cell_type"]
        assert "".join(value["source"]) == expected["source"]


DEEP = b'{"cells": ' + b"[" * 100_000
CELL = {"cell_type": "code"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "it is not JSON (Expecting value at line 1, column 1)", id="empty"),
        pytest.param(b"{}\n<<<<<<< HEAD", "not JSON (Extra data at line 2, column 1)", id="merge conflict"),
        pytest.param(DEEP, "not JSON (nested too deeply)", id="deep"),
        pytest.param(b'{"a": "caf\xe9"}', "not UTF-8 (byte 10)", id="latin-1"),
        pytest.param(b"\xef\xbb\xbf\xff", "not UTF-8 (byte 3)", id="bom and bad bytes"),
        pytest.param('{"cells": []}'.encode("utf-16"), "not UTF-8 (byte 0)", id="utf-16"),
        pytest.param(b"[]", "not a JSON object", id="array"),
        pytest.param(b"{}", "no nbformat number", id="no format"),
        pytest.param(notebook(nbformat=True), "no nbformat number", id="format no number"),
        pytest.param(notebook(nbformat=3), "nbformat 3, only nbformat 4 is supported; convert it", id="old"),
        pytest.param(notebook(nbformat=5), "nbformat 5, only nbformat 4 is supported.", id="future"),
        pytest.param(b'{"nbformat": 4}', "no list of cells", id="no cells"),
        pytest.param(notebook(cells={}), "no list of cells", id="cells no list"),
        pytest.param(notebook(CELL, 1), "cell-1 is not an object", id="cell no object"),
        pytest.param(notebook({}), "cell-0 has no cell_type", id="no type"),
        pytest.param(notebook({**CELL, "source": [1]}), "source of cell-0 is neither", id="source no text"),
        pytest.param(notebook({**CELL, "source": None}), "source of cell-0 is neither", id="source null"),
        pytest.param(
            b'{"nbformat": 4, "cells": [], "cells": []}', "the notebook has the key 'cells' twice", id="twice"
        ),
        pytest.param(
            b'{"nbformat": 4, "cells": [{"cell_type": "raw", "cell\\u005ftype": ""}]}',
            "cell-0 has the key 'cell_type' twice",
            id="twice in a cell",
        ),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(data)
    assert refused.value.code == "bad_notebook"
    assert why in refused.value.message
    assert len(refused.value.message) < 250


def test_what_jupyter_puts_up_with_is_read() -> None:
    data = (
        b'\xef\xbb\xbf{"nbformat": 4, "metadata": NaN, "cells": [{"cell_type": "code", "metadata": {"x": -Infinity}}]}'
    )
    parsed = parse(data)
    assert parsed.nbformat_minor == 0
    assert parsed.language == ""
    assert parsed.cells[0].source == ""


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, ""),
        ({"kernelspec": {"language": "R"}}, "R"),
        ({"language_info": {"name": "julia"}, "kernelspec": {"language": "R"}}, "julia"),
        ({"language_info": 1, "kernelspec": {"language": 1}}, ""),
    ],
)
def test_language(metadata: Any, language: str) -> None:
    assert parse(notebook(metadata=metadata)).language == language


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], ()),
        (["a", "b-_9"], ("a", "b-_9")),
        ([None, 1, [], "a b", "", "x" * 65, "é"], tuple(f"cell-{n}" for n in range(7))),
        (["1", "1", "2"], ("cell-0", "cell-1", "2")),
        (["cell-1", None], ("cell-1", "cell-01")),
        (["cell-1", None, "cell-01"], ("cell-1", "cell-001", "cell-01")),
        (["cell-1", "cell-1"], ("cell-0", "cell-01")),
    ],
)
def test_names(ids: list[Any], expected: tuple[str, ...]) -> None:
    assert names(tuple(ids)) == expected
    cells = [{"cell_type": "raw", "id": cell_id} for cell_id in ids]
    parsed = parse(notebook(*cells))
    assert [find_cell(parsed, name).index for name in expected] == list(range(len(ids)))


@given(st.lists(st.none() | st.sampled_from(["cell-0", "cell-1", "cell-00", "cell-02", "a", "", "é"]), max_size=5))
@settings(deadline=None)
def test_every_cell_has_a_name_of_its_own(ids: list[str | None]) -> None:
    parsed = parse(notebook(*({"cell_type": "raw", "id": cell_id} for cell_id in ids)))
    assert [find_cell(parsed, cell.name) for cell in parsed.cells] == list(parsed.cells)


def test_cells_are_found_by_id_first_then_by_position() -> None:
    parsed = parse(notebook(words("a", "cell-2"), words("b", "x"), words("c", "y"), words("d", "a b")))
    assert find_cell(parsed, "cell-2").source == "a"
    assert find_cell(parsed, "x").source == "b"
    assert find_cell(parsed, "cell-1").source == "b"
    assert find_cell(parsed, "cell-02").source == "c"
    assert find_cell(parsed, "a b").source == "d"


@pytest.mark.parametrize("cell_id", ["z", "", "cell-3", "cell--1", "cell-1.0", "CELL-1", "1", "cell-9999999999"])
def test_an_unknown_cell_is_refused_with_the_names_there_are(cell_id: str) -> None:
    parsed = parse(notebook(words("a", "one"), words("b", "two"), {"cell_type": "raw"}))
    with pytest.raises(Refused, match="in order: one, two, cell-2") as refused:
        find_cell(parsed, cell_id)
    assert refused.value.code == "cell_not_found"


def test_the_names_listed_are_bounded() -> None:
    parsed = parse(notebook(*[words("", "x" * 60 + str(n)) for n in range(1000)]))
    with pytest.raises(Refused, match="and 950 more") as refused:
        find_cell(parsed, "z")
    assert len(refused.value.message) < 4000


def test_an_empty_notebook_has_no_cell() -> None:
    with pytest.raises(Refused, match="no cells") as refused:
        find_cell(parse(notebook()), "cell-0")
    assert refused.value.code == "cell_not_found"


def test_an_id_twice_is_ambiguous_and_the_positions_are_offered() -> None:
    parsed = parse(notebook(words("a", "1"), words("b", "1"), words("c", "2")))
    with pytest.raises(Refused, match="2 cells have this id") as refused:
        find_cell(parsed, "1")
    assert refused.value.code == "ambiguous"
    assert "cell-0, cell-1" in refused.value.message
    assert refused.value.lines == (1, 2)


# ---- outputs --------------------------------------------------------------------------------------------------------


def result(**data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {key.replace("__", "/"): value for key, value in data.items()}}


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}, "a\nb"),
        ({"output_type": "stream", "name": "stdout", "text": "\x1b[31mred\x1b[0m"}, "red"),
        ({"output_type": "stream", "name": "stderr", "text": "careful"}, "[stderr]\ncareful"),
        ({"output_type": "error", "traceback": ["\x1b[31mZero\x1b[0m", "Division", 3]}, "[error]\nZero\nDivision"),
        ({"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}, "[error]\nE: v"),
        (result(text__html="<p>", text__plain=["1", "2"]), "12"),
        (result(text__latex="$x$", text__markdown="*x*"), "*x*"),
        (result(image__png="A" * 16_000, text__plain="<Figure>"), "<Figure>\n[image/png, 12 kB]"),
        (result(image__png=["AAAA\n", "AA==\n"]), "[image/png, 4 B]"),
        ({"output_type": "display_data", "data": {"image/svg+xml": "<svgé>"}}, "[image/svg+xml, 7 B]"),
        (result(text__html="x" * 1499), "[text/html, 1 kB]"),
        (result(application__json={"deep": []}), "[application/json]"),
        (result(text__plain=1), "[text/plain]"),
        (result(), ""),
        ({"output_type": "display_data", "data": 1}, ""),
        (None, ""),
    ],
)
def test_outputs(output: Any, text: str) -> None:
    assert output_text(output) == text


def test_outputs_are_bounded() -> None:
    for output in (
        {"output_type": "stream", "text": "x" * 10**6},
        {"output_type": "error", "traceback": ["x" * 10**6]},
        result(text__plain="x" * 10**6),
    ):
        assert len(output_text(output)) < OUTPUT_CHARS + 100
    assert shorten("abcdefghij", 6) == "abcd\n[... 4 characters left out ...]\nij"
    assert shorten("abcdef", 6) == "abcdef"


# ---- what is shown --------------------------------------------------------------------------------------------------


def show(*cells: Any, **how: Any) -> Any:
    return render(parse(JUPYTER.dump(list(cells))), **{"max_chars": 10_000, **how})


def test_cells_are_shown_with_id_type_source_and_outputs() -> None:
    window = show(words("# é\n", "intro"), code("print(1)", 7), code("x"))
    assert window.text == (
        '<cell id="intro" type="markdown">\n# é\n\n</cell>\n'
        '<cell id="code-7" type="code">\nprint(1)\n</cell>\n<output of="code-7">\n<7> é\n</output>\n'
        '<cell id="code-0" type="code">\nx\n</cell>'
    )
    assert window.notes == ("Notebook (nbformat 4.5, python), cells 1-3 of 3.",)
    assert (window.first_line, window.last_line, window.seen, window.complete) == (1, 3, ((1, 3),), True)


def test_a_notebook_without_cells() -> None:
    window = show()
    assert (window.text, window.seen, window.complete) == ("", (), True)
    assert (window.first_line, window.last_line) == (0, 0)
    assert "without cells" in window.notes[0]


TEN = [words(f"text {n}", f"c{n}") for n in range(1, 11)]


@pytest.mark.parametrize(
    ("how", "seen", "following"),
    [
        ({}, (1, 10), None),
        ({"offset": 0, "limit": 2}, (1, 2), 3),
        ({"offset": 3, "limit": 2}, (3, 4), 5),
        ({"offset": 9, "limit": 5}, (9, 10), None),
        ({"offset": -2}, (9, 10), None),
        ({"offset": -99, "limit": 1}, (1, 1), 2),
        ({"offset": 2, "limit": 0}, (2, 2), 3),
        ({"max_chars": 60}, (1, 1), 2),
        ({"max_chars": 95}, (1, 2), 3),
    ],
)
def test_windows_by_cell(how: Any, seen: tuple[int, int], following: int | None) -> None:
    window = show(*TEN, **how)
    assert window.seen == (seen,)
    assert (window.first_line, window.last_line) == seen
    assert window.complete == (seen == (1, 10))
    assert window.notes[1:] == ((f"Go on with offset={following}.",) if following else ())
    assert len(window.text) <= how.get("max_chars", 10_000)


def test_a_window_past_the_end_is_refused() -> None:
    with pytest.raises(Refused, match="has 10 cells; there is no cell 11") as refused:
        show(*TEN, offset=11)
    assert refused.value.code == "out_of_range"
    with pytest.raises(Refused, match="there is no character 7") as refused:
        show(*TEN, column=7)
    assert refused.value.code == "out_of_range"


def test_a_long_cell_is_read_on_by_column_and_never_counts_as_seen() -> None:
    cells = [words("0123456789" * 30, "long"), words("b", "b")]
    window = show(*cells, max_chars=200)
    assert "0123456789" * 20 in window.text
    assert window.seen == ()
    assert not window.complete
    assert window.notes[1:] == ("Characters 1-200 of the 300 in cell 1.", "Go on with offset=1, column=201.")
    window = show(*cells, max_chars=200, column=201)
    assert "0123456789" * 10 in window.text
    assert "\nb\n" in window.text
    assert window.seen == ((2, 2),)
    assert not window.complete
    window = show(cells[0], max_chars=200, column=201)
    assert window.seen == ()
    assert window.notes[1:] == ("Characters 201-300 of the 300 in cell 1.",)


@given(st.lists(st.text("ab\n\u2028", max_size=40), min_size=1, max_size=5), st.integers(1, 120))
@settings(deadline=None, max_examples=60)
def test_following_the_notes_shows_every_character_once(sources: list[str], max_chars: int) -> None:
    parsed = parse(JUPYTER.dump([words(source, f"c{n}") for n, source in enumerate(sources)]))
    shown: dict[str, str] = {}
    offset, column = 1, 1
    for _ in range(500):
        window = render(parsed, offset=offset, column=column, max_chars=max_chars)
        for part in window.text.split("\n</cell>"):
            if '<cell id="' in part:
                name, _, source = part.split('<cell id="')[1].partition('" type="markdown">\n')
                shown[name] = shown.get(name, "") + source
        if window.following is None:
            break
        offset, column = window.following
        on = f"offset={offset}, column={column}" if column > 1 else f"offset={offset}"
        assert window.notes[-1] == f"Go on with {on}."
    assert shown == {f"c{n}": source for n, source in enumerate(sources)}


def test_outputs_in_a_view_are_bounded() -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "q" * 5000}
    window = show(code("x", 1, outputs=[output, output]), max_output_chars=100)
    assert window.text.count("q") == 100
    assert "left out" in window.text
    assert window.complete


def test_what_is_no_text_is_shown_as_an_escape() -> None:
    cell = {"cell_type": "raw", "source": "a\ud800"}
    window = render(parse(notebook(cell)), max_chars=100)
    window.text.encode()
    assert "\\ud800" in window.text


def test_the_value_is_plain() -> None:
    assert Notebook((), 4, 0, "") == Notebook((), 4, 0, "")
