"""The pages of a PDF as text or as a file block: bytes in, values out, with pypdf.

The idea: a range of pages is to a PDF what a range of lines is to a text. Pages are read one after the other until what
fits into one answer is reached, and a note says with which offset (and column, inside a long page) to go on. A file
block is made only of a document that is whole, open and readable, since one that a provider rejects would be rejected
again at every later turn of the conversation.

Rules: the end of the file is looked for here, because pypdf's own search takes a second per megabyte where there is
none, and so is the table of objects that the end points to: a file without it has to be searched as a whole, and that
is done for small ones only. All limits are amounts of work, not times: same file, same answer, on every machine.

Limits: with releases of pypdf before 7 the work inside one page is bounded only by the size of its content. What pypdf
cannot extract (scanned pages, fonts without a mapping) is not there; a note says so if no page has text.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
from dataclasses import replace
from typing import Any

from langchain_filestate._media_base import BROKEN, Media, decoding, describe, refuse
from langchain_filestate.errors import Refused

MAX_PAGES = 100
"""Pages in one answer. As a file: what the strictest provider takes in one document."""

_MAX_BYTES = 64 << 20  # of a file that is opened at all
_MAX_DAMAGED = 4 << 20  # of a file whose objects have to be searched for (up to 2 s per megabyte)
_MAX_PAGE = 2 << 20  # of one page's content: beyond, extraction takes minutes
_MAX_WORK = 4 << 20  # of the contents of all pages in one answer
_LIMITS: dict[str, Any] = {
    "stream_parsing_work_maximum_count": 1_000_000,
    "xform_maximum_invocations_per_extraction": 200,
}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def show_pdf(
    data: bytes,
    *,
    pages: tuple[int, int] | None,
    column: int,
    as_file: bool,
    max_bytes: int,
    max_chars: int,
    name: str | None,
) -> Media:
    """Give pages of a PDF to a model; see `blocks` for the arguments.

    Raises:
        Refused: With code "binary" for what cannot be shown, "out_of_range" for pages that are not there.
    """
    with contextlib.ExitStack() as stack:
        flaws = stack.enter_context(decoding())
        try:
            import pypdf  # noqa: PLC0415  an optional extra
            from pypdf.errors import DependencyError, PyPdfError  # noqa: PLC0415
        except ImportError:
            refuse(data, "reading PDFs needs the Python package pypdf (the extra `media`), which is not installed")
        whole, body = _body(data)
        if hasattr(pypdf, "apply_configuration"):
            stack.enter_context(pypdf.apply_configuration(**_LIMITS))
        failures = (PyPdfError, DependencyError, *BROKEN)
        try:
            reader = pypdf.PdfReader(io.BytesIO(body))
            if reader.is_encrypted and (as_file or not reader.decrypt("")):
                refuse(data, "it is encrypted and needs a password")
            total = len(reader.pages)
        except failures as error:
            refuse(data, "it is damaged or encrypted in a way that cannot be read", error)
        if not total:
            refuse(data, "it has no pages")
        first, last = _range(pages, total)
        if not as_file:
            media = _text(reader, (first, last, total), column=column, max_chars=max_chars, failures=failures)
            damage = () if whole else ("The PDF is damaged: pages may be missing.",)
            return replace(media, notes=media.notes + damage)
        if not whole:
            refuse(data, "it is damaged")
        if last - first >= MAX_PAGES:
            last = first + MAX_PAGES - 1
        chosen = _sound(body, flaws, total, failures) if last - first + 1 == total else None
        if chosen is None:
            chosen = _written(data, reader, first, last, failures)
    if len(chosen) > max_bytes:
        advice = "; ask for fewer pages (offset, limit)" if last > first else ""
        refuse(data, f"pages {first} to {last} are {len(chosen):,} bytes and at most {max_bytes:,} can be sent{advice}")
    block: dict[str, Any] = {
        "type": "file",
        "base64": base64.b64encode(chosen).decode("ascii"),
        "mime_type": "application/pdf",
        "extras": {"filename": name or "document.pdf"},
    }
    notes = (f"Go on with offset={last + 1}.",) if last < total else ()
    return Media((block,), notes, f"{describe(data)}: pages {first} to {last} of {total}.", (first, last, total))


def _body(data: bytes) -> tuple[bool, bytes]:
    """Cut off what follows the end of the document; say whether that end and its pointer are in order."""
    end = data.rfind(b"%%EOF")
    if end < 0:
        refuse(data, "it is cut off or damaged, its end is missing")
    if len(data) > _MAX_BYTES:
        refuse(data, f"it is larger than {_MAX_BYTES >> 20} MB")
    found = re.search(rb"startxref\s+([0-9]{1,12})\s*\Z", data[max(end - 64, 0) : end])
    start = int(found[1]) if found else len(data)
    whole = bool(re.match(rb"\s*(?:xref|[0-9]+\s+[0-9]+\s+obj)", data[start : start + 64]))
    if not whole and end > _MAX_DAMAGED:
        refuse(data, "it is damaged, and too large to be searched for what is left of it")
    return whole, data[:end] + b"%%EOF\n"


def _range(pages: tuple[int, int] | None, total: int) -> tuple[int, int]:
    """Resolve a page range; negative numbers count from the end, 0 is the first page."""
    first, last = pages or (1, total)
    first = max(first if first >= 0 else total + 1 + first, 1)
    last = min(last if last >= 0 else total + 1 + last, total)
    if first > total:
        raise Refused(f"The PDF has {total} page(s), so there is no page {first}.", code="out_of_range")
    if last < first:
        raise Refused(f"Page {last} comes before page {first}; the PDF has {total} page(s).", code="out_of_range")
    return first, last


def _text(
    reader: Any,
    span: tuple[int, int, int],
    *,
    column: int,
    max_chars: int,
    failures: tuple[type[Exception], ...],
) -> Media:
    first, last, total = span
    parts: list[str] = []
    notes: list[str] = []
    unread: list[int] = []
    used = work = 0
    some = False
    following: str | None = None
    shown = first
    for number in range(first, last + 1):
        if number - first == MAX_PAGES or work > _MAX_WORK:
            following = f"offset={number}"
            break
        try:
            page = reader.pages[number - 1]
            size = _content_size(page)
            work += size
            text = _clean(page.extract_text()) if size <= _MAX_PAGE else None
        except failures:
            text = None
        if text is None:
            unread.append(number)
        skipped = column - 1 if number == first else 0
        if skipped and skipped >= len(text or ""):
            raise Refused(f"Page {number} has {len(text or '')} characters.", code="out_of_range")
        text = (text or "")[skipped:]
        head = f"--- page {number} of {total} ---\n"
        room = max_chars - used - len(head) - 1
        if len(text) > room:
            if number > first:
                following = f"offset={number}"
                break
            text = text[: max(room, 1)]
            following = f"offset={number}, column={skipped + len(text) + 1}"
        some = some or bool(text.strip())
        parts.append(head + text)
        shown = number
        used += len(head) + len(text) + 1
        if following:
            break
    if following:
        notes.append(f"The PDF has {total} pages. Go on with {following}.")
    elif last < total:
        notes.append(f"The PDF has {total} pages. Go on with offset={last + 1}.")
    if unread:
        notes.append(
            f"Could not be read (damaged or too complex): {'page' if len(unread) == 1 else 'pages'} {_listed(unread)}."
        )
    if not some:
        notes.append("No text was found on these pages; they may be scanned images.")
    return Media((), tuple(notes), "\n".join(parts), (first, shown, total))


def _content_size(page: Any) -> int:
    contents = page.get_contents()
    return 0 if contents is None else len(contents.get_data())


def _clean(text: str) -> str:
    """Leave out what has no place in a message: NUL and other control characters, halves of surrogate pairs."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"  # noqa: PLR2004  as above


