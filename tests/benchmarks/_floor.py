"""The least that the same work can cost: a tool that does nothing, and the bare calls on files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from langchain_filestate._arguments import EditFileArguments, ReadFileArguments


class Empty(BaseTool):
    """A tool with the arguments of one of ours that does nothing, as LangChain runs it."""

    name: str = "edit_file"
    description: str = "Does nothing."
    args_schema: Any = EditFileArguments
    response_format: str = "content_and_artifact"  # type: ignore[assignment]
    text: str = "done"

    def _run(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        return self.text, {}


class EmptyRead(Empty):
    name: str = "read_file"
    args_schema: Any = ReadFileArguments


def save(path: Path, old: bytes, new: bytes, *, name: bool = False) -> None:
    """Read, hash, splice, write beside it, sync, rename; `name`: sync the directory as well."""
    data = path.read_bytes()
    hashlib.sha256(data).hexdigest()
    at = data.index(old)
    after = data[:at] + new + data[at + len(old) :]
    beside = f"{path}.tmp"
    fd = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    try:
        os.write(fd, after)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(beside, path)
    if name:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
