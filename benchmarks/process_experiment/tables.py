"""The tables: what each candidate reads, how often the pair test calls it changed, and how noisy it is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from benchmarks.process_experiment.candidates import CANDIDATES, MEAN, QUARTILE
from benchmarks.process_experiment.recording import BASE, CHANGES, Process
from perfflow.model.readings import CAP, CAPPED
from perfflow.stats.paired_test import Pairs, pair_spread, paired_interval, paired_p, quantile
from perfflow.verdict.comparison import MEAN_SHARE

PAIRS = (11, 20, 40)
TRIALS = 50
ALPHA = 0.01
BOTH = "capped mean, and the mean where they differ"

Pair = tuple[float, float]
_T = TypeVar("_T")
Case = tuple[str, str]


INTRODUCTION = """# One process, one number: an experiment

Written by `python -m benchmarks.process_statistic table` from the recording beside it, and by nothing else.

A benchmark whose calls can be made slower was built for criterion 0.8, pytest-benchmark 5.3 and Google Benchmark 1.7.
In each of {rounds} rounds every harness ran each change once in a process of its own, all in random order, as briefly
as perfflow runs them. The machine has 2 cores and did other work: its load average was {low}, {middle} and {high}
at the 10th, 50th and 90th percentile. A pair is the unchanged process of a round and a changed one.

A cell has what the statistic reads, and how often 11, 20 and 40 pairs drawn from all are called changed at 1%
({trials} draws each; of no change the sides are swapped at random). The true changes of the mean are +2%, +5%, +5%,
+50%, +10% and +4%.

- Quantiles, and means that leave samples out, are blind where each sample is one call: the lower quartile of criterion
  and of pytest-benchmark reads +2% to +6% of every second call twice as slow, and less than +2% of one call in ten.
- The mean has no blind spot, and on a busy machine next to no power: a sample in which another process had the core
  takes many times as long, and one of these outweighs a change of all others.
- The capped mean counts no sample for more than {cap} medians. It reads every change, since whatever calls got slower
  move it, and a disturbed sample adds at most half a sample. Of few calls that got far slower it reads less than the
  truth: +5% in place of +10% where one in ten takes twice as long.
- So the capped mean decides, unless the interval of the mean lies wholly beside its interval: then the mean does. The
  two share the false alarms, four fifths and one fifth.
- One call in fifty that takes three times as long, +4% of the mean, is found by none of them where each sample is one
  call and the machine is as busy as this.

40 pairs are nearly all there are, so that their share is close to 0% or 100%: it says whether the whole recording shows
the change.
"""


def page(processes: Sequence[Process]) -> Iterator[str]:
    """Yield the lines of the page."""
    loads = [process.load for process in processes]
    low, middle, high = (quantile(loads, q) for q in (0.1, 0.5, 0.9))
    rounds = len({process.round for process in processes})
    yield INTRODUCTION.format(rounds=rounds, low=low, middle=middle, high=high, trials=TRIALS, cap=CAP).rstrip()
    yield from tables(processes)


def tables(processes: Iterable[Process], seed: int = 1) -> Iterator[str]:
    """Yield the lines of the page, for each harness and size a table."""
    kinds: dict[Case, list[Process]] = {}
    for process in processes:
        kinds.setdefault((process.harness, process.size), []).append(process)
    for kind, found in sorted(kinds.items()):
        yield from ("", f"## {kind[0]}, {_about(found)}", "")
        yield from _table(found, random.Random(seed))


def _about(found: Sequence[Process]) -> str:
    plain = [process for process in found if process.change == BASE]
    seconds = sorted(min(process.seconds) for process in plain)[len(plain) // 2]
    single = plain[0].iterations[-1] == 1
    what = "each sample one call" if single else f"samples of {plain[0].iterations[0]:.0f} calls or more"
    return f"calls of {seconds * 1e6:.0f} us, {what}, {len(plain[0].seconds)} samples in a process"


def _table(found: Sequence[Process], rng: random.Random) -> Iterator[str]:
    changes = [name for name in CHANGES if name != BASE]
    yield f"| statistic | noise of a pair | {' | '.join(changes)} |"
    yield f"|---|---|{'---|' * len(changes)}"
    rounds = sorted({process.round for process in found})
    by_key = {(process.change, process.round): process for process in found}
    values: dict[str, Mapping[str, list[float]]] = {}
    for name, statistic in CANDIDATES.items():
        values[name] = {
            change: [statistic(by_key[change, n].seconds, by_key[change, n].iterations) for n in rounds]
            for change in CHANGES
        }
        yield _row(name, values[name], changes, rng)
    yield _both(values[CAPPED], values[MEAN], changes, rng)


def _row(name: str, values: Mapping[str, list[float]], changes: Sequence[str], rng: random.Random) -> str:
    cells = []
    for change in changes:
        pairs = list(zip(values[BASE], values[change], strict=True))
        read = math.expm1(Pairs.of(*_sides(pairs)).estimate())
        shares = _shares(pairs, change, rng, lambda drawn: paired_p(*_sides(drawn)) <= ALPHA)
        cells.append(f"{read:+.1%}: {shares}")
    noise = pair_spread(values[BASE], values[changes[0]])
    shown = f"**{name}**" if name in (QUARTILE, CAPPED) else name
    return f"| {shown} | {noise:.1%} | {' | '.join(cells)} |"


def _both(
    capped: Mapping[str, list[float]], mean: Mapping[str, list[float]], changes: Sequence[str], rng: random.Random
) -> str:
    """The row of perfflow's rule: the capped mean decides, unless the interval of the mean lies wholly beside its."""
    sides = {change: list(zip(capped[change], mean[change], strict=True)) for change in CHANGES}
    cells = [
        _shares(list(zip(sides[BASE], sides[change], strict=True)), change, rng, _changed_by_both) for change in changes
    ]
    return f"| **{BOTH}** | | {' | '.join(cells)} |"


def _shares(
    pairs: Sequence[tuple[_T, _T]], change: str, rng: random.Random, changed: Callable[[Sequence[tuple[_T, _T]]], bool]
) -> str:
    """How often 11, 20 and 40 pairs, drawn from all, are called changed; of no change either side may come first."""
    shares = []
    for number in PAIRS:
        found = 0
        for _ in range(TRIALS):
            drawn = rng.sample(pairs, number)
            swapped = change.startswith(BASE)
            found += changed([(new, old) if swapped and rng.random() < 0.5 else (old, new) for old, new in drawn])
        shares.append(f"{found / TRIALS:.0%}")
    return "/".join(shares)


def _changed_by_both(pairs: Sequence[tuple[Pair, Pair]]) -> bool:
    first = [(old[0], new[0]) for old, new in pairs]
    if paired_p(*_sides(first)) <= ALPHA * (1 - MEAN_SHARE):
        return True
    second = [(old[1], new[1]) for old, new in pairs]
    if paired_p(*_sides(second)) > ALPHA * MEAN_SHARE:
        return False
    one = paired_interval(*_sides(first), 1 - ALPHA * (1 - MEAN_SHARE))
    other = paired_interval(*_sides(second), 1 - ALPHA * MEAN_SHARE)
    return other.low > one.high or other.high < one.low


def _sides(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    return [old for old, _ in pairs], [new for _, new in pairs]
