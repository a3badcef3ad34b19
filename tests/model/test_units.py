from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model import units
from perfflow.model.units import (
    GROWTH_CLASSES,
    UNITS,
    Dimension,
    Quantity,
    Relation,
    Requirement,
    UnitError,
    duration,
    format_quantity,
    parse_as,
    parse_quantity,
    parse_requirement,
    significant,
)

# No deadline, because times of calls mean nothing on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

TIME, BYTES, COUNT, RATIO = Dimension.TIME, Dimension.BYTES, Dimension.COUNT, Dimension.RATIO
THROUGHPUT, RATE, FLOPS = Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS
DIMENSIONS = st.sampled_from(list(Dimension))
VALUES = st.floats(min_value=1e-30, max_value=1e30) | st.floats(min_value=0.5, max_value=2e6) | st.just(0.0)
SIGNED = st.tuples(VALUES, st.sampled_from([1.0, -1.0])).map(lambda pair: pair[0] * pair[1])


def check_refused(read: Callable[..., object], *values: object, match: str | None = None) -> None:
    """Check that each value is an error. ``match``: a part of its message."""
    for value in values:
        with pytest.raises(UnitError, match=match):
            read(value)


def half_of_last_digit(text: str) -> Fraction:
    """Half a unit in the last place of the number that ``text`` starts with."""
    number = text.split("/", maxsplit=1)[0].rstrip("%x× GMTKkiBFLOPsnμpm")
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - decimals) / 2


@properties
@given(value=SIGNED, dimension=DIMENSIONS, per_op=st.booleans())
@example(value=999.6e-6, dimension=TIME, per_op=False)
@example(value=0.9996, dimension=TIME, per_op=False)
@example(value=1023.7, dimension=BYTES, per_op=True)
@example(value=5e-324, dimension=TIME, per_op=False)
def test_a_printed_value_reads_back_within_half_of_its_last_digit(
    value: float, dimension: Dimension, per_op: bool
) -> None:
    text = format_quantity(value, dimension, per_op=per_op)
    read = parse_as(text, dimension)
    unit = UNITS[read.unit][1] if read.unit else Fraction(1)
    assert abs(Fraction(read.value) - Fraction(value)) <= half_of_last_digit(text) * unit * Fraction(1 + 10**-9)
    assert read.per_op is per_op


@properties
@given(unit=st.sampled_from(sorted(UNITS)), number=st.floats(min_value=1e-6, max_value=1e6), per_op=st.booleans())
@example(unit="1/s", number=1.0, per_op=True)
def test_every_unit_reads_back_in_itself(unit: str, number: float, per_op: bool) -> None:
    dimension, factor = UNITS[unit]
    value = number * float(factor)
    read = parse_quantity(format_quantity(value, dimension, unit=unit, per_op=per_op))
    assert (read.unit, read.dimension, read.per_op) == (unit, dimension, per_op)
    assert math.isclose(read.value, value, rel_tol=0.0051)


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_every_unit_is_read_with_and_without_a_blank(unit: str) -> None:
    dimension, factor = UNITS[unit]
    expected = Quantity(float(Fraction("2.5") * factor), unit, dimension)
    assert parse_quantity(f" 2.5  {unit} ") == expected
    if not unit[0].isdigit():
        assert parse_quantity(f"2.5{unit}") == expected


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (TIME, {"10us": 1e-5, "10\u00b5s": 1e-5, "10\u03bcs": 1e-5, "1.5 ms": 1.5e-3, "3ns": 3e-9, "7 ps": 7e-12}),
        (TIME, {"2min": 120.0, "2m": 120.0, "1.5h": 5400.0}),
        (BYTES, {"2KB": 2000.0, "2kB": 2000.0, "2KiB": 2048.0, "1MB": 1e6, "1MiB": 2.0**20, "1TiB": 2.0**40}),
        (THROUGHPUT, {"45 GiB/s": 45 * 2.0**30, "45 GB/s": 45e9}),
        (RATE, {"10K/s": 1e4, "10 Melem/s": 1e7, "3 req/s": 3.0, "2 Hz": 2.0, "5 op/s": 5.0}),
        (FLOPS, {"90 GFLOP/s": 9e10, "1.2 TFLOPS": 1.2e12}),
        (RATIO, {"70%": 0.7, "1.5x": 1.5, "1.5×": 1.5}),
        (COUNT, {"3K": 3000.0}),
        (None, {"1e3": 1000.0, "-.5e-2": -0.005, "+5.": 5.0}),
        # As floats 0.1 * 1e-6 and 1e-7 differ, but a target and a value written either way must be equal.
        (TIME, {"0.1us": 1e-7, "100ns": 1e-7, "1.1us": 1.1e-6}),
        # Digits of other scripts have their value, and too small is zero.
        (TIME, {"٣٥us": 3.5e-5, "1e-999 s": 0.0}),
    ],
)
def test_values_in_base_units(dimension: Dimension | None, values: dict[str, float]) -> None:
    read = {text: parse_quantity(text) for text in values}
    assert {text: quantity.value for text, quantity in read.items()} == values
    assert {(quantity.dimension, quantity.per_op) for quantity in read.values()} == {(dimension, False)}


