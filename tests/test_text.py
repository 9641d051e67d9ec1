from __future__ import annotations

import codecs
import hashlib
import json
import random
import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langchain_filestate import _codec, _detect, _scripts, _window
from langchain_filestate._text import (
    DEFAULT_ENCODINGS,
    UTF8,
    Format,
    Profile,
    Scan,
    Window,
    check_encodings,
    count_newlines,
    decode,
    detect,
    encode,
    line_at,
    newline_style,
    profile,
    reencode,
    show,
    split_lines,
    window,
)
from langchain_filestate.errors import Refused, WiringError

WIDE = [
    Format("utf-16-le", codecs.BOM_UTF16_LE, True),
    Format("utf-16-be", codecs.BOM_UTF16_BE, True),
    Format("utf-32-le", codecs.BOM_UTF32_LE, True),
    Format("utf-32-be", codecs.BOM_UTF32_BE, True),
]
UTF8_BOM = Format("utf-8", codecs.BOM_UTF8, True)
LEGACY = [Format(name, b"", True) for name in DEFAULT_ENCODINGS]
FORMATS = [UTF8, UTF8_BOM, *WIDE, *LEGACY]

# A few sentences in each language, as the real thing: enough to be judged, with ASCII between.
REAL = {
    "gb18030": "# 配置文件\n如果用户没有登录,程序会显示一个错误信息,并且把他带回首页。\nname = '默认值'  # 请不要修改这一行\n数据库连接失败,请检查网络设置。\n",
    "big5": "# 設定檔\n如果使用者沒有登入,程式會顯示一個錯誤訊息,並且把他帶回首頁。\nname = '預設值'  # 請不要修改這一行\n資料庫連線失敗,請檢查網路設定。\n",
    "cp932": "# 設定ファイル\nユーザーがログインしていない場合は、エラーメッセージを表示して最初のページに戻ります。\nname = '既定値'  # この行は変更しないでください\n",
    "euc_jp": "# 設定ファイル\nユーザーがログインしていない場合は、エラーメッセージを表示して最初のページに戻ります。\nname = '既定値'  # この行は変更しないでください\n",
    "cp949": "# 설정 파일\n사용자가 로그인하지 않은 경우 오류 메시지를 표시하고 첫 페이지로 돌아갑니다.\nname = '기본값'  # 이 줄은 수정하지 마십시오\n데이터베이스에 연결할 수 없습니다.\n",
    "cp1252": "# Réglages\nSi l’utilisateur n’est pas connecté, un message d’erreur est affiché « à l’écran » et il revient à la page d’accueil.\n"
    "Größe überschritten: bitte prüfen Sie die Verbindung.\nEl año pasado señaló cómo cambiará la configuración según el país.\n",
}


def one(data: bytes, p: Profile | None = None, **options: Any) -> Window:
    return window(lambda at, size: data[at : at + size], p or profile(data), **options)


def lines_of(text: str) -> list[str]:
    """The oracle: what stands on each line."""
    ends = [part.removesuffix("\r") for part in text.split("\n")[:-1]]
    last = text.rpartition("\n")[2]
    return [*ends, last] if last else ends


def shown(view: Window) -> list[tuple[int, str]]:
    rows = [re.fullmatch(r" *(\d+)\t(.*)", row, re.DOTALL) for row in view.text.split("\n")] if view.text else []
    assert all(rows)
    return [(int(row[1]), row[2]) for row in rows if row]


CUT = re.compile(r"Cut after \d+ characters: lines? ([\d, -]+)\. .* column=(\d+), limit=1\.")
ON = re.compile(r"Read on with offset=(\d+)(?:, column=(\d+))?(, limit=1)?\.")


def numbers(ranges: str) -> Iterator[int]:
    for part in ranges.split(", "):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def read_as_told(data: bytes, p: Profile, **options: int) -> tuple[dict[int, str], list[Window]]:
    """Read a file from the start as the notes say; returns each line and the views of the main way."""
    pieces: dict[int, dict[int, str]] = {}
    views = []
    todo: list[tuple[int, int, bool]] = [(1, 1, False)]
    while todo:
        offset, column, alone = todo.pop()
        view = one(data, p, offset=offset, column=column, **({"limit": 1} if alone else {}), **options)
        if not alone:
            views.append(view)
        assert len(view.text) <= options["max_chars"] or len(shown(view)) == 1
        for number, text in shown(view):
            at = column if number == offset else 1
            assert at not in pieces.setdefault(number, {})
            pieces[number][at] = text
        for note in view.notes:
            if cut := CUT.match(note):
                todo += [(number, int(cut[2]), True) for number in numbers(cut[1])]
            elif on := ON.search(note):
                assert view.following == (int(on[1]), int(on[2] or 1))
                if not alone or on[2]:
                    assert bool(on[3]) == alone
                    todo.append((int(on[1]), int(on[2] or 1), alone))
    return {number: "".join(parts[at] for at in sorted(parts)) for number, parts in pieces.items()}, views


