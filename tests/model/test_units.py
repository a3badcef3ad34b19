from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model.units import (
    GROWTH_CLASSES,
    UNITS,
    Dimension,
    Quantity,
    Relation,
    Requirement,
    UnitError,
    duration,
    format_change,
    format_factor,
    format_interval,
    format_quantity,
    format_threshold,
    format_together,
    parse_as,
    parse_quantity,
    parse_requirement,
    shown_quantity,
    significant,
)

# No deadline, because times of calls mean nothing on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

DIMENSIONS = st.sampled_from(list(Dimension))
VALUES = st.floats(min_value=1e-30, max_value=1e30) | st.floats(min_value=0.5, max_value=2e6) | st.just(0.0)
SIGNED = st.tuples(VALUES, st.sampled_from([1.0, -1.0])).map(lambda pair: pair[0] * pair[1])


def half_of_last_digit(text: str) -> Fraction:
    """Half a unit in the last place of the number that ``text`` starts with."""
    number = text.split("/", maxsplit=1)[0].rstrip("%x× GMTKkiBFLOPsnμpm")
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - decimals) / 2


@properties
@given(value=SIGNED, dimension=DIMENSIONS, per_op=st.booleans())
@example(value=999.6e-6, dimension=Dimension.TIME, per_op=False)
@example(value=0.9996, dimension=Dimension.TIME, per_op=False)
@example(value=1023.7, dimension=Dimension.BYTES, per_op=True)
@example(value=5e-324, dimension=Dimension.TIME, per_op=False)
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
    text = format_quantity(value, dimension, unit=unit, per_op=per_op)
    read = parse_quantity(text)
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
    ("text", "value", "dimension"),
    [
        ("10us", 1e-5, Dimension.TIME),
        ("10\u00b5s", 1e-5, Dimension.TIME),
        ("10\u03bcs", 1e-5, Dimension.TIME),
        ("1.5 ms", 1.5e-3, Dimension.TIME),
        ("3ns", 3e-9, Dimension.TIME),
        ("7 ps", 7e-12, Dimension.TIME),
        ("2min", 120.0, Dimension.TIME),
        ("2m", 120.0, Dimension.TIME),
        ("1.5h", 5400.0, Dimension.TIME),
        ("2KB", 2000.0, Dimension.BYTES),
        ("2kB", 2000.0, Dimension.BYTES),
        ("2KiB", 2048.0, Dimension.BYTES),
        ("1MB", 1e6, Dimension.BYTES),
        ("1MiB", 2.0**20, Dimension.BYTES),
        ("1TiB", 2.0**40, Dimension.BYTES),
        ("45 GiB/s", 45 * 2.0**30, Dimension.THROUGHPUT),
        ("45 GB/s", 45e9, Dimension.THROUGHPUT),
        ("10K/s", 1e4, Dimension.RATE),
        ("10 Melem/s", 1e7, Dimension.RATE),
        ("3 req/s", 3.0, Dimension.RATE),
        ("2 Hz", 2.0, Dimension.RATE),
        ("90 GFLOP/s", 9e10, Dimension.FLOPS),
        ("1.2 TFLOPS", 1.2e12, Dimension.FLOPS),
        ("70%", 0.7, Dimension.RATIO),
        ("1.5x", 1.5, Dimension.RATIO),
        ("1.5×", 1.5, Dimension.RATIO),
        ("3K", 3000.0, Dimension.COUNT),
        ("1e3", 1000.0, None),
        ("-.5e-2", -0.005, None),
        ("+5.", 5.0, None),
    ],
)
def test_values_in_base_units(text: str, value: float, dimension: Dimension | None) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.dimension) == (value, dimension)


def test_a_ratio_is_stored_as_a_plain_number() -> None:
    units = {dimension: dimension.base_unit for dimension in Dimension}
    assert units.pop(Dimension.RATIO) == "1"
    assert units == {dimension: dimension.value for dimension in units}


