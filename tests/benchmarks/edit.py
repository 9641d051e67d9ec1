"""One edit in a file of 40 kB that has been read, history in memory, synced to the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain_filestate import FileToolkit
from tests.benchmarks._floor import Empty, save
from tests.benchmarks._measure import Row, call_of, in_turn, place, places, ratio, span, tools_of

LINES = 700


def text(number: int) -> str:
    around = "x = 1  # some text in a line\n" * LINES
    return f"{around}value = {number}\n{around}"


def editing(path: Path, tool: Any) -> Callable[[], None]:
    numbers = count()

    def edit() -> None:
        n = next(numbers)
        message = call_of(tool, n, file_path=str(path), old_string=f"value = {n}\n", new_string=f"value = {n + 1}\n")
        assert message.status == "success", message.content

    return edit


def floor(path: Path, *, name: bool = False) -> Callable[[], None]:
    numbers, empty = count(), Empty()

    def edit() -> None:
        n = next(numbers)
        call_of(empty, n, file_path=str(path), old_string=f"value = {n}\n", new_string=f"value = {n + 1}\n")
        save(path, b"value = %d\n" % n, b"value = %d\n" % (n + 1), name=name)

    return edit


def rows(*, quick: bool) -> Iterator[Row]:
    for kind in places():
        with place(kind) as root:
            tools = tools_of(FileToolkit(root))
            paths = {name: root / f"{name}.py" for name in ("ours", "floor", "durable")}
            for path in paths.values():
                path.write_text(text(0))
            call_of(tools["read_file"], 0, file_path=str(paths["ours"]))
            sides = {
                "ours": editing(paths["ours"], tools["edit_file"]),
                "floor": floor(paths["floor"]),
                "durable": floor(paths["durable"], name=True),
            }
            took = in_turn(sides, 40 if quick else 300)
        if kind == "tmpfs":
            more, work = took["ours"].wall - took["floor"].wall, took["ours"].cpu - took["floor"].cpu
            measured = f"{span(more)} ({span(took['ours'].wall)} - {span(took['floor'].wall)}); processor {span(work)}"
            yield Row("one edit, tmpfs: more than the floor", measured, "<= 100 us", more <= 100e-6)
        else:
            yield ratio("one edit, disk: against the floor", took["ours"], took["floor"], 1.3)
            yield ratio("  against a floor that syncs the name too", took["ours"], took["durable"])
