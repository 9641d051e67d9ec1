"""The look at all files that an agent knows, before each model call."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_filestate import FileToolkit, changed_files
from langchain_filestate._records import MAX_RECORDS
from tests.benchmarks._measure import Row, in_turn, place, places, ratio


def rows(*, quick: bool) -> Iterator[Row]:
    with place(places()[-1]) as root:
        for number in range(MAX_RECORDS):
            (root / f"module_{number:03}.py").write_text(f"value = {number}\n" * 20)
        time.sleep(3.2)  # a stamp that is younger than that proves nothing
        toolkit = FileToolkit(root, agent="coder")
        records: dict[str, Any] = {}
        for number in range(MAX_RECORDS):
            records |= toolkit.seen(f"module_{number:03}.py", "shown")["file_state"]["coder"]
        state = {"messages": [HumanMessage("these files", id="shown")], "file_state": {"coder": records}}
        paths = list(records)

        def ours() -> None:
            assert changed_files(state, toolkit) == {}

        def floor() -> None:
            for path in paths:
                os.stat(path)

        took = in_turn({"ours": ours, "floor": floor}, 50 if quick else 300)
    yield ratio(f"sweep of {MAX_RECORDS} settled records against os.stat", took["ours"], took["floor"], 3)