def test_decimal_quantities_are_rounded_once() -> None:
    # As floats 0.1 * 1e-6 and 1e-7 differ, but a target and a value written either way must be equal.
    assert parse_quantity("0.1us").value == parse_quantity("100ns").value == 1e-7
    assert parse_quantity("1.1us").value == 1.1e-6


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [("2KB/op", 2000.0, "KB"), ("0/op", 0.0, ""), ("1.5 ns / op", 1.5e-9, "ns"), ("3/operation", 3.0, "")],
)
def test_per_operation(text: str, value: float, unit: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.unit, quantity.per_op) == (value, unit, True)


def test_operations_per_second_are_a_rate_and_not_per_operation() -> None:
    quantity = parse_quantity("5 op/s")
    assert (quantity.dimension, quantity.per_op) == (Dimension.RATE, False)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("5 US", "'us'"),
        ("5 kib", "'KiB'"),
        ("5 gib/s", "'GiB/s'"),
        ("5 X", "'x'"),
        ("5 mss", "'ms'"),
        ("5 ⌘", "known"),
        ("9,95ms", "decimal point"),
    ],
)
def test_an_unknown_unit_names_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(UnitError, match="unknown unit") as caught:
        parse_quantity(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize("unit", ["req/s", "frames/s", "tokens/s", "tx/s"])
def test_things_per_second_are_a_rate(unit: str) -> None:
    assert parse_quantity(f"5 {unit}") == Quantity(5.0, unit, Dimension.RATE)


def test_values_beside_each_other_have_one_unit_and_nothing_is_nonsense() -> None:
    assert format_together([4e-6, 8e-4], Dimension.TIME) == ["4.00 μs", "800 μs"]
    assert shown_quantity(0.0001, Dimension.BYTES) == "<0.01 B"
    assert format_factor(880_001.0, 880_000.0, 880_002.0) == "over 1,000x"
    assert format_factor(0.63, 0.5, 0.9) == "0.63x [0.50x, 0.90x]"


@pytest.mark.parametrize("unit", ["mb/s", "bytes/s", "flops/s", "gib/s"])
def test_what_looks_like_another_unit_is_no_rate_of_things(unit: str) -> None:
    with pytest.raises(UnitError, match="unknown unit"):
        parse_quantity(f"5 {unit}")


@pytest.mark.parametrize(
    "text", ["", " ", "us", "fast", "1,000us", "1_000", "1.2.3s", "1/2", "--5", "0x10", "nan", "inf"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(UnitError):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("10us", Dimension.BYTES),
        ("2KB", Dimension.TIME),
        ("2KB/s", Dimension.BYTES),
        ("2KB", Dimension.THROUGHPUT),
        ("10K/s", Dimension.FLOPS),
        ("1.5x", Dimension.TIME),
        ("3K", Dimension.RATIO),
        ("10%", Dimension.COUNT),
    ],
)
def test_a_unit_of_another_dimension_is_refused_with_an_example(text: str, dimension: Dimension) -> None:
    with pytest.raises(UnitError, match=f"a {dimension.noun} is needed") as caught:
        parse_as(text, dimension)
    written = caught.value.hint.removeprefix("write ").split(" or ")
    assert [parse_as(one, dimension).dimension for one in written] == [dimension] * len(written)


def test_a_bare_number_is_a_count_a_ratio_or_nothing() -> None:
    assert parse_as("12", Dimension.COUNT).value == 12.0
    assert parse_as("0.5", Dimension.RATIO).value == 0.5
    assert [parse_as("0", dimension).value for dimension in Dimension] == [0.0] * len(Dimension)
    for dimension in set(Dimension) - {Dimension.COUNT, Dimension.RATIO}:
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
@example(text="1e999", dimension=Dimension.COUNT)
@example(text="1e-999 s", dimension=Dimension.TIME)
@example(text="<\n5us", dimension=Dimension.TIME)
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


@pytest.mark.parametrize("wrapped", [lambda number: number, lambda number: {"min": number}])
def test_a_number_of_more_digits_than_python_prints(wrapped: Callable[[int], object]) -> None:
    # YAML's 0xfff... has no limit of digits, but str() has one.
    with pytest.raises(UnitError, match="too large"):
        parse_requirement(wrapped(16**20000), Dimension.COUNT)


@pytest.mark.parametrize(
    "text", ["1" * 10**6, "1s" + " " * 10**6 + "x", "<" * 10**6, "1" + " /" * 10**6, "5% of" + " of" * 10**6]
)
def test_a_long_text_is_refused_unread_and_not_repeated_in_full(text: str) -> None:
    # A regular expression would need quadratic time (minutes) for several of these.
    for read in (parse_quantity, duration, lambda text: parse_requirement(text, Dimension.RATIO)):
        with pytest.raises(UnitError, match="too long") as caught:
            read(text)
        assert len(str(caught.value)) < 200


def test_digits_of_other_scripts_have_their_value() -> None:
    assert parse_quantity("٣٥us").value == 3.5e-5
    with pytest.raises(UnitError):
        parse_quantity("5²")


def test_too_large_and_too_small() -> None:
    with pytest.raises(UnitError, match="too large"):
        parse_quantity("1e999")
    assert parse_quantity("1e-999 s").value == 0.0


# ---- durations ----


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("10m", 600.0),
        ("1h 30m", 5400.0),
        ("1 h 30 min", 5400.0),
        ("10 s", 10.0),
        ("500ms", 0.5),
        ("0 5s", 5.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "0s", "10", 10, "-5s", "2m -30s", "5KB", "10s/op", "1h30m", "forever", "1e300s"]
)
def test_what_is_no_duration(text: str | int) -> None:
    with pytest.raises(UnitError):
        duration(text)


