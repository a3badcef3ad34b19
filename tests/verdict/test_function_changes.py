"""Which functions changed, with noise from several profiles or from the unchanged functions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from perfflow.verdict.attribution import FALSE_ALARMS, CostTrend, NoiseSource, OwnCosts, function_changes, needed_z

SAME, MORE = CostTrend.SAME, CostTrend.MORE
OTHERS = {f"g{number}": 5000 for number in range(30)}


def sampled(counts: Mapping[str, int], scale: float = 1.0) -> OwnCosts:
    return OwnCosts(counts, scale, 1.0)


def counted(counts: Mapping[str, int]) -> OwnCosts:
    return OwnCosts(counts, 1.0, 0.0)


def trends(before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> Mapping[str, CostTrend]:
    return function_changes(before, after).trends


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        *[(0, 1, SAME), (1, 0, SAME), (0, 15, SAME), (0, 100, CostTrend.NEW), (100, 0, CostTrend.GONE)],
        *[(10, 14, SAME), (1000, 1100, SAME), (1000, 1400, MORE), (1400, 1000, CostTrend.LESS)],
        # A million samples vary by 0.1%, but the cost of a function varies more between processes.
        *[(1_000_000, 1_100_000, SAME), (1_000_000, 1_400_000, MORE)],
    ],
)
def test_a_change_must_be_larger_than_the_noise_of_its_samples(before: int, after: int, found: CostTrend) -> None:
    """Among unchanged functions."""
    assert trends([sampled({"f": before, **OTHERS})], [sampled({"f": after, **OTHERS})])["f"] is found


def test_costs_are_compared_and_not_counts() -> None:
    """The same costs with twice the samples, as from a profile that took twice as long."""
    counts = {f"f{number}": 100 * number for number in range(1, 50)}
    twice = {name: 2 * count for name, count in counts.items()}
    assert set(trends([sampled(counts, 2.0)], [sampled(twice, 1.0)]).values()) == {SAME}
    assert trends([sampled(counts)], [sampled({**counts, "f49": twice["f49"]})])["f49"] is MORE


def test_what_is_counted_has_no_noise_and_few_sampled_functions_cannot_show_it() -> None:
    assert trends([counted({"f": 10})], [counted({"f": 14})])["f"] is MORE
    for after, found in ((1400, SAME), (9000, MORE)):
        assert trends([sampled({"f": 1000, "g": 1000})], [sampled({"f": after, "g": 1000})])["f"] is found


def test_one_pair_shows_its_noise_by_the_functions_that_did_not_change() -> None:
    """With 30% noise in all functions, a change of one by a third is not significant; without the noise, it is."""
    chance = random.Random(3)
    for noise, found in ((0.3, SAME), (0.0, MORE)):
        before = {f"f{number}": round(5000 * chance.lognormvariate(0, noise)) for number in range(50)}
        after = {name: round(count * chance.lognormvariate(0, noise)) for name, count in before.items()}
        after["f7"] = round(before["f7"] * 1.33)
        assert trends([sampled(before)], [sampled(after)])["f7"] is found


def test_the_more_functions_the_larger_a_change_must_be() -> None:
    assert needed_z(1) == 3.0
    assert 3.4 < needed_z(100) < needed_z(1000) < 4.1


def drawn(chance: random.Random, profiles: int, noise: float, slower: float = 1.0) -> list[OwnCosts]:
    """Return profiles of 60 functions whose costs vary by ``noise`` between processes, besides sampling noise."""
    means = {f"f{number}": 20.0 * (number + 1) for number in range(60)}
    means["f50"] *= slower
    found = []
    for _ in range(profiles):
        costs = {name: mean * chance.lognormvariate(0, noise) for name, mean in means.items()}
        found.append(sampled({name: max(0, round(chance.gauss(cost, cost**0.5))) for name, cost in costs.items()}))
    return found


@pytest.mark.parametrize(("profiles", "noise"), [(1, 0.03), (1, 0.3), (2, 0.3), (3, 0.1), (5, 0.2)])
def test_equal_programs_rarely_show_a_change(profiles: int, noise: float) -> None:
    """The least assumed noise, and larger noise."""
    chance = random.Random(profiles)
    every = [trends(drawn(chance, profiles, noise), drawn(chance, profiles, noise)) for _ in range(100)]
    assert sum(set(found.values()) != {SAME} for found in every) <= 2 * FALSE_ALARMS * 100


def test_several_profiles_show_what_one_cannot() -> None:
    """A change of 15% is within the least assumed noise. Quiet profiles prove it, noisy ones do not."""
    chance = random.Random(1)
    for profiles, noise, found in ((1, 0.0, SAME), (8, 0.0, MORE), (8, 0.3, SAME)):
        assert trends(drawn(chance, profiles, noise), drawn(chance, profiles, noise, 1.15))["f50"] is found


def test_a_function_that_varies_more_than_others_needs_a_larger_change() -> None:
    steady = {f"f{number}": 1000 for number in range(40)}
    unsteady = (600, 1400, 500, 1500)
    before = [sampled({**steady, "f0": count, "f1": 1000}) for count in unsteady]
    after = [sampled({**steady, "f0": count + 400, "f1": 1400}) for count in unsteady]
    found = trends(before, after)
    assert (found["f0"], found["f1"], found["f2"]) == (SAME, MORE, SAME)


@pytest.mark.parametrize(
    ("profiles", "costs", "noise"),
    [
        (1, sampled(OTHERS), NoiseSource.SEEN),
        (3, sampled(OTHERS), NoiseSource.MEASURED),
        (1, sampled({"f": 100}), NoiseSource.OVERLOADED),
        (1, counted({"f": 100}), NoiseSource.COUNTED),
    ],
)
def test_it_is_told_where_the_noise_is_from(profiles: int, costs: OwnCosts, noise: NoiseSource) -> None:
    assert function_changes([costs] * profiles, [costs] * profiles).noise is noise
