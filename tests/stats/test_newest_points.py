"""Suspicions about the newest points of a history: comparison with oracles, and exact bounds."""

from __future__ import annotations

import math

import pytest

from perfflow.stats import change_points
from perfflow.stats.change_points import (
    Drift,
    FoundChanges,
    LevelChange,
    Suspicion,
    SuspicionStatus,
    fresh_suspicion,
    review_suspicion,
)
from perfflow.stats.partition import PrefixSums
from tests.stats.test_change_points import noisy, shifted
from tests.stats.test_change_points_bounds import zigzag


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


@pytest.mark.parametrize(("new", "size", "count"), [(3, 0.05, 260), (4, 0.05, 140), (30, 0.5, 42), (60, 0.5, 260)])
def test_the_newest_three_to_sixty_points_may_have_left_their_level(new: int, size: float, count: int) -> None:
    told = fresh_suspicion(shifted([7 + one for one in zigzag(count)], count - new, size), [0.0] * count)
    assert told is not None
    assert (told.at, told.since) == (count - new, max(0, count - 160))
    assert (told.before, told.size) == pytest.approx((7, size), abs=0.01)


def test_more_points_or_those_before_a_start_are_not_looked_at() -> None:
    told = fresh_suspicion(shifted(zigzag(200), 139, 0.5), [0.0] * 200)
    assert told is not None
    assert told.at == 140
    quiet = shifted(zigzag(100), 0, 0.5, 70)
    assert fresh_suspicion(quiet, [0.0] * 100, 70) is None
    told = fresh_suspicion(shifted(zigzag(100), 92, 0.5), [0.0] * 100, 70)
    assert told is not None
    assert (told.at, told.since) == (92, 70)
    assert fresh_suspicion(quiet, [0.0] * 100, 100) is None


def test_a_suspicion_is_told_from_four_standard_errors_on() -> None:
    base = noisy(2, 100)
    found = [fresh_suspicion(shifted(base, 90, size / 1000), [0.0] * 100) for size in range(10, 60)]
    told = [one.z for one in found if one]
    assert None in found
    assert 4 <= min(told) < 4.2


def change(at: int, size: float) -> LevelChange:
    return LevelChange(at, at, at, 0.0, size, size, size, size, 1.0)


LATER = zigzag(100) + [0.5] * 30


@pytest.mark.parametrize(
    ("found", "count", "status"),
    [
        (FoundChanges((change(115, 0.5),)), 108, SuspicionStatus.CONFIRMED),
        (FoundChanges((change(85, 0.5),)), 108, SuspicionStatus.CONFIRMED),
        (FoundChanges((change(116, 0.5),)), 108, SuspicionStatus.OPEN),
        (FoundChanges((change(84, 0.5),)), 108, SuspicionStatus.OPEN),
        (FoundChanges((change(100, -0.5),)), 108, SuspicionStatus.OPEN),
        (FoundChanges((change(100, -0.5), change(101, 0.5))), 108, SuspicionStatus.CONFIRMED),
        (FoundChanges((), (Drift(100, 120, 0.5),)), 108, SuspicionStatus.CONFIRMED),
        (FoundChanges((), (Drift(80, 100, 0.5),)), 108, SuspicionStatus.CONFIRMED),
        (FoundChanges((), (Drift(80, 99, 0.5), Drift(101, 120, 0.5))), 108, SuspicionStatus.OPEN),
        (FoundChanges((), (Drift(80, 120, -0.5),)), 108, SuspicionStatus.OPEN),
        (FoundChanges(outliers=((100, 103),)), 108, SuspicionStatus.WITHDRAWN),
        (FoundChanges(outliers=((107, 109),)), 109, SuspicionStatus.WITHDRAWN),
        (FoundChanges(outliers=((90, 100), (108, 110))), 110, SuspicionStatus.OPEN),
        (FoundChanges(), 130, SuspicionStatus.OPEN),
    ],
)
def test_what_becomes_of_a_suspicion(found: FoundChanges, count: int, status: SuspicionStatus) -> None:
    suspicion = Suspicion(100, 0, 0.0, 0.5, 9.0)
    assert review_suspicion(suspicion, found, LATER[:count], [0.0] * count) is status


def test_a_suspicion_is_withdrawn_after_eight_points_at_the_old_level_or_after_sixty() -> None:
    suspicion = Suspicion(100, 20, 0.0, 0.5, 9.0)
    quiet = zigzag(160)
    for count, status in ((107, SuspicionStatus.OPEN), (108, SuspicionStatus.WITHDRAWN)):
        assert review_suspicion(suspicion, FoundChanges(), quiet[:count], [0.0] * count) is status
    late = shifted(zigzag(161), 100, 0.5)
    for count, status in ((160, SuspicionStatus.OPEN), (161, SuspicionStatus.WITHDRAWN)):
        assert review_suspicion(suspicion, FoundChanges(), late[:count], [0.0] * count) is status
    # Points before the reference do not count, and two standard errors are enough to stay open.
    past = shifted(zigzag(140), 0, 0.5, 20)
    assert review_suspicion(suspicion, FoundChanges(), past, [0.0] * 140) is SuspicionStatus.WITHDRAWN
    noise = noisy(2, 120)
    reviewed = [shifted(noise, 100, size / 1000) for size in range(-60, 40)]
    z = [change_points._Ends.of(one[20:], [0.0] * 100).z(20) for one in reviewed]
    assert [
        review_suspicion(suspicion, FoundChanges(), one, [0.0] * 120) is SuspicionStatus.OPEN for one in reviewed
    ] == [one >= 2 for one in z]
    assert min(z) < 1.9
    assert max(z) > 2.1