# ---- requirements ----


@pytest.mark.parametrize(
    ("text", "dimension", "relation", "bound"),
    [
        ("<10μs", Dimension.TIME, Relation.LESS, 1e-5),
        ("<10us", Dimension.TIME, Relation.LESS, 1e-5),
        ("<= 10us", Dimension.TIME, Relation.AT_MOST, 1e-5),
        ("≤10us", Dimension.TIME, Relation.AT_MOST, 1e-5),
        (">2x", Dimension.RATIO, Relation.GREATER, 2.0),
        (">=2x", Dimension.RATIO, Relation.AT_LEAST, 2.0),
        ("≥ 2x", Dimension.RATIO, Relation.AT_LEAST, 2.0),
        ("=5", Dimension.COUNT, Relation.EQUAL, 5.0),
        ("== 5", Dimension.COUNT, Relation.EQUAL, 5.0),
        ("5", Dimension.COUNT, Relation.EQUAL, 5.0),
        (5, Dimension.COUNT, Relation.EQUAL, 5.0),
        (0.25, Dimension.RATIO, Relation.EQUAL, 0.25),
        (1e-05, Dimension.RATIO, Relation.EQUAL, 1e-5),
        ("0", Dimension.TIME, Relation.EQUAL, 0.0),
        ("≥4.1 GiB/s", Dimension.THROUGHPUT, Relation.AT_LEAST, 4.1 * 2**30),
    ],
)
def test_relations(text: object, dimension: Dimension, relation: Relation, bound: float) -> None:
    requirement = parse_requirement(text, dimension)
    assert (requirement.relation, requirement.bound, requirement.text) == (relation, bound, str(text))


def test_requirements_per_operation() -> None:
    requirement = parse_requirement("<2KB/op", Dimension.BYTES)
    assert (requirement.bound, requirement.unit, requirement.per_op) == (2000.0, "KB", True)
    nothing = parse_requirement("0/op", Dimension.COUNT)
    assert (nothing.relation, nothing.bound, nothing.per_op) == (Relation.EQUAL, 0.0, True)


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
    requirement = parse_requirement(bounds, Dimension.TIME)
    assert (requirement.relation, requirement.bound, requirement.high) == (relation, low, high)
    assert requirement.unit == "us"


