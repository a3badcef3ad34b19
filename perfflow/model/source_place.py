"""The source context of a line that a profiler reports: the function around it, and properties of the line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Use(StrEnum):
    """Properties of a line of Python that are visible in its source; each value is also the text in evidence."""

    IN_LOOP = "in a loop"
    ELEMENTS = "indexes by a loop's variable"
    """For example ``a[i]`` in ``for i in range(n)``."""
    ARRAYS = "its module imports an array library"
    TEXT = "adds to a text in a loop"
    UNBOUNDED = "in a function cached without bound"
    CONTAINER = "fills a container of its module"


@dataclass(frozen=True)
class SourcePlace:
    """The function that contains a line, such as ``Store.keep``, and its first line; '' and 0 if unknown.

    ``begins`` distinguishes functions of the same name. It is 0 if ``function`` is ``<module>``.
    """

    function: str = ""
    begins: int = 0
    uses: tuple[Use, ...] = ()


NOWHERE = SourcePlace()
