"""A whole rewrite that is hard to compare: 40,000 shuffled lines with 120 distinct ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from langchain_filestate import FileToolkit
from tests.benchmarks._measure import Row, at_most, call_of, in_turn, place, places, tools_of


def rows(*, quick: bool) -> Iterator[Row]:
    luck = random.Random(1)
    texts = ["".join(f"line {luck.randrange(120)}\n" for _ in range(40_000)) for _ in range(2)]
    with place(places()[-1]) as root:
        path = root / "a.txt"
        path.write_text(texts[0])
        tool = tools_of(FileToolkit(root, require_read="never"))["write_file"]
        turns = iter(range(1000))
        cut = []

        def ours() -> None:
            message = call_of(tool, 0, file_path=str(path), content=texts[(next(turns) + 1) % 2])
            assert message.status == "success", message.content
            cut.append(message.artifact["patch"]["truncated"])

        took = in_turn({"ours": ours}, 3 if quick else 7)
    note = "patch marked as cut" if all(cut) else "patch whole"
    yield at_most("write_file of 40,000 shuffled lines", took["ours"].wall, 2, "s", note=note)