def test_a_ratio_is_stored_as_a_plain_number() -> None:
    names = {dimension: dimension.base_unit for dimension in Dimension}
    assert names.pop(RATIO) == "1"
    assert names == {dimension: dimension.value for dimension in names}


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("2KB/op", 2000.0, "KB"), ("0/op", 0.0, ""), ("1.5 ns / op", 1.5e-9, "ns"), ("3/operation", 3.0, "")],
)
def test_per_operation(text: str, value: float, unit: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.unit, quantity.per_op) == (value, unit, True)


def test_an_unknown_unit_names_the_nearest() -> None:
    hints = {"5 US": "'us'", "5 kib": "'KiB'", "5 gib/s": "'GiB/s'", "5 X": "'x'", "5 mss": "'ms'", "5 ⌘": "known"}
    for text, hint in {**hints, "9,95ms": "decimal point"}.items():
        with pytest.raises(UnitError, match="unknown unit") as caught:
            parse_quantity(text)
        assert hint in caught.value.hint


def test_things_per_second_are_a_rate_but_not_what_looks_like_another_unit() -> None:
    for unit in ("req/s", "frames/s", "tokens/s", "tx/s"):
        assert parse_quantity(f"5 {unit}") == Quantity(5.0, unit, RATE)
    check_refused(parse_quantity, "5 mb/s", "5 bytes/s", "5 flops/s", "5 gib/s", match="unknown unit")


@pytest.mark.parametrize(
    "text", ["", " ", "us", "fast", "1,000us", "1_000", "1.2.3s", "1/2", "--5", "0x10", "nan", "inf", "5²", "1e999"]
)
def test_what_is_no_quantity(text: str) -> None:
    check_refused(parse_quantity, text, match="too large" if text == "1e999" else None)


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        *(("10us", BYTES), ("2KB", TIME), ("2KB/s", BYTES), ("2KB", THROUGHPUT)),
        *(("10K/s", FLOPS), ("1.5x", TIME), ("3K", RATIO), ("10%", COUNT)),
    ],
)
def test_a_unit_of_another_dimension_is_refused_with_an_example(text: str, dimension: Dimension) -> None:
    with pytest.raises(UnitError, match=f"a {dimension.noun} is needed") as caught:
        parse_as(text, dimension)
    written = caught.value.hint.removeprefix("write ").split(" or ")
    assert [parse_as(one, dimension).dimension for one in written] == [dimension] * len(written)


def test_a_bare_number_is_a_count_a_ratio_or_nothing() -> None:
    assert parse_as("12", COUNT).value == 12.0
    assert parse_as("0.5", RATIO).value == 0.5
    assert [parse_as("0", dimension).value for dimension in Dimension] == [0.0] * len(Dimension)
    for dimension in set(Dimension) - {COUNT, RATIO}:
        with pytest.raises(UnitError, match="no unit"):
            parse_as("12", dimension)


# ---- hostile text ----

HOSTILE = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789.eE+-/ %xKMGiBsopu<>=≤≥٣५𝟗²½\n\t\u2028\x00", max_size=60),
    st.builds(
        lambda number, unit: f"{number}{unit}",
        st.sampled_from(["1e999", "1e-999", "-1e999", "9" * 5000, "0." + "0" * 5000 + "1", "٣٥", "1" + " " * 60]),
        st.sampled_from(["", *sorted(UNITS), "/op", " of peak", "\n"]),
    ),
)


