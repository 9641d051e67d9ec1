"""What the developer decides once, on the toolkit, and what hooks and approvals are shown of a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from langchain_filestate._codec import DEFAULT_ENCODINGS, check_encodings
from langchain_filestate.errors import WiringError, check_bool

if TYPE_CHECKING:
    from langchain_filestate._hunks import StructuredPatch

RequireRead = Literal["always", "overwrite", "never"]
Pdf = Literal["text", "file"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one toolkit; every number is at least 1.

    Attributes:
        max_lines: Lines that one read shows at most, whatever its `limit`.
        max_chars: Characters that one read shows at most, line numbers included.
        max_line_chars: Characters shown of one line in a view of several lines.
        max_file_bytes: Largest file that is edited or overwritten; reading has no such bound.
        max_history_bytes: Largest before-image that the toolkit's own history keeps; one that is given has its own.
        max_notice_lines: Lines of diff in one notice about outside changes, for all files together.
        max_diff_lines: Lines of diff in a refusal or a description for approval.
        max_thread_media: Pictures and PDF files in one conversation. More are refused; where `FileStateMiddleware` has
            the conversation in hand, older ones give way.
        max_thread_media_bytes: The same for their bytes, as base64.
        wait_seconds: How long a call waits for an earlier call of the same message on the same file.
    """

    max_lines: int = 2000
    max_chars: int = 100_000
    max_line_chars: int = 2000
    max_file_bytes: int = 256 * 1024 * 1024
    max_history_bytes: int = 64 * 1024 * 1024
    max_notice_lines: int = 60
    max_diff_lines: int = 60
    max_thread_media: int = 90
    max_thread_media_bytes: int = 18_000_000
    wait_seconds: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kinds = getattr(self, field.name), (int, float) if field.name == "wait_seconds" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not value > 0:
                number = "number" if float in kinds else "whole number"
                raise WiringError(f"Limits.{field.name} must be a {number} greater than 0.")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change that is about to be made, as `before_write` and `approve` see it.

    Attributes:
        tool: Name of the tool.
        tool_call_id: Id of the call; None where there is none.
        agent: Whose change it is.
        file_path: Real, absolute path.
        before: The bytes on disk; None if there is no file.
        after: The bytes that will be there.
        patch: The difference.
    """

    tool: str
    tool_call_id: str | None
    agent: str
    file_path: str
    before: bytes | None
    after: bytes
    patch: StructuredPatch


Approve = bool | Callable[[PlannedChange], bool]
BeforeWrite = Callable[[PlannedChange], None]
AfterWrite = Callable[[Path], str | None]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one toolkit; `FileToolkit` describes each."""

    require_read: RequireRead = "always"
    recover_stale: bool = True
    approve: Approve = False
    before_write: BeforeWrite | None = None
    after_write: AfterWrite | None = None
    allow_placeholders: bool = False
    pdf: Pdf = "text"
    encodings: tuple[str, ...] = DEFAULT_ENCODINGS
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.require_read not in {"always", "overwrite", "never"}:
            raise WiringError('require_read must be "always", "overwrite" or "never".')
        if self.pdf not in {"text", "file"}:
            raise WiringError('pdf must be "text" or "file".')
        for name in ("recover_stale", "allow_placeholders"):
            check_bool(name, getattr(self, name))
        if not isinstance(self.limits, Limits):
            raise WiringError("limits takes Limits(...), with the bounds by name.")
        hooks = {"before_write": self.before_write, "after_write": self.after_write}
        if not isinstance(self.approve, bool):
            _check_hook("approve", self.approve)
        for name, hook in hooks.items():
            if hook is not None:
                _check_hook(name, hook)
        check_encodings(self.encodings)


def _check_hook(name: str, hook: object) -> None:
    if not callable(hook):
        raise WiringError(f"{name} takes a function, not {hook!r}.")
    if iscoroutinefunction(hook) or iscoroutinefunction(type(hook).__call__):
        raise _is_async(name)


def answered_at_once(name: str, answer: object) -> None:
    """Raise a `WiringError` if a hook that looked plain gave something to await: its answer would never be known."""
    if isawaitable(answer):
        if iscoroutine(answer):
            answer.close()  # else Python warns that nobody has awaited it
        raise _is_async(name)


def _is_async(name: str) -> WiringError:
    return WiringError(f"{name} takes a plain function: one that is async would never be awaited.")
