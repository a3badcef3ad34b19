"""What others conclude from the same times: rules of thumb and the usual tests, on two lists of wall times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median, stdev

from scipy import stats

Times = Sequence[float]


def ratio_and_deviation(a: Times, b: Times) -> bool:
    """Hyperfine's summary: the ratio of means with its propagated deviation excludes 1."""
    ratio = fmean(b) / fmean(a)
    deviation = ratio * math.hypot(stdev(a) / fmean(a), stdev(b) / fmean(b))
    return abs(ratio - 1) > deviation


def median_by_five_percent(a: Times, b: Times) -> bool:
    """The medians differ by more than 5%."""
    return abs(median(b) / median(a) - 1) > 0.05


def welch(a: Times, b: Times) -> bool:
    """Welch's t-test, p < .05, as hyperfine's script and pyperf's comparison have it (the latter pooled)."""
    return float(stats.ttest_ind(a, b, equal_var=False).pvalue) < 0.05


def mann_whitney(a: Times, b: Times) -> bool:
    """Mann and Whitney's U test, p < .05, as benchstat has it."""
    return float(stats.mannwhitneyu(a, b, alternative="two-sided").pvalue) < 0.05


RULES: Mapping[str, Callable[[Times, Times], bool]] = {
    "ratio ± deviation": ratio_and_deviation,
    "median > 5%": median_by_five_percent,
    "Welch p < .05": welch,
    "Mann-Whitney p < .05": mann_whitney,
}
"""(baseline times, candidate times) -> whether they are called different."""