# ---- strategies ------------------------------------------------------------------------------------------------------

ODD = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
        "\u0a0a",
        "\u0a00",
        "\u0d0a",
        "é",
        "中",
        "한",
        "あ",
        "😀",
        "a",
        " ",
    ]
)
TEXT = (
    st.lists(ODD | st.text(max_size=5), max_size=40)
    .map("".join)
    .map(lambda t: t.replace("\0", "").encode("utf-8", "ignore").decode())
)


@st.composite
def files(draw: st.DrawFn) -> tuple[Format, str, bytes]:
    """A text file in any of the formats, with what is in it."""
    fmt = draw(st.sampled_from(FORMATS))
    text = "".join(c for c in draw(TEXT) if fits(c, fmt))
    return fmt, text, fmt.bom + text.encode(fmt.encoding)


def fits(char: str, fmt: Format) -> bool:
    try:
        return char.encode(fmt.encoding).decode(fmt.encoding) == char
    except UnicodeError:
        return False


@contextmanager
def small_blocks(size: int = 16) -> Iterator[None]:
    """Blocks so small that everything crosses their edges."""
    with patch.multiple(_detect, BLOCK=size, PIECE=4), patch.object(_window, "BLOCK", size):
        yield


# ---- text and back ---------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(files())
def test_decoding_and_encoding_give_the_same_bytes(file: tuple[Format, str, bytes]) -> None:
    fmt, text, data = file
    body = data[len(fmt.bom) :]
    assert decode(body, fmt) == text
    assert reencode(text, fmt) == body
    assert encode(text, fmt) == body


@settings(max_examples=60)
@given(st.binary(), st.sampled_from([UTF8, *WIDE]))
@example(b"\x00\xd8", WIDE[0])
@example(b"\xff\xff\xff\xff", WIDE[2])
def test_any_bytes_decode_and_come_back(data: bytes, fmt: Format) -> None:
    text = decode(data, fmt)
    if fmt.unit == 1:
        assert reencode(text, fmt) == data
    assert isinstance(show(text, fmt).encode(), bytes)


@settings(max_examples=60)
@given(st.binary().filter(lambda data: b"\0" not in data))
def test_co_04_every_byte_of_damaged_text_survives(data: bytes) -> None:
    text = decode(data, UTF8)
    assert reencode(text, UTF8) == data
    assert show(text).encode() or not data


def test_co_04_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    data = b"alpha\nbeta \xff gamma\n"
    p = profile(data)
    assert p.format == Format("utf-8", b"", False)
    view = one(data)
    assert view.text == "     1\talpha\n     2\tbeta \\xff gamma"
    assert view.notes == ("Bytes that are not UTF-8 are shown as escapes and stay as they are in the file: line 2.",)
    assert view.complete
    assert view.seen == ((1, 2),)


@pytest.mark.parametrize(
    ("text", "fmt", "expected"),
    [
        ("a\udcffb", UTF8, "a\\xffb"),
        ("\ud800", UTF8, "\\ud800"),
        ("\udcff", WIDE[0], "\\udcff"),
        ("plain", UTF8, "plain"),
        ("é", UTF8, "é"),
    ],
)
def test_show(text: str, fmt: Format, expected: str) -> None:
    assert show(text, fmt) == expected


@pytest.mark.parametrize(
    ("text", "encoding", "names"),
    [
        ("ok \ud83d", "utf-8", ["U+D83D", "character 4"]),
        ("ok \ud83d", "utf-16-le", ["U+D83D"]),
        ("a\nb😀", "cp1252", ["U+1F600", "character 4", "line 2", "cp1252"]),
        ("中", "cp949", []),
        ("们", "euc_jp", ["U+4EEC"]),
        ("¥", "euc_jp", ["U+00A5"]),  # the codec writes it as a backslash
        ("a\0", "utf-8", ["NUL"]),
    ],
)
def test_co_06_what_the_file_cannot_hold_is_refused(text: str, encoding: str, names: list[str]) -> None:
    fmt = Format(encoding, b"", True)
    if not names:
        assert encode(text, fmt).decode(encoding) == text
        return
    with pytest.raises(Refused) as refused:
        encode(text, fmt)
    assert refused.value.code == "encoding"
    assert all(name in refused.value.message for name in names)
    refused.value.message.encode()


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.encoding)
def test_formats_say_where_raw_bytes_can_be_searched(fmt: Format) -> None:
    assert fmt.raw == (fmt.encoding in {"utf-8", "cp1252"})
    assert len(fmt.newline) == fmt.unit


