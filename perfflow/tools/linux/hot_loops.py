"""The loops of a function, by its instructions, and which of them is the innermost around an address.

Natural loops (Aho, Lam, Sethi, Ullman, Compilers, section 9.6.6): a branch back to a header, with all that reaches it
without passing the header. Where that would be the whole function, since the header can be passed by or a jump through
a table hides how blocks are reached, the loop is what lies between the header and the branch. What an inner loop has is
not the outer one's, so that the arithmetic of a hot inner loop is not that of the cold code around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfflow.tools.linux.disassembly import Flow, Instruction

_VISITS = 2_000_000
"""Blocks that are looked at, of all loops of a function together; the smallest come first."""


@dataclass(frozen=True, slots=True)
class Region:
    """Instructions that are run about equally often: a loop without its inner ones, or a block outside of loops."""

    is_loop: bool
    start: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Basic blocks by number, in the order of addresses, each with those that may come before and after it."""

    code: tuple[tuple[Instruction, ...], ...]
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


def regions(code: Sequence[Instruction]) -> Mapping[int, Region]:
    """Return the region of each instruction, by its address."""
    blocks = _blocks(code)
    loop_of: dict[int, int] = {}
    bodies: dict[int, list[int]] = {}
    for header, body in sorted(_loops(blocks), key=lambda loop: (sum(len(blocks.code[n]) for n in loop[1]), loop[0])):
        own = [number for number in sorted(body) if number not in loop_of]
        loop_of.update(dict.fromkeys(own, header))
        bodies[header] = own
    found: dict[int, Region] = {}
    for header, own in bodies.items():
        inside = tuple(item for number in own for item in blocks.code[number])
        region = Region(is_loop=True, start=blocks.code[header][0].address, instructions=inside)
        found |= dict.fromkeys((item.address for item in inside), region)
    for number, block in enumerate(blocks.code):
        if number not in loop_of:
            region = Region(is_loop=False, start=block[0].address, instructions=block)
            found |= dict.fromkeys((item.address for item in block), region)
    return found


def _blocks(code: Sequence[Instruction]) -> _Blocks:
    known = {item.address for item in code}
    starts = {item.target for item in code if item.target in known}
    blocks: list[list[Instruction]] = []
    is_over = True
    for item in code:
        if is_over or item.address in starts:
            blocks.append([])
        blocks[-1].append(item)
        is_over = item.flow is not Flow.NEXT
    number_of = {block[0].address: number for number, block in enumerate(blocks)}
    after = [_after(block[-1], number, number_of, len(blocks)) for number, block in enumerate(blocks)]
    before: list[list[int]] = [[] for _ in blocks]
    for number, successors in enumerate(after):
        for successor in successors:
            before[successor].append(number)
    return _Blocks(tuple(map(tuple, blocks)), tuple(map(tuple, before)), tuple(after))


def _after(last: Instruction, number: int, number_of: Mapping[int, int], count: int) -> tuple[int, ...]:
    found = []
    if last.flow in (Flow.NEXT, Flow.BRANCH) and number + 1 < count:
        found.append(number + 1)
    if last.target is not None and last.target in number_of:
        found.append(number_of[last.target])
    return tuple(dict.fromkeys(found))


def _loops(blocks: _Blocks) -> Iterator[tuple[int, set[int]]]:
    """Yield each loop's header and blocks; loops of one header are one."""
    latches: dict[int, list[int]] = {}
    for number, successors in enumerate(blocks.after):
        for header in successors:
            if header <= number:
                latches.setdefault(header, []).append(number)
    visits = 0
    for header, ends in sorted(latches.items(), key=lambda item: (max(item[1]) - item[0], item[0])):
        body = {header}
        waiting = list(ends)
        while waiting and visits < _VISITS:
            number = waiting.pop()
            if number not in body:
                visits += 1
                body.add(number)
                waiting += blocks.before[number]
        # The first block cannot reach the header but through it, unless it is the header.
        yield header, set(range(header, max(ends) + 1)) if waiting or (header and 0 in body) else body
