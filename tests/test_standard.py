"""LangChain's standard tests for tools, for each of ours."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_filestate import FileToolkit
from langchain_filestate.tools import FileTool

CELL: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": None,
    "id": "c1",
    "metadata": {},
    "outputs": [],
    "source": ["x = 1"],
}
NOTEBOOK: dict[str, Any] = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def toolkit() -> FileToolkit:
    root = Path(tempfile.mkdtemp())
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "n.ipynb").write_text(json.dumps(NOTEBOOK))
    made = FileToolkit(root)
    for path in ("a.txt", "n.ipynb"):
        made.get_tools()[0].invoke({"file_path": path})
    return made


class _Base:
    """What one tool is called with."""

    name: str
    example: dict[str, Any]

    @property
    def tool_constructor(self) -> FileTool:
        (tool,) = (tool for tool in toolkit().get_tools() if tool.name == self.name)
        assert isinstance(tool, FileTool)
        return tool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return self.example


class _Read(_Base):
    name = "read_file"
    example = {"file_path": "a.txt"}


class _Edit(_Base):
    name = "edit_file"
    example = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}


class _Many(_Base):
    name = "multi_edit"
    example = {"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]}


class _Write(_Base):
    name = "write_file"
    example = {"file_path": "b.txt", "content": "new\n"}


class _Notebook(_Base):
    name = "edit_notebook"
    example = {"file_path": "n.ipynb", "cell_id": "c1", "new_source": "x = 2"}


class TestReadUnit(_Read, ToolsUnitTests): ...


class TestReadIntegration(_Read, ToolsIntegrationTests): ...


class TestEditUnit(_Edit, ToolsUnitTests): ...


class TestEditIntegration(_Edit, ToolsIntegrationTests): ...


class TestManyUnit(_Many, ToolsUnitTests): ...


class TestManyIntegration(_Many, ToolsIntegrationTests): ...


class TestWriteUnit(_Write, ToolsUnitTests): ...


class TestWriteIntegration(_Write, ToolsIntegrationTests): ...


class TestNotebookUnit(_Notebook, ToolsUnitTests): ...


class TestNotebookIntegration(_Notebook, ToolsIntegrationTests): ...
