"""A call graph as stacks, as far as it tells them.

callgrind adds up what the calls of one function by another cost, but not who called the caller meanwhile. So what a
function costs is shared among its callers by what their calls of it cost, and so on up to a function that nobody calls:
as if a call cost the same wherever its caller was called from. What each function costs itself stays exact; who stands
above it is an estimate wherever a function has several callers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from perfflow.model.stacks import Stack

_DEEPEST = 256
_PARTS = 2000
"""A smaller part of the whole is not shared out: it goes to the caller with the most."""
_Callers = Sequence[tuple[str, int]]


def stacks_of(own: Mapping[str, int], calls: Mapping[tuple[str, str], int]) -> Counter[Stack]:
    """Return stacks, root first, whose last frames cost what ``own`` says.

    ``calls`` are the costs of all calls by caller and callee. Within recursion a stack begins with the function that
    would come again.
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
                waiting += [((caller, *stack), share) for caller, share in _shared(count, above, least)]
    return stacks


def _shared(count: int, callers: _Callers, least: float) -> Iterator[tuple[str, int]]:
    """Share a count among callers, those with the most first, in whole numbers of which none is lost."""
    whole, given = sum(cost for _, cost in callers), 0
    for caller, cost in callers[1:]:
        share = count * cost // whole
        if share < max(1.0, least):
            break
        given += share
        yield caller, share
    yield callers[0][0], count - given
