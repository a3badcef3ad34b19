"""A page in parts that give way to one another until it has no more rows than a terminal shows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from perfflow.model.later import dataclass

Line = tuple[str, str]
"""A text and its colour."""


@dataclass
class RowGroup:
    """Entries of one kind, each of one or more rows.

    ``others`` are those that the page leaves out itself, ``most`` as many lines as are shown of them where there are
    more. ``least`` lines stay when the part gives way; where that is 0, nothing is said of what is gone. ``what``
    is what they are called. ``head`` are their titles, which go with the last of them. ``last`` is never cut.
    """

    entries: list[list[Line]]
    others: int = 0
    most: int | None = None
    least: int = 1
    what: str = "lines"
    last: list[list[Line]] = field(default_factory=list)
    head: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kept = len(self.entries)
        if self.most is not None and len(self.entries) + self.others > self.most:
            self._kept = min(self._kept, self.most - 1)

    def rows(self) -> list[Line]:
        """Its lines, with one that counts what is left out."""
        shown = [line for entry in self.entries[: self._kept] for line in entry]
        shown = [*self.head, *shown] if shown else []
        left = len(self.entries) - self._kept + self.others
        if left and self._kept + self.least > 0:
            where = "result.json" if self.others else "the report"
            what = self.what.removesuffix("s") if left == 1 else self.what
            shown.append((f"  … {left} more {what} in {where}", ""))
        return [*shown, *(line for entry in self.last for line in entry)]

    def give_way(self, rows: int) -> None:
        """Become shorter by that many rows, or as short as may be."""
        kept, before = self._kept, len(self.rows())
        while len(self.rows()) > before - rows and self._kept > max(0, self.least - 1):
            self._kept -= 1
        if len(self.rows()) >= before:
            # Saying that one line is left out takes as many.
            self._kept = kept


def folded(blocks: Sequence[Sequence[RowGroup]], giving_way: Sequence[RowGroup], most: int) -> Iterator[Line]:
    """Lines of blocks with a blank line between them, at most ``most`` where what may give way is enough for that."""
    for part in giving_way:
        excess = len(_laid_out(blocks)) - most
        if excess <= 0:
            break
        part.give_way(excess)
    yield from _laid_out(blocks)


def _laid_out(blocks: Sequence[Sequence[RowGroup]]) -> list[Line]:
    lines: list[Line] = []
    for block in blocks:
        own = [line for part in block for line in part.rows()]
        lines += [("", ""), *own] if own and lines else own
    return lines
