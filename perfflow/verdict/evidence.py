"""Write and read evidence lines: ``perf: <what>: <value unit>; Δ vs baseline: +12%``.

The grammar is in docs/reference/result.md. A name is written as it is, unless its end would be ambiguous or it
would break the line. Then it is written as a JSON string.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from perfflow.model.units import Dimension, format_percent, format_quantity

_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)"
_VALUE = re.compile(rf"[≤≥<>]?{_NUMBER}(?: ?[^\s\d,;:\"+.-][^\s,;:\"]*)?")
_CHANGE = re.compile(r"none|n/a|[+-]?\d+(?:\.\d+)?%")
_START, _DELTA, _VERSUS = "perf: ", "; Δ vs baseline: ", " vs "
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class Evidence:
    """One line: ``values`` of ``what``, and its change, or the ``other`` that a factor compares it with.

    ``values`` are texts such as ``12.3 ms`` or ``≥4.1 GiB/s``, at least one. ``change`` is ``+12.0%``, with the sign of
    the value; ``none`` on a first run; ``n/a`` if there is a baseline but no relative change; None if the line does not
    mention a baseline. ``other`` requires exactly one value and no change.
    """

    what: str
    values: tuple[str, ...]
    change: str | None = None
    other: str | None = None

    @property
    def share(self) -> float | None:
        """The change as a share of the baseline, such as 0.12; None if it is not a percentage."""
        return float(self.change[:-1]) / 100 if self.change and self.change.endswith("%") else None


def line(
    what: str, value: float, dimension: Dimension, change: float | None, *, at_most: bool = False, unit: str = ""
) -> str:
    """Return the line of a measured value; ``change`` is None on a first run, nan if there is no relative change.

    A positive change means a larger value, whether or not that is better. ``at_most``: the value is an upper bound.
    ``unit``: the unit to write it in, '' for one that suits.
    """
    shown = ("≤" if at_most else "") + format_quantity(value, dimension, unit=unit)
    return write(Evidence(what, (shown,), "none" if change is None else format_percent(change)))


def write(evidence: Evidence) -> str:
    """Return the line. Raises ValueError if its values or its change could not be read back."""
    texts = [*evidence.values, *([evidence.change] if evidence.change is not None else [])]
    known = all(_VALUE.fullmatch(value) for value in evidence.values) and bool(evidence.values)
    if not known or (evidence.change is not None and not _CHANGE.fullmatch(evidence.change)):
        raise ValueError(f"{texts!r} are not values of an evidence line")
    if evidence.other is not None and (len(evidence.values) > 1 or evidence.change is not None):
        raise ValueError("a line with a factor takes one value and no change")
    end = "" if evidence.change is None else f"{_DELTA}{evidence.change}"
    against = "" if evidence.other is None else f"{_VERSUS}{_written(evidence.other)}"
    return f"{_START}{_written(evidence.what)}: {', '.join(evidence.values)}{against}{end}"


def parse(text: str) -> Evidence:
    """Read one line. Raises ValueError if it is not an evidence line."""
    if not text.startswith(_START):
        raise _refused(text)
    what, rest = _name(text, text.removeprefix(_START), ": ")
    first = _VALUE.match(rest)
    if first and rest[first.end() :].startswith(_VERSUS):
        other, left = _name(text, rest[first.end() + len(_VERSUS) :], "")
        if left:
            raise _refused(text)
        return Evidence(what, (first[0],), None, other)
    listed, delta, change = rest.partition(_DELTA)
    values = tuple(listed.split(", "))
    if not all(_VALUE.fullmatch(value) for value in values) or (delta and not _CHANGE.fullmatch(change)):
        raise _refused(text)
    return Evidence(what, values, change if delta else None)


def _written(name: str) -> str:
    plain = name.isprintable() and name == name.strip() and name and not name.startswith('"') and ": " not in name
    if plain:
        return name
    quoted = json.dumps(name, ensure_ascii=False)
    # Escape every character that is not printable; json alone escapes only ASCII control characters.
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in quoted)


def _name(text: str, rest: str, end: str) -> tuple[str, str]:
    """Return the name at the start of ``rest``, up to ``end`` or the end of the line, and the rest after it."""
    if rest.startswith('"'):
        match = _JSON_STRING.match(rest)
        if not match or not rest[match.end() :].startswith(end):
            raise _refused(text)
        try:
            return str(json.loads(match[0])), rest[match.end() + len(end) :]
        except json.JSONDecodeError as error:
            raise _refused(text) from error
    name, found_end, left = rest.partition(end) if end else (rest, "", "")
    if not name or found_end != end or _written(name) != name:
        raise _refused(text)
    return name, left


def _refused(text: str) -> ValueError:
    return ValueError(f"{text!r} is not an evidence line")