def _sound(body: bytes, flaws: list[str], total: int, failures: tuple[type[Exception], ...]) -> bytes | None:
    """Return the document as it is if it can be read to the end without one complaint."""
    import pypdf  # noqa: PLC0415  an optional extra

    flaws.clear()
    try:
        _check(pypdf.PdfReader(io.BytesIO(body), strict=True), total)
    except failures:
        return None
    return None if flaws else body


def _written(data: bytes, reader: Any, first: int, last: int, failures: tuple[type[Exception], ...]) -> bytes:
    """Return a document of these pages that is written anew, and so is in order around them."""
    import pypdf  # noqa: PLC0415  an optional extra

    try:
        target = io.BytesIO()
        writer = pypdf.PdfWriter()
        writer.append(reader, pages=(first - 1, last))
        writer.write(target)
        _check(pypdf.PdfReader(target, strict=True), last - first + 1)
    except failures as error:
        refuse(data, f"pages {first} to {last} are damaged, or too complex to be checked", error)
    return target.getvalue()


def _check(reader: Any, count: int) -> None:
    """Raise one of the decoder's errors if there are not so many pages, or the content of one cannot be read."""
    work = 0
    for page in reader.pages:
        work += _content_size(page)
        if work > _MAX_BYTES:
            raise ValueError("too complex")
    if len(reader.pages) != count:
        raise ValueError("pages are missing")
