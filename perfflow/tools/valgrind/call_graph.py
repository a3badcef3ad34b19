"""Convert a call graph to stacks, which are estimates.

callgrind records the cost of all calls of one function by another, but not the callers further up. The cost of a
function is therefore divided among its callers in proportion to the cost of their calls, and so on up to a function
without callers. This assumes that a call costs the same wherever its caller was called from. The own cost of each
function is exact; the frames above it are estimates if a function has several callers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from perfflow.model.stacks import Stack

_DEEPEST = 256
_PARTS = 2000
"""A share below 1/2000 of the total is not divided: it goes to the caller with the highest cost."""
_Callers = Sequence[tuple[str, int]]


def stacks_of(own: Mapping[str, int], calls: Mapping[tuple[str, str], int]) -> Counter[Stack]:
    """Return stacks, root first. The costs of their last frames add up to ``own``.

    ``calls`` are the costs of all calls by caller and callee. In a recursion, a stack begins with a function whose
    callers are all in it already.
    """
    callers: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for (caller, callee), cost in sorted(calls.items(), key=lambda item: (-item[1], item[0])):
        if cost > 0:
            callers[callee].append((caller, cost))
    least = sum(own.values()) / _PARTS
    stacks: Counter[Stack] = Counter()
    for name, whole in own.items():
        waiting: list[tuple[Stack, int]] = [((name,), whole)] if whole else []
        while waiting:
            stack, count = waiting.pop()
            above = [item for item in callers.get(stack[0], ()) if item[0] not in stack]
            if not above or len(stack) >= _DEEPEST:
                stacks[stack] += count
            else:
                waiting += [((caller, *stack), share) for caller, share in _divided(count, above, least)]
    return stacks


def _divided(count: int, callers: _Callers, least: float) -> Iterator[tuple[str, int]]:
    """Divide a count among callers, which are sorted by cost, in whole numbers that add up to the count."""
    whole, given = sum(cost for _, cost in callers), 0
    for caller, cost in callers[1:]:
        share = count * cost // whole
        if share < max(1.0, least):
            break
        given += share
        yield caller, share
    yield callers[0][0], count - given
