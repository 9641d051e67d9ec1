"""A zoo of pictures and PDFs, sound and broken: a block that every provider takes, or a text; never anything else."""

from __future__ import annotations

import base64
import builtins
import io
import logging
import random
import struct
import threading
import warnings
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pypdf
import pytest
from langchain_core.messages import HumanMessage, convert_to_openai_messages
from PIL import Image, ImageDraw, ImageFile

from langchain_filestate import _media_base, _media_pdf
from langchain_filestate._media import MAX_IMAGE_BYTES, MAX_SIDE, Kind, Media, blocks, describe, kind_of, page_span
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMATS: dict[Kind, str] = {"png": "PNG", "jpeg": "JPEG", "gif": "GIF", "webp": "WEBP"}


def switches() -> list[Any]:
    logger = logging.getLogger("pypdf")
    return [
        ImageFile.LOAD_TRUNCATED_IMAGES,
        list(warnings.filters),
        logger.level,
        logger.propagate,
        list(logger.handlers),
    ]


@pytest.fixture(autouse=True)
def nothing_leaks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No log record, and every switch of the process as before."""
    before = switches()
    yield
    assert not caplog.records
    assert switches() == before


def picture(mode: str = "RGB", size: tuple[int, int] = (60, 40)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, size[0] // 2, size[1] // 2), fill="red")
    draw.line((0, 0, *size), fill="blue", width=3)
    if mode in {"RGBA", "LA", "PA"}:
        image.putalpha(Image.linear_gradient("L").resize(size))
    return image.convert(mode)


def noise(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    bands = len(Image.new(mode, (1, 1)).getbands())
    return Image.frombytes(mode, size, random.Random(7).randbytes(size[0] * size[1] * bands))


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def shown(media: Media, max_side: int = MAX_SIDE, max_bytes: int = MAX_IMAGE_BYTES) -> Image.Image:
    """Decode the one block as strictly as a provider would, and return the picture."""
    (block,) = media.blocks
    assert block.keys() == {"type", "base64", "mime_type"}
    assert block["type"] == "image"
    assert block["mime_type"] in {"image/png", "image/jpeg", "image/webp"}
    data = base64.b64decode(block["base64"], validate=True)
    assert len(data) <= max_bytes
    assert f"image/{kind_of(data)}" == block["mime_type"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damaged EXIF data in a sound picture
        Image.open(io.BytesIO(data)).verify()
        image = Image.open(io.BytesIO(data))
        image.load()
    assert image.mode in {"1", "L", "LA", "P", "RGB", "RGBA"}
    assert not getattr(image, "is_animated", False)
    assert max(image.size) <= max_side
    assert HumanMessage([block]).content_blocks == [block]
    assert media.text
    assert "pixels" in media.text
    return image


def refused(data: bytes, kind: Kind, **options: Any) -> str:
    with pytest.raises(Refused) as caught:
        blocks(data, kind=kind, **options)
    assert caught.value.code == "binary"
    assert len(caught.value.message) < 300
    assert caught.value.message.isprintable()
    return caught.value.message


def blocks_or_text(data: bytes, kind: Kind) -> Media | str:
    try:
        return blocks(data, kind=kind)
    except Refused as error:
        return error.message


SOUND: dict[str, tuple[Kind, bytes]] = {
    "png": ("png", saved(picture(), "PNG")),
    "png grey": ("png", saved(picture("L"), "PNG")),
    "png two colours": ("png", saved(picture("1"), "PNG")),
    "png alpha": ("png", saved(picture("RGBA"), "PNG")),
    "png grey alpha": ("png", saved(picture("LA"), "PNG")),
    "png palette": ("png", saved(picture("P"), "PNG")),
    "png palette transparent": ("png", saved(picture("P"), "PNG", transparency=bytes(range(100, 200)))),
    "png colour key": ("png", saved(picture(), "PNG", transparency=(255, 0, 0))),
    "png interlaced size 1": ("png", saved(picture(size=(1, 1)), "PNG")),
    "jpeg": ("jpeg", saved(picture(), "JPEG")),
    "jpeg grey": ("jpeg", saved(picture("L"), "JPEG")),
    "jpeg progressive": ("jpeg", saved(picture(), "JPEG", progressive=True)),
    "webp": ("webp", saved(picture(), "WEBP")),
    "webp lossless": ("webp", saved(picture("RGBA"), "WEBP", lossless=True)),
    "webp lossy alpha": ("webp", saved(picture("RGBA"), "WEBP")),
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_pictures_are_passed_on_byte_for_byte(name: str) -> None:
    kind, data = SOUND[name]
    assert kind_of(data) == kind_of(data[:32]) == kind
    media = blocks(data, kind=kind)
    image = shown(media)
    assert base64.b64decode(media.blocks[0]["base64"]) == data
    assert media.notes == ()
    assert media.text == f"{describe(data)}, {image.width} x {image.height} pixels."
    assert blocks(data, kind=kind) == media


def apng() -> bytes:
    return saved(picture(), "PNG", save_all=True, append_images=[picture("L").convert("RGB")])


def deep_grey() -> bytes:
    return saved(Image.frombytes("I;16", (4, 1), struct.pack("<4H", 0, 0x4000, 0x8000, 0xFFFF)), "PNG")


def deep_colour() -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + struct.pack(">6H", 0xFFFF, 0, 0, 0, 0xFFFF, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


REDRAWN: dict[str, tuple[Kind, bytes, str, tuple[int, int], str]] = {
    "gif": ("gif", saved(picture("P"), "GIF"), "PNG", (60, 40), ""),
    "gif transparent": ("gif", saved(picture("P"), "GIF", transparency=0), "PNG", (60, 40), ""),
    "gif animated": ("gif", saved(picture("P"), "GIF", save_all=True, append_images=[picture("L")]), "PNG", (60, 40), "animated"),
    "apng": ("png", apng(), "PNG", (60, 40), "animated"),
    "webp animated": ("webp", saved(picture(), "WEBP", save_all=True, append_images=[noise((60, 40))]), "WEBP", (60, 40), "animated"),
    "png 16 bit grey": ("png", deep_grey(), "PNG", (4, 1), ""),
    "png 16 bit colour": ("png", deep_colour(), "PNG", (2, 1), ""),
    "jpeg cmyk": ("jpeg", saved(picture("CMYK"), "JPEG"), "JPEG", (60, 40), ""),
    "jpeg with something behind": ("jpeg", saved(picture(), "JPEG") + b"trailer", "JPEG", (60, 40), ""),
    "webp with something behind": ("webp", saved(picture(), "WEBP") + b"trailer", "WEBP", (60, 40), ""),
    "png with something behind": ("png", saved(picture(), "PNG") + b"trailer", "PNG", (60, 40), ""),
    "mpo": ("jpeg", saved(picture(), "MPO", save_all=True, append_images=[picture()]), "JPEG", (60, 40), ""),
    "large png": ("png", saved(picture(size=(4000, 1000)), "PNG"), "PNG", (1568, 392), "1568 x 392"),
    "large palette": ("png", saved(picture("P", (4000, 1000)), "PNG"), "PNG", (1568, 392), "1568 x 392"),
    "large two colours": ("png", saved(picture("1", (4000, 1000)), "PNG"), "PNG", (1568, 392), "1568 x 392"),
    "large jpeg": ("jpeg", saved(picture(size=(1000, 4000)), "JPEG"), "JPEG", (392, 1568), "392 x 1568"),
    "large webp": ("webp", saved(picture("RGBA", (1600, 100)), "WEBP"), "WEBP", (1568, 98), "1568 x 98"),
    "thin": ("png", saved(picture("L", (10_000, 1)), "PNG"), "PNG", (1568, 1), "1568 x 1"),
    "many bytes": ("png", saved(noise((1500, 1000)), "PNG"), "JPEG", (1500, 1000), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REDRAWN)
def test_other_pictures_are_drawn_anew(name: str) -> None:
    kind, data, form, size, note = REDRAWN[name]
    assert kind_of(data) == kind
    media = blocks(data, kind=kind)
    image = shown(media)
    assert (image.format, image.size) == (form, size)
    assert note in " ".join(media.notes)
    assert bool(note) == bool(media.notes)
    assert blocks(data, kind=kind) == media  # to the byte
    assert base64.b64decode(media.blocks[0]["base64"]) != data


def test_colours_survive() -> None:
    grey = shown(blocks(deep_grey(), kind="png"))
    assert [grey.getpixel((x, 0)) for x in range(4)] == [0, 64, 128, 255]
    assert shown(blocks(deep_colour(), kind="png")).convert("RGB").getpixel((1, 0)) == (0, 255, 0)
    keyed = saved(picture(size=(2000, 20)), "PNG", transparency=(255, 0, 0))
    assert shown(blocks(keyed, kind="png")).getpixel((100, 7))[3] == 0  # type: ignore[index]
    gif = saved(picture("P"), "GIF", transparency=picture("P").getpixel((59, 0)))
    assert shown(blocks(gif, kind="gif")).getpixel((59, 0))[3] == 0  # type: ignore[index]
    red, green, _ = shown(blocks(saved(picture("CMYK"), "JPEG"), kind="jpeg")).getpixel((25, 5))  # type: ignore[misc]
    assert red > 240
    assert green < 20


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("kind", ["jpeg", "png", "webp"])
def test_pictures_are_put_upright(kind: Kind, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = Image.new("RGB", (64, 32), "white")
    upright.paste("black", (0, 0, 32, 16))
    inverse = {
        2: "FLIP_LEFT_RIGHT",
        3: "ROTATE_180",
        4: "FLIP_TOP_BOTTOM",
        5: "TRANSPOSE",
        6: "ROTATE_90",
        7: "TRANSVERSE",
        8: "ROTATE_270",
    }
    stored = upright.transpose(Image.Transpose[inverse[orientation]]) if orientation in inverse else upright
    media = blocks(saved(stored, FORMATS[kind], exif=exif), kind=kind)
    image = shown(media).convert("L")
    assert image.size == (64, 32)
    assert "64 x 32" in str(media.text)
    assert max(image.crop((4, 4, 28, 12)).tobytes()) < 128 < min(image.crop((36, 4, 60, 12)).tobytes())
    assert min(image.crop((4, 20, 60, 28)).tobytes()) > 128
    if orientation in inverse:
        assert 0x0112 not in image.getexif()


def test_damaged_exif_does_not_matter() -> None:
    data = saved(picture(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\xff\xff\xff\xff")
    shown(blocks(data, kind="jpeg"))
    shown(blocks(saved(picture(), "PNG", exif=b"XX"), kind="png"))


def claimed(kind: str, width: int, height: int) -> bytes:
    """Headers that claim a size, with nothing to fill it."""
    if kind == "png":
        header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        return (
            b"\x89PNG\r\n\x1a\n\0\0\0\x0d" + header + struct.pack(">I", zlib.crc32(header)) + b"\0\0\0\0IEND\xaeB`\x82"
        )
    if kind == "gif":
        return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"
    if kind == "gif frame":
        return b"GIF89a\1\0\1\0\0\0\0," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\0;"
    if kind == "jpeg":
        data = bytearray(saved(picture(), "JPEG"))
        at = data.index(b"\xff\xc0")
        data[at + 5 : at + 9] = struct.pack(">HH", height, width)
        return bytes(data)
    w, h = width - 1, height - 1
    parts = {
        "webp x": b"VP8X\x0a\0\0\0\0\0\0\0" + w.to_bytes(3, "little") + h.to_bytes(3, "little"),
        "webp l": b"VP8L\x0a\0\0\0\x2f" + (w | h << 14).to_bytes(4, "little") + b"\0" * 5,
        "webp": b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }
    return b"RIFF" + struct.pack("<I", 4 + len(parts[kind])) + b"WEBP" + parts[kind]


@pytest.mark.parametrize("kind", ["png", "gif", "gif frame", "jpeg", "webp x", "webp l", "webp"])
@pytest.mark.parametrize("side", [9000, 10_000, 16_000, 20_000, 65_000])
def test_huge_sizes_are_refused_before_anything_is_decoded(kind: str, side: int) -> None:
    if kind.startswith("webp") and side > 16_000:
        side = 16_383
    text = refused(claimed(kind, side, side), kind.split(maxsplit=1)[0])  # type: ignore[arg-type]
    assert ("32,000,000" if "webp" in kind else "64,000,000") in text
    assert f"{side:,} x {side:,}" in text or kind in {"jpeg", "gif frame"}


def test_a_real_picture_of_400_million_pixels() -> None:
    squeezed = zlib.compressobj(9)
    pixels = b"".join(squeezed.compress(bytes(2501)) for _ in range(20_000)) + squeezed.flush()
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)), (b"IDAT", pixels), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    assert "20,000 x 20,000 pixels" in refused(data, "png")


def test_the_limits_are_arguments() -> None:
    data = saved(noise((300, 200)), "PNG")
    assert "60,000 pixels" not in refused(data, "png", max_pixels=59_999)
    assert shown(blocks(data, kind="png", max_pixels=60_000)).size == (300, 200)
    assert shown(blocks(data, kind="png", max_side=30), max_side=30).size == (30, 20)
    small = blocks(data, kind="png", max_bytes=3000)
    assert shown(small, max_bytes=3000).format == "JPEG"
    assert "Scaled down" in small.notes[0]
    transparent = blocks(saved(noise((300, 200), "RGBA"), "PNG"), kind="png", max_bytes=150_000)
    assert (shown(transparent, max_bytes=150_000).format, transparent.notes) == (
        "PNG",
        ("Scaled down to 210 x 140 pixels.",),
    )
    assert "does not fit into 10 bytes" in refused(data, "png", max_bytes=10)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.parametrize("size", [(60, 40), (1, 1), (700, 500)])
def test_cut_off_pictures(kind: Kind, tenth: int, size: tuple[int, int]) -> None:
    data = saved(picture("P" if kind == "gif" else "RGB", size), FORMATS[kind])
    cut = data[: len(data) * tenth // 10]
    refused(cut, kind)
    ImageFile.LOAD_TRUNCATED_IMAGES = True  # somebody else's switch
    try:
        refused(cut, kind)
        assert ImageFile.LOAD_TRUNCATED_IMAGES
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


@pytest.mark.parametrize("kind", [*FORMATS, "pdf"])
@pytest.mark.parametrize("data", [b"", b"hello", b"<svg/>", b"\0" * 100, b"PK\x03\x04", b"GIF89a", b"RIFF"])
def test_files_that_are_something_else(kind: Kind, data: bytes) -> None:
    text = refused(data, kind)
    assert ("(0 bytes)" in text) == (not data)


@pytest.mark.parametrize(
    "name", [name for name, case in {**SOUND, **REDRAWN}.items() if len(case[1]) < 4000 and "large" not in name]
)
def test_damaged_pictures_give_a_sound_block_or_a_text(name: str) -> None:
    kind, data = (SOUND.get(name) or REDRAWN[name])[:2]
    rng = random.Random(name)
    for _ in range(25):
        bad = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.choice([rng.randrange(len(bad)), rng.randrange(min(len(bad), 64))])
            bad[at : at + rng.choice([0, 1, 1, 4])] = rng.randbytes(rng.choice([0, 1, 1, 4]))
        media = blocks_or_text(bytes(bad), kind)
        if isinstance(media, Media):
            shown(media)


# ------------------------------------------------------------------------------------------------------------------ PDF


def made_pdf(
    contents: Sequence[bytes], resources: bytes = b"<</Font<</F1 1 0 R>>>>", more: Sequence[bytes] = ()
) -> bytes:
    """A PDF by hand: object 1 is a font, 2 the page tree, 3... what is given, then the pages."""
    objects = [b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", b"", *more]
    kids = []
    for content in contents:
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources%s>>" % (len(objects), resources)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(kids))
    objects.append(b"<</Type/Catalog/Pages 2 0 R>>")
    out = b"%PDF-1.4\n"
    table = b"0000000000 65535 f \n"
    for number, body in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    return out + b"xref\n0 %d\n%strailer<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, table, len(objects) + 1, len(objects), len(out),
    )  # fmt: skip


def lines(*texts: bytes) -> bytes:
    return b"BT /F1 12 Tf 14 TL 50 780 Td " + b" ".join(b"(%s) Tj T*" % text for text in texts) + b" ET"


def pages(count: int, width: int = 1) -> bytes:
    return made_pdf([lines(b"page %d" % number, b"x" * width) for number in range(1, count + 1)])


def encrypted(password: str, algorithm: str) -> bytes:
    writer = pypdf.PdfWriter()
    writer.append(pypdf.PdfReader(io.BytesIO(pages(2))))
    writer.encrypt(password, "owner", algorithm=algorithm)
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def test_the_text_of_a_pdf() -> None:
    media = blocks(pages(3), kind="pdf")
    texts = "\n".join(f"--- page {n} of 3 ---\npage {n}\nx" for n in (1, 2, 3))
    assert media == Media((), (), texts, (1, 3, 3))
    assert blocks(pages(3), kind="pdf", pages=(2, 2)) == Media(
        (), ("The PDF has 3 pages. Go on with offset=3.",), "--- page 2 of 3 ---\npage 2\nx", (2, 2, 3)
    )
    for span in ((-2, -1), (2, 99), (2, 3), page_span(2, None), page_span(-2, 2), page_span(2, 2), page_span(-2, 5)):
        assert (
            blocks(pages(3), kind="pdf", pages=span).text
            == "--- page 2 of 3 ---\npage 2\nx\n--- page 3 of 3 ---\npage 3\nx"
        )
    for span in ((1, 1), (0, 1), page_span(0, 1), page_span(-3, 1), page_span(-9, 7)):
        assert blocks(pages(3), kind="pdf", pages=span).text == "--- page 1 of 3 ---\npage 1\nx"


@pytest.mark.parametrize("span", [(4, 5), (3, 2), (1, 0), (-1, -2)])
def test_pages_that_are_not_there(span: tuple[int, int]) -> None:
    with pytest.raises(Refused, match="3 page") as caught:
        blocks(pages(3), kind="pdf", pages=span)
    assert caught.value.code == "out_of_range"


def follow(data: bytes, **options: Any) -> tuple[list[Media], str]:
    """Go on as the notes say until there is nothing to go on with."""
    media = [blocks(data, kind="pdf", **options)]
    while media[-1].notes and "Go on" in media[-1].notes[0]:
        asked = dict(part.split("=") for part in media[-1].notes[0].rstrip(".").split("Go on with ")[1].split(", "))
        media.append(
            blocks(
                data,
                kind="pdf",
                pages=page_span(int(asked["offset"]), None),
                column=int(asked.get("column", 1)),
                **options,
            )
        )
        assert len(media) < 1000
    return media, "".join(
        line for each in media for line in str(each.text).split("\n") if not line.startswith("--- page")
    )


def test_500_pages_are_bounded_and_can_be_followed() -> None:
    first = blocks(pages(500, 900), kind="pdf", max_chars=20_000)
    assert len(str(first.text)) <= 20_000
    assert first.notes == ("The PDF has 500 pages. Go on with offset=22.",)
    media, text = follow(pages(30, 900), max_chars=10_000)
    assert all(len(str(each.text)) <= 10_000 for each in media)
    assert text == "".join(f"page {n}" + "x" * 900 for n in range(1, 31))
    by_count, again = follow(pages(210))
    assert [str(each.text).count("---\n") for each in by_count] == [100, 100, 10]
    assert again == "".join(f"page {n}x" for n in range(1, 211))


def test_one_long_page_is_followed_by_column() -> None:
    media, text = follow(pages(2, 5000), max_chars=1000)
    assert text.replace("\n", "") == "page 1" + "x" * 5000 + "page 2" + "x" * 5000
    assert all(len(str(each.text)) <= 1000 for each in media)
    assert media[0].notes == ("The PDF has 2 pages. Go on with offset=1, column=980.",)
    assert len(str(blocks(pages(1, 50), kind="pdf", max_chars=1).text)) < 30
    with pytest.raises(Refused, match="Page 1 has 8 characters") as caught:
        blocks(pages(2), kind="pdf", column=9)
    assert caught.value.code == "out_of_range"


def test_a_scanned_pdf_says_so() -> None:
    data = saved(picture(size=(200, 300)), "PDF")
    media = blocks(data, kind="pdf")
    assert media.notes == ("No text was found on these pages; they may be scanned images.",)
    assert media.text == "--- page 1 of 1 ---\n"
    assert blocks(data, kind="pdf", as_file=True).blocks
    shown_one = blocks(made_pdf([b"", lines(b"text")]), kind="pdf")
    assert shown_one.notes == ()


def test_no_control_characters_and_no_halves_of_characters() -> None:
    mapping = (
        b"1 beginbfchar <01> <0000> endbfchar 1 beginbfchar <02> <D800> endbfchar 1 beginbfchar <03> <001B> endbfchar"
    )
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 4 0 R>>"
    more = [font, b"<</Length %d>>stream\n%s\nendstream" % (len(mapping), mapping)]
    media = blocks(made_pdf([lines(b"a\\001\\002\\003b")], b"<</Font<</F1 3 0 R>>>>", more), kind="pdf")
    text = str(media.text)
    assert text.split("\n")[1].startswith("a")
    assert text.replace("\n", "").isprintable()
    text.encode()


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256"])
def test_encrypted_pdfs(algorithm: str) -> None:
    assert "encrypted" in refused(encrypted("secret", algorithm), "pdf")
    assert "encrypted" in refused(encrypted("secret", algorithm), "pdf", as_file=True)
    # Only printing is forbidden, or the like: everybody can read it, but providers do not take it.
    assert "page 2" in str(blocks(encrypted("", algorithm), kind="pdf").text)
    assert "encrypted" in refused(encrypted("", algorithm), "pdf", as_file=True)


def test_encryption_that_needs_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise pypdf.errors.DependencyError("cryptography>=3.1 is required for AES algorithm")

    monkeypatch.setattr(pypdf.PdfReader, "decrypt", missing)
    assert "encrypted" in refused(encrypted("", "RC4-128"), "pdf")


@pytest.mark.parametrize("tenth", range(1, 10))
@pytest.mark.parametrize("as_file", [False, True])
def test_cut_off_pdfs(tenth: int, as_file: bool) -> None:
    data = pages(20)
    assert "cut off" in refused(data[: len(data) * tenth // 10], "pdf", as_file=as_file)
    # The middle is missing: what is left is searched for, and a file block is not made of it.
    gone = data[: len(data) * tenth // 20] + data[len(data) * tenth // 10 :]
    refused(gone, "pdf", as_file=True)
    media = blocks_or_text(gone, "pdf")
    if isinstance(media, Media):
        assert media.blocks == ()
        assert "damaged" in media.notes[-1]


def test_pdfs_that_are_damaged_otherwise() -> None:
    data = pages(3)
    for bad in (
        b"%PDF-1.4\n%%EOF",
        b"%PDF-1.4\n" + random.Random(1).randbytes(5000) + b"startxref\n5\n%%EOF",
        data.replace(b"/Pages 2 0 R", b"/Pages 9 9 R"),
        data.replace(b"/Kids[", b"/Kidz["),
        made_pdf([]),
        b"%PDF-1.4\n1 0 obj" + b"<</a" * 5000 + b"\nxref\nstartxref\n9\n%%EOF",
    ):
        for as_file in (False, True):
            refused(bad, "pdf", as_file=as_file)
    moved = data.replace(b"startxref\n", b"startxref\n9")
    assert blocks(moved, kind="pdf").notes == ("The PDF is damaged: pages may be missing.",)
    assert "page 3" in str(blocks(moved, kind="pdf").text)
    assert "damaged" in refused(moved, "pdf", as_file=True)


def test_a_large_damaged_pdf_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "too large to be searched" in refused(
        b"%PDF-1.4\n" + b"1 0 obj\n<<>>\nendobj\n" * 250_000 + b"\nstartxref\n1\n%%EOF", "pdf"
    )
    monkeypatch.setattr(_media_pdf, "_MAX_BYTES", 1 << 20)
    assert "larger than 1 MB" in refused(b"%PDF-1.4\n" + bytes(1 << 20) + b"%%EOF", "pdf")


def test_a_damaged_page_is_named() -> None:
    data = made_pdf([lines(b"one"), lines(b"two"), lines(b"three")]).replace(
        b"Length %d" % len(lines(b"two")), b"Filter/Foo", 2
    )
    data = data.replace(b"Filter/Foo", b"Length %d" % len(lines(b"one")), 1)
    media = blocks(data, kind="pdf")
    assert "Could not be read (damaged or too complex): page 2." in media.notes
    assert "three" in str(media.text)
    assert "pages 1 to 3 are damaged" in refused(data, "pdf", as_file=True)
    assert blocks(data, kind="pdf", as_file=True, pages=(3, 3)).blocks
    every = made_pdf([lines(b"one")] * 12).replace(b"<</Length %d" % len(lines(b"one")), b"<</Filter/Foo")
    assert "pages 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more" in blocks(every, kind="pdf").notes[0]


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = zlib.compress(b" " * (60 << 20))
    bomb = made_pdf(
        [lines(b"one")], more=[b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed)]
    )
    bomb = bomb.replace(b"/Contents 4 0 R", b"/Contents 3 0 R")
    assert "too complex" in blocks(bomb, kind="pdf").notes[0]
    monkeypatch.setattr(_media_pdf, "_MAX_WORK", 100)
    assert "Go on with offset=3" in blocks(pages(5), kind="pdf").notes[0]
    monkeypatch.setattr(_media_pdf, "_MAX_BYTES", len(pages(40)))
    long = made_pdf([lines(b"one")] * 40)
    assert blocks(long, kind="pdf", as_file=True).blocks
    monkeypatch.setattr(_media_pdf, "_content_size", lambda _page: 1000)
    assert "too complex" in refused(long, "pdf", as_file=True)
    # Forms that draw forms that draw forms: each twice, thirty deep.
    forms = [
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length 9/Resources<</Font<</F1 1 0 R>>/XObject<</A %d 0 R>>>>>>stream\n/A Do /A Do\nendstream"
        % (n + 4)
        for n in range(30)
    ]
    forms = [form.replace(b"Length 9", b"Length 11") for form in forms]
    deep = made_pdf([b"BT ET /A Do"], b"<</Font<</F1 1 0 R>>/XObject<</A 3 0 R>>>>", forms)
    assert blocks(deep, kind="pdf").blocks == ()


def file_of(media: Media) -> tuple[str, pypdf.PdfReader, bytes]:
    (block,) = media.blocks
    assert (block["type"], block["mime_type"]) == ("file", "application/pdf")
    assert HumanMessage([block]).content_blocks == [block]
    (converted,) = convert_to_openai_messages([HumanMessage([block])])
    name = converted["content"][0]["file"]["filename"]
    data = base64.b64decode(block["base64"], validate=True)
    return name, pypdf.PdfReader(io.BytesIO(data), strict=True), data


def test_a_pdf_as_a_file() -> None:
    data = pages(3)
    media = blocks(data, kind="pdf", as_file=True, name="report.pdf")
    name, reader, sent = file_of(media)
    assert (name, len(reader.pages), sent, media.notes) == ("report.pdf", 3, data, ())
    assert media.text == f"PDF document, {len(data):,} bytes: pages 1 to 3 of 3."
    part = blocks(data, kind="pdf", as_file=True, pages=(2, 2))
    name, reader, sent = file_of(part)
    assert (name, len(reader.pages), part.notes) == ("document.pdf", 1, ("Go on with offset=3.",))
    assert reader.pages[0].extract_text().startswith("page 2")
    assert blocks(data, kind="pdf", as_file=True, pages=(2, 2)) == part
    behind = blocks(data + b"garbage" * 1000, kind="pdf", as_file=True)
    assert file_of(behind)[2] == data
    _, reader, _ = file_of(blocks(pages(250), kind="pdf", as_file=True, pages=(101, 250)))
    assert len(reader.pages) == 100
    assert "ask for fewer pages" in refused(data, "pdf", as_file=True, max_bytes=100)
    assert "fewer" not in refused(data, "pdf", as_file=True, max_bytes=100, pages=(1, 1))


def test_pages_that_cannot_be_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("/Type")

    monkeypatch.setattr(pypdf.PdfWriter, "append", broken)
    assert "pages 1 to 2 are damaged" in refused(pages(3), "pdf", as_file=True, pages=(1, 2))
    monkeypatch.setattr(pypdf.PdfWriter, "append", lambda *_, **__: None)
    assert "pages 1 to 2 are damaged" in refused(pages(3), "pdf", as_file=True, pages=(1, 2))


def test_a_flawed_pdf_is_written_anew() -> None:
    data = pages(3)
    flawed = data.replace(
        b" 00000 n \n%010d" % data.index(b"2 0 obj"), b" 00000 n \n%010d" % (data.index(b"2 0 obj") + 1)
    )
    assert flawed != data
    assert "page 3" in str(blocks(flawed, kind="pdf").text)
    _, reader, sent = file_of(blocks(flawed, kind="pdf", as_file=True))
    assert sent != flawed
    assert [page.extract_text()[:6] for page in reader.pages] == ["page 1", "page 2", "page 3"]


def test_older_pypdf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pypdf, "apply_configuration", raising=False)
    assert "page 3" in str(blocks(pages(3), kind="pdf").text)


# -------------------------------------------------------------------------------------------------------------- general


@pytest.mark.parametrize(("module", "kind", "name"), [("PIL", "png", "Pillow"), ("pypdf", "pdf", "pypdf")])
def test_without_the_optional_packages(module: str, kind: Kind, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(wanted: str, *args: Any, **kwargs: Any) -> Any:
        if wanted.partition(".")[0] == module:
            raise ImportError(wanted)
        return real(wanted, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    text = refused(SOUND["png"][1] if kind == "png" else pages(1), kind)
    assert name in text
    assert "media" in text


def test_one_file_at_a_time_and_every_switch_is_put_back() -> None:
    logger = logging.getLogger("pypdf")
    logger.setLevel(logging.DEBUG)
    damaged = pages(3).replace(b"startxref\n", b"startxref\n9")
    done: list[Media] = []
    threads = [threading.Thread(target=lambda: done.append(blocks(damaged, kind="pdf"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert logger.level == logging.DEBUG
    logger.setLevel(logging.NOTSET)


def zipped(*names: str, stored: bytes = b"") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, stored)
    return target.getvalue()


DESCRIBED = [
    (b"", "empty file, 0 bytes"),
    (b"\0\1\2", "binary file, 3 bytes"),
    (SOUND["png"][1], f"PNG image, {len(SOUND['png'][1])} bytes"),
    (pages(1), f"PDF document, {len(pages(1))} bytes"),
    (b"\x7fELF\2\1\1" + bytes(2000), "ELF program or library, 2,007 bytes"),
    (b"\x1f\x8b\x08", "gzip data, 3 bytes"),
    (b"SQLite format 3\0", "SQLite database, 16 bytes"),
    (bytes(257) + b"ustar", "tar archive, 262 bytes"),
    (b"RIFF\0\0\0\0WAVE", "WAV audio, 12 bytes"),
    (b"\0\0\0\x18ftypisom", "MP4 or QuickTime video, 12 bytes"),
    (zipped("a.txt"), "ZIP archive"),
    (zipped("[Content_Types].xml", "word/document.xml"), "Word document (docx)"),
    (zipped("[Content_Types].xml", "xl/workbook.xml"), "Excel workbook (xlsx)"),
    (zipped("mimetype", stored=b"application/vnd.oasis.opendocument.spreadsheet"), "OpenDocument spreadsheet (ods)"),
    (zipped("a/x.py", "a-1.dist-info/METADATA"), "Python wheel"),
]


@pytest.mark.parametrize(("data", "expected"), DESCRIBED, ids=[expected for _, expected in DESCRIBED])
def test_binary_files_are_named(data: bytes, expected: str) -> None:
    assert describe(data).startswith(expected)
    assert describe(data[:300], 12_345_678).endswith(", 12,345,678 bytes")


@pytest.mark.parametrize(
    "text",
    [
        "GIF89a is a format",
        "GIF89a",
        "%PDF- begins a PDF",
        "RIFF and WEBP",
        "BM",
        "PNG",
        "const x: number = 1;",
        '<?xml version="1.0"?><svg/>',
        "\n",
        "",
    ],
)
def test_texts_are_no_media(text: str) -> None:
    assert kind_of(text.encode()) is None


def test_signatures_are_told_apart() -> None:
    for offset, mark, name in _media_base._SIGNATURES:
        assert describe(bytes(offset) + mark + b"\xee" * 20).split(",")[0] == name
        assert kind_of(bytes(offset) + mark + b"\xee" * 20) is None
