"""Two kinds of error, named by who must act.

`Refused` is for the model: a code and one or two sentences that say what is wrong and what to do next. The tools turn
it into one `ToolMessage` with `status="error"`; nothing on disk has changed when it is raised. `WiringError` is for
the developer who builds the graph: it leaves the tool, and its text names the fix. Texts that more than one module
needs are made here, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Code = Literal[
    "not_read",
    "partially_read",
    "not_in_context",
    "stale",
    "no_match",
    "ambiguous",
    "no_change",
    "empty_old_string",
    "overlap",
    "not_found",
    "is_directory",
    "not_a_file",
    "parent_not_directory",
    "symlink",
    "outside_root",
    "denied",
    "read_only",
    "binary",
    "encoding",
    "bad_path",
    "out_of_range",
    "too_large",
    "busy",
    "placeholder",
    "rejected",
    "conflict",
    "cell_not_found",
    "bad_notebook",
    "is_notebook",
    "bad_arguments",
    "io_error",
]
"""What kind of refusal it is: for programs, where the text is for the model."""


class Refused(Exception):  # noqa: N818  a refusal is an answer, not an error of the program
    """The call is not carried out, and the model is told why.

    A `before_write` hook raises it with a text alone to refuse a change.

    Args:
        message: One or two sentences for the model: what is wrong and what to do next, without its own text echoed.
        code: The kind of refusal.
        lines: Line numbers, from 1, of where it matched or nearly matched; empty if there is no such place.
    """

    def __init__(self, message: str, *, code: Code = "rejected", lines: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code
        self.lines = tuple(lines)


class WiringError(RuntimeError):
    """The graph or the toolkit is put together wrongly; the text names the fix. Never caught by the tools."""


def check_bool(name: str, value: object) -> None:
    """Raise a `WiringError` for what is no bool: a text such as "no" would count as True."""
    if not isinstance(value, bool):
        raise WiringError(f"{name} takes True or False, not {value!r}.")
