"""Placeholders that stand in for lines: rewrites that drop lines are told from rewrites that do not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import langchain_filestate
from langchain_filestate._omission import find_placeholders, looks_like
from langchain_filestate._phrases import PHRASES

PROGRAM = """\
import os
import sys

LIMIT = 10


def first(a):
    total = a + 1
    print(total)
    return total


def second(b):
    result = b * 2
    log(result)
    return result


def third(c):
    value = c - 3
    return value
"""


def lazily(placeholder: str) -> tuple[str, str]:
    """The program rewritten with one line changed and `second` left out."""
    top, rest = PROGRAM.split("def second", 1)
    end = rest[rest.index("def third") :]
    return PROGRAM, top.replace("LIMIT = 10", "LIMIT = 20") + placeholder + "\n\n\n" + end


LAZY = """\
# ... rest of the file unchanged ...
// existing code
<!-- ... -->
/* ... */
-- ...
; ...
% ...
{/* ... */}
# ...
// ...
// ... existing code ...
// ...existing code...
# ... existing code ...
    # ... existing code ...
# Existing code here
// rest of the code remains the same
# The rest of the code remains unchanged.
// ... (rest of the component remains the same)
// ... other methods
# ... other imports ...
# [rest of function unchanged]
// ... 120 lines omitted ...
# ... (lines 10-50 unchanged) ...
# keep existing code
/* existing styles ... */
/* ... existing styles ... */
<!-- existing content -->
<!-- rest of the page stays the same -->
{/* existing JSX */}
{/* ... rest of UserProfile component ... */}
-- rest of the schema unchanged
-- ... existing tables ...
; rest of config unchanged
% ... rest of the document ...
(* ... rest of the module ... *)
{- ... existing code ... -}
{# ... existing template ... #}
<%-- existing markup --%>
{{!-- rest of template --}}
' ... rest of the code ...
REM ... existing code ...
:: rest of script unchanged
! ... rest of subroutine unchanged ...
" ... rest of config ...
--[[ ... existing code ... ]]
@* ... rest of the page ... *@
<# ... existing functions ... #>
#| ... rest of the module ... |#
dnl ... rest of the macros unchanged ...
# All other functions remain the same
// implementation unchanged
# same as before
// unchanged
# getters and setters omitted for brevity
// ... code omitted for brevity ...
# -- snip --
// TODO: rest of implementation
 * ... rest of the methods ...
... rest of the file unchanged ...
[... rest of file unchanged ...]
[rest of the file unchanged]
... (rest unchanged)
(remaining code unchanged)
# ... and so on ...
// ... etc ...
# ... imports ...
# … rest of the class …
// (keep the rest of the file as is)
// The existing code remains here
# Rest of your code here
// other existing routes...
# ------- rest of code unchanged -------
/* ---- existing code ---- */
// ...remaining functions...
# (unchanged)
# ... no changes here ...
// previous code remains unchanged
// no changes below this line
# ... more
# everything else stays the same
# ... 17 more methods ...
// ... same as above
# ... previous handlers ...
# 其余代码保持不变
// ... 其余代码 ...
// 现有代码
# 省略其余代码
// 此处省略
# ...（其余部分不变）...
<!-- 其他内容不变 -->
/* 原有样式保持不变 */
// 其餘程式碼保持不變
# 保留现有代码
// ... 其他方法 ...
// 与之前相同
# …… 省略 30 行 ……
# 残りのコードは変更なし
// ... 既存のコード ...
# 以下省略
// 中略
# ...(省略)...
/* 残りは同じ */
<!-- 既存のコンテンツはそのまま -->
// その他のメソッドは変更なし
# 以前と同じ
// ここに既存のコード
（残りのコードは変更なし）
"""
FAINT = """\
# ... helper functions
# ... set up the parser ...
# ... what we do with it ...
# ... wire alpha beta gamma file ...
...
…
"""
# lines that are nobody's placeholder, also where lines go
PLAIN = """\
# Loading existing config...
# rest of the arguments
# the rest
# Waiting for the rest...
# Other methods
# Existing users
## Existing code
- existing code
- No changes
* unchanged
# Previous implementation:
# is the rest of the code unchanged?
# same as above
# TODO implement
# ... but keep the order
# ... and then we leave the existing code of the caller alone as it was written by others
...rest,
...existing.content,
[...existing, ...rest]
(existing, content)
[rest]
# Keep the original order
# nothing to do
# etc.
# etc...
# We must keep existing code working
# The rest is handled by the caller
# all arguments
# ........................
# ... = await connect(...)
# -----------------------
---
* ...
# Code
# values are the same
# no change in behaviour for callers
# unchanged lines are skipped
# leave all other responses unchanged
# original is unchanged
# existing behaviour
#!/usr/bin/env python
return [...]
x = 1  # ... rest of the code ...
"# ... rest of the code ..."
print("... existing code ...")
Models write `# ... rest of the file unchanged ...` and drop lines.
    ...
# see 其他 for 配置
# 原始文件
# 配置
# 其他方法
# 変数の定義
# 其余的人都来自一个遥远而陌生的国度并且不会说我们的语言
remove(...)
"""


@pytest.mark.parametrize("line", LAZY.splitlines())
def test_lazy_rewrites_are_found(line: str) -> None:
    before, after = lazily(line)
    assert find_placeholders(before, after) == [(after.split("\n").index(line) + 1, line.strip())]
    assert find_placeholders(before.replace("\n", "\r\n"), after.replace("\n", "\r\n"))


def test_faint_ones_need_much_missing() -> None:
    for line in FAINT.splitlines():
        before, after = lazily(line)
        assert [text for _, text in find_placeholders(before, after)] == [line.strip()]
        gone = before.replace("    print(total)\n", line + "\n")
        assert find_placeholders(before, gone) == []
        # as much came as went
        grown = after.replace(line, line + "\nnew 1\nnew 2\nnew 3\nnew 4\nnew 5")
        assert find_placeholders(before, grown) == []


@pytest.mark.parametrize("line", PLAIN.splitlines())
def test_other_lines_are_not(line: str) -> None:
    assert find_placeholders(*lazily(line)) == []


def test_nothing_is_left_out_of_nothing() -> None:
    for before in (None, ""):
        assert find_placeholders(before, LAZY) == []


def test_nothing_removed_nothing_flagged() -> None:
    for line in LAZY.splitlines():
        assert find_placeholders(PROGRAM, PROGRAM + line + "\n") == []
        assert find_placeholders(PROGRAM, line + "\n" + PROGRAM) == []
        assert find_placeholders(PROGRAM, PROGRAM.replace("LIMIT", line + "\nLIMIT")) == []


def test_what_the_old_text_had_is_its_own() -> None:
    for line in LAZY.splitlines():
        before, after = lazily(line)
        assert find_placeholders(line + "\n" + before, after) == []
        assert find_placeholders(before + "  " + line, after) == []
        assert find_placeholders(after, after.replace("def third", "def last")) == []


def test_documents_about_placeholders() -> None:
    guide = (
        "# Editing\nNever write `// ... existing code ...` into a file.\nIt deletes lines.\nShow them all.\n"
        "One more line.\n"
    )
    example = guide.replace("It deletes lines.\n", "```js\n// ... existing code ...\n```\n")
    assert find_placeholders(guide, example) == []
    subject = "Bad:\n# ... rest of the file ...\nBad too:\n// existing code\nand\nso\non\n"
    assert find_placeholders(subject, subject.replace("and\nso\n", "<!-- rest of the page unchanged -->\n")) == []


def test_words_in_a_longer_comment_are_prose() -> None:
    after = "# The values that were read are used\n# and the rest of the code remains unchanged\nx = 1\n"
    assert find_placeholders("y = 1\nz = 2\n", after) == []
    assert find_placeholders("y = 1\nz = 2\n", "# the rest of the code\n# remains unchanged\nx = 1\n") == [
        (1, "# the rest of the code"),
        (2, "# remains unchanged"),
    ]
    # brackets around a line are no comment sign
    assert find_placeholders("y = 1\nz = 2\n", "[rest of the file unchanged]\n[more]\n")


def test_only_the_place_with_missing_lines_counts() -> None:
    after = PROGRAM.replace("def first", "# ... existing code ...\ndef first").replace("    return value\n", "")
    assert find_placeholders(PROGRAM, after) == []
    both = after.replace("    value = c - 3\n", "    # ... existing code ...\n")
    assert find_placeholders(PROGRAM, both) == [
        (both.split("\n").index("    # ... existing code ...") + 1, "# ... existing code ...")
    ]
    moved = PROGRAM.replace("LIMIT = 10\n", "# existing code\n") + "LIMIT = 10\nx = 1\n"
    assert find_placeholders(PROGRAM + "gone = 1\n", moved) == []


def test_several_at_one_place() -> None:
    before, after = lazily("# ... existing code ...\n\n# ... rest of the file ...")
    assert [text for _, text in find_placeholders(before, after)] == [
        "# ... existing code ...",
        "# ... rest of the file ...",
    ]


def test_long_lines_are_not_read() -> None:
    assert looks_like("# ... existing code ..." + " " * 500) == "dots"
    assert looks_like("# ... existing code " + "." * 300 + " ...") is None
    assert looks_like("# ... " + "code " * 11 + "...") is None
    assert looks_like("# ... " + "代码" * 11 + "...") is None


def test_the_table_is_written_as_it_is_looked_up() -> None:
    for words in PHRASES.values():
        listed = [word.strip() for line in words.split("\n") for word in line.split(",") if word.strip()]
        assert listed == [" ".join(word.casefold().split()) for word in listed]


@given(st.text("#/*.<>-…[]() \nabrest xof", max_size=200), st.text("#/. \nabrest", max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text(before: str, after: str) -> None:
    lines = after.split("\n")
    for number, line in find_placeholders(before, after):
        assert lines[number - 1].strip() == line
    assert find_placeholders(before, before) == []
    assert find_placeholders(after, after + before) == []


def test_no_false_alarm_on_real_files() -> None:
    """The package's own files and its dependencies', rewritten as they are and with lines taken out and put in."""
    chance = random.Random(5)
    roots = [Path(langchain_filestate.__file__).parent, Path(pytest.__file__).parent.parent / "_pytest"]
    texts = [path.read_text("utf-8") for root in roots for path in sorted(root.rglob("*.py"))][:80]
    for text in texts:
        lines = text.split("\n")
        changed = list(lines)
        for _ in range(6):
            at = chance.randrange(len(changed) or 1)
            del changed[at : at + chance.choice([1, 3, 20])]
            at = chance.randrange(len(changed) or 1)
            changed[at:at] = [chance.choice(lines) for _ in range(3)]
        assert find_placeholders(text, text) == []
        assert find_placeholders(text, "\n".join(changed)) == []


def test_dots_of_a_quoted_traceback_are_text() -> None:
    before = "# >>> f()\n# SyntaxError: missing bracket\n"
    after = "# >>> f()\n#     ...\n# MathError: missing bracket!\n"
    assert find_placeholders(before, after) == []
    assert find_placeholders("# >>> f()\na\nb\nc\n", "# >>> f()\n#     ...\n") == [(2, "#     ...")]
