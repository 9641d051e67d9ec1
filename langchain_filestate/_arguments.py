"""The arguments of the tools, with the descriptions that the model reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from langchain_core.tools import InjectedToolArg
from pydantic import BaseModel, Field


class Arguments(BaseModel):
    """What every tool takes."""

    runtime: Annotated[Any, InjectedToolArg] = None
    file_path: str = Field(description="Path of the file: absolute, or relative to the working root.")


class ReadFileArguments(Arguments):
    """Arguments of `read_file`."""

    offset: int = Field(
        default=1,
        description="First line to show (cell of a notebook, page of a PDF), counted from 1. A negative number counts "
        "from the end.",
    )
    limit: int | None = Field(
        default=None,
        description="How many lines (cells, pages) to show. Leave it out to read on as far as one result allows.",
    )
    column: int = Field(
        default=1, description="First character of the first line, from 1: to go on inside a very long line."
    )


class EditFileArguments(Arguments):
    """Arguments of `edit_file`."""

    old_string: str = Field(
        description="The text to replace, exactly as it is in the file, without the line-number gutter."
    )
    new_string: str = Field(description="The text to put in its place, verbatim.")
    replace_all: bool = Field(default=False, description="Replace every match instead of exactly one.")


class OneEdit(BaseModel):
    """One replacement of `multi_edit`."""

    old_string: str = Field(description="The text to replace, exactly as it is in the file now.")
    new_string: str = Field(description="The text to put in its place, verbatim.")
    replace_all: bool = Field(default=False, description="Replace every match instead of exactly one.")


class MultiEditArguments(Arguments):
    """Arguments of `multi_edit`."""

    edits: list[OneEdit] = Field(
        min_length=1, description="The replacements; all are matched against the file as it is now."
    )


class WriteFileArguments(Arguments):
    """Arguments of `write_file`."""

    content: str = Field(description="The whole new text of the file, verbatim.")


class EditNotebookArguments(Arguments):
    """Arguments of `edit_notebook`."""

    cell_id: str | None = Field(
        default=None,
        description="Id of the cell as read_file shows it, or cell-N (from 0). For an insert: the cell to insert "
        "after; leave it out to insert at the top.",
    )
    new_source: str = Field(default="", description="The cell's new text; not used for a delete.")
    cell_type: Literal["code", "markdown", "raw"] | None = Field(
        default=None, description="Type of the cell; left out, it stays as it is (an inserted cell: code)."
    )
    edit_mode: Literal["replace", "insert", "delete"] = Field(default="replace", description="What to do.")
