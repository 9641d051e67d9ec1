"""The words in which placeholders for left-out lines are written; `_omission` says in which combinations.

One table for English, Chinese (both scripts) and Japanese, sorted by what a word tells. All is in lower case; where a
phrase of several words tells something else than its words do, it stands there as a whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal[
    "rest", "keep", "past", "other", "state", "brief", "soft", "code", "noun", "thing", "glue", "prose", "number"
]

PHRASES: Mapping[Kind, str] = {
    # what is left
    "rest": """
        rest, remainder, everything else, all else
        其余, 其餘, 剩余, 剩餘, 剩下, 余下, 餘下
        残り, 以降, その他すべて
    """,
    # what is there
    "keep": """
        existing, preexisting, remaining
        现有, 現有, 已有, 原有
        既存
    """,
    # what was there; also said of things that went
    "past": """
        previous, previously, original, originally, prior
        原来, 原來, 原本, 原始, 之前, 先前
        元, 元々, 以前, 従来
    """,
    # what is beside it; begins many a heading
    "other": """
        other, others, more, additional, further, similar, another, current, old, various, several
        其他, 其它, 更多, 若干, 类似, 類似
        他, その他, ほか
    """,
    # how it is
    "state": """
        unchanged, unmodified, untouched, unaltered, not changed, not modified, no change, no changes,
        no other changes, no further changes, no changes here, no changes below, no changes below this line,
        no changes needed, nothing changes, nothing else changes, as is, as it is, as it was, as they are,
        as they were, intact, remain the same, remains the same, remain unchanged, remains unchanged, remain as is,
        remains as is, remain, remains, stay the same, stays the same, stay unchanged, stays unchanged, stays,
        same as before, the same as before, same as previously, same as original, same as the original,
        same as in the original, exactly as before, as before, like before, omitted, elided, not shown,
        not shown here, snip, snipped, kept as is, left as is, left unchanged, left out
        不变, 不變, 保持不变, 保持不變, 保持原样, 保持原樣, 维持不变, 維持不變, 维持原样, 維持原樣, 没有变化,
        沒有變化, 没有改动, 无改动, 无变化, 無變化, 无需修改, 無需修改, 不做修改, 未修改, 未更改, 未改动, 未变, 省略,
        此处省略, 此處省略, 以下省略, 略去, 从略, 從略, 与之前相同, 與之前相同, 和之前一样, 和之前一樣, 与原来相同,
        與原來相同, 与原来一样, 和原来一样, 与原文件相同, 与之前一致, 保持一致, 照旧, 照舊
        変更なし, 変更無し, 変更はありません, 変更ありません, 変更しない, 変わらず, 変わりません, 変化なし, 省略,
        中略, 後略, 前略, 以下略, 以下省略, 略します, 省略します, そのまま, 元のまま, 以前と同じ, 前と同じ, 従来通り,
        従来どおり, 以前と同様
    """,
    # why it is left out
    "brief": """
        for brevity, for the sake of brevity, for conciseness, to save space, to keep it short
        为简洁, 为了简洁, 為簡潔, 為了簡潔, 篇幅所限, 限于篇幅
        簡潔のため, 簡略化のため, 長いため
    """,
    # how it may be, also said of much else
    "soft": """
        same, the same, identical, same as above, as above, here, goes here, go here, comes here, continues,
        continues here, continued, continue, follows, below, etc, and so on, skipped, truncated, hidden, abbreviated,
        shortened, removed
        同上, 略, 相同, 一样, 一樣, 一致, 如上, 等等, 在此, 在这里, 在這裡
        同じ, 同様, 続く, 続き, 続きます, 上記と同じ, など
    """,
    # what programs are made of
    "code": """
        code, imports, implementation, implementations, logic, jsx, markup, html, content, contents, functions,
        methods, function body, method body, class body, body, codebase
        代码, 代碼, 程式碼, 导入, 導入, 匯入, 实现, 實現, 實作, 逻辑, 邏輯, 内容, 內容, 函数, 函數, 函式, 方法, 部分
        コード, コンテンツ, インポート, 実装, ロジック, 関数, メソッド, 処理
    """,
    # what files are made of
    "noun": """
        file, function, method, class, classes, component, components, module, modules, script, scripts, document,
        page, section, sections, definitions, declarations, styles, rules, tests, test, routes, handlers, config,
        configuration, template, css, sql, features, models, helpers, utilities, hooks, constructor, schema, queries,
        program, exports, endpoints, chapter, chapters, paragraphs, dependencies, table, block, part
        文件, 檔案, 类, 類, 组件, 組件, 元件, 模块, 模組, 脚本, 样式, 樣式, 配置, 测试, 測試, 用例, 路由, 定义, 定義,
        接口, 结构, 段落, 章节, 依赖
        ファイル, クラス, コンポーネント, モジュール, スクリプト, 定義, テスト, スタイル, ルート, 本文, 章
    """,
    # what data are made of
    "thing": """
        line, lines, field, fields, property, properties, props, attributes, definition, declaration, style, rule,
        case, cases, route, handler, settings, options, parameters, params, arguments, variables, constants, type,
        types, interface, interfaces, element, elements, items, entries, rows, columns, values, data, text,
        paragraph, packages, statement, statements, branches, steps, fixtures, helper, utils, state, setup,
        initialization, tables, query, keys, members, parts, blocks, things, stuff, views, commands, targets, jobs,
        services, resources, return
        设置, 設定, 字段, 欄位, 属性, 屬性, 行, 变量, 變數, 参数, 參數, 语句
        フィールド, プロパティ, 変数, 引数
    """,
    "glue": """
        the, this, that, these, those, your, my, our, its, all, any, of, in, from, for, to, with, and, a, an, is,
        are, was, were, be, been, will, would, should, must, have, has, keep, keeps, keeping, kept, leave, leaving,
        left, retain, retained, preserve, preserved, include, included, insert, add, copy, paste, stay, exactly,
        entirely, completely, still, just, also, very, above, before, plus, todo, note, nb, on, at, it, them, now,
        end, start, top, bottom, between, through, until, up, down
        的, 是, 为, 為, 了, 都, 均, 也, 则, 在, 所有, 全部, 这些, 這些, 此处, 此處, 这里, 這裡, 以下, 下面, 后面,
        後面, 后续, 後續, 中间, 中間, 以上, 上面, 前面, 保留, 保持, 维持, 維持, 插入, 添加, 您, 你, 请, 共, 与, 與,
        和, 同, 跟
        の, は, を, が, と, も, に, ここ, 上記, 前, 全て, すべて, です, ます, する, します, されます, 入ります, 残す,
        残します, から, まで
    """,
    # what goes on with a sentence
    "prose": """
        but, because, so, since, if, when, which, while, then, than, or, unless, not, we, you, i, they, he, she, can,
        may, might, do, does, dont, don't, cannot, instead, only, even, into, without, why, how, what, where, there
    """,
}
"""Words and phrases by what they tell: one table for English, Chinese (both scripts) and Japanese."""

_ALONE = """
    unchanged, no change, no changes, no changes here, no changes below, no other changes, no further changes,
    no changes below this line, same as before, the same as before, snip, snipped, remain unchanged,
    remains unchanged
    省略, 此处省略, 此處省略, 以下省略, 保持不变, 保持不變, 保持原样, 保持原樣, 与之前相同, 與之前相同, 和之前一样,
    和之前一樣
    以前と同じ, 前と同じ, 中略, 後略, 前略, 以下略, 変更なし, 変更無し
"""
"""States that tell it without a subject and without dots."""


def _listed(words: str) -> Iterator[str]:
    return (word for word in re.split(r",\s+|\n\s*", words) if word)


KINDS: Mapping[str, Kind] = {word: kind for kind, words in [*PHRASES.items()][::-1] for word in _listed(words)}
"""The kind of each word or phrase; the first that names it."""
ALONE = frozenset(_listed(_ALONE))
"""The same, one by one."""
