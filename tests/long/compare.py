"""What file tools for agents do in the same situations, tried on real files: prints the table of the README.

    python -m tests.long compare [--rounds 100] [--only FileStateMiddleware,...]

Needs the dependency group `bench` (`pip install deepagents langchain-anthropic langchain-community`). Every pack gets an agent of `create_agent` with a
scripted model. What is judged is the files, not what the tools say.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from langgraph.checkpoint.memory import InMemorySaver

from tests.scripted import Scripted, Session, call

ROUNDS = 100
REFUSED, DONE, NOTHING = "refused", "done", "—"

Call = dict[str, Any]


@dataclass(frozen=True)
class Pack:
    """The tools of one package, and how its calls are written."""

    name: str
    package: str
    make: Callable[[Path], tuple[list[Any], list[Any]]]
    """Tools and middleware for a folder."""
    read: Callable[[str], Call]
    write: Callable[[str, str], Call]
    edit: Callable[[str, str, str], Call] | None
    part: Callable[[str, int, int], Call] | None = None
    """Read some lines, counted from 1."""
    search: Callable[[str], Call] | None = None
    delete: Callable[[str], Call] | None = None
    in_state: Callable[[], list[Any]] | None = None
    """Middleware that keeps the files in the graph's state instead."""

    def session(self, root: Path, middleware: list[Any] | None = None) -> Session:
        from langchain.agents import create_agent

        tools, ours = ([], middleware) if middleware is not None else self.make(root)
        model = Scripted(script=[], requests=[])
        graph = create_agent(model, tools, middleware=ours, checkpointer=InMemorySaver(), name="coder")
        return Session(graph, model, "t", getattr(ours[0], "toolkit", None) if ours else None)

    def changing(self, name: str, old: str, new: str, *, text: str) -> Call:
        """Change a file that was read: by an edit, or without such a tool by writing back what the read returned."""
        return self.edit(name, old, new) if self.edit is not None else self.write(name, text.replace(old, new, 1))

    def change(self, session: Session, name: str, old: str, new: str, *, text: str) -> None:
        if self.edit is not None or not text.startswith("Error"):
            session.say(self.changing(name, old, new, text=text))


def filestate() -> Pack:
    from langchain_filestate import FileStateMiddleware

    return Pack(
        "FileStateMiddleware",
        "langchain-filestate",
        lambda root: ([], [FileStateMiddleware(root)]),
        lambda name: call("read_file", file_path=name),
        lambda name, text: call("write_file", file_path=name, content=text),
        lambda name, old, new: call("edit_file", file_path=name, old_string=old, new_string=new),
        part=lambda name, first, count: call("read_file", file_path=name, offset=first, limit=count),
    )


def deepagents() -> Pack:
    from deepagents.backends import FilesystemBackend, StateBackend
    from deepagents.middleware import FilesystemMiddleware

    return Pack(
        "FilesystemMiddleware",
        "deepagents",
        lambda root: ([], [FilesystemMiddleware(backend=FilesystemBackend(root_dir=root, virtual_mode=True))]),
        lambda name: call("read_file", file_path=f"/{name}"),
        lambda name, text: call("write_file", file_path=f"/{name}", content=text),
        lambda name, old, new: call("edit_file", file_path=f"/{name}", old_string=old, new_string=new),
        part=lambda name, first, count: call("read_file", file_path=f"/{name}", offset=first - 1, limit=count),
        search=lambda pattern: call("glob", pattern=pattern),
        delete=lambda name: call("delete", file_path=f"/{name}"),
        in_state=lambda: [FilesystemMiddleware(backend=StateBackend())],
    )


