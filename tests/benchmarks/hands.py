"""Sixteen threads editing sixteen files, against one thread that edits them in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from langchain_filestate import FileToolkit
from tests.benchmarks._measure import Row, call_of, in_turn, place, places, span, tools_of
from tests.benchmarks.edit import editing, text

HANDS = 16
EDITS = 8


def hand(edit: Callable[[], None]) -> None:
    for _ in range(EDITS):
        edit()


def work(edits: list[Callable[[], None]], pool: ThreadPoolExecutor | None) -> None:
    list((pool.map if pool else map)(hand, edits))


def rows(*, quick: bool) -> Iterator[Row]:
    for kind in reversed(places()):
        with place(kind) as root, ThreadPoolExecutor(HANDS) as pool:
            tools = tools_of(FileToolkit(root))
            edits = []
            for n in range(HANDS):
                path = root / f"{n}.py"
                path.write_text(text(0))
                call_of(tools["read_file"], 0, file_path=str(path))
                edits.append(editing(path, tools["edit_file"]))

            sides = {"many": partial(work, edits, pool), "one": partial(work, edits, None)}
            took = in_turn(sides, 3 if quick else 9)
        gain = took["one"].wall / took["many"].wall
        measured = f"{gain:.2f} x throughput ({span(took['one'].wall)} / {span(took['many'].wall)})"
        goal = kind == "disk"
        name = f"{HANDS} threads on {HANDS} files against one thread, {kind}, {os.cpu_count()} cores"
        yield Row(name, measured, ">= 1.5 x" if goal else "", gain >= 1.5 if goal else None)
