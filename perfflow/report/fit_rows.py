"""Fits the parts of a page into the rows of a terminal: less important parts are shortened first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Line = tuple[str, str]
"""Text and its colour, an SGR code."""


@dataclass
class RowGroup:
    """Entries of one kind, each of one or more rows.

    ``others``: number of entries that the page itself leaves out. ``most``: entries shown at most, with the line that
    counts the others. ``least``: the same if the group is shortened; with 0, left out entries are not counted.
    ``what``: noun for the count. ``head``: titles, shown while an entry is shown. ``last``: entries that always stay.
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
        """Return the lines of the group, and one that counts the entries left out."""
        shown = [line for entry in self.entries[: self._kept] for line in entry]
        shown = [*self.head, *shown] if shown else []
        left = len(self.entries) - self._kept + self.others
        if left and self._kept + self.least > 0:
            where = "result.json" if self.others else "the report"
            what = self.what.removesuffix("s") if left == 1 else self.what
            shown.append((f"  … {left} more {what} in {where}", ""))
        return [*shown, *(line for entry in self.last for line in entry)]

    def give_way(self, rows: int) -> None:
        """Shorten the group by ``rows`` rows, or as far as possible."""
        kept, before = self._kept, len(self.rows())
        while len(self.rows()) > before - rows and self._kept > max(0, self.least - 1):
            self._kept -= 1
        if len(self.rows()) >= before:
            # The line that counts left out entries takes as much room as they did.
            self._kept = kept


def folded(blocks: Sequence[Sequence[RowGroup]], giving_way: Sequence[RowGroup], most: int) -> Iterator[Line]:
    """Yield the lines of all blocks with blank lines between; at most ``most`` if ``giving_way`` groups allow it."""
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
