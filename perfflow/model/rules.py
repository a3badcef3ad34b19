"""Rules by which samples become decisions: one set for each version of perfflow that changed them.

A run stores the name of its set, so that its decisions stay the same when perfflow changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfflow.stats.paired_test import LAYOUT_LOOKS, SIX_LOOKS, Looks
from perfflow.stats.sign_flips import COUNTED


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of rules. Fields are rules that differ between sets; rules that never changed are in the code only."""

    name: str
    looks: Looks
    """Interim analyses (looks): numbers of pairs, each with its part of the 1% of false alarms."""
    few: Looks
    """The same for expensive programs, in runs of each side."""
    confirm: Looks = ((20, 0.003), (40, 0.002))
    """The same for new pairs of benchmarks that a screening selected."""
    layout_looks: Looks = ()
    """The same if each pair has new code layouts; if empty, layouts are not used for decisions."""
    counted: int = COUNTED
    """Number of pairs up to which all sign assignments are enumerated."""
    clocks: bool = True
    """Whether clocks that include waiting also gate if they prove a regression beyond ``concern``, and refute gains
    that they exclude. All gating rows of a benchmark then share its 1% of false alarms."""
    exact_checked: bool = True
    """Whether a figure is exact only if the runs of a side agree, not by the name of its metric."""
    ticks: bool = True
    """Whether values that come in coarse steps widen their intervals by the step."""
    serial: bool = True
    """Whether the interval of a value is widened if samples depend on earlier ones."""
    separated: bool = True
    """Whether a target is decided if all samples are on one side of its bound, also with too few for an interval."""
    memory: bool = True
    """Whether memory has its own thresholds, gates if two trees are compared, and otherwise is a concern."""
    accepted_by_metric: bool = True
    """Whether an accepted regression applies to one metric; else it applies to all metrics of its benchmark."""
    twice_is_an_error: bool = True
    """Whether it is an error if two steps measure the same metric of a benchmark; else the second is ignored."""
    one_measurement: bool = True
    """Whether a rate that is the inverse of a time counts as the same measurement."""
    judges_stored: bool = False
    """Whether a comparison of two stored sets, which are not paired, has a verdict."""

    def schedule(self, design: str) -> Looks:
        """Return the interim analyses of a design, empty if it has no schedule."""
        return {
            "looks": self.looks,
            "few": self.few,
            "confirm": self.confirm,
            "layouts": self.layout_looks,
        }.get(design, ())


FIRST = Rules(
    "0.1",
    looks=SIX_LOOKS,
    few=((5, 0.01),),
    counted=128,
    clocks=False,
    exact_checked=False,
    ticks=False,
    serial=False,
    separated=False,
    memory=False,
    accepted_by_metric=False,
    twice_is_an_error=False,
    one_measurement=False,
    judges_stored=True,
)
"""Rules of 0.1.0, whose runs do not store the name of their rules."""
CURRENT = Rules(
    "0.2",
    # More than half is spent at the first analysis, so that 9 pairs that all agree, with a part of it, prove a change.
    looks=(
        *((11, 0.0056), (15, 0.0012), (20, 0.0008), (28, 0.0005), (40, 0.0004), (64, 0.0004), (90, 0.0002)),
        *((128, 0.0002), (180, 0.0001), (256, 0.0001), (360, 0.0001), (512, 0.0001), (720, 0.00005)),
        *((1024, 0.00005), (1440, 0.00005), (2048, 0.00005), (2900, 0.00005), (4096, 0.00005)),
    ),
    # The smallest p-value of 5 + 5 runs in random order is 2/252 = .00794.
    few=(
        *((5, 0.00794), (8, 0.0004), (11, 0.0004), (14, 0.0003), (20, 0.0003), (26, 0.0002), (35, 0.00016)),
        *((50, 0.0001), (71, 0.0001), (98, 0.0001)),
    ),
    # Applies to about 5% of the benchmarks of a suite, so a whole suite of 100 gives about 2% of false alarms.
    confirm=((20, 0.0006), (40, 0.0008), (100, 0.0012), (200, 0.0014)),
    layout_looks=LAYOUT_LOOKS,
)

RULES: Mapping[str, Rules] = {rules.name: rules for rules in (FIRST, CURRENT)}
"""All sets that stored runs may use, by name."""
