"""Quantities and requirements: ``45 GiB/s``, ``<10μs``, ``≥2x``, ``0/op``.

Values are kept in base units (s, B, 1, and each per second). Text is converted when it enters perfflow and scaled to
human units only on a page. KB is 1000 B and KiB is 1024 B (IEC 80000-13).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from perfflow.model.similar import nearest


class Dimension(StrEnum):
    """The dimension of a value; the enum's value is its base unit as written in result.json."""

    TIME = "s"
    BYTES = "B"
    COUNT = "1"
    RATIO = "ratio"
    THROUGHPUT = "B/s"
    RATE = "1/s"
    FLOPS = "FLOP/s"

    @property
    def base_unit(self) -> str:
        """Unit of stored values; a ratio is a plain number, so its unit is ``1``."""
        return "1" if self is Dimension.RATIO else self.value

    @property
    def noun(self) -> str:
        """The name of this dimension in messages."""
        return self.name.lower()


class UnitError(ValueError):
    """A text is not a quantity or requirement; ``hint`` shows what to write instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


_DECIMAL: Mapping[str, int] = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Mapping[str, int] = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def _unit_table() -> dict[str, tuple[Dimension, Fraction]]:
    table: dict[str, tuple[Dimension, Fraction]] = {
        "%": (Dimension.RATIO, Fraction(1, 100)),
        "x": (Dimension.RATIO, Fraction(1)),
        "×": (Dimension.RATIO, Fraction(1)),
        "s": (Dimension.TIME, Fraction(1)),
        "ms": (Dimension.TIME, Fraction(1, 10**3)),
        "ns": (Dimension.TIME, Fraction(1, 10**9)),
        "ps": (Dimension.TIME, Fraction(1, 10**12)),
        "min": (Dimension.TIME, Fraction(60)),
        "m": (Dimension.TIME, Fraction(60)),
        "h": (Dimension.TIME, Fraction(3600)),
        "Hz": (Dimension.RATE, Fraction(1)),
    }
    # The micro sign U+00B5, the Greek letter U+03BC and the ASCII stand-in are all in use.
    for micro in ("us", "\u00b5s", "\u03bcs"):
        table[micro] = (Dimension.TIME, Fraction(1, 10**6))
    for prefix, factor in _DECIMAL.items():
        table[f"{prefix}B"] = (Dimension.BYTES, Fraction(factor))
        table[f"{prefix}B/s"] = (Dimension.THROUGHPUT, Fraction(factor))
        for per_second in ("FLOP/s", "FLOPS", "FLOPS/s"):
            table[f"{prefix}{per_second}"] = (Dimension.FLOPS, Fraction(factor))
        for thing in ("", "op", "ops", "req", "elem", "elems", "element", "elements", "Elem", "Elems", "item", "items"):
            table[f"{prefix}{thing}/s"] = (Dimension.RATE, Fraction(factor))
        if prefix:
            table[prefix] = (Dimension.COUNT, Fraction(factor))
    table["1/s"] = (Dimension.RATE, Fraction(1))
    for prefix, factor in _BINARY.items():
        table[f"{prefix}B"] = (Dimension.BYTES, Fraction(factor))
        table[f"{prefix}B/s"] = (Dimension.THROUGHPUT, Fraction(factor))
    return table


UNITS: Mapping[str, tuple[Dimension, Fraction]] = _unit_table()
_RATE_OF = re.compile(r"(?P<thing>[a-z][a-z-]*[a-z])/s")
_INFORMATION = ("bit", "bits", "byte", "bytes")


def unit_of(unit: str) -> tuple[Dimension, Fraction] | None:
    """Return the dimension of a unit and its size in base units, None for an unknown one.

    ``frames/s`` and the like are rates, unless they look like another unit, as ``mb/s`` does.
    """
    known = UNITS.get(unit)
    match = None if known else _RATE_OF.fullmatch(unit)
    if match is None or match["thing"] in _INFORMATION or unit in {name.lower() for name in UNITS}:
        return known
    return Dimension.RATE, Fraction(1)


_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_QUANTITY = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>(?:1/)?[^\s\d].*)?", re.DOTALL)
_PER_OP = re.compile(r"\s*/\s*(?:op|operation)$")


_LONGEST = 200


def _trimmed(value: str | float) -> str:
    """Return the text of a value without outer blanks. Raises UnitError if it is too long."""
    try:
        text = str(value).strip()
    except ValueError as error:  # an int of more digits than Python prints
        raise UnitError("a number of thousands of digits is too large") from error
    if len(text) > _LONGEST:
        raise UnitError(f"{reprlib.repr(text)} ({len(text)} characters) is too long", "write a number and a unit")
    return text


@dataclass(frozen=True)
class Quantity:
    """A value in base units, the unit as written ('' for a bare number), and whether it is per operation."""

    value: float
    unit: str
    dimension: Dimension | None
    per_op: bool = False


def parse_quantity(text: str) -> Quantity:
    """Read ``10 us``, ``2KB/op``, ``45 GiB/s``, ``1.5x``, ``70%`` or a bare number.

    Raises UnitError if the text is not a quantity or the unit is unknown.
    """
    text = _trimmed(text)
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UnitError(f"{text!r} is not a quantity", "write a number and a unit, such as 10us or 2KB")
    unit = match["unit"] or ""
    per_op = bool(_PER_OP.search(" " + unit)) if unit not in UNITS else False
    unit = _PER_OP.sub("", " " + unit).strip() if per_op else unit
    number = Fraction(match["number"])
    if not unit:
        return Quantity(_finite(number, text), "", None, per_op)
    known = unit_of(unit)
    if known is None:
        raise UnitError(f"unknown unit {unit!r}", _nearest_unit(unit))
    return Quantity(_finite(number * known[1], text), unit, known[0], per_op)


def _finite(number: Fraction, text: str) -> float:
    try:
        return float(number)
    except OverflowError as error:
        raise UnitError(f"{text!r} is too large") from error


def _nearest_unit(unit: str) -> str:
    if unit.startswith(","):
        return "write numbers with a decimal point and without thousands separators, such as 9.95ms"
    folded = {known.lower(): known for known in UNITS}
    if unit.lower() in folded:
        return f"did you mean {folded[unit.lower()]!r}?"
    near = nearest(unit, UNITS)
    return (
        f"did you mean {near!r}?"
        if near
        else "known units: ns us ms s, B KB KiB MB MiB GiB, B/s GiB/s, /s, GFLOP/s, %, x"
    )


def parse_as(text: str, dimension: Dimension) -> Quantity:
    """Read a quantity that must be of ``dimension``; a bare number is allowed for counts and ratios, and a bare 0."""
    quantity = parse_quantity(text)
    if quantity.dimension is None:
        if quantity.value != 0 and dimension not in (Dimension.COUNT, Dimension.RATIO):
            raise UnitError(f"{text.strip()!r} has no unit", f"write it with a unit, such as {_example(dimension)}")
        return Quantity(quantity.value, "", dimension, quantity.per_op)
    if quantity.dimension is not dimension:
        raise UnitError(
            f"{quantity.unit!r} is a unit of {quantity.dimension.noun}, but a {dimension.noun} is needed",
            f"write {_example(dimension)}",
        )
    return quantity


def _example(dimension: Dimension) -> str:
    return {
        Dimension.TIME: "10us or 1.5s",
        Dimension.BYTES: "2KB or 4MiB",
        Dimension.COUNT: "12 or 3K",
        Dimension.RATIO: "5% or 1.5x",
        Dimension.THROUGHPUT: "45 GiB/s",
        Dimension.RATE: "10K/s",
        Dimension.FLOPS: "90 GFLOP/s",
    }[dimension]


_NUMBER_GAP = re.compile(r"(?<=\d)\s+(?=[^\W\d])")
_NEXT_PART = re.compile(r"(?<=[hmns])(?=\d)")


def duration(text: str | float) -> float:
    """Return the seconds of a time limit: ``90s``, ``10 m``, ``1h 30m``, ``4m10s``; the unit is required."""
    written = _trimmed(text)
    parts = [parse_as(part, Dimension.TIME) for part in _NEXT_PART.sub(" ", _NUMBER_GAP.sub("", written)).split()]
    if not parts:
        raise UnitError("an empty text is not a duration", "write 90s, 10m or 1h 30m")
    total = sum(part.value for part in parts)
    if not 0 < total < 10**9 or any(part.value < 0 or part.per_op for part in parts):
        raise UnitError(f"{written!r} is not a valid duration", "write 90s, 10m or 1h 30m")
    return total


def brief_duration(seconds: float) -> str:
    """Return seconds as a duration of a workflow: ``0.5s``, ``40s``, ``10m``, ``4m10s``, ``1h30m``."""
    if seconds < 10:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (0 if whole >= 3600 else whole % 60, "s"))
    return "".join(f"{count}{letter}" for count, letter in parts if count)


class Relation(StrEnum):
    """The required relation of a measured value to a bound."""

    LESS = "<"
    AT_MOST = "≤"
    GREATER = ">"
    AT_LEAST = "≥"
    EQUAL = "="
    BETWEEN = "between"


_RELATIONS = {
    "<": Relation.LESS,
    "<=": Relation.AT_MOST,
    "≤": Relation.AT_MOST,
    ">": Relation.GREATER,
    ">=": Relation.AT_LEAST,
    "≥": Relation.AT_LEAST,
    "=": Relation.EQUAL,
    "==": Relation.EQUAL,
}
_REQUIREMENT = re.compile(r"(?P<relation><=|>=|==|<|>|=|≤|≥)?\s*(?P<rest>.+)", re.DOTALL)
_OF_PEAK = re.compile(r"(?P<share>.+?)\s+of\s+peak", re.DOTALL)
GROWTH_CLASSES = ("constant", "log", "linear", "nlogn", "quadratic", "cubic")
"""Growth classes of ``≤linear``, slowest first; the index orders them."""


@dataclass(frozen=True)
class Requirement:
    """A bound in base units. ``high`` is set only for ``between``; ``growth`` only for classes such as ``≤linear``."""

    text: str
    relation: Relation
    bound: float
    high: float | None = None
    unit: str = ""
    per_op: bool = False
    of_peak: bool = False
    growth: str = ""

    def holds_at(self, value: float) -> bool:
        """Return whether a single value satisfies the requirement."""
        match self.relation:
            case Relation.LESS:
                return value < self.bound
            case Relation.AT_MOST:
                return value <= self.bound
            case Relation.GREATER:
                return value > self.bound
            case Relation.AT_LEAST:
                return value >= self.bound
            case Relation.EQUAL:
                return math.isclose(value, self.bound, rel_tol=1e-9, abs_tol=0.0)
            case Relation.BETWEEN:
                return self.bound <= value <= (math.inf if self.high is None else self.high)

    def scaled(self, factor: float) -> Requirement:
        """Return the same requirement with its bounds multiplied, to turn a share of a peak into a value."""
        high = None if self.high is None else self.high * factor
        return replace(self, bound=self.bound * factor, high=high, of_peak=False)


def parse_requirement(text: object, dimension: Dimension) -> Requirement:
    """Read ``<10μs``, ``≥2x``, ``0/op``, ``≥70% of peak``, ``≤linear``, a bare number (equality) or ``{min, max}``.

    Raises UnitError for an unknown unit or one of another dimension.
    """
    if isinstance(text, Mapping):
        return _between(text, dimension)
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        shown = reprlib.repr(text)
        raise UnitError(f"{shown} is not a requirement", f"write <{_example(dimension).split()[0]} or {{min, max}}")
    written = _trimmed(text)
    match = _REQUIREMENT.fullmatch(written)
    if not match:
        raise UnitError("an empty text is not a requirement", 'quote it, such as ">=2x", or write ≥2x')
    relation = _RELATIONS[match["relation"] or "="]
    rest = match["rest"]
    growth = rest.lower().replace(" ", "")
    if growth in GROWTH_CLASSES:
        if dimension is not Dimension.RATIO:
            raise UnitError(
                f"{rest!r} is a growth class, but a {dimension.noun} is needed", f"write {_example(dimension)}"
            )
        return Requirement(written, relation, float(GROWTH_CLASSES.index(growth)), growth=growth)
    peak = _OF_PEAK.fullmatch(rest)
    if peak:
        share = parse_as(peak["share"], Dimension.RATIO)
        return Requirement(written, relation, share.value, unit="%", of_peak=True)
    quantity = parse_as(rest, dimension)
    return Requirement(written, relation, quantity.value, unit=quantity.unit, per_op=quantity.per_op)


def _between(bounds: Mapping[object, object], dimension: Dimension) -> Requirement:
    unknown = [key for key in bounds if key not in ("min", "max")]
    if unknown or not bounds:
        raise UnitError("a requirement's mapping has only the keys min and max", "write {min: 45 GiB/s} or {max: 10us}")
    parsed = {str(key): parse_as(_scalar(value), dimension) for key, value in bounds.items()}
    text = ", ".join(f"{key} {bounds[key]}" for key in bounds)
    per_op = any(quantity.per_op for quantity in parsed.values())
    low, high = parsed.get("min"), parsed.get("max")
    unit = next((quantity.unit for quantity in parsed.values() if quantity.unit), "")
    if low and high and low.value > high.value:
        raise UnitError("min is greater than max")
    if low and high:
        return Requirement(text, Relation.BETWEEN, low.value, high.value, unit, per_op)
    ((key, only),) = parsed.items()
    relation = Relation.AT_LEAST if key == "min" else Relation.AT_MOST
    return Requirement(text, relation, only.value, unit=unit, per_op=per_op)


def _scalar(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"{reprlib.repr(value)} is not a quantity", "write a number and a unit, such as 10us or 2KB")
    return _trimmed(value)


_LADDERS: Mapping[Dimension, tuple[tuple[str, float], ...]] = {
    Dimension.TIME: (("s", 1.0), ("ms", 1e-3), ("μs", 1e-6), ("ns", 1e-9), ("ps", 1e-12)),
    Dimension.BYTES: (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0)),
    Dimension.THROUGHPUT: (
        ("TiB/s", 2.0**40),
        ("GiB/s", 2.0**30),
        ("MiB/s", 2.0**20),
        ("KiB/s", 2.0**10),
        ("B/s", 1.0),
    ),
    Dimension.RATE: (("G/s", 1e9), ("M/s", 1e6), ("K/s", 1e3), ("/s", 1.0)),
    Dimension.FLOPS: (("TFLOP/s", 1e12), ("GFLOP/s", 1e9), ("MFLOP/s", 1e6), ("FLOP/s", 1.0)),
    Dimension.COUNT: (("G", 1e9), ("M", 1e6), ("K", 1e3), ("", 1.0)),
}


def common_unit(values: Iterable[float | None], dimension: Dimension) -> str:
    """Return the unit in which all values are shown beside each other; '' if each has the same unit anyway.

    It is the unit of the smallest value, or a larger one if that makes the largest value long.
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes or dimension in (Dimension.RATIO, Dimension.COUNT):
        return ""
    ladder = _LADDERS[dimension]
    least = next((number for number, rung in enumerate(ladder) if min(sizes) >= rung[1] * 0.9995), len(ladder) - 1)
    for symbol, scale in reversed(ladder[: least + 1]):
        if max(sizes) < _LONGEST_NUMBER * scale:
            return symbol
    return ladder[0][0]


