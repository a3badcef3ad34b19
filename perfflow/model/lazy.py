"""Dataclasses and regular expressions that are built on first use, so that commands that never use them start faster.

A standard dataclass generates and compiles up to six functions when its module is imported, and a regular expression
is compiled then. Few commands use more than a third of either (docs/performance.md).
"""

from __future__ import annotations

import dataclasses
import re
import signal
from _thread import RLock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "lazy_pattern"]
_LOCK = RLock()
_FIELDS = "__dataclass_fields__"
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


def _dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Return the class; ``dataclasses.dataclass`` is applied with its first instance or the first access to its fields.

    Accepts the options of ``dataclasses.dataclass`` except ``slots``, which makes a second class. Use the standard
    decorator for classes with many instances, where slots save memory, and for exceptions, which have their own
    ``__new__``. Raises TypeError for both.
    """
    if cls is None:
        return lambda cls: _dataclass(cls, **options)
    own = cls.__new__ is object.__new__ or getattr(cls.__new__, "__module__", None) == __name__
    if options.get("slots") or not own:
        raise TypeError(f"{cls.__name__}: use dataclasses.dataclass for slots, and for a class with its own __new__")

    def complete() -> None:
        # An exception of a signal's handler would leave a class without some of its methods for good.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTIONS)
        try:
            with _LOCK:
                if isinstance(cls.__dict__.get(_FIELDS), _Fields):
                    dataclasses.dataclass(**options)(cls)
                    cls.__new__ = _new
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def first(owner: type, *_values: Any, **_named: Any) -> Any:
        # Another thread waits here until the class has its methods, because __init__ is looked up afterwards.
        complete()
        return object.__new__(owner)

    cls.__new__ = first
    setattr(cls, _FIELDS, _Fields(complete))
    return cls


def _new(owner: type, *_values: Any, **_named: Any) -> Any:
    """Make an instance. If ``__new__`` were deleted again, Python would refuse the arguments of the constructor."""
    return object.__new__(owner)


class _Fields:
    """Placeholder for a class's fields until the first access, for example by ``dataclasses.fields`` or a subclass."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, _instance: object, owner: type) -> Any:
        self._complete()
        return getattr(owner, _FIELDS)


class _Pattern:
    """A regular expression that is compiled on the first call of one of its methods."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    from dataclasses import dataclass
    from re import compile as lazy_pattern
else:
    dataclass, lazy_pattern = _dataclass, _Pattern
