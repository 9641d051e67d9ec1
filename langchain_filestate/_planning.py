"""From an operation and the bytes on disk to a plan: the new bytes, the patch, what it means for the views.

Planning has no side effects and asks nobody; it refuses what cannot be done on these bytes. Who may do it, and whether
the agent knows the file, is decided in `_editor`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from langchain_filestate import _match, _patch, _text
from langchain_filestate._plan import (
    Plan,
    cells_in,
    created_text,
    line_count,
    lines_of,
    no_arguments,
    refuse_placeholders,
)
from langchain_filestate._rules import plain
from langchain_filestate.errors import Refused
from langchain_filestate.results import EditResult, WriteResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_filestate._cellplan import NotebookEdit
    from langchain_filestate._plan import Before, Facts
    from langchain_filestate._policy import Policy

_BOM = "\ufeff"
_BOOL = TypeAdapter(bool)
_WHOLE = 1 << 20  # bytes up to which a copy costs nothing
_PIECES = 64  # splices up to which the pieces are written one by one


def _create(path: str, content: str, fmt: _text.Format = _text.UTF8) -> Plan:
    after = fmt.bom + _text.encode(content.removeprefix(_BOM) if fmt.bom else content, fmt)
    patch = partial(_patch.patch_bytes, path, None, after)
    return Plan(after, patch, None, line_count(after, fmt), cells_in(path, after))


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
        if not self.many and not self.edits[0][0] and (data is None or data == fmt.bom):
            return self._fill(before)
        if data is None:
            raise Refused("File does not exist. Use write_file to create it.", code="not_found")
        if self.many:
            splices = _match.replace_many(data, fmt, self.edits)
        else:
            old, new, everywhere = self.edits[0]
            splices = _match.replace(data, fmt, old, new, replace_all=everywhere)
        made: bytes | _match.Spliced = _match.Spliced(data, splices)
        if len(data) <= _WHOLE or len(splices) > _PIECES:
            made = bytes(made)
        in_file: Callable[[], frozenset[str]] = partial(_placeholders, data, made, fmt)
        if self.many:
            in_file = cache(in_file)
        for number, (old, new, _) in enumerate(self.edits, 1):
            refuse_placeholders(
                old,
                new,
                policy,
                where=f"new_string of edit {number}" if self.many else "new_string",
                advice="Give the full text, or take fewer lines into old_string: only those that change.",
                in_file=in_file,
            )
        touched = _patch.Touched(data, splices, fmt, before.marks)
        cells = cells_in(before.path, made)
        notes = [f"{len(splices)} replacements were made."] if len(splices) > 1 else []
        if any("\r\n" in new for _, new, _ in self.edits) and _text.newline_style(data, fmt) == "lf":
            notes.append("new_string brought CRLF line ends into a file that has LF.")
        if cells is not None:
            notes.append("The file is a notebook that can be read by cells now: read it again for them.")
        return Plan(
            made,
            partial(_patch.patch_touched, before.path, touched),
            touched.edits,
            lines_of(touched.newlines(), made, fmt),
            cells,
            mended=cells is not None,
            unique=len(splices) == len(self.edits),
            fields={"replacements": len(splices), "created": False},
            notes=tuple(notes),
        )

    def _fill(self, before: Before) -> Plan:
        """An empty `old_string` creates a file, or fills an empty one."""
        new = self.edits[0][1]
        plan = _create(before.path, new, before.format)
        if before.data is not None:
            if not new:
                raise Refused("No changes to make: the file is empty and so is new_string.", code="no_change")
            plan = replace(plan, make_patch=partial(_patch.patch_bytes, before.path, before.data, plan.after))
        return replace(plan, fields={"replacements": 0, "created": before.data is None})

    def with_args(self, args: Mapping[str, Any]) -> Edit:
        """The operation with the texts that a person put in."""
        given = args.get("edits") if self.many else [args]
        edits = []
        for edit in given if isinstance(given, list) else ():
            match edit:
                case {"old_string": str(old), "new_string": str(new)}:
                    everywhere = _truth(edit.get("replace_all") or False)
                    if everywhere is None:
                        break
                    edits.append((old, new, everywhere))
                case _:
                    break
        else:
            if edits:
                return replace(self, edits=tuple(edits))
        raise no_arguments()

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
        refuse_placeholders(
            _text.decode(data[len(fmt.bom) :], fmt),
            content,
            policy,
            where="content",
            advice="Give the full text, or use edit_file to change only the lines that change.",
        )
        lines_before, lines = line_count(data, fmt), line_count(after, fmt)
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
        return Plan(after, patch, None, lines, cells_in(before.path, after), fields=fields, notes=tuple(notes))

    def with_args(self, args: Mapping[str, Any]) -> Write:
        """The operation with the text that a person put in."""
        content = args.get("content")
        if not isinstance(content, str):
            raise no_arguments()
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


Operation: TypeAlias = "Edit | Write | NotebookEdit"


def _truth(value: object) -> bool | None:
    """A truth value as the tools take it from a model, `"false"` among them; None for what is none."""
    try:
        return _BOOL.validate_python(value)
    except ValidationError:
        return None


def _placeholders(data: bytes, after: bytes | _match.Spliced, fmt: _text.Format) -> frozenset[str]:
    """Those that stand in for lines of the whole file."""
    from langchain_filestate import _omission  # noqa: PLC0415  as in `refuse_placeholders`

    old, new = (_text.decode(bytes(text)[len(fmt.bom) :], fmt) for text in (data, after))
    return frozenset(line for _, line in _omission.find_placeholders(old, new))
