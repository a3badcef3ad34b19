"""Which functions changed, with noise from several profiles or from the unchanged functions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from perfflow.verdict.attribution import FALSE_ALARMS, CostTrend, NoiseSource, OwnCosts, function_changes, needed_z


def sampled(counts: Mapping[str, int], scale: float = 1.0) -> OwnCosts:
    return OwnCosts(counts, scale, 1.0)


def counted(counts: Mapping[str, int]) -> OwnCosts:
    return OwnCosts(counts, 1.0, 0.0)


def trends(before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> Mapping[str, CostTrend]:
    return function_changes(before, after).trends


def one(before: int, after: int) -> CostTrend:
    """Return the trend of a function among unchanged ones."""
    others = {f"g{number}": 5000 for number in range(30)}
    return trends([sampled({"f": before, **others})], [sampled({"f": after, **others})])["f"]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (0, 1, CostTrend.SAME),
        (1, 0, CostTrend.SAME),
        (0, 15, CostTrend.SAME),
        (0, 100, CostTrend.NEW),
        (100, 0, CostTrend.GONE),
        (1000, 1100, CostTrend.SAME),
        (1000, 1400, CostTrend.MORE),
        (1400, 1000, CostTrend.LESS),
    ],
)
def test_a_change_must_be_larger_than_the_noise_of_its_samples(before: int, after: int, found: CostTrend) -> None:
    assert one(before, after) is found


def test_many_samples_do_not_hide_that_runs_differ() -> None:
    """A million samples vary by 0.1%, but the cost of a function varies more between processes."""
    assert one(1_000_000, 1_100_000) is CostTrend.SAME
    assert one(1_000_000, 1_400_000) is CostTrend.MORE


def test_costs_are_compared_and_not_counts() -> None:
    """The same costs with twice the samples, as from a profile that took twice as long."""
    counts = {f"f{number}": 100 * number for number in range(1, 50)}
    twice = {name: 2 * count for name, count in counts.items()}
    assert set(trends([sampled(counts, 2.0)], [sampled(twice, 1.0)]).values()) == {CostTrend.SAME}
    changed = {**counts, "f49": twice["f49"]}
    assert trends([sampled(counts)], [sampled(changed)])["f49"] is CostTrend.MORE


def test_what_is_counted_has_no_sampling_noise() -> None:
    assert trends([counted({"f": 10})], [counted({"f": 14})])["f"] is CostTrend.MORE
    assert one(10, 14) is CostTrend.SAME


def test_few_sampled_functions_cannot_show_the_noise() -> None:
    assert trends([sampled({"f": 1000, "g": 1000})], [sampled({"f": 1400, "g": 1000})])["f"] is CostTrend.SAME
    assert trends([sampled({"f": 1000, "g": 1000})], [sampled({"f": 9000, "g": 1000})])["f"] is CostTrend.MORE


def test_one_pair_shows_its_noise_by_the_functions_that_did_not_change() -> None:
    """With 30% noise in all functions, a change of one by a third is not significant; without the noise, it is."""
    chance = random.Random(3)
    for noise, found in ((0.3, CostTrend.SAME), (0.0, CostTrend.MORE)):
        before = {f"f{number}": round(5000 * chance.lognormvariate(0, noise)) for number in range(50)}
        after = {name: round(count * chance.lognormvariate(0, noise)) for name, count in before.items()}
        after["f7"] = round(before["f7"] * 1.33)
        assert trends([sampled(before)], [sampled(after)])["f7"] is found


def test_the_more_functions_the_larger_a_change_must_be() -> None:
    assert needed_z(1) == 3.0
    assert 3.4 < needed_z(100) < needed_z(1000) < 4.1


def drawn(chance: random.Random, noise: float, slower: float = 1.0) -> OwnCosts:
    """Return a profile of 60 functions whose costs vary by ``noise`` between processes, besides sampling noise."""
    means = {f"f{number}": 20.0 * (number + 1) for number in range(60)}
    means["f50"] *= slower
    costs = {name: mean * chance.lognormvariate(0, noise) for name, mean in means.items()}
    return sampled({name: max(0, round(chance.gauss(cost, cost**0.5))) for name, cost in costs.items()})


@pytest.mark.parametrize(("profiles", "noise"), [(1, 0.03), (1, 0.3), (2, 0.3), (3, 0.1), (5, 0.2)])
def test_equal_programs_rarely_show_a_change(profiles: int, noise: float) -> None:
    """The least assumed noise, and larger noise."""
    chance = random.Random(profiles)
    runs = 100
    alarms = 0
    for _ in range(runs):
        before, after = ([drawn(chance, noise) for _ in range(profiles)] for _ in range(2))
        alarms += any(trend is not CostTrend.SAME for trend in trends(before, after).values())
    assert alarms <= 2 * FALSE_ALARMS * runs


def test_several_profiles_show_what_one_cannot() -> None:
    """A change of 15% is within the least assumed noise. Quiet profiles prove it, noisy ones do not."""
    chance = random.Random(1)
    for profiles, noise, found in ((1, 0.0, CostTrend.SAME), (8, 0.0, CostTrend.MORE), (8, 0.3, CostTrend.SAME)):
        before = [drawn(chance, noise) for _ in range(profiles)]
        after = [drawn(chance, noise, slower=1.15) for _ in range(profiles)]
        assert trends(before, after)["f50"] is found


def test_a_function_that_varies_more_than_others_needs_a_larger_change() -> None:
    steady = {f"f{number}": 1000 for number in range(40)}
    unsteady = (600, 1400, 500, 1500)
    before = [sampled({**steady, "f0": count, "f1": 1000}) for count in unsteady]
    after = [sampled({**steady, "f0": count + 400, "f1": 1400}) for count in unsteady]
    found = trends(before, after)
    assert (found["f0"], found["f1"], found["f2"]) == (CostTrend.SAME, CostTrend.MORE, CostTrend.SAME)


def test_it_is_told_where_the_noise_is_from() -> None:
    many = {f"f{number}": 100 for number in range(20)}
    for profiles, costs, noise in (
        (1, sampled(many), NoiseSource.SEEN),
        (3, sampled(many), NoiseSource.MEASURED),
        (1, sampled({"f": 100}), NoiseSource.OVERLOADED),
        (1, counted({"f": 100}), NoiseSource.COUNTED),
    ):
        assert function_changes([costs] * profiles, [costs] * profiles).noise is noise
