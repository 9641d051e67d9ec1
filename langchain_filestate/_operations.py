"""From the arguments that a model gave to the operation that they ask for.

What carries operations out is loaded with the first toolkit and not with the package: a process may well import it for
the types, the state of a graph, or to read results, and never touch a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_filestate._call import Outcome
    from langchain_filestate._cellplan import NotebookEdit
    from langchain_filestate._planning import Edit, Write
    from langchain_filestate._reading import Read
    from langchain_filestate.errors import Refused

# ruff: noqa: PLC0415  imports stand in the functions: see above


def read(arguments: Mapping[str, Any]) -> Read:
    """`read_file`."""
    from langchain_filestate._reading import Read

    return Read(arguments["file_path"], arguments["offset"], arguments["limit"], arguments["column"])


def edit(arguments: Mapping[str, Any]) -> Edit:
    """`edit_file`."""
    from langchain_filestate._planning import Edit

    edit = (arguments["old_string"], arguments["new_string"], arguments["replace_all"])
    return Edit(arguments["file_path"], (edit,))


def edits(arguments: Mapping[str, Any]) -> Edit:
    """`multi_edit`."""
    from langchain_filestate._planning import Edit

    edits = tuple((e.old_string, e.new_string, e.replace_all) for e in arguments["edits"])
    return Edit(arguments["file_path"], edits, many=True)


def write(arguments: Mapping[str, Any]) -> Write:
    """`write_file`."""
    from langchain_filestate._planning import Write

    return Write(arguments["file_path"], arguments["content"])


def cell(arguments: Mapping[str, Any]) -> NotebookEdit:
    """`edit_notebook`."""
    from langchain_filestate._cellplan import NotebookEdit

    return NotebookEdit(
        arguments["file_path"],
        arguments["cell_id"],
        arguments["new_source"],
        arguments["cell_type"],
        arguments["edit_mode"],
    )


def refusal(refused: Refused) -> Outcome:
    """What comes of arguments that ask for nothing."""
    from langchain_filestate import _outcomes

    return _outcomes.refusal(refused, "")
