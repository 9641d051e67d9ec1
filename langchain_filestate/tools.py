"""The tools, and the toolkit that makes them: thin glue between LangChain's tools and `_editor`.

The descriptions are written for the model and state the rules that it is held to; they promise nothing that the code
does not do.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.messages import ToolMessage
from langchain_core.runnables import run_in_executor
from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import PrivateAttr

from langchain_filestate import _arguments, _operations
from langchain_filestate._arguments import Arguments  # noqa: TC001  pydantic asks for it
from langchain_filestate._changes import thread_name
from langchain_filestate._codec import DEFAULT_ENCODINGS
from langchain_filestate._lean import LeanTool, Update
from langchain_filestate._policy import AfterWrite, Approve, BeforeWrite, Limits, Pdf, Policy, RequireRead
from langchain_filestate._running import Spot, running_config
from langchain_filestate._running import spot as find_spot
from langchain_filestate._siblings import Siblings
from langchain_filestate.errors import WiringError
from langchain_filestate.state import mark, update_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from langgraph.types import StateSnapshot

    from langchain_filestate._call import Call, Outcome
    from langchain_filestate._caller import Caller
    from langchain_filestate._cellplan import NotebookEdit
    from langchain_filestate._deepagents import Ours
    from langchain_filestate._editor import Editor
    from langchain_filestate._history import FileHistory
    from langchain_filestate._planning import Edit, Operation, Write
    from langchain_filestate._reading import Read
    from langchain_filestate._records import State
    from langchain_filestate._rewind import RewindPlan, RewindReport
    from langchain_filestate._workspace import Workspace

_NOT_GIVEN = ("runtime", "call_id", "refused")  # arguments that are not the model's, see `LeanTool`
_siblings = Siblings()


class FileTool(LeanTool):
    """What the tools share: who calls, and what comes back."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    args_schema: type[Arguments]
    _caller: Caller = PrivateAttr()

    def __init__(self, caller: Caller, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._caller = caller

    def _run(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        caller, spot = self._caller, arguments.pop("spot", None) or self._spot(arguments)
        runtime, call_id, refused = [arguments.pop(name, None) for name in _NOT_GIVEN]
        call = caller.call(self.name, call_id, runtime, spot)
        outcome = _operations.refusal(refused) if refused else caller.editor.run(call, self.operation(arguments))
        artifact = outcome.result.model_dump()
        if runtime is None:
            if outcome.result.kind == "failure" and call_id is not None:
                return self._message(outcome, artifact, call, {}), artifact
            return outcome.content, artifact
        records = {outcome.path: outcome.record.to_state()} if outcome.path and outcome.record else {}
        update: dict[str, Any] = update_of(call.agent, records) if records else {}
        wrote = outcome.result.kind in {"edit", "write", "notebook"}
        given, column = spot.given if wrote else None, arguments.get("column", 1)
        about = mark(outcome.content, args=given, column=column, stale=outcome.stale)
        update[spot.key] = [self._message(outcome, artifact, call, about)]
        return Update(update=update), artifact

    async def _arun(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        """`_run` in a thread, when it is this call's turn."""
        spot = self._spot(arguments)
        place = None if "refused" in arguments else spot.place(arguments.get("runtime"))
        if place is None:
            return await run_in_executor(None, self._run, spot=spot, **arguments)
        seconds = self._caller.editor.policy.limits.wait_seconds
        async with _siblings.turn(place, spot.earlier_on(arguments["file_path"]), seconds):
            return await run_in_executor(None, self._run, spot=spot, **arguments)

    def _spot(self, arguments: Mapping[str, Any]) -> Spot:
        """Where the call stands in the conversation."""
        runtime, call_id = arguments.get("runtime"), arguments.get("call_id")
        given = {name: value for name, value in arguments.items() if name not in _NOT_GIVEN}
        return Spot() if runtime is None else find_spot(runtime.state, call_id, self.name, given, TOOL_NAMES)

    def _message(self, outcome: Outcome, artifact: dict[str, Any], call: Call, about: dict[str, Any]) -> ToolMessage:
        return ToolMessage(
            content=outcome.content,  # type: ignore[arg-type]  # blocks are plain dicts
            artifact=artifact,
            tool_call_id=call.call_id or "",
            name=self.name,
            id=call.evidence,
            additional_kwargs=about,
            status="error" if outcome.result.kind == "failure" else "success",
        )

    @abstractmethod
    def operation(self, arguments: Mapping[str, Any]) -> Read | Operation:
        """The operation that some validated arguments ask for."""


class ReadFileTool(FileTool):
    """Show a window of a file as numbered lines."""

    name: str = "read_file"
    description: str = (
        "Read a text file, or a part of it. Each line is shown as its number, a tab, and the text; number and tab are "
        "not part of the file. Long files come in parts: a note at the end says which offset to go on with. "
        "Notebooks are shown as cells, images and PDFs as such. A file must be read before it can be edited or "
        "overwritten; after an edit of yours it need not be read again."
    )
    args_schema: type[Arguments] = _arguments.ReadFileArguments

    def operation(self, arguments: Mapping[str, Any]) -> Read:
        """As for every tool."""
        return _operations.read(arguments)


class EditFileTool(FileTool):
    """Replace one exact piece of text."""

    name: str = "edit_file"
    description: str = (
        "Replace text in a file that has been read. old_string must match the file exactly (every space, tab and line "
        "break; without the line-number gutter) and at one place only: give more of the lines around it, or set "
        "replace_all. Nothing else in the file changes. An empty old_string creates a file that does not exist yet. "
        "Prefer this over write_file for existing files; no need to read the file again afterwards."
    )
    args_schema: type[Arguments] = _arguments.EditFileArguments

    def operation(self, arguments: Mapping[str, Any]) -> Edit:
        """As for every tool."""
        return _operations.edit(arguments)


class MultiEditTool(FileTool):
    """Replace several exact pieces of text of one file, all or none."""

    name: str = "multi_edit"
    description: str = (
        "Make several replacements in one file that has been read. Each old_string must match exactly and at one place "
        "only (or replace_all), in the file as it is now: no edit sees what another one puts in, and they must not "
        "overlap. Either all are made or none."
    )
    args_schema: type[Arguments] = _arguments.MultiEditArguments

    def operation(self, arguments: Mapping[str, Any]) -> Edit:
        """As for every tool."""
        return _operations.edits(arguments)


class WriteFileTool(FileTool):
    """Write a whole file."""

    name: str = "write_file"
    description: str = (
        "Create a file, with the directories it needs, or overwrite one. An existing file can only be overwritten if "
        "all of its current text has been read and is still in the conversation. Give the complete text: placeholders "
        "for text that is left out are refused. To change a part of a file use edit_file."
    )
    args_schema: type[Arguments] = _arguments.WriteFileArguments

    def operation(self, arguments: Mapping[str, Any]) -> Write:
        """As for every tool."""
        return _operations.write(arguments)


class EditNotebookTool(FileTool):
    """Replace, insert or delete one cell of a notebook."""

    name: str = "edit_notebook"
    description: str = (
        "Change one cell of a Jupyter notebook (.ipynb) that has been read: insert a new cell after cell_id (without "
        "cell_id: at the top), or replace or delete one, which must have been read in full itself. Outputs of a code "
        "cell whose text changes are cleared; other cells stay as they are."
    )
    args_schema: type[Arguments] = _arguments.EditNotebookArguments

    def operation(self, arguments: Mapping[str, Any]) -> NotebookEdit:
        """As for every tool."""
        return _operations.cell(arguments)


_TOOLS: tuple[type[FileTool], ...] = (ReadFileTool, EditFileTool, MultiEditTool, WriteFileTool, EditNotebookTool)
TOOL_NAMES = frozenset(tool.model_fields["name"].default for tool in _TOOLS)


class FileToolkit(BaseToolkit):
    """The file tools of one agent, sharing one workspace, one policy and one history.

    Args:
        root: Directory that relative paths start from; the tools reach nothing outside it and `extra_roots`.
        extra_roots: More directories that may be reached, by absolute path.
        deny: Gitignore patterns, taken per root, of what may be neither read nor written.
        read_only: Gitignore patterns of what may be read only.
        virtual: True: a path that begins with `/` is taken from the root (deepagents' convention).
        agent: Name under which records are kept; None: the name of the running agent, or "main".
        history: Where changes and before-images are kept; None: in memory, one for the process.
        require_read: "always": edits and overwrites need a read; "overwrite": only overwrites do; "never": neither,
            but what was read must still be current.
        recover_stale: True: an edit whose text is exact and unique in a file that changed since the read goes ahead
            on the current bytes, and says so; False: it is refused.
        approve: True, or a predicate on the `PlannedChange`: which changes a person is asked about, by an interrupt.
        before_write: Called with each `PlannedChange`; may raise `Refused("why")`.
        after_write: Called with the path after each write; may change the file, and may return text for the model.
        pdf: "text": a PDF is shown as the text of its pages; "file": as a file block, for models that read these.
        allow_placeholders: True: text that stands in for existing lines ("... rest of the code ...") is written.
        encodings: Legacy encodings, as Python names them, that a file which is not UTF-8 may turn out to be in.
        limits: Bounds; see `Limits`.

    Raises:
        WiringError: A rule can never match, a root does not exist, or an option has no such value.
    """

    _caller: Caller = PrivateAttr()
    _tools: list[FileTool] = PrivateAttr()
    _ours: Ours = PrivateAttr()

    tool_names: ClassVar[frozenset[str]] = TOOL_NAMES

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        extra_roots: Sequence[str | os.PathLike[str]] = (),
        deny: Sequence[str] = (),
        read_only: Sequence[str] = (),
        virtual: bool = False,
        agent: str | None = None,
        history: FileHistory | None = None,
        require_read: RequireRead = "always",
        recover_stale: bool = True,
        approve: Approve = False,
        before_write: BeforeWrite | None = None,
        after_write: AfterWrite | None = None,
        pdf: Pdf = "text",
        allow_placeholders: bool = False,
        encodings: Sequence[str] = DEFAULT_ENCODINGS,
        limits: Limits | None = None,
    ) -> None:
        # What touches files is loaded with the first toolkit: who only wants the types never needs it.
        from langchain_filestate._caller import Caller  # noqa: PLC0415
        from langchain_filestate._deepagents import Ours  # noqa: PLC0415
        from langchain_filestate._editor import Editor  # noqa: PLC0415
        from langchain_filestate._history import MAX_IMAGE_BYTES, FileHistory, process_history  # noqa: PLC0415
        from langchain_filestate._workspace import Workspace  # noqa: PLC0415

        super().__init__()
        if history is not None and not isinstance(history, FileHistory):
            raise WiringError("history takes a FileHistory; wrap a store: FileHistory(store).")
        policy = Policy(
            require_read=require_read,
            recover_stale=recover_stale,
            approve=approve,
            before_write=before_write,
            after_write=after_write,
            pdf=pdf,
            allow_placeholders=allow_placeholders,
            encodings=tuple(encodings),
            limits=limits or Limits(),
        )
        workspace = Workspace(root, extra_roots=extra_roots, deny=deny, read_only=read_only, virtual=virtual)
        if history is None:
            limit = policy.limits.max_history_bytes
            history = process_history() if limit == MAX_IMAGE_BYTES else FileHistory(max_bytes=limit)
        self._caller = Caller(Editor(workspace, history, policy, _siblings), agent)
        self._tools = [tool(self._caller) for tool in _TOOLS]
        self._ours = Ours(workspace, virtual, bool(deny), bool(read_only), approve is not False)

    @property
    def workspace(self) -> Workspace:
        """Where the tools may go."""
        return self._caller.editor.workspace

    @property
    def history(self) -> FileHistory:
        """The changes, and the bytes before each."""
        return self._caller.editor.history

    @property
    def policy(self) -> Policy:
        """The rules."""
        return self._caller.editor.policy

    @property
    def editor(self) -> Editor:
        """What carries out the calls."""
        return self._caller.editor

    @property
    def ours(self) -> Ours:
        """What it was told of paths."""
        return self._ours

    @property
    def records(self) -> State:
        """The records of calls outside any graph; those of a graph are in its state."""
        return self._caller.records

    def get_tools(self) -> list[BaseTool]:
        """The five tools."""
        return list(self._tools)

    def running_agent(self) -> str:
        """Under which name the run that this is called in keeps its records."""
        return self._caller.agent_of(running_config())

    def running_thread(self) -> str | None:
        """The thread of the run that this is called in; None if there is none."""
        return thread_name(((running_config() or {}).get("configurable") or {}).get("thread_id"))

    def book(self, agent: str, records: Mapping[str, dict[str, Any]]) -> None:
        """Keep records of calls outside any graph."""
        self._caller.book(agent, records)

    def describe_change(self, tool_call: Mapping[str, Any], state: Any = None, runtime: Any = None) -> str:
        """What a tool call would change, with the diff: a `description` for LangChain's human-in-the-loop middleware.

        Args:
            tool_call: The call, with `name` and `args`.
            state: Not needed; the middleware gives it.
            runtime: Likewise.

        Returns:
            The text; for a call that would be refused, why.
        """
        from langchain_filestate import _approval  # noqa: PLC0415  where somebody is asked

        del state, runtime
        tool = next((tool for tool in self._tools if tool.name == tool_call["name"]), None)
        if tool is None:
            return f"{tool_call['name']} is not one of the file tools."
        return _approval.describe_call(tool, tool_call["args"], self._caller)

    def seen(self, path: str, evidence: str, *, agent: str | None = None) -> dict[str, Any]:
        """Register a file whose whole current text the user put into the conversation.

        Args:
            path: As for the tools.
            evidence: Id of the message that holds the text.
            agent: Whose record; None: the toolkit's, or that of the run that this is called in, or "main".

        Returns:
            A state update, to be returned by a node or given to `graph.update_state`. Outside any graph the toolkit
            keeps the record itself as well.

        Raises:
            Refused: There is no such file, it is not text, or it may not be read.
        """
        from langchain_filestate import watch  # noqa: PLC0415  where a person puts a file into the conversation

        return watch.seen(path, evidence, self, agent=agent)

    def plan_rewind(self, snapshot: StateSnapshot) -> RewindPlan:
        """What `rewind` would do; changes nothing.

        Args:
            snapshot: What `graph.get_state` or `get_state_history` returned.
        """
        from langchain_filestate import _rewind  # noqa: PLC0415  where somebody goes back

        return _rewind.plan_rewind(self.history, self.workspace, snapshot)

    def rewind(self, snapshot: StateSnapshot, force: bool = False) -> RewindReport:
        """Put the files that the thread changed since a checkpoint back to what they were there.

        Args:
            snapshot: What `graph.get_state` or `get_state_history` returned.
            force: True: also files that somebody else changed meanwhile.

        Returns:
            What was restored, and what was left alone because somebody else changed it.
        """
        from langchain_filestate import _rewind  # noqa: PLC0415  as above

        return _rewind.rewind(self.history, self.workspace, snapshot, force=force)

    async def aplan_rewind(self, snapshot: StateSnapshot) -> RewindPlan:
        """`plan_rewind` in a thread."""
        return await run_in_executor(None, self.plan_rewind, snapshot)

    async def arewind(self, snapshot: StateSnapshot, force: bool = False) -> RewindReport:
        """`rewind` in a thread."""
        return await run_in_executor(None, self.rewind, snapshot, force)

    async def aseen(self, path: str, evidence: str, *, agent: str | None = None) -> dict[str, Any]:
        """`seen` in a thread."""
        return await run_in_executor(None, partial(self.seen, path, evidence, agent=agent))
