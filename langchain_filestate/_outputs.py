"""The outputs of a notebook cell as bounded text for a model.

Streams and tracebacks lose their terminal colours. Of a result in several formats one that can be read is shown, the
plainest; images and what has no readable format become a note with type and size. The format is the `output` of
nbformat 4; what does not keep to it gives an empty text or a note, never an error.
"""

from __future__ import annotations

import re
from typing import Any

from langchain_filestate import _text

OUTPUT_CHARS = 10_000
"""The most characters that are kept of one output."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_READABLE = ("text/plain", "text/markdown", "text/latex")  # one of them is shown, the first that is there
_KB = 1000


def output_text(output: object) -> str:
    """One output, at most about `OUTPUT_CHARS` characters."""
    fields = as_dict(output)
    kind = fields.get("output_type")
    if kind == "stream":
        text = _ANSI.sub("", joined(fields.get("text")))
        return shorten(f"[stderr]\n{text}" if fields.get("name") == "stderr" else text, OUTPUT_CHARS)
    if kind == "error":
        trace = "\n".join(line for line in as_list(fields.get("traceback")) if isinstance(line, str))
        text = trace or f"{fields.get('ename')}: {fields.get('evalue')}"
        return shorten(f"[error]\n{_ANSI.sub('', text)}", OUTPUT_CHARS)
    data = as_dict(fields.get("data"))
    shown = next((kind for kind in _READABLE if is_text(data.get(kind))), None)
    parts = [shorten(_ANSI.sub("", joined(data[shown])), OUTPUT_CHARS)] if shown else []
    parts += [_note(kind, value) for kind, value in data.items() if kind.startswith("image/") or shown is None]
    return "\n".join(parts)


def _note(kind: str, value: object) -> str:
    """`[image/png, 12 kB]`; the size is that of the data, not of its base64 text."""
    if not is_text(value):
        return f"[{_text.show(kind)}]"
    text = joined(value)
    binary = not kind.startswith("text/") and not kind.endswith(("+xml", "json", "javascript"))
    size = len(text.replace("\n", "").rstrip("=")) * 3 // 4 if binary else len(text.encode("utf-8", "surrogatepass"))
    return f"[{_text.show(kind)}, {size} B]" if size < _KB else f"[{_text.show(kind)}, {round(size / _KB)} kB]"


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, a third from the end (of an error, the point), and a line on what is missing."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    left_out = len(text) - limit
    return f"{text[: limit - tail]}\n[... {left_out} characters left out ...]\n{text[len(text) - tail :]}"


def joined(text: object) -> str:
    """Text as nbformat writes it, a string or a list of strings; "" for anything else."""
    if isinstance(text, str):
        return text
    return "".join(line for line in as_list(text) if isinstance(line, str))


def is_text(value: object) -> bool:
    """Whether it is what nbformat calls a multiline string: a string or a list of strings."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(line, str) for line in value))


def as_dict(value: object) -> dict[str, Any]:
    """The object, or an empty one where there should be one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The array, or an empty one where there should be one."""
    return value if isinstance(value, list) else []