@pytest.mark.parametrize("name", ["koi8_r", "cp1251", "iso8859_2", "shift_jis", "gbk", "cp950", "latin-1"])
def test_other_encodings_may_be_named(name: str) -> None:
    assert check_encodings((name,)) == (name,)


@pytest.mark.parametrize(
    "name", ["utf-16", "utf-7", "utf_8_sig", "iso2022_jp", "hz", "cp037", "unicode_escape", "idna", "no-such", "rot13"]
)
def test_an_encoding_that_will_not_do_is_a_wiring_mistake(name: str) -> None:
    with pytest.raises(WiringError, match=re.escape(repr(name))):
        detect("é".encode("latin-1") * 30, [name])


def test_a_codec_whose_characters_end_in_a_newline_will_not_do() -> None:
    def decoder(data: Any, errors: str = "strict", /) -> tuple[str, int]:
        text = bytes(data).decode("latin-1")
        return re.sub("[\x80-\xff]\n", "x", text), len(data)

    def find(name: str) -> codecs.CodecInfo | None:
        return codecs.CodecInfo(codecs.latin_1_encode, decoder, name=name) if name == "odd_codec" else None

    codecs.register(find)
    try:
        with pytest.raises(WiringError):
            check_encodings(("odd_codec",))
    finally:
        codecs.unregister(find)


# ---- lines -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(files())
def test_ln_01_lines_are_split_and_counted_the_same_everywhere(file: tuple[Format, str, bytes]) -> None:
    fmt, text, data = file
    lines = split_lines(data, fmt)
    assert b"".join(lines) == data
    expected = lines_of(text)
    ends = [decode(line, fmt).endswith("\n") for line in lines]
    assert all(ends[:-1])
    contents = [decode(line.removeprefix(fmt.bom) if i == 0 else line, fmt) for i, line in enumerate(lines)]
    bodies = [c.removesuffix("\n").removesuffix("\r") if c.endswith("\n") else c for c in contents]
    assert bodies == expected or (not expected and bodies in ([""], []))  # a file of a byte order mark alone
    assert count_newlines(data, fmt) == text.count("\n") == sum(ends)
    assert newline_style(data, fmt) == profile_of(data, fmt).newline
    start = 0
    for number, line in enumerate(lines, 1):
        for offset in (start, start + len(line) - 1):
            assert line_at(data, fmt, offset) == number
        start += len(line)


@settings(max_examples=60)
@given(files(), st.integers(0, 60), st.integers(0, 60))
def test_counts_of_neighbouring_slices_add_up(file: tuple[Format, str, bytes], a: int, b: int) -> None:
    fmt, _, data = file
    a, b = sorted((min(a, len(data)), min(b, len(data))))
    parts = [(0, a), (a, b), (b, len(data))]
    assert sum(count_newlines(data, fmt, *part) for part in parts) == count_newlines(data, fmt)


@settings(max_examples=60)
@given(files())
def test_finding_a_line_end_agrees_with_the_lines(file: tuple[Format, str, bytes]) -> None:
    fmt, _, data = file
    at = 0
    ends = [at := at + len(line) for line in split_lines(data, fmt) if decode(line, fmt).endswith("\n")]
    for count, end in enumerate(ends, 1):
        assert _codec.nth_newline(data, fmt, count) == end
    assert _codec.last_newline(data, fmt) == (ends[-1] if ends else 0)
    for place in range(0, len(data) + 1, fmt.unit):
        assert _codec.last_newline(data, fmt, place) == max((end for end in ends if end <= place), default=0)
        assert _codec.next_newline(data, fmt, place) == min((end for end in ends if end > place), default=len(data))
    with pytest.raises(ValueError, match=r"not found|fewer"):
        _codec.nth_newline(data, fmt, len(ends) + 1)


@pytest.mark.parametrize("fmt", [UTF8, *WIDE], ids=lambda fmt: fmt.encoding)
def test_finding_a_line_end_far_away(fmt: Format) -> None:
    data = ("ab\r\n\n\u0a0a\u0a00" * 5000).encode(fmt.encoding)
    ends = 0
    starts = [ends := ends + len(line) for line in split_lines(data, fmt)]
    for count in (1, 2, 4999, 5000, 9999, 10_000):
        assert _codec.nth_newline(data, fmt, count) == starts[count - 1]


def test_a_misaligned_newline_in_wide_text_is_none() -> None:
    fmt = WIDE[0]
    data = "\u0a41\u4100x".encode("utf-16-le")  # 41 0a 00 41: an LF between two characters
    assert b"\n\0" in data
    assert split_lines(data, fmt) == [data]
    assert _codec.last_newline(data, fmt) == 0
    ended = "a\nb\n".encode("utf-16-le")
    assert split_lines(ended, fmt) == [ended[:4], ended[4:]]
    assert split_lines(ended + b"c\0", fmt) == [ended[:4], ended[4:], b"c\0"]


