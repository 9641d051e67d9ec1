r"""Text for people: escaped for HTML and SVG, in colours that follow a light or dark page.

The idea: what is shown (file contents, paths, a model's words) is data, so there is one way from a text to markup,
`escaped`, and everything goes through it. Control characters, bytes that are no text and characters that change the
direction of writing are written as escapes in a mark of their own (the last because they can make source read
otherwise than it runs: N. Boucher and R. Anderson, "Trojan Source", 2021); so the markup holds only characters that
XML 1.0 allows, and an SVG is a well-formed file whatever stands in it.

No script, no font and no picture is loaded from anywhere. Colours are CSS variables: light; dark where the reader's
system says so (`prefers-color-scheme`); and where the page itself says which it is (JupyterLab, VS Code), as the page.
All pairs of text and background that are used have a contrast of 4.5 or more (WCAG 2.2, 1.4.3), and nothing is said by
colour alone.

Pure functions, no I/O.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_filestate import _text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls (not tab and newline), what is invisible (but the joiners that scripts and emoji need), what changes the
direction of writing, and what is no character."""

COLOURS: dict[str, tuple[str, str]] = {
    "bg": ("#ffffff", "#0d1117"),
    "fg": ("#1f2328", "#e6edf3"),
    "soft": ("#57606a", "#9da7b3"),
    "line": ("#d0d7de", "#3d444d"),
    "head": ("#f6f8fa", "#161b22"),
    "add": ("#e6ffec", "#12261e"),
    "addm": ("#b4f1c3", "#1c4428"),
    "del": ("#ffebe9", "#2b1618"),
    "delm": ("#ffcecb", "#5c2326"),
    "good": ("#1a6b2f", "#56d364"),
    "bad": ("#b3261e", "#ff8b82"),
    "warn": ("#7a5200", "#e3b341"),
    "info": ("#0a56b8", "#79b8ff"),
    "key": ("#9c1128", "#ffa49c"),
    "str": ("#0a3069", "#b4dcff"),
    "num": ("#0747a6", "#9ecbff"),
    "name": ("#5a2ca0", "#dcc2ff"),
    "note": ("#4b535b", "#b1bac4"),
}
"""Each colour by name, on a light page and on a dark one."""

_LIGHT_PAGE = '[data-jp-theme-light="true"] .filestate,.vscode-light .filestate'
_DARK_PAGE = '[data-jp-theme-light="false"] .filestate,.vscode-dark .filestate,.vscode-high-contrast .filestate'

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif"

_HTML_RULES = f"""
div.filestate{{background:var(--bg);color:var(--fg);border:1px solid var(--line);border-radius:6px;margin:4px 0;
 font:13px/1.5 {SANS};overflow-x:auto;text-align:left;max-width:100%}}
div.filestate .fs-head{{background:var(--head);border-bottom:1px solid var(--line);padding:4px 10px}}
div.filestate .fs-body{{padding:4px 10px;white-space:pre-wrap;overflow-wrap:anywhere}}
div.filestate pre{{margin:0;padding:0;border:0;background:none;color:inherit;font:12px/1.45 {MONO};
 white-space:pre-wrap;overflow-wrap:anywhere;overflow:visible;tab-size:4}}
div.filestate pre.fs-pre{{padding:0 10px 4px}}
div.filestate .fs-path{{font-family:{MONO};font-weight:600}}
div.filestate .fs-soft{{color:var(--soft)}}
div.filestate .fs-good{{color:var(--good)}}
div.filestate .fs-bad{{color:var(--bad)}}
div.filestate .fs-warn{{color:var(--warn)}}
div.filestate .fs-info{{color:var(--info)}}
div.filestate .fs-good,div.filestate .fs-bad,div.filestate .fs-warn,div.filestate .fs-info{{font-weight:600}}
div.filestate .fs-esc{{color:var(--warn);font-family:{MONO};border:1px dotted;border-radius:3px}}
div.filestate table{{border-collapse:collapse;margin:0;width:100%;border:0;color:var(--fg);font-size:13px;
 table-layout:auto}}
div.filestate table td,div.filestate table th{{text-align:left;vertical-align:top;padding:3px 10px;border:0;
 background:var(--bg);white-space:normal;max-width:none;line-height:inherit}}
div.filestate table th{{background:var(--head);color:var(--soft);font-weight:600;border-bottom:1px solid var(--line);
 white-space:nowrap}}
div.filestate .fs-line{{white-space:nowrap}}
div.filestate table.fs-list td{{border-top:1px solid var(--line)}}
div.filestate table.fs-list tr:first-child td{{border-top:0}}
div.filestate details>summary{{cursor:pointer;padding:3px 10px}}
div.filestate details{{margin:0}}
div.filestate td>details>summary{{padding:0}}
div.filestate details div.filestate{{margin:4px 10px 8px}}
div.filestate td>details div.filestate{{margin:4px 0}}
div.filestate table.fs-diff{{font:12px/1.45 {MONO}}}
div.filestate table.fs-diff td{{padding:0 8px}}
div.filestate table.fs-diff pre{{unicode-bidi:isolate;direction:ltr}}
div.filestate table.fs-diff td.fs-n{{color:var(--soft);text-align:right;width:1%;min-width:2.5em;white-space:nowrap;
 user-select:none;border-right:1px solid var(--line)}}
div.filestate table.fs-diff td.fs-s{{width:1%;padding:0 0 0 8px;user-select:none}}
div.filestate table.fs-diff td.fs-l{{width:98%}}
div.filestate table.fs-diff td.fs-h{{width:49%}}
div.filestate table.fs-diff td.fs-add{{background:var(--add)}}
div.filestate table.fs-diff td.fs-del{{background:var(--del)}}
div.filestate table.fs-diff td.fs-at{{background:var(--head);color:var(--soft)}}
div.filestate table.fs-diff td.fs-none{{background:var(--head)}}
div.filestate ins,div.filestate del{{text-decoration:none;border-radius:2px;color:inherit}}
div.filestate ins{{background:var(--addm)}}
div.filestate del{{background:var(--delm)}}
div.filestate .fs-key{{color:var(--key)}}
div.filestate .fs-str{{color:var(--str)}}
div.filestate .fs-num{{color:var(--num)}}
div.filestate .fs-name{{color:var(--name)}}
div.filestate .fs-note{{color:var(--note)}}
div.filestate svg{{display:block;max-width:none}}
div.filestate .fs-bar{{display:inline-block;vertical-align:middle;margin-right:8px}}
div.filestate .fs-bar rect.fs-all{{fill:var(--line)}}
div.filestate .fs-bar rect.fs-seen{{fill:var(--info)}}
""".replace("div.filestate", "div.filestate.filestate.filestate")
# three times, to weigh more than JupyterLab's own rules for tables


