"""Numbers that keep the text they were written with: programs get ``1.10`` and ``0x10``, expressions get numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class _Written:
    """A number with its text, which ``str`` returns."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __getnewargs__(self) -> Any:
        return (self.text,)


class WrittenInt(_Written, int):
    """Results of arithmetic are plain ints."""

    def __new__(cls, text: str) -> Self:
        """Read a decimal number, or one with the prefix ``0x`` or ``0o``. Raises ValueError."""
        made = super().__new__(cls, text, 0 if text[:2] in ("0x", "0o") else 10)
        made.text = text
        return made


class WrittenFloat(_Written, float):
    """Results of arithmetic are plain floats."""

    def __new__(cls, text: str) -> Self:
        """Read a number as YAML writes it, ``.inf`` and ``.nan`` included. Raises ValueError."""
        made = super().__new__(cls, text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        made.text = text
        return made


def whole(text: str) -> int:
    """Return an int that is printed as written. Raises ValueError."""
    value = WrittenInt(text)
    return value if int.__repr__(value) != text else int(value)


def real(text: str) -> float:
    """Return a float that is printed as written. Raises ValueError."""
    value = WrittenFloat(text)
    return value if float.__repr__(value) != text else float(value)


def keep(value: Any, validate: Any) -> Any:
    """Validate a value with pydantic, which turns it into a plain number, and return it as it was written."""
    found = validate(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and found == value else found


def type_of(value: object) -> str:
    """Return the name of the type of a parameter's value: ``string``, ``integer``, ``number``, ...

    A number that keeps its text is of a subclass of its type.
    """
    return next((_NAMES[kind] for kind in type(value).__mro__ if kind in _NAMES), "string")


_NAMES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list"}


def as_stored(value: Any) -> Any:
    """Return data for JSON, in which a number that JSON would write differently is a string."""
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    return value.text if isinstance(value, WrittenInt | WrittenFloat) else value
