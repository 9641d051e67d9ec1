"""What the cases share: the tools called by hand, and what every refusal must be, whatever it refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage

from langchain_filestate import FileToolkit, parse_result
from tests.scripted import Session, call, code, edit, many, read, write

__all__ = [
    "Desk", "Make", "call", "cell", "check_text", "code", "digest_of_tree", "edit", "many", "read", "same_everywhere", "write",
]  # fmt: skip

Make = Callable[..., Session]

MOST = 12_000
"""Characters of a refusal: sentences, and a diff of `max_diff_lines`."""

_TEXTS = ("old_string", "new_string", "content", "new_source")


def cell(path: Any, cell_id: str | None, source: str = "", mode: str = "replace", **more: Any) -> dict[str, Any]:
    return call("edit_notebook", file_path=str(path), cell_id=cell_id, new_source=source, edit_mode=mode, **more)


def check_text(message: ToolMessage, given: dict[str, Any]) -> None:
    """A refusal is a sentence for the model, has a code, is bounded, and does not repeat what the model wrote."""
    if message.status != "error":
        return
    result = parse_result(message)
    assert result is not None
    assert result.kind == "failure"
    text = message.content
    assert isinstance(text, str)
    assert text == result.message
    assert re.match(r"\S", text), text  # a sentence, which may begin with a name
    assert re.search(r"[.?)\n@]", text), text
    assert len(text) < MOST
    assert "\0" not in text
    text.encode()  # no half characters
    assert "Traceback" not in text
    assert not re.search(r"\[Errno|Error\(|errno", text), text
    args = given["args"]
    edits = args.get("edits")
    for one in [args, *(edits if isinstance(edits, list) else [])]:
        for name in _TEXTS:
            value = one.get(name)
            if isinstance(value, str) and len(value) > 80:
                assert value not in text


class Desk:
    """The five tools outside of any graph; every refusal is looked at as a model would see it."""

    def __init__(self, root: Path, **policy: Any) -> None:
        self.root = root
        self.toolkit = FileToolkit(root, **policy)
        self.tools = {tool.name: tool for tool in self.toolkit.get_tools()}

    def do(self, given: dict[str, Any]) -> ToolMessage:
        message: ToolMessage = self.tools[given["name"]].invoke(given)
        check_text(message, given)
        return message

    def ado(self, given: dict[str, Any]) -> ToolMessage:
        message: ToolMessage = asyncio.run(self.tools[given["name"]].ainvoke(given))
        check_text(message, given)
        return message

    def read(self, path: Any, **args: Any) -> ToolMessage:
        return self.do(read(path, **args))

    def edit(self, path: Any, old: str, new: str, **args: Any) -> ToolMessage:
        return self.do(edit(path, old, new, **args))

    def write(self, path: Any, content: str) -> ToolMessage:
        return self.do(write(path, content))

    def many(self, path: Any, *edits: Any) -> ToolMessage:
        return self.do(many(path, *edits))

    def cell(self, path: Any, cell_id: str | None, source: str = "", mode: str = "replace", **more: Any) -> ToolMessage:
        return self.do(cell(path, cell_id, source, mode, **more))

    def put(self, name: str, data: bytes) -> Path:
        """A file, by hand."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


def digest_of_tree(root: Path) -> dict[str, Any]:
    """Every name below a directory, with its mode and its bytes."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        held = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path.relative_to(root))] = (oct(stat.st_mode), held)
    return found


def same_everywhere(messages: list[ToolMessage]) -> list[str | None]:
    return [code(message) for message in messages]