def anthropic() -> Pack:
    from langchain_anthropic.middleware import FilesystemClaudeTextEditorMiddleware, StateClaudeTextEditorMiddleware

    def command(kind: str, name: str, **args: Any) -> Call:
        return call("str_replace_based_edit_tool", command=kind, path=f"/{name}", **args)

    return Pack(
        "FilesystemClaudeTextEditorMiddleware",
        "langchain-anthropic",
        lambda root: ([], [FilesystemClaudeTextEditorMiddleware(root_path=str(root))]),
        lambda name: command("view", name),
        lambda name, text: command("create", name, file_text=text),
        lambda name, old, new: command("str_replace", name, old_str=old, new_str=new),
        part=lambda name, first, count: command("view", name, view_range=[first, first + count - 1]),
        delete=lambda name: command("delete", name),
        in_state=lambda: [StateClaudeTextEditorMiddleware()],
    )


def community() -> Pack:
    from langchain_community.agent_toolkits import FileManagementToolkit

    return Pack(
        "FileManagementToolkit",
        "langchain-community",
        lambda root: (FileManagementToolkit(root_dir=str(root)).get_tools(), []),
        lambda name: call("read_file", file_path=name),
        lambda name, text: call("write_file", file_path=name, text=text),
        None,
        search=lambda pattern: call("file_search", pattern=pattern),
        delete=lambda name: call("file_delete", file_path=name),
    )


PACKS: dict[str, Callable[[], Pack]] = {
    "FileStateMiddleware": filestate,
    "FilesystemMiddleware": deepagents,
    "FilesystemClaudeTextEditorMiddleware": anthropic,
    "FileManagementToolkit": community,
}


def _start(pack: Pack, root: Path, data: bytes, *, read: bool = True) -> tuple[Session, Path, str]:
    """A session in a folder with one file, and the text that reading it returned."""
    path = root / "a.txt"
    path.write_bytes(data)
    session = pack.session(root)
    text = str(session.one(pack.read("a.txt")).content) if read else ""
    return session, path, text


def edit_never_read(pack: Pack, root: Path) -> str:
    if pack.edit is None:
        return NOTHING
    session, path, _ = _start(pack, root, b"one\ntwo\n", read=False)
    session.say(pack.edit("a.txt", "one", "1"))
    return DONE if path.read_bytes() == b"1\ntwo\n" else REFUSED


def overwrite_never_read(pack: Pack, root: Path) -> str:
    session, path, _ = _start(pack, root, b"one\ntwo\n", read=False)
    session.say(pack.write("a.txt", "new\n"))
    return DONE if path.read_bytes().startswith(b"new\n") else REFUSED


def overwrite_old_version(pack: Pack, root: Path) -> str:
    session, path, _ = _start(pack, root, b"one\ntwo\n")

    def answer() -> Call:
        path.write_bytes(b"one\ntwo\ntheirs\n")
        return pack.write("a.txt", "1\ntwo\n")

    session.say(answer)
    return "refused, theirs kept" if path.read_bytes() == b"one\ntwo\ntheirs\n" else "theirs lost"


def edit_old_version(pack: Pack, root: Path) -> str:
    session, path, text = _start(pack, root, b"one\ntwo\n")

    def answer() -> Call:
        path.write_bytes(b"one\ntwo\ntheirs\n")
        return pack.changing("a.txt", "one", "1", text=text)

    session.say(answer)
    now = path.read_bytes()
    if now == b"1\ntwo\ntheirs\n":
        return "both there"
    return REFUSED if now == b"one\ntwo\ntheirs\n" else "theirs lost"


def overwrite_between_turns(pack: Pack, root: Path) -> str:
    session, path, _ = _start(pack, root, b"one\ntwo\n")
    path.write_bytes(b"one\ntwo\ntheirs\n")
    session.say(pack.write("a.txt", "1\ntwo\n"))
    was_told = any("theirs" in str(request) for request in session.model.requests)
    done = REFUSED if path.read_bytes() == b"one\ntwo\ntheirs\n" else DONE
    return f"{done}, the model was {'' if was_told else 'not '}told"