@pytest.mark.parametrize(
    ("data", "style"),
    [
        (b"", "none"),
        (b"a\rb", "none"),
        (b"a\nb", "lf"),
        (b"a\r\n", "crlf"),
        (b"a\r\nb\n", "mixed"),
        (b"\r\r\n", "crlf"),
        (b"aaa\r\nb", "crlf"),
        (b"a\n" * 9 + b"b\r\n" * 9, "mixed"),
    ],
)
def test_newline_styles(data: bytes, style: str) -> None:
    assert newline_style(data, UTF8) == profile(data).newline == style
    with small_blocks(4):
        assert profile(data).newline == style
    wide = codecs.BOM_UTF16_BE + data.decode().encode("utf-16-be")
    assert newline_style(wide, WIDE[1]) == profile(wide).newline == style


# ---- what a file is --------------------------------------------------------------------------------------------------


def profile_of(data: bytes, fmt: Format) -> Profile:
    """The profile of data that is known to be `fmt`, whatever little evidence there is."""
    text = decode(data[len(fmt.bom) :], fmt)
    lines = lines_of(text)
    marks = tuple(count_newlines(data, fmt, 0, at) for at in range(0, len(data) or 1, _detect.BLOCK))
    style = newline_style(data, fmt)
    return Profile(hashlib.sha256(data).hexdigest(), len(data), len(lines), style, text.endswith("\n"), fmt, marks)


@settings(max_examples=60)
@given(files().filter(lambda file: file[0].bom or file[0] == UTF8))
def test_a_profile_says_what_is_in_the_file(file: tuple[Format, str, bytes]) -> None:
    fmt, _, data = file
    assert detect(data).encoding == fmt.encoding
    for size in (1 << 20, 16):
        with small_blocks(size):
            assert profile(data) == profile_of(data, detect(data))


@settings(max_examples=60)
@given(
    st.binary(max_size=200) | TEXT.map(str.encode) | st.sampled_from(sorted(REAL)).map(lambda e: REAL[e].encode(e)),
    st.data(),
)
def test_a_scan_says_the_same_however_it_is_fed(data: bytes, choose: st.DataObject) -> None:
    def result(run: Callable[[], Profile]) -> object:
        try:
            return run()
        except Refused as refused:
            return refused.code, refused.message

    def fed() -> Profile:
        scan, at = Scan(), 0
        while at < len(data):
            size = choose.draw(st.integers(1, 40) | st.just(16))
            scan.feed(data[at : at + size])
            at += size
        return scan.finish()

    def found() -> Format:
        return detect(data)

    with small_blocks():
        whole = result(lambda: profile(data))
        assert result(fed) == whole
        if isinstance(whole, Profile):
            assert found() == whole.format


@pytest.mark.parametrize("encoding", DEFAULT_ENCODINGS)
@pytest.mark.parametrize("size", [1 << 20, 64])
def test_real_text_is_recognised(encoding: str, size: int) -> None:
    data = REAL[encoding].encode(encoding)
    with small_blocks(size):
        assert detect(data) == Format(encoding, b"", True)
        view = one(data)
    assert [text for _, text in shown(view)] == lines_of(REAL[encoding])
    assert view.complete


@pytest.mark.parametrize("encoding", DEFAULT_ENCODINGS)
def test_real_text_after_much_ascii_and_across_blocks_is_recognised(encoding: str) -> None:
    ascii_part = b"x = 1  # nothing special\n" * 45_000
    data = ascii_part + (REAL[encoding] * 300).encode(encoding) + ascii_part
    assert len(data) > 2 * _detect.BLOCK
    assert profile(data).format.encoding == encoding
    assert one(data, offset=45_001, limit=1).text.endswith(lines_of(REAL[encoding])[0])


@pytest.mark.parametrize("encoding", ["gb18030", "big5", "cp949"])
def test_real_text_without_any_ascii_is_recognised(encoding: str) -> None:
    text = re.sub("[\x00-\x7f]", "", REAL[encoding])
    with small_blocks(4096):
        assert detect((text * 100).encode(encoding)).encoding == encoding


@pytest.mark.parametrize("encoding", DEFAULT_ENCODINGS)
def test_the_same_text_in_utf_8_is_utf_8(encoding: str) -> None:
    assert detect(REAL[encoding].encode()) == UTF8
    assert detect(codecs.BOM_UTF8 + REAL[encoding].encode()) == UTF8_BOM


def installed(suffix: str, count: int) -> list[bytes]:
    root = Path(json.__file__).parent.parent
    found = [path.read_bytes() for path in sorted(root.glob(f"*{suffix}"))[:count]]
    return [data for data in found if 300 < len(data) < 60_000]


