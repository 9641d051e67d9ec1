"""The patch of one line among 100,000."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_filestate import _match, _patch, _text
from tests.benchmarks._measure import Row, at_most, in_turn


def rows(*, quick: bool) -> Iterator[Row]:
    lines = [f"line {n} of the file, with some text\n" for n in range(100_000)]
    data = "".join(lines).encode()
    old = lines[50_000]
    splices = _match.replace(data, _text.UTF8, old, old.upper(), replace_all=False)

    def ours() -> None:
        patch = _patch.patch_splices("a.txt", data, splices, _text.UTF8)
        assert (patch.added, patch.removed, patch.exact) == (1, 1, True)

    def edit() -> None:
        _match.apply(data, _match.replace(data, _text.UTF8, old, old.upper(), replace_all=False))

    took = in_turn({"patch": ours, "edit": edit}, 20 if quick else 100)
    yield at_most("patch of one line in 100,000", took["patch"].wall, 1, "ms", 1e3)
