"""A thread as a picture: agents as lanes, what happened as marks from left to right, and the same as a list.

One SVG, self-contained: no script, nothing loaded, colours for light and dark inside, so that it can be saved as a
file and shown by whatever shows pictures. Each mark has a `<title>` (a tooltip) with what changed or what was said.
After `columns` marks the picture goes on below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_filestate import _html
from langchain_filestate._events import OUTSIDE, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COLUMNS = 9
_LEFT, _STEP, _LANE, _TOP, _GAP = 96, 82, 88, 14, 12
_TITLE_LINES = 40
_SIZE = 12
"""Characters that fit below a mark."""

# kind: verb, colour, shape
_LOOKS: dict[str, tuple[str, str, str]] = {
    "read": ("read", "info", "ring"),
    "edit": ("edit", "good", "square"),
    "write": ("write", "good", "square"),
    "notebook": ("edit cell", "good", "square"),
    "refused": ("refused", "bad", "cross"),
    "notice": ("is told", "info", "bubble"),
    "outside": ("changed", "warn", "triangle"),
    "shell": ("by a command", "warn", "triangle"),
    "rewind": ("rewind", "name", "back"),
}
_SVG_RULES = f"""
svg.filestate text{{font:12px {_html.SANS};fill:var(--fg)}}
svg.filestate .fs-file{{font:11px {_html.MONO};fill:var(--fg)}}
svg.filestate .fs-small{{font-size:11px;fill:var(--soft)}}
svg.filestate .fs-lane{{font-weight:600}}
svg.filestate .fs-undone text{{text-decoration:line-through;fill:var(--soft)}}
svg.filestate .fs-undone .fs-mark{{opacity:.45}}
""" + "".join(
    f"svg.filestate .fs-f{name}{{fill:var(--{name})}}svg.filestate .fs-k{name}{{stroke:var(--{name})}}"
    for name in ("bg", "fg", "line", "head", "good", "bad", "warn", "info", "name")
)


def view(found: Sequence[Event], name: Callable[[str], str], show: Callable[[Event], _html.Shown | None],
         columns: int = COLUMNS) -> _html.Shown:  # fmt: skip
    """The picture, the list below it, and the list as text.

    Args:
        found: What happened.
        name: A path as it is to be shown.
        show: What an event changed or said; None for nothing.
        columns: Marks side by side.
    """
    if not found:
        note = "Nothing happened to any file."
        return _html.Shown(_html.box(f'<div class="fs-body fs-soft">{note}</div>'), note)
    shown = [show(event) for event in found]
    svg = picture(found, name, [one.text if one is not None else "" for one in shown], columns)
    items, rows = [], []
    for number, (event, one) in enumerate(zip(found, shown, strict=True), 1):
        verb, colour, _ = _LOOKS[event.kind]
        said = f"{event.said} (undone)" if event.undone else event.said
        line = (
            f'<span class="fs-soft">{number}</span> {_html.escaped(event.lane)} {_html.span(colour, verb)} '
            f'<span class="fs-path">{_html.escaped(_file(event, name))}</span> '
            f'<span class="fs-soft">{_html.escaped(said)}</span>'
        )
        items.append(_html.details(line, one.html) if one is not None else f'<div class="fs-body">{line}</div>')
        rows.append((str(number), event.lane, verb, _file(event, name), said))
    steps = "1 step" if len(found) == 1 else f"{len(found)} steps"
    inner = _html.details(f"{steps}, each with what it changed or was told", "".join(items))
    markup = _html.box(svg.split("?>", 1)[1], inner)
    return _html.Shown(markup, _html.text_table(("", "who", "what", "file", ""), rows), svg)


def picture(found: Sequence[Event], name: Callable[[str], str], titles: Sequence[str], columns: int = COLUMNS) -> str:
    """The SVG file.

    Args:
        found: What happened; not empty.
        name: A path as it is to be shown.
        titles: The tooltip of each event.
        columns: Marks side by side.
    """
    lanes = list(dict.fromkeys(event.lane for event in found if event.lane != OUTSIDE))
    if any(event.lane == OUTSIDE for event in found):
        lanes.append(OUTSIDE)
    wide = min(len(found), columns)
    band = len(lanes) * _LANE + _GAP
    bands = -(-len(found) // columns)
    width, height = _LEFT + wide * _STEP + 8, _TOP + bands * band
    body: list[str] = []
    places = [
        (_LEFT + (at % columns) * _STEP + _STEP // 2, _TOP + (at // columns) * band + lanes.index(e.lane) * _LANE + 22)
        for at, e in enumerate(found)
    ]
    for row in range(bands):
        last = min(len(found) - row * columns, columns)
        for at, lane in enumerate(lanes):
            y = _TOP + row * band + at * _LANE + 22
            dash = ' stroke-dasharray="2 4"' if lane == OUTSIDE else ""
            body.append(
                f'<text class="fs-lane" x="10" y="{y + 4}">{_html.plain(_short(lane))}</text>'
                f'<path class="fs-kline" d="M{_LEFT} {y}H{_LEFT + last * _STEP}" stroke-width="2"{dash}/>'
            )
    body += _groups(found, places)
    body += _arrows(found, places)
    for number, (event, place, title) in enumerate(zip(found, places, titles, strict=True), 1):
        body.append(_mark(number, event, place, _file(event, name), title))
    style = f"<style>{_html.variables()}{_SVG_RULES}</style>".replace("\n", "")
    label = f"Timeline: {len(found)} steps of {', '.join(lanes)}"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="filestate" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><title>{_html.plain(label)}</title>{style}'
        f'<rect class="fs-fbg" width="{width}" height="{height}" rx="6"/>{"".join(body)}</svg>'
    )


def _file(event: Event, name: Callable[[str], str]) -> str:
    """Which file, or how many."""
    return f"{1 + len(event.also)} files" if event.also else name(event.path)


def _short(text: str, most: int = _SIZE) -> str:
    """A text that fits below a mark: of a path the end, without its directories where it is too long."""
    if len(text) > most and "/" in text:
        text = text.rsplit("/", 1)[1]
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def _groups(found: Sequence[Event], places: Sequence[tuple[int, int]]) -> list[str]:
    """A frame around the calls of one message that stand side by side."""
    frames: list[str] = []
    at = 0
    while at < len(found):
        end = at
        while (
            end + 1 < len(found)
            and found[at].group
            and found[end + 1].group == found[at].group
            and places[end + 1][1] == places[at][1]
        ):
            end += 1
        if end > at:
            x, y = places[at][0] - _STEP // 2 + 4, places[at][1] - 20
            width = places[end][0] - places[at][0] + _STEP - 8
            frames.append(
                f'<rect class="fs-fhead fs-kline" x="{x}" y="{y}" width="{width}" height="{_LANE - 6}" rx="8">'
                "<title>Calls of one message</title></rect>"
            )
        at = end + 1
    return frames


def _arrows(found: Sequence[Event], places: Sequence[tuple[int, int]]) -> list[str]:
    """From what happened outside to the first that came of it."""
    arrows = []
    for at, event in enumerate(found):
        if event.lane != OUTSIDE or event.kind == "rewind":
            continue
        to = next((k for k in range(at + 1, len(found)) if found[k].path == event.path), None)
        if to is None or found[to].lane == OUTSIDE or places[to][0] < places[at][0]:
            continue
        (x, y), (x2, y2) = places[at], places[to]
        arrows.append(
            f'<path class="fs-kwarn" fill="none" stroke-width="1.5" stroke-dasharray="4 3" '
            f'd="M{x} {y - 12}C{x} {y - 40} {x2 - 44} {y2} {x2 - 14} {y2}"/>'
            f'<path class="fs-fwarn" d="M{x2 - 11} {y2}l-7 -4v8z"/>'
        )
    return arrows


def _mark(number: int, event: Event, place: tuple[int, int], name: str, title: str) -> str:
    x, y = place
    verb, colour, shape = _LOOKS[event.kind]
    lines = title.split("\n")
    if len(lines) > _TITLE_LINES:
        lines = [*lines[:_TITLE_LINES], "..."]
    head = f"{number}. {event.lane}: {verb} {name} {event.said}{' (undone)' if event.undone else ''}"
    undone = ' class="fs-undone"' if event.undone else ""
    return (
        f"<g{undone}><title>{_html.plain(chr(10).join([head, *lines]).rstrip())}</title>"
        f'<g class="fs-mark">{_shape(shape, colour, x, y)}</g>'
        f'<text text-anchor="middle" x="{x}" y="{y + 25}">{verb}</text>'
        f'<text class="fs-file" text-anchor="middle" x="{x}" y="{y + 39}">{_html.plain(_short(name))}</text>'
        f'<text class="fs-small" text-anchor="middle" x="{x}" y="{y + 53}">'
        f"{_html.plain(_short(event.said, 15))}</text></g>"
    )


def _shape(shape: str, colour: str, x: int, y: int) -> str:
    stroke = f'class="fs-k{colour} fs-fbg" stroke-width="2.5"'
    inner = 'class="fs-kbg" fill="none" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"'
    if shape == "ring":
        return f'<circle {stroke} cx="{x}" cy="{y}" r="8"/><circle class="fs-f{colour}" cx="{x}" cy="{y}" r="3"/>'
    if shape == "square":
        return (
            f'<rect class="fs-f{colour}" x="{x - 9}" y="{y - 9}" width="18" height="18" rx="4"/>'
            f'<path {inner} d="M{x - 4} {y + 4}l1 -3.5l6 -6l2.5 2.5l-6 6z"/>'
        )
    if shape == "cross":
        return (
            f'<circle class="fs-f{colour}" cx="{x}" cy="{y}" r="10"/><path {inner} d="M{x - 4} {y - 4}l8 8m0 -8l-8 8"/>'
        )
    if shape == "bubble":
        return (
            f'<path {stroke} stroke-linejoin="round" d="M{x - 10} {y - 8}h20v13h-11l-5 5v-5h-4z"/>'
            f'<path class="fs-k{colour}" stroke-width="1.8" d="M{x - 6} {y - 3.5}h12m-12 4h8"/>'
        )
    if shape == "triangle":
        return (
            f'<path class="fs-f{colour} fs-k{colour}" stroke-width="2" stroke-linejoin="round" '
            f'd="M{x} {y - 10}l10 18h-20z"/><path {inner} d="M{x} {y - 3}v5m0 3.2v.1"/>'
        )
    return (
        f'<circle class="fs-f{colour}" cx="{x}" cy="{y}" r="10"/>'
        f'<path {inner} d="M{x + 5} {y + 3}a5 5 0 1 0 -2 2.6M{x - 5.5} {y - 5.5}l.8 4.5l4.4 -1.2"/>'
    )
