"""Notebooks in the styles of their writers, made in code: a dump in a style is the oracle for an edit in it."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

import nbformat

Cell = dict[str, Any]

PYTHON = ("attachments", "cell_type", "execution_count", "id", "metadata", "outputs", "source")  # sorted
VSCODE = ("cell_type", "execution_count", "id", "metadata", "attachments", "outputs", "source")
COLAB = ("cell_type", "source", "metadata", "attachments", "id", "execution_count", "outputs")


@dataclass(frozen=True)
class Style:
    """How a writer puts a notebook into bytes."""

    indent: int | str | None = 1
    separators: tuple[str, str] | None = None
    ascii_only: bool = False
    escaped: tuple[tuple[str, str], ...] = ()
    upper: bool = False
    newline: str = "\n"
    final: str = "\n"
    bom: bytes = b""
    one_string: bool = False
    keys: tuple[str, ...] = PYTHON
    minor: int = 5

    def dump(self, cells: list[Cell]) -> bytes:
        """The bytes of a notebook with these cells, whose sources are strings."""
        written = [{key: self._field(key, cell[key]) for key in self.keys if key in cell} for cell in cells]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook = {
            "cells": written,
            "metadata": {"kernelspec": kernel, "note": "naïve"},
            "nbformat": 4,
            "nbformat_minor": self.minor,
        }
        text = json.dumps(notebook, indent=self.indent, separators=self.separators, ensure_ascii=self.ascii_only)
        for char, escape in self.escaped:
            text = text.replace(char, escape)
        if self.upper:
            text = re.sub(r"\\u[0-9a-f]{4}", lambda match: "\\u" + match[0][2:].upper(), text)
        return self.bom + (text + self.final).replace("\n", self.newline).encode()

    def _field(self, key: str, value: Any) -> Any:
        if key != "source" or self.one_string:
            return value
        *lines, last = value.split("\n")
        return [line + "\n" for line in lines] + ([last] if last else [])


JUPYTER = Style()
STYLES = {
    "jupyter": JUPYTER,
    "jupyter 4.0": replace(JUPYTER, minor=0),
    "jupyter 4.4": replace(JUPYTER, minor=4),
    "vscode": replace(JUPYTER, final="", keys=VSCODE),
    "vscode, 4 spaces": replace(JUPYTER, indent=4, final="", keys=VSCODE),
    "colab": replace(JUPYTER, indent=2, final="", keys=COLAB, minor=0, escaped=(("<", "\\u003c"), (">", "\\u003e"))),
    "dotnet": replace(JUPYTER, indent=2, ascii_only=True, escaped=(("<", "\\u003c"), ("'", "\\u0027")), upper=True),
    "php": replace(JUPYTER, indent=4, escaped=(("/", "\\/"),)),
    "tabs": replace(JUPYTER, indent="\t"),
    "crlf": replace(JUPYTER, newline="\r\n"),
    "bom": replace(JUPYTER, bom=b"\xef\xbb\xbf", indent=2),
    "ascii": replace(JUPYTER, ascii_only=True),
    "minified": replace(JUPYTER, indent=None, separators=(",", ":"), final=""),
    "one line": replace(JUPYTER, indent=None, ascii_only=True, final=""),
    "one string": replace(JUPYTER, one_string=True),
    "one string, minified": replace(JUPYTER, one_string=True, indent=None, separators=(",", ":"), ascii_only=True),
    "everything": Style("\t", None, True, (), True, "\r\n", "\n\n", b"\xef\xbb\xbf", False, VSCODE, 5),
}


def code(source: str, number: int = 0, **fields: Any) -> Cell:
    """A code cell; `number` makes its id, its output and its count, 0 leaves it not run."""
    output = {"name": "stdout", "output_type": "stream", "text": [f"<{number}> é\n"]}
    run = {"execution_count": number, "outputs": [output]} if number else {"execution_count": None, "outputs": []}
    return {
        "cell_type": "code",
        "id": f"code-{number}",
        "metadata": {"tags": ["a/b"]},
        "source": source,
        **run,
        **fields,
    }


def words(source: str, cell_id: str = "words", kind: str = "markdown", **fields: Any) -> Cell:
    """A markdown or raw cell."""
    return {"cell_type": kind, "id": cell_id, "metadata": {}, "source": source, **fields}


def sample(style: Style) -> list[Cell]:
    """Cells of each type, fit for the style's format."""
    picture = {"a.png": {"image/png": "iVBORw0KGgo="}}
    cells = [
        words("# Café\n\n<b>it's</b> 1/2 ![](attachment:a.png)", "intro", attachments=picture),
        code("import os\n\nprint('é < ü')\n", 1),
        code("x = 1 / 2"),
        words("raw <text>\nof 'é' /", "raw", "raw"),
        code("", 3),
    ]
    return fit(style, cells)


def fit(style: Style, cells: list[Cell]) -> list[Cell]:
    """Without ids before nbformat 4.5."""
    drop = {"id"} if style.minor < 5 else set()
    return [{key: value for key, value in cell.items() if key not in drop} for cell in cells]


def is_valid(data: bytes) -> bool:
    """What `nbformat.validate` says; its warnings count as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            nbformat.validate(json.loads(data))
        except (nbformat.ValidationError, Warning):
            return False
    return True
