"""The command line: `python -m langchain_filestate demo | run | history | rewind`.

Exit codes: 0 all went well; 1 something was refused, left alone or broken off; 2 the command was used wrongly or needs
an extra; 130 interrupted from the keyboard; 141 whoever read the output left. What is heavy is imported by the command
that needs it.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from typing import TYPE_CHECKING

from langchain_filestate._cli_show import Screen, Stop, clean
from langchain_filestate.errors import WiringError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INSTALL = 'pip install "langchain-filestate[cli]"'
_EXTRAS = ("langchain", "langgraph.checkpoint.sqlite", "langgraph.store.sqlite", "platformdirs", "rich")
INTERRUPTED = 130
PIPE_CLOSED = 141


def parser() -> argparse.ArgumentParser:
    """What the user may say."""
    top = argparse.ArgumentParser(
        prog="langchain-filestate",
        description="File tools that know what the agent has read: see them work, let an agent use them, look at what "
        "it changed, and take it back.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="a scripted agent on a copy of real source; no network, no key")
    demo.add_argument("--json", action="store_true", help="one JSON object per step")
    demo.add_argument("--keep", action="store_true", help="keep the folder that it worked in")
    demo.add_argument("--go-on", metavar="DIR", help=argparse.SUPPRESS)

    run = commands.add_parser(
        "run",
        help="let an agent work on a folder",
        description="Let an agent work on a folder. --model scripted:FILE.json tries it without a key: FILE is a list "
        'of what the model says, each a text, a call {"name": "read_file", "args": {"file_path": "a.py"}}, or a list '
        "of calls.",
    )
    run.add_argument("task", nargs="?", help="what to do; may be left out to finish what was broken off")
    run.add_argument("--model", metavar="PROVIDER:NAME", help="as for init_chat_model, or scripted:FILE.json")
    run.add_argument("--root", metavar="DIR", help="where it works (default: the current directory)")
    run.add_argument("--thread", metavar="ID", help="go on with this thread, with its root, model and rules")
    run.add_argument("--from", dest="start", metavar="CHECKPOINT", help="go on from an earlier point of the thread")
    run.add_argument("--approve", action=argparse.BooleanOptionalAction, help="ask before each change")
    run.add_argument(
        "--read-only", action="append", default=[], metavar="PATTERN", help="may only be read (gitignore syntax)"
    )
    run.add_argument("--deny", action="append", default=[], metavar="PATTERN", help="may be neither read nor written")
    run.add_argument("--json", action="store_true", help="one JSON object per event")

    history = commands.add_parser("history", help="what was changed, by thread or by file")
    history.add_argument("--thread", metavar="ID", help="the changes of this thread")
    history.add_argument("--path", metavar="FILE", help="the changes of this file")
    history.add_argument("--patch", action="store_true", help="with the diff of each change")
    history.add_argument("--json", action="store_true", help="one JSON object per thread or change")

    rewind = commands.add_parser(
        "rewind",
        help="put files back to what they were",
        description="Put the files that a thread changed back to what they were at a checkpoint. Without --apply it "
        "is a preview; without --to and --before the checkpoints are listed.",
    )
    rewind.add_argument("--thread", metavar="ID", required=True)
    where = rewind.add_mutually_exclusive_group()
    where.add_argument("--to", metavar="CHECKPOINT", help="its id, or how it begins")
    where.add_argument("--before", type=int, metavar="NUMBER", help="before this change, as `history` numbers them")
    rewind.add_argument("--apply", action="store_true", help="do it")
    rewind.add_argument("--force", action="store_true", help="also files that somebody else changed since")
    rewind.add_argument("--json", action="store_true", help="as JSON")

    for command in (run, history, rewind):
        command.add_argument("--state", metavar="DIR", help="where checkpoints and history are kept")
    return top


def _command(name: str) -> Callable[[argparse.Namespace, Screen], int]:
    match name:
        case "demo":
            from langchain_filestate import _cli_demo  # noqa: PLC0415  heavy

            return _cli_demo.demo
        case "run":
            from langchain_filestate import _cli_run  # noqa: PLC0415  heavy

            return _cli_run.run
        case _:
            from langchain_filestate import _cli_past  # noqa: PLC0415  heavy

            return _cli_past.history if name == "history" else _cli_past.rewind


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None: those of the process.

    Returns:
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character shows its number
    try:
        args = parser().parse_args(argv)
    except SystemExit as end:  # argparse has said what is wrong, or helped
        return end.code if isinstance(end.code, int) else 2
    try:
        code = _command(args.command)(args, Screen())
        sys.stdout.flush()
    except BrokenPipeError:
        # As Python's documentation of SIGPIPE advises: nothing is left for the interpreter to flush at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not any(f"{missing}.".startswith(f"{extra}.") for extra in _EXTRAS):
            raise
        return _complain(f"This needs {missing}, which is not installed: {INSTALL}")
    except Stop as stop:
        return _complain(stop.message, stop.code)
    except WiringError as error:
        return _complain(str(error))
    except (OSError, sqlite3.Error) as error:
        return _complain(str(error), 1)
    return code


def _complain(message: str, code: int = 2) -> int:
    print(clean(message), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