def column_unit(values: Iterable[float | None], dimension: Dimension) -> str:
    """Return the unit of a column of values; '' if they differ so much that no unit suits all of them.

    It is the unit that each value has by itself, or else the largest of which every value is at least a tenth.
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    units = {common_unit([size], dimension) for size in sizes}
    if len(units) < 2:
        return next(iter(units), "")
    return common_unit([10 * min(sizes)], dimension) if max(sizes) <= _ONE_COLUMN * min(sizes) else ""


def format_quantity(
    value: float, dimension: Dimension, *, unit: str = "", per_op: bool = False, digits: int = 3
) -> str:
    """Return ``value`` with ``digits`` significant digits in a suitable unit, or in ``unit`` of the same dimension.

    ``parse_quantity`` reads the text back to within half of its last digit.
    """
    suffix = "/op" if per_op else ""
    if not math.isfinite(value):
        return f"{value}{suffix}"
    if unit in UNITS and UNITS[unit][0] is dimension:
        return _joined(value / float(UNITS[unit][1]), unit, digits) + suffix
    if dimension is Dimension.RATIO:
        return _joined(value * 100, "%", digits) + suffix
    if dimension is Dimension.COUNT and value == int(value) and abs(value) < 10**6:
        return f"{int(value)}{suffix}"
    symbol, scale = _rung(value, dimension)
    return _joined(value / scale, symbol, digits) + suffix


def shown_quantity(value: float, dimension: Dimension, *, unit: str = "", per_op: bool = False, digits: int = 3) -> str:
    """Return a quantity for people, like `format_quantity`; a size of nearly nothing is ``<0.01 B``."""
    if dimension is Dimension.BYTES and 0 < value < _LEAST_BYTES:
        return f"<{_LEAST_BYTES} B{'/op' if per_op else ''}"
    return format_quantity(value, dimension, unit=unit, per_op=per_op, digits=digits)


def format_together(values: Sequence[float], dimension: Dimension) -> list[str]:
    """Return values that stand beside each other, all in one unit."""
    unit = common_unit(values, dimension)
    return [format_quantity(value, dimension, unit=unit) for value in values]


def _rung(value: float, dimension: Dimension) -> tuple[str, float]:
    ladder = _LADDERS[dimension]
    if value == 0:
        return ladder[0] if dimension is Dimension.TIME else ladder[-1]
    # 999.6 rounds to 1000, so use 1.00 of the next unit.
    return next((rung for rung in ladder if abs(value) >= rung[1] * 0.9995), ladder[-1])


def _joined(number: float, symbol: str, digits: int = 3) -> str:
    tight = symbol in ("", "%", "x", "×") or symbol in _DECIMAL
    return significant(number, digits) + ("" if tight else " ") + symbol


def significant(number: float, digits: int = 3) -> str:
    """Return ``number`` with ``digits`` significant digits, without an exponent if it fits in 15 places."""
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else str(number)
    magnitude = math.floor(math.log10(abs(number)))
    if magnitude >= 15 or magnitude < -9:
        return f"{number:.{digits - 1}e}"
    text = f"{number:.{max(0, digits - 1 - magnitude)}f}"
    if len(text.lstrip("-").replace(".", "").lstrip("0")) > digits and "." in text:
        # Rounding carried into a new digit: 9.996 becomes 10.00.
        text = f"{number:.{max(0, digits - 2 - magnitude)}f}"
    return text


_MANY_TIMES = 10.0
"""A change from which on it is written as a multiple instead of a percentage."""
_AS_MUCH = " as much"
_BEYOND = 1000
_WIDE = 0.05
"""Half the width of an interval, as a share of the value, from which on a third digit means nothing."""
_LEAST_BYTES = 0.01
_LONGEST_NUMBER = 1e5
_ONE_COLUMN = 1000
UNBOUNDED = "unbounded"
"""Text for an end of an interval that the samples do not limit."""


def format_percent(change: float, digits: int = 1) -> str:
    """Return a relative change as a signed percentage: ``+12.0%``; a change that rounds to nothing is ``0.0%``."""
    percent = change * 100
    if not math.isfinite(percent):
        return "n/a"
    text = f"{percent:+.{0 if abs(percent) >= 1000 else digits}f}%"
    return text[1:] if not text.strip("+-0.%") else text


def format_change(change: float, digits: int = 1) -> str:
    """Return a relative change as text: ``+12.0%``, or ``1,170x as much`` if it is large."""
    if change >= _MANY_TIMES and math.isfinite(100 * change):
        return f"{_times(1 + change)} as much"
    return format_percent(change, digits)


def format_factor(factor: float, low: float | None, high: float | None) -> str:
    """Return a ratio with its interval, with as many digits as that supports: ``1.62x [1.55x, 1.70x]``.

    Ratios above 1,000 or below 0.001 have no interval, since nearly nothing is on one side.
    """
    if factor >= _BEYOND:
        return f"over {_BEYOND:,}x"
    if 0 <= factor <= 1 / _BEYOND:
        return f"under {1 / _BEYOND}x"
    digits = digits_for(factor, low, high)
    if low == high:
        return _times(factor, digits)
    ends = [UNBOUNDED if end is None or not math.isfinite(end) else _times(end, digits) for end in (low, high)]
    return with_interval(_times(factor, digits), *ends)


def _times(factor: float, digits: int = 3) -> str:
    return f"{round(factor):,}x" if factor >= 1000 else f"{significant(factor, digits)}x"


def digits_for(value: float, low: float | None, high: float | None) -> int:
    """Return how many significant digits of a value its interval supports: two if it is wide, else three."""
    if low is None or high is None or not math.isfinite(high - low):
        return 3
    return 2 if high - low > 2 * _WIDE * abs(value) else 3


def format_interval(change: float, low: float | None, high: float | None) -> str:
    """Return a relative change with its interval: ``+15.0% [+14.2%, +15.9%]``.

    An end is None or infinite if the samples do not limit it. Exact changes have no interval.
    """
    # The measured values are positive, so no change is below -100%.
    unlimited = [low is None or low <= -1, high is None or not math.isfinite(high)]
    if all(unlimited):
        return f"{format_change(change)} (no interval yet)"
    # Tenths of a percent would only be noise in a wide interval.
    digits = 0 if low is not None and high is not None and 2 * _WIDE < high - low < math.inf else 1
    ends = [UNBOUNDED if end is None or not math.isfinite(end) else format_change(end, digits) for end in (low, high)]
    shown = format_change(change, digits)
    if not any(unlimited) and all(text.endswith(_AS_MUCH) for text in (shown, *ends)):
        return f"{with_interval(shown.removesuffix(_AS_MUCH), *(end.removesuffix(_AS_MUCH) for end in ends))}{_AS_MUCH}"
    return with_interval(shown, *ends)


def with_interval(text: str, low: str, high: str) -> str:
    """Return a value with its interval, or the value alone if both ends read the same as the value."""
    return text if text == low == high else f"{text} [{low}, {high}]"


def format_threshold(share: float) -> str:
    """Return a threshold as a user would write it: ``10%``, ``2.5%``."""
    return f"{share * 100:.6g}%"
