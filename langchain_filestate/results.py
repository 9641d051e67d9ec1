"""The artifacts of the tools: what programs get where the model gets text.

A message carries its artifact as a plain dict, because a pydantic object comes back from a checkpoint as a dict
anyway; `parse_result` loads it again.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from langchain_filestate._codec import Newline
from langchain_filestate._hunks import StructuredPatch
from langchain_filestate.errors import Code


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)

    file_path: str
    """Real, absolute path; as given where it could not be resolved."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)


class ReadResult(_Result):
    """What a read delivered."""

    kind: Literal["read"] = "read"
    first_line: int
    """First line shown, from 1; 0 if there was nothing to show. Cells for a notebook, pages for a PDF."""
    last_line: int
    """Last line shown, included; 0 if there was nothing to show."""
    total_lines: int
    complete: bool
    """True if the whole file stands in this message (or, with `unchanged`, in the earlier one)."""
    unchanged: bool = False
    """True if the text stands in an earlier message that is still in context and was not sent again."""
    encoding: str | None
    """Python's name of the encoding; None for media."""
    bom: bool
    newline: Newline
    final_newline: bool
    size: int
    """Bytes."""
    digest: str
    """SHA-256 of the raw bytes, in hex."""


class _Change(_Result):
    user_modified: bool = False
    """True if a person changed the texts while approving."""
    already_applied: bool = False
    """True if the graph ran the call again and the change had been made before."""
    before: str | None
    """Digest of the bytes before, which `toolkit.history.content` resolves; None if there was no file."""
    after: str
    patch: StructuredPatch


class EditResult(_Change):
    """What an edit changed."""

    kind: Literal["edit"] = "edit"
    created: bool = False
    replacements: int
    replace_all: bool = False
    stale_recovered: bool = False
    """True if the file had changed since the read and the edit was made on its current bytes."""
    content_not_in_model_context: bool = False
    """True if the lines that matched stand in no view that counts."""


class WriteResult(_Change):
    """What a write of a whole file changed."""

    kind: Literal["write"] = "write"
    created: bool
    bytes_written: int
    lines_before: int
    lines_after: int
    added: int
    removed: int
    newline_changed: bool = False
    """True if the line endings are others than before."""


class NotebookResult(_Change):
    """What an edit of a notebook changed."""

    kind: Literal["notebook"] = "notebook"
    cell_id: str
    edit_mode: Literal["replace", "insert", "delete"]
    cell_ids: tuple[str, ...]
    """Ids of all cells in their new order."""
    stale_recovered: bool = False
    content_not_in_model_context: bool = False


class FailureResult(_Result):
    """Why a call was refused."""

    kind: Literal["failure"] = "failure"
    code: Code
    message: str
    lines: tuple[int, ...] = ()
    """Lines where it matched or nearly matched."""


Result = ReadResult | EditResult | WriteResult | NotebookResult | FailureResult


@cache
def _adapter() -> TypeAdapter[Result]:
    return TypeAdapter(Annotated[Result, Field(discriminator="kind")])


def parse_result(message: Any) -> Result | None:
    """The result that a message carries.

    Args:
        message: A `ToolMessage`, or the artifact itself.

    Returns:
        The model; None if there is no artifact, or one that is not of these tools.
    """
    artifact = getattr(message, "artifact", message)
    if not isinstance(artifact, dict):
        return None
    try:
        return _adapter().validate_python(artifact)
    except ValidationError:
        return None
