"""Placeholders in place of text, through the tools: refused with the lines named, and never where they are meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.notebook_styles import JUPYTER
from tests.notebook_styles import code as code_cell
from tests.scripted import Session, call, code, edit, many, read, write

Make = Callable[..., Session]

SOURCE = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"
LAZY = "import os\n\n\ndef one():\n    return 11\n\n\n# ... rest of the file unchanged ...\n"


def cell(source: str) -> dict[str, Any]:
    return call("edit_notebook", file_path="n.ipynb", cell_id="code-1", new_source=source)


def notebook(path: Path, source: str) -> Path:
    path.write_bytes(JUPYTER.dump([code_cell(source, 1)]))
    return path


def test_every_tool_refuses_them(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    book = notebook(tmp_path / "n.ipynb", SOURCE)
    was = path.read_bytes(), book.read_bytes()
    s = session()
    s.say(read("a.py"), read("n.ipynb"))
    out = s.say(
        write("a.py", LAZY),
        edit("a.py", SOURCE, LAZY),
        many("a.py", ("import os", "import sys"), (SOURCE[11:], LAZY[11:])),
        cell(LAZY),
    )
    assert [code(m) for m in out] == ["placeholder"] * 4
    assert (path.read_bytes(), book.read_bytes()) == was
    texts = [str(m.content) for m in out]
    assert texts[0] == (
        "content stands in for existing lines with a placeholder (line 8: # ... rest of the file unchanged ...). "
        "Give the full text, or use edit_file to change only the lines that change."
    )
    assert texts[1].startswith("new_string stands in for existing lines with a placeholder (line 8: ")
    assert texts[1].endswith("or take fewer lines into old_string: only those that change.")
    assert texts[2].startswith("new_string of edit 2 stands in")
    assert texts[3].startswith("new_source stands in")
    assert texts[3].endswith("A cell is replaced as a whole: give its full text.")
    assert [tuple(m.artifact["lines"]) for m in out] == [(8,), (8,), (6,), (8,)]


def test_they_are_written_where_that_is_allowed(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    book = notebook(tmp_path / "n.ipynb", SOURCE)
    s = session(allow_placeholders=True)
    s.say(read("a.py"), read("n.ipynb"))
    out = s.say(edit("a.py", SOURCE, LAZY), cell(LAZY), write("a.py", "# ... rest of the file unchanged ...\n"))
    assert [m.status for m in out] == ["success"] * 3
    assert path.read_text() == "# ... rest of the file unchanged ...\n"
    assert b"rest of the file unchanged" in book.read_bytes()


def test_a_new_file_leaves_nothing_out(session: Make, tmp_path: Path) -> None:
    assert session().one(write("a.py", LAZY)).status == "success"
    assert (tmp_path / "a.py").read_text() == LAZY


GUIDE = """# How to write an answer

Never write lines like these:

    # ... rest of the code ...
    // existing code here

Say what you mean.
And give all of it.
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Say what you mean.\nAnd give all of it.\n", "# ... rest of the file unchanged ...\n"),  # one more of its kind
        ("Say what you mean.\nAnd give all of it.\n", "    # ... rest of the code ...\n"),  # one that it has
    ],
)
def test_a_file_that_is_about_them_may_have_more(session: Make, tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "guide.md"
    path.write_text(GUIDE)
    s = session()
    _, changed, back, several, rewritten = s.say(
        read("guide.md"), edit("guide.md", old, new), edit("guide.md", new, old) if new not in GUIDE else read("guide.md"),
        many("guide.md", ("Never write", "Do not write")), write("guide.md", GUIDE.replace(old, new)),
    )  # fmt: skip
    assert [m.status for m in (changed, back, several, rewritten)] == ["success"] * 4


def test_a_line_that_was_there_is_text(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n# ... rest of the code ...\ny = 2\nz = 3\n")
    _, changed = session().say(read("a.py"), write("a.py", "x = 1\n# ... rest of the code ...\n"))
    assert changed.status == "success"


def test_many_are_named_shortly(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    names = ["one", "two", "three", "four", "five"]
    path.write_text("".join(f"def {name}():\n    a = '{name}'\n    b = 2\n    return a\n\n\n" for name in names))
    lazy = "".join(f"def {name}():\n    # ... existing code for {name} unchanged ...\n\n\n" for name in names)
    _, message = session().say(read("a.py"), write("a.py", lazy))
    assert code(message) == "placeholder"
    assert "(line 2: # ... existing code for one unchanged ...; line 6: " in message.content
    assert " and 2 more)" in message.content
    assert len(message.content) < 400
    assert len(message.artifact["lines"]) == 5


@pytest.mark.parametrize(
    "line",
    [
        "// ... existing code ...",
        "<!-- 其余代码保持不变 -->",
        "/* 以下省略 ... */",
        "-- rest of the query is the same",
        "# ...（以下同じ）...",
    ],
)
def test_other_styles_and_languages(session: Make, tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(SOURCE)
    _, message = session().say(read("a.txt"), write("a.txt", f"import os\n\n{line}\n"))
    assert code(message) == "placeholder"
    assert line in message.content


def test_the_answer_can_be_followed(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    _, refused, done = session().say(
        read("a.py"), write("a.py", LAZY), edit("a.py", "    return 1\n", "    return 11\n")
    )
    assert (code(refused), done.status) == ("placeholder", "success")
    assert path.read_text() == SOURCE.replace("return 1\n", "return 11\n")