@properties
@given(text=HOSTILE, dimension=DIMENSIONS)
@example(text="1e999", dimension=COUNT)
@example(text="1e-999 s", dimension=TIME)
@example(text="<\n5us", dimension=TIME)
def test_any_text_gives_a_finite_value_or_a_unit_error(text: str, dimension: Dimension) -> None:
    for read in (parse_quantity, duration, lambda text: parse_requirement(text, dimension)):
        try:
            result = read(text)
        except UnitError:
            continue
        value = result.value if isinstance(result, Quantity) else result
        assert math.isfinite(value.bound if isinstance(value, Requirement) else value)


@properties
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["min", "max", "mean"]), inner),
        max_leaves=5,
    ),
    dimension=DIMENSIONS,
)
def test_any_yaml_value_gives_a_requirement_or_a_unit_error(value: object, dimension: Dimension) -> None:
    try:
        requirement = parse_requirement(value, dimension)
    except UnitError:
        return
    assert isinstance(value, str | int | float | Mapping)
    assert math.isfinite(requirement.bound)


def test_a_number_of_more_digits_than_python_prints() -> None:
    # YAML's 0xfff... has no limit of digits, but str() has one.
    number = 16**20000
    check_refused(lambda value: parse_requirement(value, COUNT), number, {"min": number}, match="too large")


@pytest.mark.parametrize(
    "text", ["1" * 10**6, "1s" + " " * 10**6 + "x", "<" * 10**6, "1" + " /" * 10**6, "5% of" + " of" * 10**6]
)
def test_a_long_text_is_refused_unread_and_not_repeated_in_full(text: str) -> None:
    # A regular expression would need quadratic time (minutes) for several of these.
    for read in (parse_quantity, duration, lambda text: parse_requirement(text, RATIO)):
        with pytest.raises(UnitError, match="too long") as caught:
            read(text)
        assert len(str(caught.value)) < 200


# ---- durations ----


def test_durations() -> None:
    seconds = {"90s": 90.0, "10m": 600.0, "1h 30m": 5400.0, "1 h 30 min": 5400.0, "10 s": 10.0, "500ms": 0.5}
    seconds |= {"0 5s": 5.0, "1h30m": 5400.0, "4m10s": 250.0}
    assert {text: duration(text) for text in seconds} == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "0s", "10", 10, "-5s", "2m -30s", "5KB", "10s/op", "1h30", "forever", "1e300s"]
)
def test_what_is_no_duration(text: str | int) -> None:
    check_refused(duration, text)


# ---- requirements ----


@pytest.mark.parametrize(
    ("dimension", "relation", "bounds"),
    [
        (TIME, Relation.LESS, {"<10μs": 1e-5, "<10us": 1e-5}),
        (TIME, Relation.AT_MOST, {"<= 10us": 1e-5, "≤10us": 1e-5}),
        (RATIO, Relation.GREATER, {">2x": 2.0}),
        (RATIO, Relation.AT_LEAST, {">=2x": 2.0, "≥ 2x": 2.0}),
        (COUNT, Relation.EQUAL, {"=5": 5.0, "== 5": 5.0, "5": 5.0, 5: 5.0}),
        (RATIO, Relation.EQUAL, {0.25: 0.25, 1e-05: 1e-5}),
        (TIME, Relation.EQUAL, {"0": 0.0}),
        (THROUGHPUT, Relation.AT_LEAST, {"≥4.1 GiB/s": 4.1 * 2**30}),
    ],
)
def test_relations(dimension: Dimension, relation: Relation, bounds: dict[object, float]) -> None:
    for text, bound in bounds.items():
        found = parse_requirement(text, dimension)
        assert (found.relation, found.bound, found.text) == (relation, bound, str(text))


@pytest.mark.parametrize(
    ("bounds", "relation", "low", "high"),
    [
        ({"min": "1us", "max": "2us"}, Relation.BETWEEN, 1e-6, 2e-6),
        ({"min": "1us"}, Relation.AT_LEAST, 1e-6, None),
        ({"max": "2us"}, Relation.AT_MOST, 2e-6, None),
        ({"max": "2us", "min": 0}, Relation.BETWEEN, 0.0, 2e-6),
    ],
)
def test_ranges(bounds: dict[str, object], relation: Relation, low: float, high: float | None) -> None:
    found = parse_requirement(bounds, TIME)
    assert (found.relation, found.bound, found.high, found.unit) == (relation, low, high, "us")


