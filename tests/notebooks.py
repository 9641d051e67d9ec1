"""The notebooks: execute them, and write them anew with their outputs (`python -m tests.notebooks`).

What is kept of an output is the same each time: no times, no execution numbers of other runs, no versions of the
kernel. Paths are relative, for each notebook works in an empty directory of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
PICTURE = FOLDER / "timeline.svg"
NOTEBOOKS = sorted(FOLDER.glob("[0-9]_*.ipynb"))
SECONDS = 120


def load(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def execute(path: Path) -> Any:
    """The notebook with the outputs that it has now."""
    notebook = load(path)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with tempfile.TemporaryDirectory() as folder:  # where the notebook makes its own
        client.execute(env={**os.environ, "TMPDIR": folder})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.metadata = {key: value for key, value in cell.metadata.items() if key != "execution"}
            cell.outputs = _joined(cell.outputs)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """Pieces of one stream as one output: how they are cut depends on the moment."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def texts(notebook: Any) -> list[tuple[str, str]]:
    """What each code cell shows as text, by the cell's id; cells tagged `varies` are left out."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "varies" not in cell.metadata.get("tags", ()):
            parts = [
                output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", "")
                for output in cell.outputs
            ]
            found.append((cell.id, "\n".join(parts)))
    return found


def picture(notebook: Any) -> str:
    """The SVG file that the cell tagged `picture` shows."""
    for cell in notebook.cells:
        if "picture" in cell.metadata.get("tags", ()):
            markup: str = cell.outputs[-1].data["text/html"]
            start, end = markup.index("<svg "), markup.index("</svg>") + len("</svg>")
            return markup[start:end] + "\n"
    raise LookupError("No cell is tagged `picture`.")


def main() -> None:
    """Execute all notebooks, or those whose names begin as given, and keep their outputs and the picture."""
    for path in NOTEBOOKS:
        if sys.argv[1:] and not path.name.startswith(tuple(sys.argv[1:])):
            continue
        notebook = execute(path)
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
        if path.name.startswith("4_"):
            PICTURE.write_text(picture(notebook), encoding="utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