def test_a_range_says_what_was_written_and_whether_it_is_per_operation() -> None:
    requirement = parse_requirement({"min": 0, "max": "2KB/op"}, Dimension.BYTES)
    assert (requirement.text, requirement.unit, requirement.per_op) == ("min 0, max 2KB/op", "KB", True)


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"lower": "1us"},
        {"min": "2us", "max": "1us"},
        {"min": "1KB"},
        {"min": True},
        {"min": None},
        {"min": ["1us"]},
        {"min": "1us", "mean": "2us"},
    ],
)
def test_ranges_that_make_no_sense(bounds: dict[str, object]) -> None:
    with pytest.raises(UnitError):
        parse_requirement(bounds, Dimension.TIME)


def test_a_share_of_a_peak_scales_with_the_peak() -> None:
    requirement = parse_requirement("≥70% of peak", Dimension.THROUGHPUT)
    assert (requirement.relation, requirement.bound, requirement.of_peak) == (Relation.AT_LEAST, 0.7, True)
    bound = requirement.scaled(200e9)
    assert not bound.of_peak
    assert (bound.holds_at(140e9), bound.holds_at(139e9)) == (True, False)
    with pytest.raises(UnitError, match="a ratio is needed"):
        parse_requirement("≥70 GB/s of peak", Dimension.THROUGHPUT)


def test_scaling_moves_both_bounds() -> None:
    scaled = parse_requirement({"min": "1us", "max": "2us"}, Dimension.TIME).scaled(10)
    assert [scaled.holds_at(value) for value in (0.99e-5, 1.1e-5, 1.9e-5, 2.1e-5)] == [False, True, True, False]


def test_growth_classes_are_ordered() -> None:
    at_most_linear = parse_requirement("≤linear", Dimension.RATIO)
    assert (at_most_linear.relation, at_most_linear.growth) == (Relation.AT_MOST, "linear")
    held = [at_most_linear.holds_at(float(index)) for index in range(len(GROWTH_CLASSES))]
    assert held == [True, True, True, False, False, False]
    assert parse_requirement("<= n log n", Dimension.RATIO).growth == "nlogn"


def test_a_growth_is_not_a_time() -> None:
    # Otherwise `time p50: ≤linear` would be met by every program that takes less than two seconds.
    with pytest.raises(UnitError, match="is a growth"):
        parse_requirement("≤linear", Dimension.TIME)


@pytest.mark.parametrize(
    "text", ["", " ", "<", ">=", "≤", "=<5", "<<5", "< fast", "5 6", True, False, None, [], ["<5"], b"<5"]
)
def test_what_is_no_requirement(text: object) -> None:
    with pytest.raises(UnitError):
        parse_requirement(text, Dimension.COUNT)


@pytest.mark.parametrize("text", ["<2KB", "2KB", "≤2KB/op", "≥5%", "12"])
def test_a_requirement_of_another_dimension(text: str) -> None:
    with pytest.raises(UnitError):
        parse_requirement(text, Dimension.TIME)


@pytest.mark.parametrize(
    ("text", "below", "at", "above"),
    [
        ("<5", True, False, False),
        ("≤5", True, True, False),
        ("5", False, True, False),
        ("≥5", False, True, True),
        (">5", False, False, True),
    ],
)
def test_what_holds(text: str, below: bool, at: bool, above: bool) -> None:
    requirement = parse_requirement(text, Dimension.COUNT)
    assert tuple(requirement.holds_at(value) for value in (4.999, 5.0, 5.001)) == (below, at, above)
    assert not requirement.holds_at(math.nan)


def test_equality_allows_for_rounding_but_zero_is_zero() -> None:
    assert parse_requirement("0.3", Dimension.RATIO).holds_at(0.1 + 0.2)
    assert not parse_requirement("0", Dimension.COUNT).holds_at(1e-300)


def test_the_ends_of_a_range_belong_to_it() -> None:
    requirement = parse_requirement({"min": 2, "max": 3}, Dimension.COUNT)
    assert [requirement.holds_at(value) for value in (1.99, 2.0, 3.0, 3.01)] == [False, True, True, False]