def test_requirements_per_operation() -> None:
    found = parse_requirement("<2KB/op", BYTES)
    assert (found.bound, found.unit, found.per_op) == (2000.0, "KB", True)
    nothing = parse_requirement("0/op", COUNT)
    assert (nothing.relation, nothing.bound, nothing.per_op) == (Relation.EQUAL, 0.0, True)
    bounded = parse_requirement({"min": 0, "max": "2KB/op"}, BYTES)
    assert (bounded.text, bounded.unit, bounded.per_op) == ("min 0, max 2KB/op", "KB", True)


@pytest.mark.parametrize(
    "bounds",
    [
        *({}, {"lower": "1us"}, {"min": "2us", "max": "1us"}, {"min": "1KB"}, {"min": True}, {"min": None}),
        *({"min": ["1us"]}, {"min": "1us", "mean": "2us"}),
        *("<2KB", "2KB", "≤2KB/op", "≥5%", "12"),
    ],
)
def test_what_is_no_requirement_of_a_time(bounds: object) -> None:
    check_refused(lambda value: parse_requirement(value, TIME), bounds)


@pytest.mark.parametrize(
    "text", ["", " ", "<", ">=", "≤", "=<5", "<<5", "< fast", "5 6", True, False, None, [], ["<5"], b"<5"]
)
def test_what_is_no_requirement(text: object) -> None:
    check_refused(lambda value: parse_requirement(value, COUNT), text)


def test_a_share_of_a_peak_scales_with_the_peak() -> None:
    found = parse_requirement("≥70% of peak", THROUGHPUT)
    assert (found.relation, found.bound, found.of_peak) == (Relation.AT_LEAST, 0.7, True)
    bound = found.scaled(200e9)
    assert not bound.of_peak
    assert (bound.holds_at(140e9), bound.holds_at(139e9)) == (True, False)
    check_refused(lambda text: parse_requirement(text, THROUGHPUT), "≥70 GB/s of peak", match="a ratio is needed")


def test_scaling_moves_both_bounds() -> None:
    scaled = parse_requirement({"min": "1us", "max": "2us"}, TIME).scaled(10)
    assert [scaled.holds_at(value) for value in (0.99e-5, 1.1e-5, 1.9e-5, 2.1e-5)] == [False, True, True, False]


def test_growth_classes_are_ordered_and_no_times() -> None:
    at_most_linear = parse_requirement("≤linear", RATIO)
    assert (at_most_linear.relation, at_most_linear.growth) == (Relation.AT_MOST, "linear")
    held = [at_most_linear.holds_at(float(index)) for index in range(len(GROWTH_CLASSES))]
    assert held == [True, True, True, False, False, False]
    assert parse_requirement("<= n log n", RATIO).growth == "nlogn"
    # Otherwise `time p50: ≤linear` would be met by every program that takes less than two seconds.
    check_refused(lambda text: parse_requirement(text, TIME), "≤linear", match="is a growth")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        *(("<5", (True, False, False)), ("≤5", (True, True, False)), ("5", (False, True, False))),
        *(("≥5", (False, True, True)), (">5", (False, False, True))),
    ],
)
def test_what_holds_below_at_and_above_the_bound(text: str, held: tuple[bool, bool, bool]) -> None:
    found = parse_requirement(text, COUNT)
    assert tuple(found.holds_at(value) for value in (4.999, 5.0, 5.001)) == held
    assert not found.holds_at(math.nan)


def test_equality_allows_for_rounding_but_zero_is_zero_and_ends_belong_to_a_range() -> None:
    assert parse_requirement("0.3", RATIO).holds_at(0.1 + 0.2)
    assert not parse_requirement("0", COUNT).holds_at(1e-300)
    bounded = parse_requirement({"min": 2, "max": 3}, COUNT)
    assert [bounded.holds_at(value) for value in (1.99, 2.0, 3.0, 3.01)] == [False, True, True, False]


# ---- text for people ----


