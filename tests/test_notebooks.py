"""The notebooks do what their kept outputs say. `python -m tests.notebooks` keeps new outputs and the picture."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests import notebooks

NAMES = [path.name for path in notebooks.NOTEBOOKS]


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_six() -> None:
    assert [name.split("_", 1)[0] for name in NAMES] == list("123456")


@pytest.mark.notebooks
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_still_shows_what_it_keeps(name: str) -> None:
    path = notebooks.FOLDER / name
    kept, now = notebooks.load(path), notebooks.execute(path)
    assert notebooks.texts(now) == notebooks.texts(kept)
    if name.startswith("4_"):
        assert notebooks.picture(now) == notebooks.PICTURE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_kept_outputs_are_whole_and_the_same_on_every_machine(name: str) -> None:
    notebook = notebooks.load(notebooks.FOLDER / name)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "execute_result"}
    assert not any(output.get("name") == "stderr" for output in outputs)
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(shown) >= 2
    for text in [*shown, *(text for _, text in notebooks.texts(notebook))]:
        assert not re.search(r"/tmp/|/home/|/root|\bfs-[0-9a-f]{12}\b|\bcall_\d+\b|[0-9a-f]{32}|\d\d:\d\d:\d\d", text)
        assert "<script" not in text


def test_the_first_one_has_a_line_for_a_real_model() -> None:
    source = "\n".join(cell.source for cell in notebooks.load(notebooks.NOTEBOOKS[0]).cells)
    assert re.search(r"^# model = \"\w+:[\w.-]+\"$", source, re.MULTILINE)
    assert len(source.splitlines()) < 100  # five minutes


def test_links_between_the_notebooks_lead_somewhere() -> None:
    for path in notebooks.NOTEBOOKS:
        for target in re.findall(r"\]\(([^)]+)\)", "\n".join(cell.source for cell in notebooks.load(path).cells)):
            assert (path.parent / target).exists()


def test_the_picture_is_a_file_of_its_own() -> None:
    svg = notebooks.PICTURE.read_text(encoding="utf-8")
    tree = ET.fromstring(svg)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"href|url\(|@import|<script|@font-face|\son\w+=", svg)
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert "prefers-color-scheme:dark" in svg
    said = {text for element in tree.iter() for text in (element.text,) if text}
    assert {"refused", "read", "edit", "write", "changed", "is told", "rewind"} <= said


def test_the_helper_module_stands_beside_the_notebooks() -> None:
    assert os.path.exists(notebooks.FOLDER / "scripted.py")
    assert Path(notebooks.FOLDER, "scripted.py").read_text(encoding="utf-8").count("\n") < 80
