"""What a program's source says of the line that a profiler names: the function around it, and how the line is used."""

from __future__ import annotations

from enum import StrEnum

from perfflow.model.later import dataclass


class Use(StrEnum):
    """What can be read off a line of Python without running it; each is a text for evidence, too."""

    IN_LOOP = "in a loop"
    ELEMENTS = "indexes by a loop's variable"
    """Such as ``a[i]`` in ``for i in range(n)``."""
    ARRAYS = "its module imports an array library"
    TEXT = "adds to a text in a loop"
    UNBOUNDED = "in a function cached without bound"
    CONTAINER = "fills a container of its module"


@dataclass(frozen=True)
class SourcePlace:
    """The function that a line stands in, ``Store.keep``, and the first line of that; '' and 0 where unknown.

    ``begins`` tells functions of one name apart; 0 is the module itself where ``function`` is ``<module>``.
    """

    function: str = ""
    begins: int = 0
    uses: tuple[Use, ...] = ()


NOWHERE = SourcePlace()
