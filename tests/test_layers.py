"""The layer table: each module imports only modules above it, and only some may touch files or the framework."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import langchain_filestate

PACKAGE = Path(langchain_filestate.__file__).parent

# From the bottom of the house to the roof; modules of one row may import each other where no circle arises.
ROWS = [
    ["errors"],
    ["_kind", "_scripts", "_codec", "_judged", "_window", "_detect", "_text"],
    ["_search", "_mismatch", "_slips", "_twins", "_nearmiss", "_match"],
    ["_diff", "_spans", "_phrases", "_omission"],
    ["_hunks", "_patch"],
    ["_records"],
    ["_json_spans", "_outputs", "_cells", "_notebook", "_celldiff"],
    ["_shell_commands", "_shell"],
    ["_media_base", "_media_image", "_media_pdf", "_media"],
    ["_rules", "_resolve", "_walk", "_fence", "_workspace"],
    ["_lately", "_sums", "_syscalls", "_fd", "_temp", "_inplace", "_commit"],
    ["_disk"],
    ["_changes", "_shelves", "_store_shelf", "_history", "_rewind"],
    ["results", "_policy"],
    ["_siblings"],
    ["_call", "_plan", "_cellplan", "_planning", "_outside", "_reading", "_outcomes", "_verdict", "_editor", "_notice"],
    ["_operations"],
    [
        "_past",
        "state",
        "_running",
        "_giveway",
        "_arguments",
        "_lean",
        "_approval",
        "_caller",
        "_deepagents",
        "tools",
        "watch",
    ],
    ["middleware"],
    ["_html", "_diffrows", "_diffview", "_seenview", "_events", "_timeline", "display"],
    ["__init__"],
    ["_cli_show", "_cli_home", "_cli_agent", "_cli_demo", "_cli_run", "_cli_past"],
    ["__main__"],
]
IN_MEMORY = {"_codec", "_media_image", "_media_pdf"}  # `io.BytesIO` gives lines; Pillow and pypdf take file objects
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}
COMMANDS = {"_cli_show", "_cli_home", "_cli_agent", "_cli_demo", "_cli_run", "_cli_past", "__main__"}
FILES = {
    "_rules",
    "_resolve",
    "_walk",
    "_fence",
    "_workspace",
    "_syscalls",
    "_fd",
    "_temp",
    "_inplace",
    "_commit",
    "_disk",
}
GLUE = {
    "state",
    "_running",
    "_giveway",
    "_arguments",
    "_lean",
    "_approval",
    "_caller",
    "tools",
    "watch",
    "middleware",
    "_store_shelf",
    "_history",
    "_rewind",
} | COMMANDS
PURE = {name for name in LEVEL if LEVEL["_codec"] <= LEVEL[name] <= LEVEL["_media"]}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))


def imported(module: str, *, typing_only: bool) -> set[str]:
    """What a module imports, as dotted names; imports for type checkers alone only if asked for."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    if not typing_only:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def ours(names: set[str]) -> set[str]:
    return {name.split(".")[1] for name in names if name.startswith("langchain_filestate.")} & set(LEVEL)


def test_every_module_stands_in_the_table() -> None:
    assert set(MODULES) <= set(LEVEL)


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_only_from_above(module: str) -> None:
    used = ours(imported(module, typing_only=False)) - {module}
    if module not in {"__init__", "__main__"}:
        used -= {"display"}  # a `_repr_html_` may import it when it is called
    too_high = {name for name in used if LEVEL[name] > LEVEL[module]}
    assert not too_high


@pytest.mark.parametrize("module", MODULES)
def test_only_the_file_modules_touch_files(module: str) -> None:
    used = {name.split(".")[0] for name in imported(module, typing_only=False)}
    if module not in FILES | COMMANDS | {"_policy", "_editor"}:
        used -= {"io"} if module in IN_MEMORY else set()
        assert not used & {"os", "pathlib", "shutil", "io", "tempfile", "fcntl", "ctypes"}


@pytest.mark.parametrize("module", sorted(PURE & set(MODULES)))
def test_the_core_knows_no_framework_and_does_no_io(module: str) -> None:
    used = {name.split(".")[0] for name in imported(module, typing_only=True)}
    used -= {"threading"} if module == "_media_base" else set()  # Pillow and pypdf have switches for the whole process
    assert not used & {"langchain", "langchain_core", "langgraph", "os", "pathlib", "time", "threading", "socket"}


@pytest.mark.parametrize("module", MODULES)
def test_only_the_glue_knows_the_framework(module: str) -> None:
    used = {name.split(".")[0] for name in imported(module, typing_only=False)}
    if module not in GLUE:
        assert not used & {"langchain", "langchain_core", "langgraph"}
    if module not in {"middleware"} | COMMANDS:
        assert "langchain" not in used


def test_ctypes_stands_in_one_place() -> None:
    assert [m for m in MODULES if "ctypes" in {n.split(".")[0] for n in imported(m, typing_only=True)}] == ["_syscalls"]


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_short(module: str) -> None:
    lines = (PACKAGE / f"{module}.py").read_text(encoding="utf-8").count("\n")
    assert lines <= 400


@pytest.mark.parametrize("name", langchain_filestate.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(langchain_filestate, name) is not None
    assert name in dir(langchain_filestate)
