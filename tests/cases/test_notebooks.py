"""One cell changes, the bytes of all others stay, and it is always clear which cell is meant."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from tests.cases.steps import Desk, Make, cell, code, edit, read, write
from tests.notebook_styles import JUPYTER, Style


def code_cell(cell_id: str | None, source: str, **more: Any) -> dict[str, Any]:
    made = {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [], "source": source, **more}
    return made if cell_id is None else {**made, "id": cell_id}


def note_cell(cell_id: str | None, source: str) -> dict[str, Any]:
    made = {"cell_type": "markdown", "metadata": {}, "source": source}
    return made if cell_id is None else {**made, "id": cell_id}


THREE = [code_cell("c0", "a = 0"), note_cell("c1", "# na\u00efve"), code_cell("c2", "c = 2\nd = 3")]


def book(d: Desk, cells: list[dict[str, Any]], style: Style = JUPYTER, name: str = "n.ipynb") -> Any:
    path = d.put(name, style.dump(cells))
    d.read(path)
    return path


def valid(path: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found: Any = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
        nbformat.validate(found)
    return found


def sources(path: Any) -> list[str]:
    return ["".join(each["source"]) for each in json.loads(path.read_text(encoding="utf-8-sig"))["cells"]]


# ---- NB-01 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "at"), [(None, 0), ("c0", 1), ("c1", 2), ("c2", 3), ("cell-0", 1), ("cell-2", 3)])
def test_nb_01_insert_goes_after_the_cell_or_to_the_top(desk: Callable[..., Desk], after: str | None, at: int) -> None:
    d = desk()
    path = book(d, THREE)
    message = d.cell(path, after, "new = 1", "insert")
    assert message.status == "success", message.content
    order = ["a = 0", "# na\u00efve", "c = 2\nd = 3"]
    order.insert(at, "new = 1")
    assert sources(path) == order
    ids = [each["id"] for each in valid(path)["cells"]]
    assert list(message.artifact["cell_ids"]) == ids
    assert message.artifact["cell_id"] == ids[at]
    assert ", ".join(ids) in str(message.content)  # the new order, for the model too


def test_nb_01_the_description_says_so(desk: Callable[..., Desk]) -> None:
    said = desk().tools["edit_notebook"].description
    assert "after cell_id" in said
    assert "at the top" in said


def test_nb_01_several_inserts_of_one_message(session: Make, tmp_path: Any) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(JUPYTER.dump(THREE))
    s = session()
    s.say(read(path))
    out = s.say(
        [cell(path, "c0", "first", "insert"), cell(path, "c0", "second", "insert"), cell(path, None, "top", "insert")]
    )
    assert [m.status for m in out] == ["success"] * 3
    assert sources(path)[:4] == ["top", "a = 0", "second", "first"]
    valid(path)


@pytest.mark.parametrize("mode", ["replace", "insert", "delete"])
@pytest.mark.parametrize(
    "wrong", ["c9", "", "C0", "cell-3", "cell--1", "cell-", "0", "1", " c0", "cell-01x", "x" * 5000]
)
def test_nb_01_an_unknown_cell_is_named_with_the_ones_there_are(
    desk: Callable[..., Desk], mode: str, wrong: str
) -> None:
    d = desk()
    path = book(d, THREE)
    before = path.read_bytes()
    message = d.cell(path, wrong, "x", mode)
    if message.status == "error":
        assert code(message) == "cell_not_found"
        assert "c0, c1, c2" in str(message.content)
        assert len(str(message.content)) < 400
        assert path.read_bytes() == before
    else:
        assert (mode, wrong) == ("insert", "")  # as if it had been left out


def test_nb_01_replace_and_delete_need_a_cell(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = book(d, THREE)
    for mode in ("replace", "delete"):
        assert code(d.cell(path, None, "x", mode)) == "bad_arguments"
    assert sources(path) == ["a = 0", "# na\u00efve", "c = 2\nd = 3"]


def test_nb_01_deletes_and_an_empty_notebook(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = book(d, THREE)
    for cell_id in ("c1", "c0", "c2"):
        assert d.cell(path, cell_id, mode="delete").status == "success"
        valid(path)
    assert sources(path) == []
    assert code(d.cell(path, "c0", "x")) == "cell_not_found"
    assert d.cell(path, None, "back", "insert").status == "success"
    assert sources(path) == ["back"]
    valid(path)


# ---- NB-02 ----------------------------------------------------------------------------------------------------------

STYLES = {
    "as Jupyter": JUPYTER,
    "no final newline": Style(final=""),
    "crlf": Style(newline="\r\n"),
    "a mark": Style(bom=b"\xef\xbb\xbf"),
    "escaped": Style(ascii_only=True),
    "four": Style(indent=4),
    "tabs": Style(indent="\t"),
    "one line": Style(indent=None),
    "compact": Style(indent=None, separators=(",", ":"), final=""),
    "one string": Style(one_string=True),
    "two newlines": Style(final="\n\n"),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_nb_02_only_the_cell_changes(desk: Callable[..., Desk], style: Style) -> None:
    d = desk()
    for n, (cell_id, new) in enumerate(
        [("c0", "a = 1  # \u4e2d\u6587"), ("c1", "# other\n\ntext"), ("c2", "c = 2\nd = 4\ne = '\"\\n'")]
    ):
        path = book(d, THREE, style, f"{n}.ipynb")
        message = d.cell(path, cell_id, new)
        assert message.status == "success", message.content
        after = [
            {**each, "source": new, **({"execution_count": None} if each["cell_type"] == "code" else {})}
            if each["id"] == cell_id
            else each
            for each in THREE
        ]
        assert path.read_bytes() == style.dump(after)
        patch = message.artifact["patch"]
        assert patch["added"] <= 6 or style.indent is None


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_nb_02_inserts_and_deletes_follow_the_style(desk: Callable[..., Desk], style: Style) -> None:
    d = desk()
    path = book(d, THREE, style)
    message = d.cell(path, "c0", "new = 1", "insert")
    new = code_cell(message.artifact["cell_id"], "new = 1", execution_count=None)
    assert path.read_bytes() == style.dump([THREE[0], new, *THREE[1:]])
    assert d.cell(path, message.artifact["cell_id"], mode="delete").status == "success"
    assert path.read_bytes() == style.dump(THREE)


def test_nb_02_the_outputs_of_others_stay(desk: Callable[..., Desk]) -> None:
    d = desk()
    big = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": "A" * 200_000, "text/plain": "<Figure>"},
    }
    cells = [
        code_cell("c0", "plot()", outputs=[big]),
        code_cell("c1", "x = 1", outputs=[{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]),
    ]
    path = book(d, cells)
    shown = d.read(path)
    assert "A" * 100 not in str(shown.content)
    assert d.cell(path, "c1", "x = 2").status == "success"
    found = json.loads(path.read_text())["cells"]
    assert found[0]["outputs"] == [big]
    assert found[1]["outputs"] == []  # of the old source
    assert found[1]["execution_count"] is None


# ---- NB-03 ----------------------------------------------------------------------------------------------------------


def raw(cells: list[dict[str, Any]], minor: int = 5, **more: Any) -> bytes:
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor, **more}, indent=1
    ).encode()


def test_nb_03_two_cells_with_one_id(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("n.ipynb", raw([code_cell("1", "a"), code_cell("1", "b"), code_cell("x", "c")]))
    shown = str(d.read(path).content)
    assert 'id="cell-0"' in shown
    assert 'id="cell-1"' in shown
    for mode in ("replace", "delete", "insert"):
        message = d.cell(path, "1", "new", mode)
        assert code(message) == "ambiguous"
        assert "cell-0, cell-1" in str(message.content)
    assert d.cell(path, "cell-1", "new").status == "success"
    assert sources(path) == ["a", "new", "c"]


def test_nb_03_before_4_5_no_id_is_added(desk: Callable[..., Desk]) -> None:
    d = desk()
    for minor in (0, 2, 4):
        path = d.put(f"{minor}.ipynb", raw([code_cell(None, "a"), note_cell(None, "b")], minor))
        d.read(path)
        assert d.cell(path, "cell-0", "new", "insert").status == "success"
        assert d.cell(path, "cell-0", "a2").status == "success"
        assert d.cell(path, "cell-1", "as text", cell_type="markdown").status == "success"
        found = json.loads(path.read_text())
        assert found["nbformat_minor"] == minor
        assert not any("id" in each for each in found["cells"])
        valid(path)


@pytest.mark.parametrize("odd", [None, 1, "", "a b", "\u00e4", "x" * 65, ["a"], {"a": 1}, True])
def test_nb_03_ids_that_are_of_no_use(desk: Callable[..., Desk], odd: Any) -> None:
    d = desk()
    path = d.put("n.ipynb", raw([{**code_cell("ok", "a")}, {**code_cell("ok2", "b"), "id": odd}]))
    shown = str(d.read(path).content)
    assert 'id="cell-1"' in shown
    assert d.cell(path, "cell-1", "b2").status == "success"
    message = d.cell(path, "cell-1", "new", "insert")
    ids = [each["id"] for each in json.loads(path.read_text())["cells"]]
    assert ids[1] == odd  # nothing else is repaired
    assert ids.count(ids[2]) == 1
    assert message.artifact["cell_id"] == ids[2]
    assert sources(path) == ["a", "b2", "new"]


def test_nb_03_an_id_that_looks_like_a_position(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = book(d, [code_cell("cell-1", "a"), code_cell("cell-0", "b"), code_cell("x", "c")])
    assert d.cell(path, "cell-1", "first").status == "success"  # an id that is exactly so goes first
    assert sources(path) == ["first", "b", "c"]


def test_nb_03_another_type_leaves_one_cell(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = book(d, THREE)
    for cell_type in ("markdown", "raw", "code", "markdown"):
        assert d.cell(path, "c0", f"as {cell_type}", cell_type=cell_type).status == "success"
        found = valid(path)["cells"]
        assert len(found) == 3
        assert found[0]["cell_type"] == cell_type
        assert found[0]["id"] == "c0"


WRONG: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "no notebook": b"{}",
    "a list": b"[]",
    "cells that are none": b'{"cells": 1, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
    "format 3": b'{"worksheets": [], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}',
    "merge conflict": b'{"cells": [\n<<<<<<< HEAD\n],"nbformat": 4}\n',
    "a key twice": b'{"cells": [], "cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_nb_03_what_is_no_notebook(desk: Callable[..., Desk], data: bytes) -> None:
    d = desk()
    path = d.put("n.ipynb", data)
    assert d.read(path).status == "success"  # as text, so that it can be mended
    for message in (d.cell(path, "c0", "x"), d.cell(path, None, "x", "insert")):
        assert code(message) == "bad_notebook", message.content
    assert path.read_bytes() == data


def test_nb_03_a_notebook_is_edited_by_cells_only(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = book(d, THREE)
    for message in (d.edit(path, "a = 0", "a = 1"), d.many(path, ("a = 0", "a = 1")), d.write(path, "{}")):
        assert code(message) == "is_notebook"
        assert "edit_notebook" in str(message.content)
    d.put("t.txt", b"x\n")
    d.read("t.txt")
    assert code(d.cell("t.txt", "c0", "x")) == "bad_notebook"
    assert code(d.cell("none.ipynb", None, "x", "insert")) == "not_found"


def test_nb_03_only_cells_that_were_shown(session: Make, tmp_path: Any) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(JUPYTER.dump(THREE))
    s = session()
    assert code(s.one(cell(path, "c0", "x"))) == "not_read"
    out = s.say(read(path, limit=1), cell(path, "c0", "x = 1"), read(path, offset=3), cell(path, "c2", "y"))
    assert [m.status for m in out] == ["success"] * 4
    out = s.say(edit(path, "x = 1", "z"), write(path, "x"))
    assert [code(m) for m in out] == ["is_notebook"] * 2
