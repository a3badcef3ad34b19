"""What a program's source says of the line that a profiler names: the function around it, and how the line is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Use(StrEnum):
    """What can be read off a line of Python without running it; each is a text for evidence, too."""

    IN_LOOP = "in a loop"
    ELEMENTS = "indexes by a loop's variable"
    """Such as ``a[i]`` in ``for i in range(n)``."""
    ARRAYS = "its module imports an array library"
    TEXT = "adds to a text in a loop"
    UNBOUNDED = "in a function cached without bound"
    CONTAINER = "fills a container of its module"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The function that a line stands in, ``Store.keep``, and the first line of that; '' and 0 where unknown.

    ``begins`` tells functions of one name apart; 0 is the module itself where ``function`` is ``<module>``.
    """

    function: str = ""
    begins: int = 0
    uses: tuple[Use, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data for events; nothing where nothing is known."""
        if not self.function:
            return {}
        return {"function": self.function, "begins": self.begins, "uses": [str(use) for use in self.uses]}


NOWHERE = SourcePlace()


def place_from_json(data: Mapping[str, Any]) -> SourcePlace:
    """Read what ``to_json`` wrote; words of a later version are left out."""
    known = {str(use): use for use in Use}
    uses = tuple(known[word] for word in data.get("uses", ()) if word in known)
    return SourcePlace(data.get("function", ""), data.get("begins", 0), uses)