def ambiguous(pack: Pack, root: Path) -> str:
    if pack.edit is None:
        return NOTHING
    session, path, _ = _start(pack, root, b"x = 1\ny = 2\nx = 1\n")
    session.say(pack.edit("a.txt", "x = 1", "x = 3"))
    now = path.read_bytes()
    if now == b"x = 1\ny = 2\nx = 1\n":
        return REFUSED
    return "changes the first" if now == b"x = 3\ny = 2\nx = 1\n" else f"? {now!r}"


def crlf(pack: Pack, root: Path) -> str:
    session, path, text = _start(pack, root, b"one\r\ntwo\r\nthree\r\n")
    pack.change(session, "a.txt", "one\ntwo\n", "1\n2\n", text=text)
    now = path.read_bytes()
    if now == b"1\r\n2\r\nthree\r\n":
        return "done, stays CRLF"
    return "whole file becomes LF" if now == b"1\n2\nthree\n" else f"? {now!r}"


def _kept(pack: Pack, root: Path, data: bytes) -> str:
    session, path, text = _start(pack, root, data)
    pack.change(session, "a.txt", "change", "changed", text=text)
    now = path.read_bytes()
    if now == data:
        return "cannot edit it"
    return "yes" if now == data.replace(b"change", b"changed") else "no"


def mixed_endings(pack: Pack, root: Path) -> str:
    return _kept(pack, root, b"one\r\ntwo\nchange\nfour\rfive\r\n")


def bom(pack: Pack, root: Path) -> str:
    return _kept(pack, root, b"\xef\xbb\xbfone\nchange\n")


def invalid_byte(pack: Pack, root: Path) -> str:
    return _kept(pack, root, b"one\nchange\ncaf\xc3\xa9 \xff\n")


def mode(pack: Pack, root: Path) -> str:
    session, path, text = _start(pack, root, b"#!/bin/sh\necho change\n")
    path.chmod(0o751)
    pack.change(session, "a.txt", "change", "changed", text=text)
    session.say(pack.read("a.txt"), pack.write("a.txt", "#!/bin/sh\necho new\n"))
    assert b"new" in path.read_bytes()
    return "yes" if path.stat().st_mode & 0o777 == 0o751 else "no"


def link_outside(pack: Pack, root: Path) -> str:
    with tempfile.TemporaryDirectory() as elsewhere:
        target = Path(elsewhere) / "target.txt"
        target.write_bytes(b"one\n")
        (root / "link.txt").symlink_to(target)
        calls = [pack.write("link.txt", "1\n"), pack.changing("link.txt", "one", "1", text="one\n")]
        raised = False
        for one in calls:
            for before in ([], [pack.read("link.txt")]):
                try:
                    pack.session(root).say(*before, one)
                except ValueError:
                    raised = True
        if target.read_bytes() != b"one\n":
            return "written through"
        return "refused, ends the run" if raised else REFUSED


def parallel(pack: Pack, root: Path) -> str:
    """Two edits at both ends of a file of 200 kB."""
    both = one = 0
    middle = b"a line of the file\n" * 10_000
    for number in range(ROUNDS):
        folder = root / str(number)
        folder.mkdir()
        session, path, text = _start(pack, folder, b"first\n" + middle + b"last\n")
        if pack.part is not None:  # a read shows the beginning of a file this large
            session.say(pack.part("a.txt", 10_000, 3))
        if pack.edit is not None:
            session.say([pack.edit("a.txt", "first\n", "FIRST\n"), pack.edit("a.txt", "last\n", "LAST\n")])
        else:
            session.say(
                [pack.write("a.txt", text.replace("first", "FIRST")), pack.write("a.txt", text.replace("last", "LAST"))]
            )
        done = (b"FIRST" in path.read_bytes()) + path.read_bytes().endswith(b"LAST\n")
        both += done == 2
        one += done == 1
        answers = [str(message.content) for message in session.state()["messages"][-3:-1]]
        if done == 1 and any("parallel file mutations" in answer for answer in answers):
            return "second refused"
    if both == ROUNDS:
        return "both there"
    return f"one lost, {ROUNDS - both} of {ROUNDS} times"


