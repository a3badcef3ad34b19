"""Suspicions about the newest points of a history: simulated histories, comparison with oracles, and exact bounds."""

from __future__ import annotations

import math

import pytest

from perfflow.stats import change_points
from perfflow.stats.change_points import Drift, FoundChanges, LevelChange, Suspicion, SuspicionStatus, fresh_suspicion
from perfflow.stats.partition import PrefixSums
from tests.stats.series import noisy, shifted, zigzag

CONFIRMED, OPEN, WITHDRAWN = SuspicionStatus.CONFIRMED, SuspicionStatus.OPEN, SuspicionStatus.WITHDRAWN


def fresh(values: list[float], start: int = 0) -> Suspicion | None:
    return fresh_suspicion(values, [0.0] * len(values), start)


def reviewed(suspicion: Suspicion, found: FoundChanges, values: list[float]) -> SuspicionStatus:
    return change_points.review_suspicion(suspicion, found, values, [0.0] * len(values))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e4])
def test_what_is_no_logarithm_is_refused(bad: float) -> None:
    for check in (change_points.changes, fresh_suspicion):
        with pytest.raises(ValueError, match="value 1 is"):
            check([0.0, bad], [0.0, 0.0])
        with pytest.raises(ValueError, match="standard error 0 is"):
            check([0.0, 0.0], [-abs(bad), 0.0])
    with pytest.raises(ValueError, match="2 values but 1 standard errors"):
        change_points.changes([0.0, 0.0], [0.0])
    with pytest.raises(ValueError, match="start is 3"):
        fresh([0.0, 0.0], 3)


# -- simulated histories


@pytest.mark.parametrize("is_spike", [False, True])
def test_a_shift_at_the_end_is_confirmed_and_a_spike_is_withdrawn(is_spike: bool) -> None:
    count, size, end, first = (130, 0.15, 105, 105) if is_spike else (140, 0.08, None, 108)
    right = 0
    for seed in range(10):
        values = shifted(noisy(seed, count), 100, size, end)
        told = fresh(values[:first])
        assert told is not None
        assert is_spike or abs(told.at - 100) <= 5
        found = change_points.changes(values, [0.0] * count)
        right += reviewed(told, found, values) is (WITHDRAWN if is_spike else CONFIRMED)
    assert right >= (9 if is_spike else 10)


def test_quiet_ends_are_not_suspected() -> None:
    assert sum(fresh(noisy(seed, count)) is not None for seed in range(100) for count in (20, 60, 200)) <= 3
    assert all(fresh([float(index) for index in range(count)]) is None for count in range(12))


# -- oracles and bounds


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("count", [1, 3, 20])
def test_the_variance_of_a_few_dependent_points(rho: float, count: int) -> None:
    exact = sum(rho ** abs(a - b) for a in range(count) for b in range(count)) / count**2
    ends = change_points._Ends(PrefixSums.of([0.0], [1.0]), rho, 1, 0.0)
    assert ends._share(count) == pytest.approx(exact / ((1 + rho) / (1 - rho) / count))


def test_how_far_the_newest_points_are_from_those_before() -> None:
    values, weights = [1.0, 2.0, 3.0, 4.0, 9.0], [1.0, 2.0, 1.0, 3.0, 1.0]
    ends = change_points._Ends(PrefixSums.of(values, weights), 0.0, 5, 0.0)
    assert ends.size(3) == pytest.approx(5.25 - 2)
    assert ends.z(2) == pytest.approx(3.25 / math.sqrt((1 / 4 + 1 / 4) * (1 + 10 / 5)))


