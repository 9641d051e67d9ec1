"""One cell of a notebook to be replaced, inserted or deleted: the operation of `edit_notebook`, as a plan.

A cell is called by its name and not by its text, so that a replacement says nothing of what it replaces. Therefore such
a cell must have been shown to the agent (`_editor` sees to that), and in a notebook that changed since it must still be
the same cell with the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from langchain_filestate import _celldiff, _match, _notebook, _patch
from langchain_filestate._patch import LineEdit
from langchain_filestate._plan import Plan, line_count, no_arguments, refuse_placeholders
from langchain_filestate._rules import plain
from langchain_filestate.errors import Refused
from langchain_filestate.results import NotebookResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_filestate._plan import Before, Facts
    from langchain_filestate._policy import Policy


@dataclass(frozen=True, slots=True)
class NotebookEdit:
    """`edit_notebook`.

    Attributes:
        file_path: As the model gave it.
        cell_id: Which cell; None only for an insert at the top.
        new_source: The cell's new text; not used for a delete.
        cell_type: "code", "markdown" or "raw"; None keeps it (for an insert: "code").
        edit_mode: What to do.
    """

    file_path: str
    cell_id: str | None
    new_source: str
    cell_type: Literal["code", "markdown", "raw"] | None
    edit_mode: Literal["replace", "insert", "delete"]
    whole: bool = False

    def plan(self, before: Before, policy: Policy) -> Plan:
        """The plan on these bytes; only the bytes of the one cell change."""
        if before.data is None:
            raise Refused("File does not exist. Use write_file to create it.", code="not_found")
        data = before.data
        if self.edit_mode == "insert":
            edited = _notebook.insert_cell(data, self.cell_id, self.new_source, self.cell_type or "code")
        elif self.cell_id is None:
            raise Refused(
                "cell_id is needed to replace or delete a cell. Read the notebook for the ids.", code="bad_arguments"
            )
        elif self.edit_mode == "delete":
            edited = _notebook.delete_cell(data, self.cell_id)
        else:
            refuse_placeholders(
                _notebook.find_cell(_notebook.parse(data), self.cell_id).source,
                self.new_source,
                policy,
                where="new_source",
                advice="A cell is replaced as a whole: give its full text.",
            )
            edited = _notebook.replace_cell(data, self.cell_id, self.new_source, self.cell_type)
        old_count, new_count = {"replace": (1, 1), "insert": (0, 1), "delete": (1, 0)}[self.edit_mode]
        edit = LineEdit(edited.cell_no, old_count, new_count, False, False, ())
        after = _match.apply(data, edited.splices)
        return Plan(
            after,
            partial(_patch.patch_splices, before.path, data, edited.splices, before.format),
            lambda: (edit,),
            line_count(after, before.format),
            len(edited.cell_ids),
            unique=False,  # a cell is named, and what it holds is not given: `stands_in` says if it is the one meant
            fields={"cell_id": edited.cell_id, "cell_ids": edited.cell_ids},
            notes=(f"The cells are now: {_listed(edited.cell_ids)}.",),
        )

    def stands_in(self, old: bytes | None, now: bytes) -> int | None:
        """Say whether the cell that is named is still what it was in bytes that the agent has read.

        A cell named by its id must have the same text and type; where one is only inserted after it, the id says
        enough. One named by its position must also be in its old place among the others.

        Args:
            old: The bytes that were read; None if they are not known any more.
            now: The bytes that are there.

        Returns:
            The cell's number in the old bytes, from 1, 0 if none is needed; None if it is another cell now.
        """
        if self.cell_id is None:
            return 0
        try:
            new = _notebook.parse(now)
            cell = _notebook.find_cell(new, self.cell_id)
            by_id = new.ids[cell.index] == self.cell_id
            if by_id and self.edit_mode == "insert":
                return 0
            book = _notebook.parse(old or b"")
            was = _notebook.find_cell(book, self.cell_id)
        except Refused:
            return None
        if (was.cell_type, was.source) != (cell.cell_type, cell.source):
            return None
        if by_id:
            return was.index + 1 if book.ids[was.index] == self.cell_id else None
        return was.index + 1 if _celldiff.compare(book, new).same_place(cell.index) else None

    def check_place(self, old: bytes | None, now: bytes) -> None:
        """Refuse a position that means another cell since an earlier call of the same message.

        Args:
            old: The bytes that the model knew when it gave the calls of the message; None if they are not known.
            now: The bytes that are there.
        """
        if self.cell_id is None:
            return
        new = _notebook.parse(now)
        cell = _notebook.find_cell(new, self.cell_id)
        if new.ids[cell.index] == self.cell_id:
            return
        try:
            same = _celldiff.compare(_notebook.parse(old or b""), new).same_place(cell.index)
        except Refused:
            same = False
        if not same:
            now_there = _listed([one.name for one in new.cells])
            raise Refused(
                f"An earlier call of this message has moved cells: {self.cell_id} may be another one than you meant. "
                f"The cells are now: {now_there}. Call it again by its place among these.",
                code="ambiguous",
                lines=[cell.index + 1],
            )

    def with_args(self, args: Mapping[str, Any]) -> NotebookEdit:
        """The operation with the text that a person put in."""
        source = args.get("new_source", "")
        if not isinstance(source, str):
            raise no_arguments()
        return self if self.edit_mode == "delete" else replace(self, new_source=source)

    def args(self) -> dict[str, Any]:
        """The arguments as the model gives them."""
        return {
            "file_path": self.file_path,
            "cell_id": self.cell_id,
            "new_source": self.new_source,
            "cell_type": self.cell_type,
            "edit_mode": self.edit_mode,
        }

    def outcome(self, before: Before, plan: Plan, facts: Facts) -> tuple[str, NotebookResult]:
        """What the model is told and the program gets."""
        result = NotebookResult(
            file_path=before.path,
            edit_mode=self.edit_mode,
            stale_recovered=facts.stale,
            content_not_in_model_context=facts.out_of_context,
            user_modified=facts.user_modified,
            before=before.digest,
            after=facts.after,
            patch=facts.patch,
            **plan.fields,
        )
        done = {"replace": "replaced", "insert": "inserted", "delete": "deleted"}[self.edit_mode]
        return f"The file {plain(before.path)} has been updated successfully. Cell {result.cell_id} was {done}.", result


def _listed(names: Sequence[str], most: int = 40) -> str:
    shown = ", ".join(names[:most]) or "none"
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
