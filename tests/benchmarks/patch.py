"""The patch of one line among 100,000, as an edit makes it: the line ends were counted when the format was judged."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_filestate import _match, _patch, _text
from tests.benchmarks._measure import Row, at_most, in_turn


def rows(*, quick: bool) -> Iterator[Row]:
    lines = [f"line {n} of the file, with some text\n" for n in range(100_000)]
    data = "".join(lines).encode()
    old = lines[50_000]
    splices = _match.replace(data, _text.UTF8, old, old.upper(), replace_all=False)
    fmt, marks = _text.judged(data)

    def ours() -> None:
        patch = _patch.patch_touched("a.txt", _patch.Touched(data, splices, fmt, marks))
        assert (patch.added, patch.removed, patch.exact) == (1, 1, True)

    def alone() -> None:
        _patch.patch_splices("a.txt", data, splices, fmt)

    took = in_turn({"patch": ours, "alone": alone}, 20 if quick else 100)
    yield at_most("patch of one line in 100,000", took["patch"].wall, 1, "ms", 1e3)
    counting = f"{took['alone'].wall * 1e3:.3g} ms"
    yield Row("  where nobody has counted its line ends before", counting)