def test_stray_bytes_are_never_taken_for_an_encoding() -> None:
    chance = random.Random(5)
    bases = [*installed(".py", 40), *(text.encode() * 3 for text in REAL.values())]
    for data in bases:
        for strays in (1, 2, 5, 10):
            damaged = bytearray(data)
            for _ in range(strays):
                at, byte = chance.randrange(len(damaged)), chance.randrange(128, 256)
                if chance.random() < 0.5:
                    damaged.insert(at, byte)
                else:
                    damaged[at] = byte
            assert detect(bytes(damaged)).encoding == "utf-8"
            run = bytes(chance.randrange(128, 256) for _ in range(strays))
            assert detect(data + b"# " + run).encoding == "utf-8"


def test_text_of_ascii_and_few_others_across_blocks() -> None:
    data = b"a" * 20 + "é".encode() + b"b" * 40 + b"\xe9" + b"c" * 40
    with small_blocks():
        assert detect(data) == Format("utf-8", b"", False)
        assert detect("é".encode() + b"b" * 40) == UTF8


def test_nothing_to_judge_reads_badly() -> None:
    assert not _scripts.reads_well("gb18030", "plain")


def test_what_is_surely_utf_8_stays_it_after_damage() -> None:
    good = REAL["gb18030"].encode() * 400
    data = good + REAL["gb18030"].encode("gb18030")
    with small_blocks(4096):
        assert detect(data) == Format("utf-8", b"", False)


def test_text_that_reads_badly_is_no_legacy_encoding() -> None:
    russian = "Настройки программы: пользователь не найден.\n" * 5
    with pytest.raises(Refused, match="no UTF-8"):
        detect(russian.encode("koi8_r"))
    latin = ("plain text " * 20 + "na\xefve\xd7\xf7\xa4 ").encode("cp1252") * 6
    assert detect(latin) == Format("utf-8", b"", False)


def test_among_alphabets_charset_normalizer_chooses() -> None:
    russian = "Настройки программы: пользователь не найден, проверьте соединение с сервером.\n" * 5
    list_ = ["cp1252", "koi8_r", "cp1251", "iso8859_5"]
    for encoding in ("koi8_r", "cp1251"):
        assert detect(russian.encode(encoding), list_).encoding == encoding
    assert detect(REAL["cp1252"].encode("cp1252"), ["cp1251", "cp1252"]).encoding == "cp1252"
    assert detect(REAL["cp1252"].encode("cp1252"), ["cp1254", "cp1252"]).encoding in {"cp1254", "cp1252"}


@pytest.mark.parametrize(
    ("name", "rank"),
    [("euc_kr", 0), ("cp949", 0), ("shift_jis", 1), ("gbk", 2), ("big5", 2), ("cp1252", 3), ("koi8_r", 3)],
)
def test_the_more_particular_script_goes_first(name: str, rank: int) -> None:
    assert _scripts.rank(name) == rank


def test_charset_normalizer_is_imported_only_when_it_is_needed() -> None:
    with patch.dict(sys.modules, {"charset_normalizer": None}):
        for encoding, text in REAL.items():
            assert detect(text.encode(encoding)).encoding == encoding
        assert detect(b"\xff" + b"a" * 99).encoding == "utf-8"
        with pytest.raises(ImportError):
            detect(REAL["cp1252"].encode("cp1252"), ["cp1254", "cp1252"])


# ---- what is no text -------------------------------------------------------------------------------------------------

BINARY = [
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["PNG", "16 bytes", "NUL"]),
    (b"\x7fELF\x02\x01\x01" + bytes(9), ["ELF"]),
    (b"PK\x03\x04\x14\0\x06\0", ["ZIP", ".docx"]),
    (b"RIFF\0\0\0\0WEBPVP8 ", ["WebP"]),
    (b"RIFF\0\0\0\0XXXX", ["RIFF"]),
    (b"\0\0\0\x20ftypmp42", ["MP4"]),
    (b"text with one NUL \0 in it\n" * 20, ["NUL"]),
    ("plain text".encode("utf-16-le"), ["UTF-16 (little-endian)", "byte order mark", "20 bytes", "iconv"]),
    ("plain text".encode("utf-16-be"), ["UTF-16 (big-endian)", "iconv"]),
    ("plain text".encode("utf-32-le"), ["NUL"]),
    (b"\0", ["NUL", "1 bytes"]),
    (bytes(range(128, 256)) * 8, ["1024 of its bytes", "convert"]),
    (codecs.BOM_UTF16_LE + b"a\0b", ["UTF-16-LE", "ends inside a character"]),
    (codecs.BOM_UTF16_LE + b"a\0\0\0", ["UTF-16-LE", "NUL"]),
    (codecs.BOM_UTF32_BE + b"\xff\xff\xff\xff", ["UTF-32-BE", "is not that"]),
    (codecs.BOM_UTF32_LE + b"a\0\0\0b", ["UTF-32-LE", "ends inside a character"]),
    (codecs.BOM_UTF16_LE + b"\x00\xd8" * 8 + b"a\0" * 8, ["UTF-16-LE"]),
    (codecs.BOM_UTF8 + b"\xff" * 9, ["9 of its bytes"]),
    (b"x" * 89 + b"\xff" * 11, ["11 of its bytes"]),
    (b"abc\xff" * 25, ["25 of its bytes"]),
    (b"line \xff\xfe text\n" * 20, ["40 of its bytes"]),
    (b"word \xe9\xe9\xe9 text\n" * 20, ["60 of its bytes"]),
]


