"""Which lines differ, within a budget of work.

The idea: a shortest edit script (E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986) while the two
sides are alike, cut into smaller problems at lines that occur once on each side (B. Cohen's "patience diff") when
they are not. `difflib` does neither: it calls frequent lines junk, or is quadratic in them.

Rules: lines are equal when their bytes are. Lines that the other side lacks are set aside first: they match nothing.
The budget counts steps of the loops, never the clock, so that the same input always gives the same answer.
Limits: a script found through unique lines is correct but not always the shortest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

FIRST_TRY = 20_000
"""Steps after which a shortest script is given up for the time being and unique lines are looked for."""


class Gap(NamedTuple):
    """Lines `old[i:j]` are replaced by `new[k:l]` (indexes from 0; one of the two may be empty)."""

    i: int
    j: int
    k: int
    l: int  # noqa: E741  i to j on the one side, k to l on the other


class Budget:
    """Steps that may still be spent; shared by the parts of one patch."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def exceeded(self) -> bool:
        """True once something was asked for that the budget did not suffice for."""
        return self.left < 0

    def pay(self, steps: int) -> bool:
        """Take steps out; False when there were not enough."""
        self.left -= steps
        return not self.exceeded


def gaps(old: Sequence[bytes], new: Sequence[bytes], budget: Budget) -> list[Gap]:
    """The ranges in which two sequences of lines differ, in order.

    Args:
        old: Lines before.
        new: Lines after.
        budget: Steps that may be spent; lowered by those that were. Reading each line once is not counted.

    Returns:
        The gaps, none touching the next; empty if the lines are equal. One gap with everything between the lines that
        both ends share, if the budget is exceeded.
    """
    if set(old).isdisjoint(new):
        return [Gap(0, len(old), 0, len(new))] if old or new else []
    names: dict[bytes, int] = {}
    a = [names.setdefault(line, len(names)) for line in old]
    b = [names.setdefault(line, len(names)) for line in new]
    partner = [-1] * len(a)
    rest = _trim(a, b, Gap(0, len(a), 0, len(b)), partner)
    if not _match(a, b, rest, partner, budget):
        return [rest]
    return _between(partner, len(b))


def _trim(a: list[int], b: list[int], part: Gap, partner: list[int]) -> Gap:
    """Pair the lines that both ends share; the rest."""
    i, j, k, m = part
    while i < j and k < m and a[i] == b[k]:
        partner[i] = k
        i, k = i + 1, k + 1
    while i < j and k < m and a[j - 1] == b[m - 1]:
        j, m = j - 1, m - 1
        partner[j] = m
    return Gap(i, j, k, m)


def _between(partner: list[int], size: int) -> list[Gap]:
    """The gaps that a matching leaves; `partner[i]` is the new index of old line `i`, or -1."""
    found: list[Gap] = []
    i = k = 0
    for at, to in enumerate([*partner, size]):
        if to < 0:
            continue
        if at > i or to > k:
            found.append(Gap(i, at, k, to))
        i, k = at + 1, to + 1
    return found


def _match(a: list[int], b: list[int], part: Gap, partner: list[int], budget: Budget) -> bool:
    """Pair equal lines of a part, in order on both sides; False if the budget did not suffice."""
    work = [part]
    while work:
        i, j, k, m = _trim(a, b, work.pop(), partner)
        here, there = set(a[i:j]), set(b[k:m])
        left = [at for at in range(i, j) if a[at] in there]
        right = [at for at in range(k, m) if b[at] in here]
        if not left or not right:
            continue
        x, y = [a[at] for at in left], [b[at] for at in right]
        pairs = _shortest(x, y, budget, min(FIRST_TRY + len(x) + len(y), budget.left))
        if pairs is None and budget.pay(j - i + m - k):
            fixed = anchors(x, y)
            for p, q in fixed:
                work.append(Gap(i, left[p], k, right[q]))
                i, k = left[p] + 1, right[q] + 1
                partner[left[p]] = right[q]
            if fixed:
                work.append(Gap(i, j, k, m))
                continue
            pairs = _shortest(x, y, budget, budget.left)
        if pairs is None:
            budget.left = -1
            return False
        for p, q in pairs:
            partner[left[p]] = right[q]
    return True


def anchors(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Lines that occur once on each side, the longest series of them that is in order on both."""
    once_a, once_b = Counter(a), Counter(b)
    place = {line: at for at, line in enumerate(b) if once_b[line] == 1}
    tops: list[int] = []  # smallest new index that ends a series of each length
    ends: list[int] = []  # the candidate that it belongs to
    chain: list[tuple[int, int, int]] = []  # old index, new index, candidate before
    for at, line in enumerate(a):
        to = place.get(line)
        if to is None or once_a[line] > 1:
            continue
        size = bisect_left(tops, to)
        chain.append((at, to, ends[size - 1] if size else -1))
        tops[size : size + 1] = [to]
        ends[size : size + 1] = [len(chain) - 1]
    found: list[tuple[int, int]] = []
    last = ends[-1] if ends else -1
    while last >= 0:
        at, to, last = chain[last]
        found.append((at, to))
    return found[::-1]


def _shortest(a: list[int], b: list[int], budget: Budget, limit: int) -> list[tuple[int, int]] | None:
    """Pairs of a shortest edit script, or None after `limit` steps. What was spent is taken from the budget."""
    n, m = len(a), len(b)
    middle = min(n + m, max(limit, 0)) + 1  # no more edits than steps
    # furthest[middle + k]: how far on the old side diagonal k (old index - new index) has come; -1: not reached yet
    furthest = [-1] * (2 * middle + 2)
    furthest[middle + 1] = 0
    trace: list[_Row] = []
    spent = low = high = 0
    d = -1
    while True:  # ends: each turn costs a step, and n + m edits suffice
        d += 1
        trace.append(_Row(low, furthest[middle + low : middle + high + 1 : 2]))
        low, high = -d + 2 * max(0, d - m), d - 2 * max(0, d - n)  # diagonals beyond have left the table
        for k in range(low, high + 1, 2):
            down, right = furthest[middle + k + 1], furthest[middle + k - 1] + 1
            x = start = max(down, right)
            y = x - k
            while x < n and y < m and a[x] == b[y]:
                x += 1
                y += 1
            furthest[middle + k] = x
            spent += 1 + x - start
            if x >= n and y >= m:
                budget.pay(spent)
                return _walk_back(trace, n, m)
            if spent > limit:
                budget.pay(spent)
                return None


class _Row(NamedTuple):
    """How far diagonals `low`, `low` + 2, ... had come before a step."""

    low: int
    furthest: list[int]

    def at(self, k: int) -> int:
        place = (k - self.low) // 2
        return self.furthest[place] if 0 <= place < len(self.furthest) else -1


def _walk_back(trace: list[_Row], x: int, y: int) -> list[tuple[int, int]]:
    """The pairs on the way that ended at (x, y), by the same choices as on the way there."""
    pairs: list[tuple[int, int]] = []
    for row in trace[:0:-1]:
        k = x - y
        down, right = row.at(k + 1), row.at(k - 1) + 1
        start = max(down, right)
        pairs.extend((p, p - k) for p in range(x - 1, start - 1, -1))
        x, y = (down, down - k - 1) if down >= right else (right - 1, right - k)
    pairs.extend((p, p) for p in range(x - 1, -1, -1))
    return pairs[::-1]