@pytest.mark.parametrize(
    ("dimension", "shown"),
    [
        (TIME, {0.0: "0 s", 1.2345e-5: "12.3 μs", 999.4e-6: "999 μs", 999.6e-6: "1.00 ms", 125.0: "125 s"}),
        (TIME, {-0.002: "-2.00 ms", 1e-15: "0.00100 ps", math.inf: "inf"}),
        (BYTES, {0.0: "0 B", 1023.0: "1023 B", 1024.0: "1.00 KiB", math.nan: "nan"}),
        (THROUGHPUT, {45 * 2.0**30: "45.0 GiB/s"}),
        (RATE, {12_345.0: "12.3 K/s"}),
        (FLOPS, {9e10: "90.0 GFLOP/s"}),
        (COUNT, {123_456.0: "123456", 1_234_567.0: "1.23M", 0.5: "0.500"}),
        (RATIO, {0.7: "70.0%"}),
    ],
)
def test_printed_values(dimension: Dimension, shown: dict[float, str]) -> None:
    for value, text in shown.items():
        assert format_quantity(value, dimension) == text
        assert format_quantity(value, dimension, per_op=True) == f"{text}/op"


def test_a_given_unit_is_used_if_it_measures_the_same_thing() -> None:
    assert format_quantity(1.5, RATIO, unit="x") == "1.50x"
    assert format_quantity(2e-3, TIME, unit="us") == "2000 us"
    assert format_quantity(2048.0, BYTES, unit="ms") == "2.00 KiB"
    assert format_quantity(2048.0, BYTES, unit="parsec") == "2.00 KiB"


def test_values_beside_each_other_have_one_unit_and_nothing_is_nonsense() -> None:
    assert units.format_together([4e-6, 8e-4], TIME) == ["4.00 μs", "800 μs"]
    assert units.shown_quantity(0.0001, BYTES) == "<0.01 B"
    assert units.format_factor(880_001.0, 880_000.0, 880_002.0) == "over 1,000x"
    assert units.format_factor(0.63, 0.5, 0.9) == "0.63x [0.50x, 0.90x]"


@pytest.mark.parametrize(
    ("digits", "shown"),
    [
        (3, {0.0: "0", 9.996: "10.0", 99.96: "100", 999.6: "1000", 0.9996: "1.00", 1000.0: "1000", 123456.0: "123456"}),
        (3, {0.0009996: "0.00100", 0.001: "0.00100", 2.5e15: "2.50e+15", 1.25e-10: "1.25e-10", 5e-324: "4.94e-324"}),
        (3, {math.inf: "inf", -math.inf: "-inf", math.nan: "nan"}),
        (2, {-1.5: "-1.5"}),
        (1, {0.96: "1"}),
    ],
)
def test_significant_digits(digits: int, shown: dict[float, str]) -> None:
    assert [significant(number, digits) for number in shown] == list(shown.values())


@properties
@given(number=st.floats(min_value=1e-300, max_value=1e300), digits=st.integers(min_value=1, max_value=9))
def test_significant_rounds_by_at_most_half_a_unit_of_the_last_digit(number: float, digits: int) -> None:
    text = significant(number, digits)
    assert significant(-number, digits) == f"-{text}"
    assert math.isclose(float(text), number, rel_tol=0.5000001 * 10.0 ** (1 - digits))


def test_changes() -> None:
    shown = {0.12: "+12.0%", -0.051: "-5.1%", 0.0: "0.0%", 0.0004: "0.0%", -0.0004: "0.0%", 0.0006: "+0.1%"}
    shown |= {9.5: "+950.0%", 12.3456: "13.3x as much", -1.0: "-100.0%"}
    shown |= dict.fromkeys((math.inf, math.nan, 1e307), "n/a")
    assert [units.format_change(change) for change in shown] == list(shown.values())


@pytest.mark.parametrize(
    ("change", "low", "high", "text"),
    [
        (0.15, 0.142, 0.159, "+15.0% [+14.2%, +15.9%]"),
        (0.2, 0.2, 0.2, "+20.0%"),
        (0.05, -0.1, None, "+5.0% [-10.0%, unbounded]"),
        (0.05, None, 0.1, "+5.0% [unbounded, +10.0%]"),
        (0.05, -math.inf, math.inf, "+5.0% (no interval yet)"),
        (0.05, -1.0, None, "+5.0% (no interval yet)"),
        (-1.1, -1.2, -1.0, "-110% [-120%, -100%]"),
        (1169.254, 1100.0, 1200.0, "1,170x [1,101x, 1,201x] as much"),
    ],
)
def test_changes_with_their_interval(change: float, low: float | None, high: float | None, text: str) -> None:
    assert units.format_interval(change, low, high) == text


@given(st.integers(1, 10**6))
def test_thresholds_read_as_they_were_written(hundredths: int) -> None:
    written = units.format_threshold(hundredths / 10_000)
    assert written == f"{Decimal(hundredths) / 100:f}%"