@pytest.mark.parametrize(("data", "names"), BINARY, ids=range(len(BINARY)))
def test_me_02_binary_is_refused_with_its_kind(data: bytes, names: list[str]) -> None:
    for size in (1 << 20, 16):
        with small_blocks(size), pytest.raises(Refused) as refused:
            detect(data)
        assert refused.value.code == "binary"
        assert all(name in refused.value.message for name in names)


@pytest.mark.parametrize(
    "data",
    [
        b"export const x: number = 1;\n",  # .ts is no video
        b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>\n',
        "a literal \ufffd is text\n".encode(),
        ("x" * 8191 + "é" + "x" * 100).encode(),  # a character across the edge of any sample
        b"%PDF is what this note is about\n",
    ],
)
def test_me_02_text_is_text_whatever_it_looks_like(data: bytes) -> None:
    assert detect(data) == UTF8


def test_binary_is_judged_by_the_whole_content() -> None:
    with pytest.raises(Refused, match="NUL"):
        detect(b"a" * 3_000_000 + b"\0")
    scan = Scan()
    for _ in range(3):
        scan.feed(b"\0" * _detect.BLOCK)
    with pytest.raises(Refused, match=f"{3 * _detect.BLOCK} bytes"):
        scan.finish()
    assert detect(b"\xff" * 100 + b"a" * 900).lossless is False  # a tenth exactly
    with pytest.raises(Refused):
        detect(b"\xff" * 101 + b"a" * 899)


@pytest.mark.parametrize(
    ("fmt", "body"),
    [(WIDE[0], "x\ny"), (WIDE[1], "x\r\ny\n"), (WIDE[2], "\U0001f600\n"), (WIDE[3], ""), (UTF8_BOM, "x=1\n")],
    ids=lambda value: getattr(value, "encoding", ""),
)
def test_co_03_a_byte_order_mark_decides_and_is_not_shown(fmt: Format, body: str) -> None:
    data = fmt.bom + body.encode(fmt.encoding)
    assert detect(data) == fmt
    assert [text for _, text in shown(one(data))] == lines_of(body)


def test_co_03_unpaired_surrogates_of_a_utf_16_file_are_kept() -> None:
    body = b"a\0" * 40 + b"\x00\xd8b\0\n\0\x01\xdc"
    data = codecs.BOM_UTF16_LE + body + b"\x00\xd8"
    for size in (1 << 20, 16):
        with small_blocks(size):
            p = profile(data)
            assert p.format == Format("utf-16-le", codecs.BOM_UTF16_LE, False)
            view = one(data)
        assert view.text == "     1\t" + "a" * 40 + "\\ud800b\n     2\t\\udc01\\ud800"
        assert any(note.startswith("Halves of characters") and note.endswith("lines 1-2.") for note in view.notes)
    assert reencode(decode(data[2:], p.format), p.format) == data[2:]


# ---- windows ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(files(), st.integers(9, 60), st.integers(1, 30), st.integers(1, 6), st.sampled_from([16, 1 << 20]))
def test_reading_on_as_told_yields_every_character_once(
    file: tuple[Format, str, bytes], max_chars: int, max_line_chars: int, max_lines: int, block: int
) -> None:
    fmt, text, data = file
    with small_blocks(block):
        got, _ = read_as_told(
            data, profile_of(data, fmt), max_chars=max_chars, max_line_chars=max_line_chars, max_lines=max_lines
        )
    assert [got[number] for number in sorted(got)] == lines_of(text)
    assert sorted(got) == list(range(1, len(got) + 1))


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"\xff", b"a", b"\xc3", b"\xa9", b"bc "]), max_size=60).map(
        b"".join
    ),
    st.integers(9, 60),
    st.integers(1, 30),
)
def test_reading_on_yields_damaged_bytes_too(data: bytes, max_chars: int, max_line_chars: int) -> None:
    fmt = Format("utf-8", b"", False)
    with small_blocks():
        got, _ = read_as_told(
            data, profile_of(data, fmt), max_chars=max_chars, max_line_chars=max_line_chars, max_lines=9
        )
    assert [got[number] for number in sorted(got)] == [show(line) for line in lines_of(decode(data, fmt))]


