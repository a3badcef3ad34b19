"""The stacks of both sides merged into one tree without invisible frames, stored as columns in preorder.

Each node has its own cost on both sides. The inclusive cost of a frame is the sum over its subtree, so the change of a
caller is its own change plus the changes of its callees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from perfflow.model.stacks import Stack, StackProfile

SMALLEST = 0.0002
"""Share of a side below which a frame is dropped, if it is below on both sides."""
MOST_NODES = 8_000
"""Most nodes of one tree; the smallest share is doubled until there are no more."""
STEPS = 100_000
"""Costs are whole numbers of at most this many steps, so that they are short in the page."""
DIGITS = "".join(letter for letter in map(chr, range(33, 127)) if letter not in '"\\<>&~')
"""Digits of whole numbers: a digit of the second half is followed by another digit of the same number."""
ROOT, SMALLER = "all", "(smaller frames)"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_THREAD_ID = re.compile(r"0x[0-9a-fA-F]+|\b\d{4,}\b")

Costs = tuple[float, float]
"""Before and after."""


@dataclass(frozen=True)
class Tree:
    """A node for each frame in its context, the root first, callees after their caller, sorted by name.

    ``names`` holds each name once, and ``name`` an index into it for each node. ``before`` and ``after`` are own costs
    in units of ``step``. ``smallest`` is the share below which frames are dropped: they are counted with their caller,
    or as `SMALLER` if those of one caller exceed that share together.
    """

    names: Sequence[str]
    name: Sequence[int]
    depth: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    step: Costs
    smallest: float

    def totals(self) -> tuple[list[int], list[int]]:
        """Return the inclusive cost of each node, before and after, in steps."""
        sums = (list(self.before), list(self.after))
        for node, parent in reversed(list(enumerate(_parents(self.depth)))[1:]):
            for side in sums:
                side[parent] += side[node]
        return sums


def merged_name(name: str) -> str:
    """Return a name without addresses, which differ from process to process."""
    return _ADDRESS.sub("0x…", name) if "0x" in name else name


def stacks_of(profile: StackProfile, is_threaded: bool) -> Counter[Stack]:
    """Return the stacks of all threads with merged names, below their thread's name if ``is_threaded``."""
    found: Counter[Stack] = Counter()
    known: dict[str, str] = {}
    for thread, stacks in profile.threads.items():
        above = (_THREAD_ID.sub("…", thread) or "(unnamed thread)",) if is_threaded else ()
        for stack, count in stacks.items():
            for name in stack:
                if name not in known:
                    known[name] = merged_name(name)
            found[above + tuple(known[name] for name in stack)] += count
    return found


def tree_of(before: Mapping[Stack, float], after: Mapping[Stack, float]) -> Tree:
    """Return the tree of the costs of both sides, each in its own unit. A side may have no stacks."""
    frames, depth, own = _preorder(before, after)
    parents = _parents(depth)
    totals = [list(costs) for costs in own]
    for node in range(len(frames) - 1, 0, -1):
        for side in (0, 1):
            totals[node and parents[node]][side] += totals[node][side]
    wholes = [whole or 1.0 for whole in totals[0]]
    shares = [max(total[0] / wholes[0], total[1] / wholes[1]) for total in totals]
    smallest = SMALLEST
    while sum(share >= smallest for share in shares) > MOST_NODES:
        smallest *= 2
    rest: dict[int, list[float]] = {}
    for node in range(1, len(frames)):
        if shares[node] < smallest <= shares[parents[node]]:
            of_caller = rest.setdefault(parents[node], [0.0, 0.0])
            for side in (0, 1):
                of_caller[side] += totals[node][side]
    rows = []
    for node, share in enumerate(shares):
        if share < smallest and node:
            continue
        small = rest.get(node, [0.0, 0.0])
        is_shown = max(small[0] / wholes[0], small[1] / wholes[1]) >= smallest
        kept = [own[node][side] + (0.0 if is_shown else small[side]) for side in (0, 1)]
        rows.append((frames[node], depth[node], kept))
        if is_shown:
            rows.append((SMALLER, depth[node] + 1, small))
    return _columns(rows, (_step(before, totals[0][0]), _step(after, totals[0][1])), smallest)


def _preorder(
    before: Mapping[Stack, float], after: Mapping[Stack, float]
) -> tuple[list[str], list[int], list[list[float]]]:
    """Return names, depths and own costs of all nodes. In sorted order, stacks with a common start are adjacent."""
    frames, depth, own = [ROOT], [0], [[0.0, 0.0]]
    previous: Stack = ()
    for stack in sorted({**before, **after}):
        common = 0
        for one, other in zip(stack, previous, strict=False):
            if one != other:
                break
            common += 1
        for level in range(common, len(stack)):
            frames.append(stack[level])
            depth.append(level + 1)
            own.append([0.0, 0.0])
        own[-1][0] += before.get(stack, 0.0)
        own[-1][1] += after.get(stack, 0.0)
        previous = stack
    return frames, depth, own


def _parents(depth: Sequence[int]) -> list[int]:
    """Return the caller of each node; the root is its own caller."""
    path: list[int] = []
    parents = []
    for node, level in enumerate(depth):
        del path[level:]
        parents.append(path[-1] if path else 0)
        path.append(node)
    return parents


def _step(costs: Mapping[Stack, float], whole: float) -> float:
    """Return the cost of one step: the smallest cost if all are multiples of it, else a fixed part of the whole."""
    least = min((cost for cost in costs.values() if cost), default=1.0)
    if whole / least <= STEPS and all(abs(cost / least - round(cost / least)) < 1e-6 for cost in costs.values()):
        return least
    return whole / STEPS


def _columns(rows: Sequence[tuple[str, int, Sequence[float]]], step: Costs, smallest: float) -> Tree:
    ranked = Counter(name for name, _, _ in rows).most_common()
    number = {name: place for place, (name, _) in enumerate(ranked)}
    return Tree(
        names=list(number),
        name=[number[name] for name, _, _ in rows],
        depth=[level for _, level, _ in rows],
        before=_steps((costs[0] for _, _, costs in rows), step[0]),
        after=_steps((costs[1] for _, _, costs in rows), step[1]),
        step=step,
        smallest=smallest,
    )


def _steps(costs: Iterable[float], step: float) -> list[int]:
    """Return whole steps, rounded so that the sum over any subtree (a range of nodes) is off by at most one step."""
    ends = [round(cost / step) for cost in accumulate(costs, initial=0.0)]
    return [end - start for start, end in pairwise(ends)]


def written(numbers: Iterable[int]) -> str:
    """Return whole numbers >= 0 as text, the lowest digit first, without separators."""
    half = len(DIGITS) // 2
    letters = []
    for number in numbers:
        rest = number
        while rest >= half:
            letters.append(DIGITS[half + rest % half])
            rest //= half
        letters.append(DIGITS[rest])
    return "".join(letters)
