"""From an operation and the bytes on disk to a plan: the new bytes, the patch, what it means for the views.

Planning has no side effects and asks nobody; it refuses what cannot be done on these bytes. Who may do it, and whether
the agent knows the file, is decided in `_editor`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from langchain_filestate import _match, _notebook, _omission, _patch, _text
from langchain_filestate._rules import plain
from langchain_filestate.errors import Refused
from langchain_filestate.results import EditResult, NotebookResult, WriteResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_filestate._patch import LineEdit, StructuredPatch
    from langchain_filestate._policy import Policy

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Before:
    """The file that a change is planned on.

    Attributes:
        path: Real, absolute path.
        data: The bytes on disk; None if there is no file.
        digest: Their SHA-256 in hex; None if there is no file.
        format: How the bytes are text; that of a new file if there is none.
    """

    path: str
    data: bytes | None
    digest: str | None
    format: _text.Format = _text.UTF8


@dataclass(frozen=True)
class Plan:
    """What a change will do. The patch and the moved lines are made when asked for, as a rule after the commit.

    Attributes:
        after: The new bytes.
        make_patch: Makes the difference.
        make_edits: Tells which lines are replaced, in lines of the old file; None if the whole file is new.
        lines: Lines of the new file (cells of a notebook).
        unique: Each edit matched at one place.
        fields: What the result says beyond what every change does.
        notes: Sentences for the model after the first one.
    """

    after: bytes
    make_patch: Callable[[], StructuredPatch]
    make_edits: Callable[[], tuple[LineEdit, ...]] | None
    lines: int
    unique: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def patch(self) -> StructuredPatch:
        """The difference."""
        return self.make_patch()

    @cached_property
    def edits(self) -> tuple[LineEdit, ...] | None:
        """Which lines are replaced; None if the whole file is new."""
        return None if self.make_edits is None else self.make_edits()

    def touched(self) -> tuple[tuple[int, int], ...]:
        """The ranges of old lines that are replaced or whose part is."""
        return tuple((e.first, e.first + e.old_count - 1) for e in self.edits or () if e.old_count)


@dataclass(frozen=True, slots=True)
class Facts:
    """What came of a plan when it was carried out.

    Attributes:
        after: Digest of the bytes that are there now.
        patch: The whole difference, with what `after_write` changed.
        lines: Lines now.
        size: Bytes now.
        stale: The file had changed since it was read.
        out_of_context: The lines that matched stand in no view that counts.
        user_modified: A person changed the texts.
        notes: More sentences for the model.
    """

    after: str
    patch: StructuredPatch
    lines: int
    size: int
    stale: bool = False
    out_of_context: bool = False
    user_modified: bool = False
    notes: tuple[str, ...] = ()


def is_notebook(path: str) -> bool:
    """True if the name says that the file is a Jupyter notebook."""
    return path.lower().endswith(".ipynb")


def has_cells(path: str, data: bytes) -> bool:
    """True if the file is a notebook by its name and by its content; a broken one is text, and is mended as text."""
    if not is_notebook(path):
        return False
    try:
        _notebook.parse(data)
    except Refused:
        return False
    return True


def _refuse_placeholders(before: str, after: str, policy: Policy, *, kept: str = "") -> None:
    if policy.allow_placeholders:
        return
    found = [(n, line) for n, line in _omission.find_placeholders(before, after) if line.strip() not in kept]
    if found:
        places = ", ".join(str(n) for n, _ in found[:10])
        raise Refused(
            f"The new text stands in for existing lines with a placeholder (line {places} of it). "
            "Give the full text, or use edit_file to change only the lines that change.",
            code="placeholder",
            lines=[n for n, _ in found],
        )


def created_text(path: str, lines: int, size: int) -> str:
    """What the model is told about a new file."""
    return f"File created successfully at: {plain(path)} (wrote {lines} lines, {size} bytes)."


def _create(path: str, content: str) -> Plan:
    after = _text.encode(content, _text.UTF8)
    return Plan(after, partial(_patch.patch_bytes, path, None, after), None, _line_count(after, _text.UTF8))


@dataclass(frozen=True, slots=True)
class Edit:
    """`edit_file`, or `multi_edit` where `many`.

    Attributes:
        file_path: As the model gave it.
        edits: `(old_string, new_string, replace_all)`, one for `edit_file`.
        many: True for `multi_edit`.
    """

    file_path: str
    edits: tuple[tuple[str, str, bool], ...]
    many: bool = False
    whole: bool = False

    def plan(self, before: Before, policy: Policy) -> Plan:
        """The plan on these bytes; raises `Refused` where the text does not match exactly and uniquely."""
        data, fmt = before.data, before.format
        if not self.many and not self.edits[0][0] and not data:
            return self._fill(before)
        if data is None:
            raise Refused("File does not exist. Use write_file to create it.", code="not_found")
        if self.many:
            splices = _match.replace_many(data, fmt, self.edits)
        else:
            old, new, everywhere = self.edits[0]
            splices = _match.replace(data, fmt, old, new, replace_all=everywhere)
        after = _match.apply(data, splices)
        if not policy.allow_placeholders:
            for old, new, _ in self.edits:
                _refuse_placeholders(old, new, policy, kept=old)
        return Plan(
            after,
            partial(_patch.patch_splices, before.path, data, splices, fmt),
            partial(_patch.line_edits, data, splices, fmt),
            _line_count(after, fmt),
            unique=len(splices) == len(self.edits),
            fields={"replacements": len(splices), "created": False},
            notes=(f"{len(splices)} replacements were made.",) if len(splices) > 1 else (),
        )

    def _fill(self, before: Before) -> Plan:
        """An empty `old_string` creates a file, or fills an empty one."""
        plan = _create(before.path, self.edits[0][1])
        if before.data is not None:
            if not plan.after:
                raise Refused("No changes to make: the file is empty and so is new_string.", code="no_change")
            plan = replace(plan, make_patch=partial(_patch.patch_bytes, before.path, b"", plan.after))
        return replace(plan, fields={"replacements": 0, "created": before.data is None})

    def with_args(self, args: Mapping[str, Any]) -> Edit:
        """The operation with the texts that a person put in."""
        given = args.get("edits") if self.many else [args]
        edits = []
        for edit in given if isinstance(given, list) else ():
            match edit:
                case {"old_string": str(old), "new_string": str(new)}:
                    edits.append((old, new, bool(edit.get("replace_all", False))))
                case _:
                    break
        else:
            if edits:
                return replace(self, edits=tuple(edits))
        raise Refused("The edited decision does not hold the arguments of this tool.", code="bad_arguments")

    def args(self) -> dict[str, Any]:
        """The arguments as the model gives them."""
        edits = [{"old_string": o, "new_string": n, "replace_all": a} for o, n, a in self.edits]
        return {"file_path": self.file_path, "edits": edits} if self.many else {"file_path": self.file_path, **edits[0]}

    def outcome(self, before: Before, plan: Plan, facts: Facts) -> tuple[str, EditResult]:
        """What the model is told and the program gets."""
        result = EditResult(
            file_path=before.path,
            replace_all=any(everywhere for _, _, everywhere in self.edits),
            stale_recovered=facts.stale,
            content_not_in_model_context=facts.out_of_context,
            user_modified=facts.user_modified,
            before=before.digest,
            after=facts.after,
            patch=facts.patch,
            **plan.fields,
        )
        if before.data is None:
            return created_text(before.path, facts.lines, facts.size), result
        return f"The file {plain(before.path)} has been updated successfully.", result


@dataclass(frozen=True, slots=True)
class Write:
    """`write_file`.

    Attributes:
        file_path: As the model gave it.
        content: The whole new text.
    """

    file_path: str
    content: str
    whole: bool = True

    def plan(self, before: Before, policy: Policy) -> Plan:
        """The plan on these bytes: the given text in the file's encoding and with its BOM, nothing else adapted."""
        data, fmt = before.data, before.format
        if data is None:
            return _create(before.path, self.content)
        content = self.content.removeprefix(_BOM) if fmt.bom else self.content
        after = fmt.bom + _text.encode(content, fmt)
        _refuse_placeholders(_text.decode(data[len(fmt.bom) :], fmt), content, policy)
        lines_before, lines = _line_count(data, fmt), _line_count(after, fmt)
        was, now = _text.newline_style(data, fmt), _text.newline_style(after, fmt)
        changed = "none" not in {was, now} and was != now
        notes = []
        if changed:
            notes.append(
                f"Line endings changed from {was.upper()} to {now.upper()}; if that was not meant, write it again."
            )
        if not fmt.lossless:
            notes.append("The bytes that were not valid text are gone; the file is now valid UTF-8.")
        fields = {"lines_before": lines_before, "newline_changed": changed}
        patch = partial(_patch.patch_bytes, before.path, data, after, policy.encodings)
        return Plan(after, patch, None, lines, fields=fields, notes=tuple(notes))

    def with_args(self, args: Mapping[str, Any]) -> Write:
        """The operation with the text that a person put in."""
        content = args.get("content")
        if not isinstance(content, str):
            raise Refused("The edited decision does not hold the arguments of this tool.", code="bad_arguments")
        return replace(self, content=content)

    def args(self) -> dict[str, Any]:
        """The arguments as the model gives them."""
        return {"file_path": self.file_path, "content": self.content}

    def outcome(self, before: Before, plan: Plan, facts: Facts) -> tuple[str, WriteResult]:
        """What the model is told and the program gets."""
        patch = facts.patch
        result = WriteResult(
            file_path=before.path,
            created=before.data is None,
            bytes_written=facts.size,
            lines_before=plan.fields.get("lines_before", 0),
            lines_after=facts.lines,
            added=patch.added,
            removed=patch.removed,
            newline_changed=plan.fields.get("newline_changed", False),
            user_modified=facts.user_modified,
            before=before.digest,
            after=facts.after,
            patch=patch,
        )
        if before.data is None:
            return created_text(before.path, facts.lines, facts.size), result
        about = "≈ " if patch.truncated else ""
        text = (
            f"The file {plain(before.path)} has been updated successfully. {result.lines_before} line(s) before, "
            f"{result.lines_after} line(s) after ({about}+{patch.added} / -{patch.removed})."
        )
        return text, result


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
            _refuse_placeholders(
                _notebook.find_cell(_notebook.parse(data), self.cell_id).source, self.new_source, policy
            )
            edited = _notebook.replace_cell(data, self.cell_id, self.new_source, self.cell_type)
        old_count, new_count = {"replace": (1, 1), "insert": (0, 1), "delete": (1, 0)}[self.edit_mode]
        edit = _patch.LineEdit(edited.cell_no, old_count, new_count, False, False, ())
        return Plan(
            _match.apply(data, edited.splices),
            partial(_patch.patch_splices, before.path, data, edited.splices, before.format),
            lambda: (edit,),
            len(edited.cell_ids),
            # A cell is named by its id and not by its text: what is replaced or deleted must have been seen as it is.
            unique=self.edit_mode == "insert",
            fields={"cell_id": edited.cell_id, "cell_ids": edited.cell_ids},
            notes=(f"The cells are now: {_listed(edited.cell_ids)}.",),
        )

    def with_args(self, args: Mapping[str, Any]) -> NotebookEdit:
        """The operation with the text that a person put in."""
        source = args.get("new_source", "")
        if not isinstance(source, str):
            raise Refused("The edited decision does not hold the arguments of this tool.", code="bad_arguments")
        return replace(self, new_source=source)

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


Operation = Edit | Write | NotebookEdit


def _line_count(data: bytes, fmt: _text.Format) -> int:
    ends = _text.count_newlines(data, fmt)
    return ends + (len(data) > len(fmt.bom) and not data.endswith(fmt.newline))


def _listed(names: Sequence[str], most: int = 40) -> str:
    shown = ", ".join(names[:most]) or "none"
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"