@settings(max_examples=60)
@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=20), max_size=30),
    st.booleans(),
    st.booleans(),
    st.integers(60, 400),
)
def test_windows_joined_are_the_file(lines: list[str], crlf: bool, final: bool, max_chars: int) -> None:
    end = "\r\n" if crlf else "\n"
    data = (end.join(lines) + (end if final else "")).encode()
    p = profile(data)
    got, views = read_as_told(data, p, max_chars=max_chars, max_line_chars=max_chars, max_lines=7)
    text = end.join(got[number] for number in sorted(got))
    assert (text + (end if p.final_newline else "")).encode() == data
    assert sum(b - a + 1 for view in views for a, b in view.seen) == p.lines
    assert ("No newline at end of file." in views[-1].notes) == (p.lines > 0 and not p.final_newline)


@settings(max_examples=60)
@given(files(), st.integers(-12, 12), st.integers(1, 9), st.integers(9, 40), st.integers(1, 20))
def test_what_counts_as_seen_was_delivered_whole(
    file: tuple[Format, str, bytes], offset: int, limit: int, max_chars: int, max_line_chars: int
) -> None:
    fmt, text, data = file
    lines = lines_of(text)
    p = profile_of(data, fmt)
    first = max(1, len(lines) + 1 + offset) if offset < 0 else offset or 1
    if first > len(lines) and not (first == 1 and not lines):
        with pytest.raises(Refused) as refused:
            one(data, p, offset=offset)
        assert refused.value.code == "out_of_range"
        return
    view = one(data, p, offset=offset, limit=limit, max_chars=max_chars, max_line_chars=max_line_chars)
    rows = dict(shown(view))
    assert [*rows] == list(range(first, first + len(rows)))
    if rows:
        assert (view.first_line, view.last_line) == (first, first + len(rows) - 1)
    seen = [n for a, b in view.seen for n in range(a, b + 1)]
    assert all(rows[n] == lines[n - 1] for n in seen)
    assert {n for n in rows if rows[n] != lines[n - 1]} <= set(rows) - set(seen)
    assert view.complete == (len(seen) == len(lines))


@pytest.mark.parametrize(
    ("data", "options", "text", "notes"),
    [
        (b"", {}, "", ["The file is empty."]),
        (b"", {"offset": -3}, "", ["The file is empty."]),
        (codecs.BOM_UTF8, {}, "", ["The file is empty."]),
        (b"\n\n\nx\n", {"limit": 3}, "     1\t\n     2\t\n     3\t", ["Shown: lines 1-3 of 4. Read on with offset=4."]),
        (b"  \t\n", {}, "     1\t  \t", []),
        (b"a\nb\n", {}, "     1\ta\n     2\tb", []),
        (b"a\nb", {}, "     1\ta\n     2\tb", ["No newline at end of file."]),
        (b"a\nb\n", {"offset": 0}, "     1\ta\n     2\tb", []),
        (b"a\nb\nc\n", {"offset": -1}, "     3\tc", []),
        (b"a\nb\nc\n", {"offset": -2, "limit": 1}, "     2\tb", ["Shown: line 2 of 3. Read on with offset=3."]),
        (b"a\nb\nc\n", {"offset": -9}, "     1\ta\n     2\tb\n     3\tc", []),
        (
            b"a\r\nb\rc\r\n",
            {},
            "     1\ta\n     2\tb\rc",
            ["Carriage returns that end no line are part of the text: line 2."],
        ),
        (
            b"a\r",
            {},
            "     1\ta\r",
            ["No newline at end of file.", "Carriage returns that end no line are part of the text: line 1."],
        ),
        (b"abc\nd\n", {"column": 2}, "     1\tbc\n     2\td", []),
        (b"abc\r\nd\n", {"column": 3, "limit": 1}, "     1\tc", ["Shown: line 1 of 2. Read on with offset=2."]),
        (b"abc\nd\n", {"column": 0}, "     1\tabc\n     2\td", []),
    ],
)
def test_ln_04_windows(data: bytes, options: dict[str, Any], text: str, notes: list[str]) -> None:
    view = one(data, **options)
    assert view.text == text
    assert list(view.notes) == notes


def test_ln_04_a_long_line_neither_hides_nor_skips_the_next() -> None:
    data = b"one\n" + b"x" * 15_000 + b"\nKEY\nlast\n"
    view = one(data, limit=3)
    assert view.text.endswith("\n     3\tKEY")
    assert view.notes == (
        (
            "Cut after 2000 characters: line 2. Read the rest of such a line N with offset=N, column=2001, limit=1. "
            "(Or all of it with offset=N, limit=1: only a line that was shown whole counts as read.)"
        ),
        "Shown: lines 1-3 of 4. Read on with offset=4.",
    )
    assert view.seen == ((1, 1), (3, 3))
    assert not view.complete
    rest = one(data, offset=2, column=2001, limit=1)
    assert shown(rest) == [(2, "x" * 13_000)]
    assert rest.seen == ()


