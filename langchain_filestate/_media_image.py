"""A picture as a content block: bytes in, a value out, with Pillow.

The idea: only what has been decoded to its last pixel is sent, and only in a form that every provider takes. A PNG,
JPEG or WebP that is sound and small enough is passed on byte for byte; all else is drawn anew.

Rules: the size that the header claims is judged before a decoder is made, since some take memory for it at once, and
again after the decoder has read it. PNG checksums are verified, which decoding alone does not do. A JPEG is decoded at
a fraction of its size where that is enough, but to its end.

Limits: 64 million pixels take up to 700 MB while they are scaled, and a WebP twice that, so of a WebP half as many are
decoded. Colour profiles are dropped when a picture is drawn anew; EXIF data that cannot be read turns nothing.
"""

from __future__ import annotations

import base64
import io
import struct
from typing import TYPE_CHECKING, Any

from langchain_filestate._media_base import BROKEN, Kind, Media, decoding, describe, refuse
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.Image import Transpose


def show_image(data: bytes, kind: Kind, *, max_pixels: int, max_bytes: int, max_side: int) -> Media:
    """Give a picture to a model; see `blocks` for the arguments.

    Raises:
        Refused: With code "binary" for what cannot be shown.
    """
    try:
        from PIL import Image, ImageFile  # noqa: PLC0415  an optional extra
    except ImportError:
        refuse(data, "showing images needs the Python package Pillow (the extra `media`), which is not installed")
    max_pixels = max_pixels // 2 if kind == "webp" else max_pixels
    _check_size(data, _claimed_size(data, kind), max_pixels)
    with decoding():
        cut_off_allowed = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        try:
            return _image(data, kind, max_pixels, max_bytes, max_side)
        except Image.DecompressionBombError as error:
            raise _too_large(data, None, max_pixels) from error
        except BROKEN as error:
            refuse(data, "it is damaged or cut off, and cannot be decoded", error)
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = cut_off_allowed


def _too_large(data: bytes, size: tuple[int, int] | None, max_pixels: int) -> Refused:
    measure = f"{size[0]:,} x {size[1]:,} pixels" if size else "more pixels"
    return Refused(
        f"Cannot show this file ({describe(data)}): it has {measure}, and at most {max_pixels:,} are decoded. "
        "Make a smaller copy of it first.",
        code="binary",
    )


def _check_size(data: bytes, size: tuple[int, int] | None, max_pixels: int) -> None:
    if size and size[0] * size[1] > max_pixels:
        raise _too_large(data, size, max_pixels)


def _claimed_size(data: bytes, kind: Kind) -> tuple[int, int] | None:
    """Read width and height from the header, for the formats whose decoders take memory before they tell."""
    width = height = 0
    head = data[:32].ljust(32, b"\0")
    if kind == "png":
        width, height = struct.unpack_from(">II", head, 16)
    elif kind == "gif":
        width, height = struct.unpack_from("<HH", head, 6)
    elif head[12:16] == b"VP8X":
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
    elif head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif head[12:16] == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    return (width, height) if width and height else None


_PLAIN_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_ORIENTATION = 0x0112  # EXIF tag
_TURNS = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270",
          7: "TRANSVERSE", 8: "ROTATE_90"}  # fmt: skip


def _image(data: bytes, kind: Kind, max_pixels: int, max_bytes: int, max_side: int) -> Media:
    from PIL import Image  # noqa: PLC0415  an optional extra

    formats = (kind.upper(),)
    if kind == "png":
        Image.open(io.BytesIO(data), formats=formats).verify()  # the checksums and the end, which `load` passes over
    image: Picture = Image.open(io.BytesIO(data), formats=formats)
    width, height = image.size
    _check_size(data, (width, height), max_pixels)
    notes: list[str] = []
    animated = kind != "jpeg" and bool(getattr(image, "is_animated", False))
    if animated:
        notes.append("The image is animated; its first frame is shown.")
    image.draft(image.mode, (max_side, max_side))  # a JPEG is then decoded at a fraction of its size, but to its end
    image.load()
    turn = _turn(image)
    as_it_is = (
        kind != "gif"
        and not animated
        and turn is None
        and image.mode in _PLAIN_MODES
        and max(width, height) <= max_side
        and len(data) <= max_bytes
        and _ends_well(data, kind, image)
    )
    if as_it_is:
        sent, mime = data, f"image/{kind}"
    else:
        image = _drawable(image, keep_alpha=kind != "jpeg")
        image.thumbnail((max_side, max_side), reducing_gap=2.0)
        if turn is not None:
            before = image.size
            image = image.transpose(turn)
            if image.size != before:
                width, height = height, width
        sent, mime, shown = _fitting(image, kind, max_bytes) or (b"", "", (0, 0))
        if not sent:
            refuse(data, f"it does not fit into {max_bytes:,} bytes, however far it is scaled down")
        if shown != (width, height):
            notes.append(f"Scaled down to {shown[0]} x {shown[1]} pixels.")
    block: dict[str, Any] = {"type": "image", "base64": base64.b64encode(sent).decode("ascii"), "mime_type": mime}
    return Media((block,), tuple(notes), f"{describe(data)}, {width} x {height} pixels.")


def _turn(image: Picture) -> Transpose | None:
    """Say how to put a picture upright; None if it is, or if its EXIF data is damaged."""
    from PIL.Image import Transpose  # noqa: PLC0415  an optional extra

    try:
        name = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except BROKEN:
        return None
    return Transpose[name] if name else None


def _ends_well(data: bytes, kind: Kind, image: Picture) -> bool:
    """Whether the file is one picture of at most 8 bits per channel with nothing after it."""
    if kind == "png":
        return data[24] <= 8 and data.endswith(b"IEND\xaeB`\x82")  # noqa: PLR2004  bits
    if kind == "jpeg":
        return image.format == "JPEG" and data.endswith(b"\xff\xd9")
    return int.from_bytes(data[4:8], "little") + 8 == len(data)


def _drawable(image: Picture, *, keep_alpha: bool) -> Picture:
    """Convert to grey, RGB or RGBA with 8 bits per channel, without anything that an encoder would copy along."""
    if image.mode.startswith("I"):  # 16 bits of grey
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    alpha = keep_alpha and ("transparency" in image.info or "A" in image.getbands())
    mode = "RGBA" if alpha else "L" if image.mode in {"1", "L"} else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    image.info = {}
    return image


def _fitting(image: Picture, kind: Kind, max_bytes: int) -> tuple[bytes, str, tuple[int, int]] | None:
    """Encode in the first form that fits: as the kind, as JPEG if nothing is transparent, then smaller and smaller."""
    own = {"jpeg": "JPEG", "webp": "WEBP"}.get(kind, "PNG")
    while True:
        for form in dict.fromkeys((own, "JPEG")):
            if form == "JPEG" and image.mode == "RGBA":
                continue
            encoded = _encoded(image, form)
            if len(encoded) <= max_bytes:
                return encoded, f"image/{form.lower()}", image.size
        if max(image.size) <= 16:  # noqa: PLR2004  pixels; nothing to be seen below
            return None
        image = image.resize((max(image.width * 7 // 10, 1), max(image.height * 7 // 10, 1)), reducing_gap=2.0)


def _encoded(image: Picture, form: str) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **({} if form == "PNG" else {"quality": 90}))
    return target.getvalue()
