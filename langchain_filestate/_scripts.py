"""Whether text decoded from a legacy encoding reads like the languages that were written in it.

Decoding without error proves little: nearly all bytes are some cp1252 text, and Chinese bytes are Korean text of odd
characters. What tells them apart is which characters come out. Real text keeps to the common ones: the first level of
the national standards (GB 2312, Big5, JIS X 0208 by use, KS X 1001 the syllables), kana in Japanese, Hangul in Korean,
and in alphabets letters inside words of their own script. A wrong encoding gives the odd rest. The levels are read off
Python's own codecs.

The thresholds lie between what was measured on translations of free software (960 samples of 4,000 and 1,080 of 200
characters, each language in each of its encodings): the right encoding reaches 0.9 and more nearly always; a wrong
one stays below, but for text that two judge well, where the one with the more particular script goes first (`rank`):
Korean bytes are also common Chinese characters, but Chinese bytes are not Korean syllables.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

COMMON = 0.88
KANA = 0.15
IN_WORDS = 0.9
BESIDE_OTHERS = 0.3
ALPHABET = 3

_JAPANESE = frozenset({"cp932", "shift_jis", "shift_jis_2004", "euc_jp", "euc_jis_2004"})
_KOREAN = frozenset({"cp949", "euc_kr"})
_CHINESE = frozenset({"gb18030", "gbk", "gb2312", "big5", "cp950", "big5hkscs"})
_CJK = _JAPANESE | _KOREAN | _CHINESE
_TYPOGRAPHIC = frozenset("‘’“”„–—…•«»°§©®·€£¡¿\u00a0")
_LATIN_END = "\u0250"
_WORD = re.compile(r"[^\W\d_]*[^\W\d_\x00-\x7f][^\W\d_]*")
_TRIPLE = re.compile(r"([^\x00-\x7f])\1\1")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_NOT_ASCII_RUN = re.compile("[^\x00-\x7f]+")


def rank(encoding: str) -> int:
    """Say which goes first of several that read well: Korean, Japanese, Chinese, then the alphabets."""
    name = codecs.lookup(encoding).name
    return 0 if name in _KOREAN else 1 if name in _JAPANESE else 2 if name in _CHINESE else ALPHABET


def reads_well(encoding: str, text: str) -> bool:
    """Say whether `text`, decoded as `encoding`, has the characters that are common in its languages.

    Args:
        encoding: Python codec name.
        text: Passages around characters that are not ASCII; where there are none, nothing reads well.
    """
    name = codecs.lookup(encoding).name
    counts = Counter(_NOT_ASCII.findall(text))
    if not counts or (name in _CJK and _beside_others(text) < BESIDE_OTHERS * counts.total()):
        return False
    if name in _KOREAN:
        return _share(counts, _common_korean) >= COMMON
    if name in _JAPANESE:
        return _share(counts, _kana) >= KANA and _share(counts, _common_japanese) >= COMMON
    if name in _CHINESE:
        return _share(counts, _common_chinese) >= COMMON
    return _in_words(text) >= IN_WORDS * counts.total()


def _beside_others(text: str) -> int:
    """Count characters beside another one that is not ASCII: an accented letter in a Latin word stands alone."""
    return sum(len(run) for run in _NOT_ASCII_RUN.findall(text) if len(run) > 1)


def _share(counts: Counter[str], test: Callable[[str], bool]) -> float:
    return sum(count for char, count in counts.items() if test(char)) / counts.total()


def _row(char: str, encoding: str) -> int:
    """First byte of a two-byte character; 0 if it is none."""
    try:
        data = char.encode(encoding)
    except UnicodeEncodeError:
        return 0
    return data[0] if len(data) == 2 else 0  # noqa: PLR2004


# Rows of the standards, by first byte: punctuation and full-width letters, and the first level.
_SIGNS = frozenset({0xA1, 0xA3})
_KS_SYLLABLES = _SIGNS.union(range(0xB0, 0xC9))
_JIS_FIRST = _SIGNS.union(range(0xB0, 0xD0))
_GB_FIRST = _SIGNS.union(range(0xB0, 0xD8))
_BIG5_FIRST = frozenset(range(0xA1, 0xC7))


def _kana(char: str) -> bool:
    return "\u3041" <= char <= "\u30fe"


@lru_cache(4096)
def _common_korean(char: str) -> bool:
    return _row(char, "euc_kr") in _KS_SYLLABLES


@lru_cache(4096)
def _common_japanese(char: str) -> bool:
    return _kana(char) or _row(char, "euc_jp") in _JIS_FIRST


@lru_cache(4096)
def _common_chinese(char: str) -> bool:
    return _row(char, "gb2312") in _GB_FIRST or (_row(char, "big5") in _BIG5_FIRST and not _kana(char))


def _in_words(text: str) -> int:
    """Count letters that stand in words of one script and plain case, and common typographic signs.

    Not those of Latin words with one letter three times in a row, and no ÿ, which is a letter of a handful of names:
    as a rule both are filler bytes.
    """
    count = sum(text.count(sign) for sign in _TYPOGRAPHIC)
    for match in _WORD.finditer(text):
        word = match[0]
        others = _NOT_ASCII.findall(word)
        if not (word.islower() or word.isupper() or word.istitle()):
            continue
        latin = max(others) < _LATIN_END
        if latin and _TRIPLE.search(word):
            continue
        if 2 * len(others) <= max(len(word) + 1, 4) if latin else len(others) == len(word):
            count += len(others) - others.count("ÿ")
    return count
