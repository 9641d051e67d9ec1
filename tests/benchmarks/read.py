"""One read of 2,000 lines."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_filestate import FileToolkit
from tests.benchmarks._floor import EmptyRead
from tests.benchmarks._measure import Row, call_of, in_turn, place, places, ratio, tools_of


def rows(*, quick: bool) -> Iterator[Row]:
    with place(places()[0]) as root:
        path = root / "a.py"
        path.write_text("y = 1  # some text in a line\n" * 2000)
        tool, empty = tools_of(FileToolkit(root))["read_file"], EmptyRead()

        def ours() -> None:
            assert call_of(tool, 0, file_path=str(path)).status == "success"

        def floor() -> None:
            call_of(empty, 0, file_path=str(path))
            lines = path.read_bytes().decode().split("\n")
            "\n".join([f"{number:>6}\t{line}" for number, line in enumerate(lines, 1)])

        took = in_turn({"ours": ours, "floor": floor}, 40 if quick else 300)
    yield ratio("one read, 2,000 lines: against the floor", took["ours"], took["floor"], 1.5)
