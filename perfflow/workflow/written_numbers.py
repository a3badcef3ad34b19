"""Numbers that keep the text they were written with: programs get ``1.10`` and ``0x10``, expressions get numbers."""

from __future__ import annotations

from typing import Any, Self


class WrittenInt(int):
    """An int with its text, which ``str`` returns. Results of arithmetic are plain ints."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Read a decimal number, or one with the prefix ``0x`` or ``0o``. Raises ValueError."""
        made = super().__new__(cls, text, 0 if text[:2] in ("0x", "0o") else 10)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.text,)


class WrittenFloat(float):
    """A float with its text, which ``str`` returns. Results of arithmetic are plain floats."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Read a number as YAML writes it, ``.inf`` and ``.nan`` included. Raises ValueError."""
        made = super().__new__(cls, text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.text,)


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
    return value if isinstance(value, WrittenInt | WrittenFloat) and found == value else found


def as_stored(value: Any) -> Any:
    """Return data for JSON, in which a number that JSON would write differently is a string."""
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    return value.text if isinstance(value, WrittenInt | WrittenFloat) else value
