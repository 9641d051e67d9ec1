"""Sixteen threads editing sixteen files, against one thread that edits them in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from langchain_filestate import FileToolkit
from tests.benchmarks._measure import Row, call_of, in_turn, place, places, span, tools_of
from tests.benchmarks.edit import editing, floor, text

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
            edits, bare = [], []
            for n in range(HANDS):
                path, other = root / f"{n}.py", root / f"{n}.txt"
                for each in (path, other):
                    each.write_text(text(0))
                call_of(tools["read_file"], 0, file_path=str(path))
                edits.append(editing(path, tools["edit_file"]))
                bare.append(floor(other))

            sides = {
                "many": partial(work, edits, pool),
                "one": partial(work, edits, None),
                "bare many": partial(work, bare, pool),
                "bare one": partial(work, bare, None),
            }
            took = in_turn(sides, 3 if quick else 9)
        goal = kind == "disk"
        gain = took["one"].wall / took["many"].wall
        most = took["bare one"].wall / took["bare many"].wall
        name = f"{HANDS} threads on {HANDS} files against one thread, {kind}, {os.cpu_count()} cores"
        measured = f"{gain:.2f} x throughput ({span(took['one'].wall)} / {span(took['many'].wall)})"
        yield Row(name, measured, ">= 1.5 x" if goal else "", gain >= 1.5 if goal else None)
        yield Row(f"  the floor, likewise, {kind}", f"{most:.2f} x throughput")