def twice(pack: Pack, root: Path) -> str:
    """The graph goes on from the checkpoint before the tools again, as it does after a crash and in time travel."""
    session, path, _ = _start(pack, root, b"start\nrest\n")
    if pack.edit is not None:
        session.say(pack.edit("a.txt", "start\n", "start\nmore\n"))
    else:
        session.say(pack.write("a.txt", "more\n") | {"args": {"file_path": "a.txt", "text": "more\n", "append": True}})
    before = next(s for s in session.graph.get_state_history(session.config) if s.next == ("tools",))
    assert path.read_bytes().count(b"more") == 1
    session.model.script[:] = ["done"]
    session.graph.invoke(None, before.config)
    count = path.read_bytes().count(b"more")
    return "once" if count == 1 else "twice" if pack.edit is not None else "twice (append)"


def back(pack: Pack, root: Path) -> str:
    session, path, text = _start(pack, root, b"one\ntwo\n")
    good = session.graph.get_state(session.config)
    pack.change(session, "a.txt", "one", "1", text=text)
    assert path.read_bytes() == b"1\ntwo\n"
    if session.toolkit is not None:
        session.toolkit.rewind(good)
    else:
        session.model.script[:] = ["done"]
        session.graph.invoke({"messages": ["go on from here"]}, good.config)
    cell = "yes" if path.read_bytes() == b"one\ntwo\n" else "no"
    if pack.in_state is None or pack.edit is None:
        return cell
    session = pack.session(root, pack.in_state())
    session.say(pack.write("a.txt", "one\ntwo\n"))
    good = session.graph.get_state(session.config)
    session.say(pack.edit("a.txt", "one", "1"))
    assert "one" not in str(session.one(pack.read("a.txt")).content)
    session.model.script[:] = [pack.read("a.txt"), "done"]
    out = session.graph.invoke({"messages": ["go on from here"]}, good.config)
    return f"{cell} (kept in the state: {'yes' if 'one' in str(out['messages'][-2].content) else 'no'})"


def patch(pack: Pack, root: Path) -> str:
    session, _, text = _start(pack, root, b"one\ntwo\n")
    pack.change(session, "a.txt", "one", "1", text=text)
    message = next(m for m in reversed(session.state()["messages"]) if m.type == "tool")
    return "yes" if isinstance(message.artifact, dict) and message.artifact.get("patch") else "no"


BIG = b"change\n" + b"a line of the file\n" * 50_000