# ---- text for people ----


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (0.0, Dimension.TIME, "0 s"),
        (1.2345e-5, Dimension.TIME, "12.3 μs"),
        (999.4e-6, Dimension.TIME, "999 μs"),
        (999.6e-6, Dimension.TIME, "1.00 ms"),
        (125.0, Dimension.TIME, "125 s"),
        (-0.002, Dimension.TIME, "-2.00 ms"),
        (1e-15, Dimension.TIME, "0.00100 ps"),
        (0.0, Dimension.BYTES, "0 B"),
        (1023.0, Dimension.BYTES, "1023 B"),
        (1024.0, Dimension.BYTES, "1.00 KiB"),
        (45 * 2.0**30, Dimension.THROUGHPUT, "45.0 GiB/s"),
        (12_345.0, Dimension.RATE, "12.3 K/s"),
        (9e10, Dimension.FLOPS, "90.0 GFLOP/s"),
        (123_456.0, Dimension.COUNT, "123456"),
        (1_234_567.0, Dimension.COUNT, "1.23M"),
        (0.5, Dimension.COUNT, "0.500"),
        (0.7, Dimension.RATIO, "70.0%"),
        (math.inf, Dimension.TIME, "inf"),
        (math.nan, Dimension.BYTES, "nan"),
    ],
)
def test_printed_values(value: float, dimension: Dimension, text: str) -> None:
    assert format_quantity(value, dimension) == text
    assert format_quantity(value, dimension, per_op=True) == f"{text}/op"


def test_a_given_unit_is_used_if_it_measures_the_same_thing() -> None:
    assert format_quantity(1.5, Dimension.RATIO, unit="x") == "1.50x"
    assert format_quantity(2e-3, Dimension.TIME, unit="us") == "2000 us"
    assert format_quantity(2048.0, Dimension.BYTES, unit="ms") == "2.00 KiB"
    assert format_quantity(2048.0, Dimension.BYTES, unit="parsec") == "2.00 KiB"


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0.0, 3, "0"),
        (9.996, 3, "10.0"),
        (99.96, 3, "100"),
        (999.6, 3, "1000"),
        (0.9996, 3, "1.00"),
        (0.0009996, 3, "0.00100"),
        (0.001, 3, "0.00100"),
        (1000.0, 3, "1000"),
        (123456.0, 3, "123456"),
        (-1.5, 2, "-1.5"),
        (0.96, 1, "1"),
        (2.5e15, 3, "2.50e+15"),
        (1.25e-10, 3, "1.25e-10"),
        (5e-324, 3, "4.94e-324"),
        (math.inf, 3, "inf"),
        (-math.inf, 3, "-inf"),
        (math.nan, 3, "nan"),
    ],
)
def test_significant_digits(number: float, digits: int, text: str) -> None:
    assert significant(number, digits) == text


@properties
@given(number=st.floats(min_value=1e-300, max_value=1e300), digits=st.integers(min_value=1, max_value=9))
def test_significant_rounds_by_at_most_half_a_unit_of_the_last_digit(number: float, digits: int) -> None:
    text = significant(number, digits)
    assert significant(-number, digits) == f"-{text}"
    assert math.isclose(float(text), number, rel_tol=0.5000001 * 10.0 ** (1 - digits))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (0.12, "+12.0%"),
        (-0.051, "-5.1%"),
        (0.0, "0.0%"),
        (0.0004, "0.0%"),
        (-0.0004, "0.0%"),
        (0.0006, "+0.1%"),
        (9.5, "+950.0%"),
        (12.3456, "13.3x as much"),
        (-1.0, "-100.0%"),
        (math.inf, "n/a"),
        (math.nan, "n/a"),
        (1e307, "n/a"),
    ],
)
def test_changes(change: float, text: str) -> None:
    assert format_change(change) == text


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
    assert format_interval(change, low, high) == text


@given(st.integers(1, 10**6))
def test_thresholds_read_as_they_were_written(hundredths: int) -> None:
    written = format_threshold(hundredths / 10_000)
    assert written == f"{Decimal(hundredths) / 100:f}%"