@pytest.mark.parametrize(
    ("values", "start", "place"),
    [
        # The newest three to sixty points are compared with the 160 before.
        (shifted([7 + one for one in zigzag(260)], 257, 0.05), 0, (257, 100)),
        (shifted([7 + one for one in zigzag(140)], 136, 0.05), 0, (136, 0)),
        (shifted([7 + one for one in zigzag(42)], 12, 0.5), 0, (12, 0)),
        (shifted([7 + one for one in zigzag(260)], 200, 0.5), 0, (200, 100)),
        # More points or those before a start are not looked at.
        (shifted(zigzag(200), 139, 0.5), 0, (140, 40)),
        (shifted(zigzag(100), 0, 0.5, 70), 70, None),
        (shifted(zigzag(100), 0, 0.5, 70), 100, None),
        (shifted(zigzag(100), 92, 0.5), 70, (92, 70)),
    ],
)
def test_newest_points_off_their_level(values: list[float], start: int, place: tuple[int, int] | None) -> None:
    told = fresh(values, start)
    assert (told and (told.at, told.since)) == place
    if told and told.before > 1:
        assert (told.before, told.size) == pytest.approx((7, values[-1] - 7), abs=0.015)


def test_a_suspicion_is_told_from_four_standard_errors_on() -> None:
    base = noisy(2, 100)
    found = [fresh(shifted(base, 90, size / 1000)) for size in range(10, 60)]
    told = [one.z for one in found if one]
    assert None in found
    assert 4 <= min(told) < 4.2


def change(at: int, size: float) -> LevelChange:
    return LevelChange(at, at, at, 0.0, size, size, size, size, 1.0)


LATER = zigzag(100) + [0.5] * 30


@pytest.mark.parametrize(
    ("status", "count", "every"),
    [
        # A change or a drift in the same direction near it.
        (CONFIRMED, 108, [FoundChanges((change(at, 0.5),)) for at in (115, 85)]),
        (CONFIRMED, 108, [FoundChanges((change(100, -0.5), change(101, 0.5)))]),
        (CONFIRMED, 108, [FoundChanges((), (Drift(*place, 0.5),)) for place in ((100, 120), (80, 100))]),
        (OPEN, 108, [FoundChanges((one,)) for one in (change(116, 0.5), change(84, 0.5), change(100, -0.5))]),
        (OPEN, 108, [FoundChanges((), (Drift(80, 99, 0.5), Drift(101, 120, 0.5)))]),
        (OPEN, 108, [FoundChanges((), (Drift(80, 120, -0.5),))]),
        (WITHDRAWN, 108, [FoundChanges(outliers=((100, 103),))]),
        (WITHDRAWN, 109, [FoundChanges(outliers=((107, 109),))]),
        (OPEN, 110, [FoundChanges(outliers=((90, 100), (108, 110)))]),
        (OPEN, 130, [FoundChanges()]),
    ],
)
def test_what_becomes_of_a_suspicion(status: SuspicionStatus, count: int, every: list[FoundChanges]) -> None:
    for found in every:
        assert reviewed(Suspicion(100, 0, 0.0, 0.5, 9.0), found, LATER[:count]) is status, found


SUSPECTED = Suspicion(100, 20, 0.0, 0.5, 9.0)
LATE = shifted(zigzag(161), 100, 0.5)


@pytest.mark.parametrize(
    ("values", "status"),
    [
        # It is withdrawn after eight points at the old level, or after sixty.
        *[(zigzag(107), OPEN), (zigzag(108), WITHDRAWN), (LATE[:160], OPEN), (LATE, WITHDRAWN)],
        # Points before the reference do not count.
        (shifted(zigzag(140), 0, 0.5, 20), WITHDRAWN),
    ],
)
def test_what_is_not_found_is_withdrawn_in_the_end(values: list[float], status: SuspicionStatus) -> None:
    assert reviewed(SUSPECTED, FoundChanges(), values) is status


def test_two_standard_errors_are_enough_to_stay_open() -> None:
    every = [shifted(noisy(2, 120), 100, size / 1000) for size in range(-60, 40)]
    z = [change_points._Ends.of(one[20:], [0.0] * 100).z(20) for one in every]
    assert [reviewed(SUSPECTED, FoundChanges(), one) is OPEN for one in every] == [one >= 2 for one in z]
    assert min(z) < 1.9
    assert max(z) > 2.1