def crash(pack: Pack, root: Path) -> str:
    """The system kills the process in the middle of the write: its files may not grow beyond 400 kB."""
    path = root / "a.txt"
    path.write_bytes(BIG)
    run = subprocess.run(
        [sys.executable, "-m", "tests.long", "compare", "--crash", pack.name, str(root)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == -signal.SIGXFSZ, run
    now = path.read_bytes()
    if now != BIG:
        return f"half a file ({len(now) // 1000} of {len(BIG) // 1000} kB)"
    if len(os.listdir(root)) == 1:
        return "old file stays"
    session = pack.session(root)
    pack.change(session, "a.txt", "change", "changed", text=str(session.one(pack.read("a.txt")).content))
    assert path.read_bytes().startswith(b"changed")
    return "old file stays, and a temporary one" + (" until the next write" if len(os.listdir(root)) == 1 else "")


def crash_child(pack: Pack, root: Path) -> None:
    session = pack.session(root)
    text = str(session.one(pack.read("a.txt")).content)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    pack.change(session, "a.txt", "change", "changed", text=text)


def synced(pack: Pack, root: Path) -> str:
    session, path, text = _start(pack, root, b"one\ntwo\n")
    with (
        mock.patch("os.fsync", side_effect=os.fsync) as fsync,
        mock.patch("os.fdatasync", side_effect=os.fdatasync) as f,
    ):
        pack.change(session, "a.txt", "one", "1", text=text)
    assert path.read_bytes() == b"1\ntwo\n"
    return "yes" if fsync.called or f.called else "no"


def records(pack: Pack, root: Path) -> str:
    session, _, _ = _start(pack, root, b"one\ntwo\n")
    rest = {key: value for key, value in session.state().items() if key != "messages"}
    return "yes" if "a.txt" in str(rest) and "coder" in str(rest) else "no"


def some_lines(pack: Pack, root: Path) -> str:
    if pack.part is None:
        return "no"
    session, _, _ = _start(pack, root, b"".join(b"line %d.\n" % n for n in range(1, 101)), read=False)
    text = str(session.one(pack.part("a.txt", 50, 2)).content)
    assert "line 50." in text
    return "yes" if "line 51." in text and "line 49." not in text and "line 52." not in text else "shows all of it"


def searching(pack: Pack, root: Path) -> str:
    if pack.search is None:
        return "no"
    session, _, _ = _start(pack, root, b"one\n", read=False)
    return "yes" if "a.txt" in str(session.one(pack.search("*.txt")).content) else "no"


def deleting(pack: Pack, root: Path) -> str:
    if pack.delete is None:
        return "no"
    session, path, _ = _start(pack, root, b"one\n", read=False)
    session.say(pack.delete("a.txt"))
    return "no" if path.exists() else "yes"


ROWS: list[tuple[str, Callable[[Pack, Path], str]]] = [
    ("edit of a file never read", edit_never_read),
    ("overwrite of a file never read", overwrite_never_read),
    ("overwrite, while somebody else saved the file", overwrite_old_version),
    ("edit, while somebody else saved another line", edit_old_version),
    ("overwrite, after somebody else saved between two turns", overwrite_between_turns),
    ("text to replace stands there twice", ambiguous),
    ("edit of a CRLF file with the text as read", crlf),
    ("mixed line endings elsewhere are kept", mixed_endings),
    ("BOM is kept", bom),
    ("invalid UTF-8 elsewhere is kept", invalid_byte),
    ("mode is kept", mode),
    ("write to a link that leads out of the root", link_outside),
    ("two edits of one file in one message", parallel),
    ("insertion that the graph runs a second time", twice),
    ("file brought back to a checkpoint", back),
    ("structured patch in the result", patch),
    ("process killed in the middle of a write", crash),
    ("fsync", synced),
    ("who read what, in the graph's state", records),
    ("reading some lines", some_lines),
    ("finding files by name", searching),
    ("deleting files", deleting),
]


def main(argv: list[str]) -> int:
    global ROUNDS  # noqa: PLW0603  an option of this command
    parser = argparse.ArgumentParser(prog="python -m tests.long compare")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often two edits run at once")
    parser.add_argument("--only", help=f"some of: {','.join(PACKS)}")
    parser.add_argument("--crash", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    ROUNDS = options.rounds
    warnings.simplefilter("ignore")
    if options.crash:
        crash_child(PACKS[options.crash[0]](), Path(options.crash[1]))
        return 0
    packs = []
    for name in options.only.split(",") if options.only else PACKS:
        try:
            packs.append(PACKS[name]())
        except ImportError as error:
            print(
                f"{name}: {error}. It needs the dependency group `bench`: pip install deepagents langchain-anthropic langchain-community"
            )
            return 2
    versions = [f"{pack.package} {importlib.metadata.version(pack.package)}" for pack in packs]
    print("|", " | ".join(["", *(f"{v}: `{p.name}`" for p, v in zip(packs, versions, strict=True))]), "|")
    print("| ---", *("| ---" for _ in packs), "|")
    for title, row in ROWS:
        cells = []
        for pack in packs:
            with tempfile.TemporaryDirectory() as folder:
                cells.append(row(pack, Path(folder).resolve()))
        print("|", " | ".join([title, *cells]), "|", flush=True)
    return 0
