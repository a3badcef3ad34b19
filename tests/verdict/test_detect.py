"""The pairs that prove a change: the formula against simulated comparisons."""

from __future__ import annotations

import math
import random

from perfflow.model.readings import SCHEDULES, Design
from perfflow.stats.paired_test import look_confidence, paired_interval
from perfflow.verdict import detect

LOOKS = SCHEDULES[Design.LOOKS]


def test_a_larger_spread_needs_more_pairs_and_a_larger_change_fewer() -> None:
    found = [detect.pairs_to_prove(0.1, spread, 0.02) or math.inf for spread in (0.005, 0.05, 0.1, 0.3)]
    assert found == sorted(found)
    assert found[0] == LOOKS[0][0]
    assert detect.pairs_to_prove(0.05, 0.1, 0.02) >= detect.pairs_to_prove(0.1, 0.1, 0.02)  # type: ignore[operator]


def test_what_no_analysis_proves_has_no_pairs() -> None:
    assert detect.pairs_to_prove(0.02, 0.01, 0.02) is None
    assert detect.pairs_to_prove(0.03, 10.0, 0.02) is None
    assert detect.smallest_change(LOOKS[0][0] - 1, 0.01, 0.02) is None


def test_the_smallest_change_is_the_one_that_takes_so_many_pairs() -> None:
    found = detect.smallest_change(64, 0.05, 0.02)
    assert found is not None
    assert detect.pairs_to_prove(found, 0.05, 0.02) == 64
    assert (detect.pairs_to_prove(found * 0.99, 0.05, 0.02) or math.inf) > 64


def test_simulated_comparisons_prove_it_about_as_often_as_said() -> None:
    change, spread, floor = 0.1, 0.05, 0.02
    pairs = detect.pairs_to_prove(change, spread, floor)
    assert pairs is not None
    coin, proven, trials = random.Random(3), 0, 60
    for _ in range(trials):
        base, other = ([math.exp(coin.gauss(0, spread / math.sqrt(2))) for _ in range(pairs)] for _ in "ab")
        slower = [(1 + change) * value for value in other]
        proven += paired_interval(base, slower, look_confidence(pairs, LOOKS)).low > math.log1p(floor)
    assert proven >= 0.85 * trials
