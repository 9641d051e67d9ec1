"""Whether deepagents, whose file tools ours replace by name, means the same files by the same paths.

Its remaining tools (`ls`, `glob`, `grep`, `delete`, `execute`) go on working on its backend, under its permissions.
Where that backend keeps the files elsewhere than on this disk, or takes paths in another way, an agent would list one
tree and edit another; where permissions are set, they would bind those tools and not ours. These are mistakes of who
wires the agent, and are told at the first model call.

deepagents has no public way to ask for its backend. Its tools close over the middleware that has it; where a later
version no longer does so, nothing is found, and only the channel in which it keeps files in the state is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_filestate._workspace import Workspace

_MODULE = "deepagents.middleware.filesystem"
_FIX = (
    "Give create_deep_agent backend=FilesystemBackend(root_dir=ROOT, virtual_mode=True) "
    "and FileStateMiddleware(ROOT, virtual=True)."
)


@dataclass(frozen=True, slots=True)
class Ours:
    """What a toolkit was told of paths.

    Attributes:
        workspace: Where it may go.
        virtual: True if a path that begins with `/` is taken from the root.
        deny: True if it has rules of what is closed.
        read_only: True if it has rules of what may be read only.
        asks: True if a person may be asked about changes.
    """

    workspace: Workspace
    virtual: bool
    deny: bool
    read_only: bool
    asks: bool


def check(tools: Iterable[Any], state: Any, ours: Ours) -> None:
    """Compare what deepagents works on with the toolkit; nothing happens without deepagents.

    Args:
        tools: What the model is offered.
        state: The agent's state.
        ours: Our tools.

    Raises:
        WiringError: The backend, its root, its way with paths, or its permissions are not those of the toolkit.
    """
    theirs = [func for tool in tools if getattr(func := getattr(tool, "func", None), "__module__", None) == _MODULE]
    if not theirs:
        return
    middleware = next((found for func in theirs for found in _closed_over(func) if hasattr(found, "backend")), None)
    if middleware is not None:
        _check_backend(middleware.backend, ours)
        _check_permissions(getattr(middleware, "_permissions", ()), ours)
    elif "files" in state:
        raise WiringError(f"deepagents keeps its files in the graph's state, and these tools on the disk. {_FIX}")


def _closed_over(func: Any) -> Iterable[Any]:
    names = func.__code__.co_freevars
    return [cell.cell_contents for name, cell in zip(names, func.__closure__ or (), strict=True) if name == "self"]


def _check_backend(backend: Any, ours: Ours) -> None:
    kinds = [kind.__name__ for kind in type(backend).__mro__ if kind.__module__.startswith("deepagents.")]
    if "CompositeBackend" in kinds:
        for prefix in backend.routes:
            _check_route(prefix, ours)
        _check_backend(backend.default, ours)
    elif "FilesystemBackend" in kinds:
        _check_paths(backend, ours)
    elif kinds and kinds[0] == type(backend).__name__ and kinds[0] != "BackendProtocol":
        # A backend of the user's own may well be on this disk.
        raise WiringError(f"deepagents keeps its files in a {kinds[0]}, and these tools on the disk. {_FIX}")


def _check_route(prefix: str, ours: Ours) -> None:
    path = f"{prefix.rstrip('/')}/x"
    try:
        ours.workspace.locate(path, write=True)
    except Refused:
        return
    raise WiringError(
        f"deepagents routes {prefix} to another backend, and these tools would put it on the disk. "
        f"Say so to FileStateMiddleware: deny=[{prefix!r}]."
    )


def _check_paths(backend: Any, ours: Ours) -> None:
    virtual = bool(backend.virtual_mode)
    if virtual != ours.virtual:
        raise WiringError(
            f"FilesystemBackend has virtual_mode={virtual} and FileStateMiddleware virtual={ours.virtual}: "
            "they take paths that begin with / in different ways. Set both alike."
        )
    root = str(ours.workspace.root)
    if virtual and str(backend.cwd) != root:
        raise WiringError(f"FilesystemBackend has the root {backend.cwd} and FileStateMiddleware {root}. Use one root.")


def _check_permissions(rules: Iterable[Any], ours: Ours) -> None:
    for rule in rules:
        write = "write" in rule.operations
        # What may not be read needs `deny`; `read_only` closes writing alone.
        if rule.mode == "deny" and not (ours.deny or ("read" not in rule.operations and ours.read_only)):
            raise WiringError(
                f"deepagents' permissions deny {', '.join(rule.paths)}, but they do not bind the tools of "
                "FileStateMiddleware. Give it the same as deny=[...] or read_only=[...] (gitignore patterns)."
            )
        if rule.mode == "interrupt" and write and not ours.asks:
            raise WiringError(
                f"deepagents' permissions ask about writes to {', '.join(rule.paths)}, but do not know multi_edit and "
                "edit_notebook. Use approve=... of FileStateMiddleware."
            )
