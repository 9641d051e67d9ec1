"""File tools for LangChain and LangGraph agents that know what the agent has read.

The toolkit is `FileToolkit`; `FileStateMiddleware` adds it to `create_agent`, `FileState` to a graph's own state. The
middleware needs the `agents` extra (langchain) and is loaded when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_filestate._hunks import PatchHunk, StructuredPatch
from langchain_filestate._policy import Limits, PlannedChange
from langchain_filestate._records import merge_records
from langchain_filestate.errors import Refused, WiringError
from langchain_filestate.results import (
    EditResult,
    FailureResult,
    NotebookResult,
    ReadResult,
    Result,
    WriteResult,
    parse_result,
)
from langchain_filestate.state import FileState
from langchain_filestate.tools import (
    EditFileTool,
    EditNotebookTool,
    FileToolkit,
    MultiEditTool,
    ReadFileTool,
    WriteFileTool,
)

if TYPE_CHECKING:
    from langchain_filestate._history import Change, FileHistory
    from langchain_filestate._rewind import RewindEntry, RewindPlan, RewindReport
    from langchain_filestate.middleware import FileStateMiddleware, FileToolsMiddleware
    from langchain_filestate.watch import changed_files, shell_reads

__all__ = [
    "Change",
    "EditFileTool",
    "EditNotebookTool",
    "EditResult",
    "FailureResult",
    "FileHistory",
    "FileState",
    "FileStateMiddleware",
    "FileToolkit",
    "FileToolsMiddleware",
    "Limits",
    "MultiEditTool",
    "NotebookResult",
    "PatchHunk",
    "PlannedChange",
    "ReadFileTool",
    "ReadResult",
    "Refused",
    "Result",
    "RewindEntry",
    "RewindPlan",
    "RewindReport",
    "StructuredPatch",
    "WiringError",
    "WriteFileTool",
    "WriteResult",
    "changed_files",
    "merge_records",
    "parse_result",
    "shell_reads",
]

_LAZY = {
    "Change": "_history",
    "FileHistory": "_history",
    "FileStateMiddleware": "middleware",  # langchain is an extra, and slow to import
    "FileToolsMiddleware": "middleware",
    "RewindEntry": "_rewind",
    "RewindPlan": "_rewind",
    "RewindReport": "_rewind",
    "changed_files": "watch",  # the middleware and some graphs call them
    "shell_reads": "watch",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"langchain_filestate.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