@dataclass(frozen=True, slots=True)
class Shown:
    """Something to look at, in the forms in which it can be looked at.

    Attributes:
        html: A fragment of HTML, complete in itself: no script, nothing loaded from elsewhere, every text escaped.
        text: The same for a terminal or a log, as plain text.
        svg: The picture alone, a whole file; None where there is none.
    """

    html: str
    text: str
    svg: str | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter, see "Rich display" in IPython's documentation."""
        del include, exclude
        return {"text/html": self.html, "text/plain": self.text}

    def __str__(self) -> str:
        return self.text


def parts(text: str) -> Iterable[tuple[str, bool]]:
    r"""A text in pieces that can be shown, and pieces, marked True, that stand for what cannot be, like `\x1b`."""
    at = 0
    for found in _SPECIAL.finditer(text):
        if at < found.start():
            yield text[at : found.start()], False
        yield _text.show(found[0]).encode("unicode_escape").decode("ascii").replace("\\\\", "\\"), True
        at = found.end()
    if at < len(text):
        yield text[at:], False


def clean(text: str) -> str:
    """A text for plain output and for attributes: what cannot be shown stands as an escape."""
    return "".join(part for part, _ in parts(text))


def escaped(text: str) -> str:
    """A text as HTML: escapes stand in a mark of their own, so that they are not taken for the file's characters."""
    return "".join(
        f'<span class="fs-esc">{html.escape(part)}</span>' if special else html.escape(part)
        for part, special in parts(text)
    )


def plain(text: str) -> str:
    """A text as XML without any element, for attributes, titles and SVG."""
    return html.escape(clean(text))


def message(text: str) -> str:
    """What was said, as a block; the lines after the first keep their columns, for most are of a diff."""
    first, _, rest = text.partition("\n")
    more = f'<pre class="fs-pre">{escaped(rest)}</pre>' if rest else ""
    return f'<div class="fs-body">{escaped(first)}</div>{more}'


def span(kind: str, text: str) -> str:
    """A text in one of the colours."""
    return f'<span class="fs-{kind}">{escaped(text)}</span>'


def variables() -> str:
    """The colours as CSS, for light and dark."""
    light, dark = (";".join(f"--{name}:{pair[at]}" for name, pair in COLOURS.items()) for at in (0, 1))
    return (
        f".filestate{{{light}}}@media(prefers-color-scheme:dark){{.filestate{{{dark}}}}}"
        f"{_LIGHT_PAGE}{{{light}}}{_DARK_PAGE}{{{dark}}}"
    )


def box(*pieces: str, styled: bool = True) -> str:
    """A fragment that brings its own style; one inside another does not need it again."""
    style = f"<style>{variables()}{_HTML_RULES}</style>".replace("\n", "") if styled else ""
    return f'<div class="filestate">{style}{"".join(pieces)}</div>'


def details(summary: str, inner: str, *, opened: bool = False) -> str:
    """Something that opens and closes without a script. Both arguments are markup."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{inner}</details>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the names of the columns are text, the cells markup."""
    head = "".join(f"<th>{escaped(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="fs-list"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as plain text: columns padded with blanks."""
    cells = [[clean(cell).replace("\n", "\\n") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [columns, *cells]]
    return "\n".join(line.rstrip() for line in lines)
