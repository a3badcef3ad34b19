"""The decision on one comparison: the verdict table, row by row and as properties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import METRICS, Better
from perfflow.model.readings import Side
from perfflow.model.result import Decision
from perfflow.stats.paired_test import Interval
from perfflow.verdict import decide
from perfflow.verdict.comparison import Layouts
from perfflow.verdict.decide import Ruling, after_rebuild, excludes_zero, rule, settled, worse_of
from tests.verdict.comparisons import moved

THRESHOLDS = Thresholds()
"""Floor 2%, concern 5%, action 10%."""
UNPROVEN = Ruling("unproven", None)
Change = tuple[float, float, float]


def ruling(metric: str, *change: float, identical: float = False, **thresholds: float) -> Ruling:
    return rule(moved(metric, *change), Thresholds(**thresholds), identical=bool(identical))


@pytest.mark.parametrize(
    ("decision", "level", "changes"),
    [
        # Up is worse, in shares; floor 2%, concern 5%, action 10%.
        ("regressed", "action", [(0.12, 0.110, 0.130), (0.12, 0.021, 0.300)]),
        ("regressed", "concern", [(0.07, 0.050, 0.090), (0.10, 0.090, 0.110)]),
        ("regressed", "ok", [(0.05, 0.045, 0.055), (0.03, 0.021, 0.039)]),
        ("same", "ok", [(0.03, 0.02, 0.04), (-0.03, -0.04, -0.02), (0.00, -0.05, 0.05), (0.01, 0.005, 0.015)]),
        ("improved", "ok", [(-0.03, -0.039, -0.021), (-0.50, -0.600, -0.400)]),
        (
            "unproven",
            "ok",
            [(0.00, -0.051, 0.040), (0.03, 0.010, 0.051), (0.03, -0.030, 0.099), (-0.06, -0.120, 0.010)],
        ),
        ("unproven", None, [(0.03, -0.030, 0.100), (0.11, 0.015, 0.220), (-0.20, -0.600, 0.300)]),
        ("unproven", None, [(0.00, -math.inf, math.inf), (math.nan, -math.inf, math.inf)]),
    ],
)
def test_the_table_of_the_contract(decision: str, level: str | None, changes: list[Change]) -> None:
    for estimate, low, high in changes:
        for found in (ruling("time", estimate, low, high), ruling("rate", -estimate, -high, -low)):
            assert (found.decision, found.level) == (decision, level), (estimate, low, high)


@pytest.mark.parametrize(
    ("metric", "change", "keys", "decision", "level"),
    [
        # The floor is lower where the executed files are identical.
        ("time", (0.023, 0.006, 0.04), {}, "same", "ok"),
        ("time", (0.023, 0.006, 0.04), {"identical": True}, "regressed", "ok"),
        ("time", (-0.023, -0.04, -0.006), {"identical": True}, "improved", "ok"),
        ("time", (0.022, 0.004, 0.04), {"identical": True}, "same", "ok"),
        # Exact metrics are never unproven.
        *[("heap_peak", (change,) * 3, {}, "same", "ok") for change in (0.0, 0.004)],
        *[("heap_peak", (change,) * 3, {}, "improved", "ok") for change in (-0.006, -1.0)],
        ("heap_peak", (0.006,) * 3, {}, "regressed", "ok"),
        ("heap_peak", (0.06,) * 3, {}, "regressed", "concern"),
        *[("heap_peak", (change,) * 3, {}, "regressed", "action") for change in (0.11, math.inf)],
        # A floor below half a percent holds everywhere.
        ("time", (0.003, 0.002, 0.004), {"floor": 0.001}, "regressed", "ok"),
        ("heap_peak", (0.003,) * 3, {"floor": 0.001}, "regressed", "ok"),
    ],
)
def test_other_floors(metric: str, change: Change, keys: dict[str, float], decision: str, level: str) -> None:
    found = ruling(metric, *change, **keys)
    assert (found.decision, found.level) == (decision, level)


PROVEN = "a change is proven, but not that it exceeds the floor of "


@pytest.mark.parametrize(
    ("metric", "note", "bounds"),
    [
        ("time", PROVEN + "2%", [(0.005, 0.015), (-0.015, -0.005), (0.001, 0.03)]),
        ("heap_peak", PROVEN + "0.5%", [(0.002, 0.002)]),
        ("time", "", [(-0.01, 0.01), (0.0, 0.03), (-0.03, 0.0)]),
    ],
)
def test_a_tiny_change_that_is_proven(metric: str, note: str, bounds: list[tuple[float, float]]) -> None:
    for low, high in bounds:
        assert ruling(metric, (low + high) / 2, low, high) == Ruling("same", "ok", note=note), (low, high)


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"change": None}, Ruling(None, "ok")),
        ({"change": None, "only": Side.BASELINE, "candidate": None}, Ruling("removed", None)),
        ({"change": None, "only": Side.CANDIDATE, "baseline": None}, Ruling("new", "ok")),
        # Unpaired values are unproven whatever they are, and what is only shown is not decided.
        ({"confidence": None}, UNPROVEN),
        ({"change": None, "metric": replace(METRICS["time"], better=Better.NONE)}, Ruling(None, "ok")),
    ],
)
def test_what_lacks_a_side_or_pairs(keys: dict[str, object], found: Ruling) -> None:
    assert rule(moved("time", 0.5, 0.4, 0.6, **keys), THRESHOLDS, identical=False) == found


@pytest.mark.parametrize(
    ("estimate", "half", "pairs", "blur", "more"),
    [
        # To fit into ±5%, or to exclude the floor of 2%, the half-width must halve: four times the pairs.
        *[(0.00, 0.10, 10, 0.0, 30), (0.10, 0.16, 10, 0.0, 30), (0.00, 50.0, 10, 0.0, decide.MAX_MORE)],
        # Half-width 0.1, of which 0.01 is blur of coarse values: 0.09 must shrink to 0.04.
        *[(0.00, 0.10, 16, 0.01, 65), (0.00, 0.10, 20, 0.05, None)],
        *[(0.00, math.inf, 20, 0.0, None), (0.00, 0.10, 0, 0.0, None)],
    ],
)
def test_how_many_more_pairs_decide(estimate: float, half: float, pairs: int, blur: float, more: int | None) -> None:
    item = moved("time", estimate, estimate - half, estimate + half, pairs=pairs, blur=blur)
    found = rule(item, THRESHOLDS, identical=False)
    assert (found.decision, found.more) == ("unproven", pytest.approx(more, abs=0 if blur else 1) if more else None)


def test_how_many_more_pairs_fit_a_zone() -> None:
    # From 10 pairs to a half-width within the concern threshold of 5%: 10 (half / 0.05)^2, rounded up.
    for estimate, half, blur, more in (
        *((0.0, 0.0525, 0.0, 2), (0.0, 0.0510, 0.0, 1), (0.0, 0.0400, 0.0, 1), (0.0, 0.1000, 0.0, 30)),
        *((0.0, 0.0100, 0.01, None), (0.03, 0.1, 0.1, None)),
    ):
        assert decide._more(Interval(estimate, estimate - half, estimate + half), 10, 0.02, 0.05, blur) == more


# -- properties

SHARES = st.floats(-0.9, 3.0)
WIDTHS = st.floats(0, 0.5)
ANY_THRESHOLDS = st.builds(
    lambda floor, concern, action: Thresholds(floor=floor, concern=floor + concern, action=floor + concern + action),
    *(st.floats(0.001, 0.05),) * 3,
)
ORDER = {"improved": 0, "same": 1, "unproven": 1, "regressed": 2}


@given(SHARES, WIDTHS, ANY_THRESHOLDS, st.booleans())
def test_direction_swaps_the_decision(estimate: float, half: float, thresholds: Thresholds, identical: bool) -> None:
    change = (estimate, estimate - half, estimate + half)
    there, back = (rule(moved(name, *change), thresholds, identical=identical) for name in ("time", "rate"))
    swapped = {"improved": "regressed", "regressed": "improved"}
    assert back.decision == swapped.get(str(there.decision), there.decision)


@given(SHARES, WIDTHS, st.floats(1.0, 10.0), ANY_THRESHOLDS)
def test_more_noise_never_proves_more(estimate: float, half: float, factor: float, thresholds: Thresholds) -> None:
    """A wider interval around the same estimate says the same or less: never another side, never out of unproven."""
    narrow, wide = (
        rule(moved("time", estimate, estimate - reach, estimate + reach), thresholds, identical=False)
        for reach in (half, half * factor)
    )
    if narrow.decision == "unproven":
        assert wide.decision == "unproven"
    if narrow.decision == "same":
        assert wide.decision in ("same", "unproven")
    assert abs(ORDER[str(narrow.decision)] - ORDER[str(wide.decision)]) < 2
    if narrow.level is None:
        assert wide.level is None


@given(SHARES, WIDTHS, WIDTHS, ANY_THRESHOLDS)
def test_a_run_passes_only_where_a_regression_beyond_action_is_excluded_or_estimated_below(
    estimate: float, below: float, above: float, thresholds: Thresholds
) -> None:
    found = rule(moved("time", estimate, estimate - below, estimate + above), thresholds, identical=False)
    if found.level in ("ok", "concern"):
        assert estimate + above < thresholds.action or (found.decision == "regressed" and estimate <= thresholds.action)
    if found.decision == "improved":
        assert estimate + above < 0
    if found.decision == "same":
        assert max(abs(estimate - below), abs(estimate + above)) <= thresholds.concern


# -- the end of measuring


@pytest.mark.parametrize(
    ("enough", "identical", "decision", "keys", "changes"),
    [
        # `same`: half-width of 2% (identical files: 1%), and no change above the floor as likely as none.
        (True, False, None, {}, [(0.000, -0.019, 0.019), (0.018, 0.001, 0.035)]),
        (False, False, None, {}, [(0.000, -0.021, 0.021)]),
        (True, True, None, {}, [(0.004, -0.006, 0.014), (0.007, 0.005, 0.009)]),
        (False, True, None, {}, [(0.018, 0.001, 0.035), (0.003, -0.008, 0.014), (0.009, -0.011, 0.029)]),
        (False, True, None, {}, [(0.011, -0.009, 0.031), (-0.011, -0.031, 0.009), (0.009, 0.005, 0.013)]),
        # Identical files are known to one percent where that takes few pairs.
        *[(False, True, None, {"pairs": pairs}, [(0.003, -0.008, 0.014)]) for pairs in (11, 64)],
        *[(True, True, None, {"pairs": pairs}, [(0.003, -0.008, 0.014)]) for pairs in (90, 128)],
        (True, True, None, {"pairs": 90}, [(0.006, -0.013, 0.025)]),
        (False, True, None, {"pairs": 90}, [(0.0065, -0.0125, 0.0255)]),
        # On the floor of 2% the half-width is 0.5%; with an estimate exactly on it, a change is as likely as none.
        (True, False, None, {}, [(0.021, 0.0175, 0.0245)]),
        (False, False, None, {}, [(0.021, 0.0150, 0.0270)]),
        (True, False, "same", {}, [(0.021, 0.013, 0.023), (0.020, 0.001, 0.039)]),
        # `regressed`: in one zone of the table; half-width of half the threshold at concern, or of 0.5% at action.
        (True, False, None, {}, [(0.030, 0.021, 0.045), (0.070, 0.051, 0.090), (0.052, 0.048, 0.057)]),
        (True, False, None, {}, [(0.050, 0.026, 0.074)]),
        (False, False, None, {}, [(0.120, 0.090, 0.150), (0.050, 0.024, 0.076), (0.090, 0.080, 0.101)]),
        # An interval that ends exactly on a threshold does not include it; the half-width is exactly half of it.
        (True, False, "regressed", {}, [(0.150, 0.100, 0.200), (0.080, 0.060, 0.100), (0.050, 0.0255, 0.0755)]),
        (False, False, "regressed", {}, [(0.150, 0.099, 0.200), (0.080, 0.060, 0.101)]),
        # `improved` has no levels; `unproven` needs more pairs, unless half a percent or what is coarse is left.
        (True, False, None, {}, [(-0.300, -0.600, -0.021)]),
        (False, False, None, {}, [(0.060, -0.010, 0.130)]),
        (True, False, "unproven", {}, [(0.021, 0.013, 0.023)]),
        (True, False, "unproven", {"blur": 0.005}, [(0.0, -0.01, 0.01)]),
        (True, False, "unproven", {"blur": 0.0951}, [(0.0, -0.1, 0.1)]),
        *[(False, False, "unproven", {"blur": blur}, [(0.0, -0.1, 0.1)]) for blur in (0.0949, 0.0)],
        *[(True, False, "unproven", {"change": None} | gone, [(0.0, 0.0, 0.0)]) for gone in ({}, {"candidate": None})],
    ],
)
def test_measuring_ends_once_more_pairs_could_say_nothing_that_matters(
    enough: bool, identical: bool, decision: Decision | None, keys: dict[str, Any], changes: list[Change]
) -> None:
    for change in changes:
        item = moved("time", *change, **keys)
        found = Ruling(decision, "ok") if decision else rule(item, THRESHOLDS, identical=identical)
        assert settled(item, found, THRESHOLDS, identical=identical) is enough, change


def test_what_is_known_of_a_change_is_turned_so_that_up_is_worse() -> None:
    assert worse_of(moved("rate", -0.1, -0.3, 0.2)) == Interval(0.1, -0.2, 0.3)
    assert worse_of(moved("time", -0.1, -0.3, 0.2)) == Interval(-0.1, -0.3, 0.2)
    for change in (None, Interval(math.nan, 0.0, 0.0)):
        unknown = worse_of(moved("time", 0, 0, 0, change=change))
        assert (math.isnan(unknown.estimate), unknown.low, unknown.high) == (True, -math.inf, math.inf)


def test_a_change_of_any_size_is_proven_where_the_interval_lacks_zero() -> None:
    for low, high, proven in ((-0.1, 0.1, False), (0.0, 0.1, False), (-0.1, 0.0, False), (0.01, 0.1, True)):
        assert excludes_zero(moved("time", (low + high) / 2, low, high)) is proven
        assert excludes_zero(moved("time", (low + high) / -2, -high, -low)) is proven
    assert not excludes_zero(moved("time", 0, 0, 0, change=None))


# -- code layouts

SLOWER, FASTER = (0.12, 0.11, 0.13), (-0.12, -0.13, -0.11)
ACCIDENT = "an accident of code layout"


@pytest.mark.parametrize(
    ("built", "over", "decision", "level", "note"),
    [
        (SLOWER, (0.11, 0.09, 0.13), "regressed", "action", ""),
        (SLOWER, (0.01, 0.006, 0.014), "regressed", "ok", ""),
        (SLOWER, (0.00, -0.04, 0.04), "same", "ok", f"{ACCIDENT}: as built +12.0% [+11.0%"),
        (SLOWER, (-0.07, -0.09, -0.05), "same", "ok", ACCIDENT),
        (FASTER, (0.00, -0.01, 0.01), "same", "ok", ACCIDENT),
        (FASTER, (0.07, 0.05, 0.09), "regressed", "concern", f"in spite of {ACCIDENT}"),
        (SLOWER, (0.03, -0.05, 0.12), "unproven", None, "between layouts ±8%: 20 code layouts of each side"),
        (SLOWER, (0.03, -0.05, 0.07), "unproven", "ok", "they would show a change of about 9%"),
        ((0.00, -0.01, 0.01), (0.00, -0.01, 0.01), "same", "ok", ""),
        ((0.01, -0.01, 0.03), SLOWER, "regressed", "action", ""),
    ],
)
def test_layouts_decide(built: Change, over: Change, decision: str, level: str | None, note: str) -> None:
    found = rule(moved("cpu", *over, layouts=Layouts(20, 0.08, moved("cpu", *built))), THRESHOLDS, identical=False)
    assert (found.decision, found.level) == (decision, level)
    assert (note in found.note) if note else not found.note


@pytest.mark.parametrize(
    ("change", "layouts", "decision", "level", "told"),
    [
        *[(change, None, "same", "ok", True) for change in ((0.032, 0.023, 0.041), (-0.032, -0.041, -0.023))],
        ((0.045, 0.03, 0.06), None, "regressed", "ok", True),
        ((0.06, 0.03, 0.09), None, "regressed", "concern", False),
        ((0.0, -0.01, 0.01), None, "same", "ok", False),
        # Fresh layouts are no accident of a rebuild.
        ((0.032, 0.023, 0.041), Layouts(20, 0.08, moved("cpu", 0.03, 0.02, 0.04)), "regressed", "ok", False),
    ],
)
def test_changes_of_a_rebuild(change: Change, layouts: Any, decision: str, level: str | None, told: bool) -> None:
    item = moved("cpu", *change, layouts=layouts)
    found = after_rebuild(item, rule(item, THRESHOLDS, identical=False), THRESHOLDS)
    assert (found.decision, found.level) == (decision, level)
    assert ("which a rebuild alone can do" in found.note) is told


def test_a_comparison_without_layouts_is_as_it_was_built() -> None:
    assert decide.over_layouts(moved("time", 0.0, -0.1, 0.1), UNPROVEN, Ruling("regressed", "action")) is UNPROVEN