def test_many_cut_lines_are_all_named() -> None:
    data = b"".join(b"x" * 50 + b"\ny\n" for _ in range(40))
    view = one(data, max_line_chars=20)
    (note,) = view.notes
    cut = CUT.match(note)
    assert cut
    assert list(numbers(cut[1])) == list(range(1, 81, 2))


def test_line_numbers_are_right_on_every_page() -> None:
    data = b"\n".join(b"%d" % i for i in range(1, 1_000_012)) + b"\n"
    p = profile(data)
    for first in (1, 400, 499, 500, 999, 1000, 999_990):
        rows = shown(one(data, p, offset=first, limit=600))
        assert all(text == str(number) for number, text in rows)
        assert rows[0][0] == first
    assert one(data, p, offset=-1).text == "1000011\t1000011"


def test_notes_about_many_lines_are_short() -> None:
    view = one(b"a\rb\nc\n" * 100)
    (note,) = view.notes
    assert note.endswith("lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 88 more.")


@pytest.mark.parametrize("options", [{"offset": 4}, {"column": 2}, {"column": 9}, {"offset": 2, "column": 3}])
def test_past_the_end(options: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        one(b"a\nbc\r\n\n", **options)
    assert refused.value.code == "out_of_range"
    if "column" in options:
        assert f"has {2 if 'offset' in options else 1} character(s)" in refused.value.message
    else:
        assert "has 3 line(s)" in refused.value.message


def test_past_the_end_of_an_empty_file() -> None:
    with pytest.raises(Refused, match="file is empty"):
        one(b"", offset=2)


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": -1}, {"column": -1}])
def test_impossible_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        one(b"a\n", **options)
    assert refused.value.code == "bad_arguments"


def test_rd_01_a_line_of_ten_megabytes_is_read_in_pieces() -> None:
    text = json.dumps([{"id": i, "name": f"größe {i} 😀"} for i in range(210_000)], ensure_ascii=False)
    data = text.encode()
    assert len(data) > 9_000_000
    p = profile(data)
    options: dict[str, Any] = {}
    got = ""
    for _ in range(6):
        view = one(data, p, **options)
        assert len(view.text) == 100_000
        got += shown(view)[0][1]
        on = ON.search(view.notes[0])
        assert on
        options = {"offset": int(on[1]), "column": int(on[2])}
    assert got == text[: len(got)]
    end = one(data, p, offset=1, column=len(text) - 5)
    assert end.text == f"     1\t{text[-6:]}"
    assert end.notes == ("No newline at end of file.",)


def test_a_window_reads_only_what_it_needs() -> None:
    data = b"".join(b"line %d of a large file\n" % i for i in range(1, 400_001))
    p = profile(data)
    asked: list[int] = []

    def read(at: int, size: int) -> bytes:
        asked.append(size)
        return data[at : at + size]

    tracemalloc.start()
    view = window(read, p, offset=-100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert view.text.endswith("400000\tline 400000 of a large file")
    assert len(asked) <= 2
    assert sum(asked) <= _detect.BLOCK + 400_000 + 4096
    assert peak < 4 << 20


def test_a_scan_keeps_little() -> None:
    piece = ("größer und kleiner 中文\n" * 50_000).encode()
    scan = Scan()
    tracemalloc.start()
    for _ in range(20):
        scan.feed(piece)
    p = scan.finish()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert p.lines == 1_000_000
    assert peak < 8 << 20


def test_the_limits_of_a_view_hold_even_if_nothing_fits() -> None:
    view = one(b"abc\ndef\n", max_chars=1)
    assert view.text == "     1\ta"
    assert view.notes == ("Line 1 goes on. Read on with offset=1, column=2.",)
    assert one(b"abc\ndef\n", max_chars=8, limit=1).notes == (
        "Line 1 goes on. Read on with offset=1, column=2, limit=1.",
    )
    escaped = one(b"a" * 10 + b"\xff" + b"a" * 30, max_chars=22)
    assert len(escaped.text) <= 22
    assert escaped.text.endswith("a\\xff") or escaped.text.endswith("a")


def test_a_file_that_changes_meanwhile_is_said_to() -> None:
    data = b"a\nb\nc\n" * 400_000
    p = profile(data)
    for now in (b"", data[:100], b"a" * len(data)):
        with pytest.raises(Refused) as refused:
            one(now, p, offset=-3)
        assert refused.value.code == "busy"
