"""Pictures and PDFs as content blocks: bytes in, values out, no I/O.

The idea: a bad picture in a conversation is worse than none. Providers reject the whole request, and since the message
stays in the history they reject every later one. So a block is made only of what has been decoded here to the last
pixel, in a form that all of them take; for anything else the model gets a text: what the file is, why it is not shown.

Rules:
- The signature decides, not the name; then the size that the header claims, before anything is decoded; then decoding
  in full, with `LOAD_TRUNCATED_IMAGES` off.
- A PNG, JPEG or WebP that is sound and small enough is passed on byte for byte. All else is drawn anew: what is too
  large (scaled down), turned by EXIF, 16-bit, CMYK, followed by other data; GIF becomes PNG, which all providers take.
  Of animations the first frame is shown. PNG stays PNG and JPEG stays JPEG, unless only JPEG fits the byte limit.
- Same bytes, same answer: nothing random in the blocks.
- Pillow and pypdf are optional (the extra `media`). Without them every picture and PDF is refused with a note.

Limits: one file at a time in a process. Sources: the limits for pictures and documents that Anthropic, OpenAI and
Google publish; EXIF 2.32 for the orientation.
"""

from __future__ import annotations

from langchain_filestate._media_base import NAMES, Kind, Media, describe, kind_of, page_span
from langchain_filestate.errors import Refused

__all__ = ["Kind", "Media", "blocks", "describe", "kind_of", "page_span"]

MAX_PIXELS = 64_000_000
"""Width times height that is decoded at all; of a WebP half as many, since its decoder takes twice the memory."""
MAX_SIDE = 1568
"""Pixels of the longer side that is sent: providers scale larger ones down to about this."""
MAX_IMAGE_BYTES = 3_750_000
"""Bytes of one picture, which are 5 MB as base64: the strictest of the providers' limits."""
MAX_PDF_BYTES = 16 << 20
"""Bytes of a PDF as a file block; a request with it stays below 32 MB."""


def blocks(
    data: bytes,
    *,
    kind: Kind,
    max_pixels: int = MAX_PIXELS,
    max_bytes: int | None = None,
    max_side: int = MAX_SIDE,
    pages: tuple[int, int] | None = None,
    as_file: bool = False,
    column: int = 1,
    max_chars: int = 100_000,
    name: str | None = None,
) -> Media:
    """Make what a model can be shown of a picture or a PDF.

    Args:
        data: The file.
        kind: What it is taken for, as `kind_of` said.
        max_pixels: Width times height up to which a picture is decoded, a WebP up to half of it.
        max_bytes: Limit for one block, before base64; None for the one of the kind.
        max_side: Pixels of the longer side; a larger picture is scaled down.
        pages: First and last page of a PDF, from 1; negative numbers count from the end; None for all. See `page_span`.
        as_file: Give a PDF as a file block instead of as text.
        column: First character of the first page's text, from 1, to go on inside a very long page.
        max_chars: Characters of text of a PDF.
        name: File name for a file block; some providers want one.

    Raises:
        Refused: With code "binary" and a text for the model, for anything that cannot be shown; with "out_of_range" for
            pages that the PDF does not have.
    """
    if not data:
        raise Refused("The file is empty (0 bytes): there is nothing to show.", code="binary")
    if kind_of(data) != kind:
        raise Refused(f"The file is not a {NAMES[kind]}: its content is a {describe(data)}.", code="binary")
    if kind == "pdf":
        limit = MAX_PDF_BYTES if max_bytes is None else max_bytes
        from langchain_filestate._media_pdf import show_pdf  # noqa: PLC0415  few files are one

        return show_pdf(
            data, pages=pages, column=column, as_file=as_file, max_bytes=limit, max_chars=max_chars, name=name
        )
    from langchain_filestate._media_image import show_image  # noqa: PLC0415  few files are one

    limit = MAX_IMAGE_BYTES if max_bytes is None else max_bytes
    return show_image(data, kind, max_pixels=max_pixels, max_bytes=limit, max_side=max_side)
