"""How samples become decisions: one set of rules for each version of perfflow that changed them.

A run names the set it was judged by, so that a stored run keeps its decisions when perfflow changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfflow.stats.paired_test import LAYOUT_LOOKS, SIX_LOOKS, Looks
from perfflow.stats.sign_flips import COUNTED


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of rules. A field is a rule that differs between sets; what never changed is in the code alone."""

    name: str
    looks: Looks
    """The numbers of pairs at which a comparison is analysed, each with its part of the 1% of false alarms."""
    few: Looks
    """The same of expensive programs, in runs of each side."""
    confirm: Looks = ((20, 0.003), (40, 0.002))
    """The same of fresh pairs of what stood out in a screening."""
    layout_looks: Looks = ()
    """The same where each pair has fresh code layouts; without any, layouts decide nothing."""
    counted: int = COUNTED
    """The number of pairs up to which all assignments of their signs are counted."""
    clocks: bool = True
    """Whether clocks that include waiting gate as well where they prove a regression beyond ``concern``, and refute
    gains that they exclude; all rows of a benchmark that gate then share its 1% of false alarms."""
    exact_checked: bool = True
    """Whether a figure is exact only where the runs of a side agree, not by its metric's name."""
    ticks: bool = True
    """Whether values that come in coarse steps widen their intervals by the step."""
    serial: bool = True
    """Whether the interval of a value widens where samples depend on those before them."""
    separated: bool = True
    """Whether a target is decided where all samples lie on one side of its bound, however few give no interval."""
    memory: bool = True
    """Whether memory has thresholds of its own, gates where two trees are compared, and else is a concern."""
    accepted_by_metric: bool = True
    """Whether an accepted regression is about one metric; else it is about all of its benchmark."""
    twice_is_an_error: bool = True
    """Whether two steps may not measure one metric of a benchmark; else the second is left out."""
    one_measurement: bool = True
    """Whether a rate that is the inverse of a time is one measurement with it."""
    judges_stored: bool = False
    """Whether a comparison of two stored sets, which were not taken in pairs, has a verdict."""

    def schedule(self, design: str) -> Looks:
        """Return the analyses of a design, none where it has no schedule."""
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
"""Of 0.1.0, whose runs do not name their rules."""
CURRENT = Rules(
    "0.2",
    # More than half goes to the first look, so that 9 pairs that all agree, with a part of it, prove a change.
    looks=(
        *((11, 0.0056), (15, 0.0012), (20, 0.0008), (28, 0.0005), (40, 0.0004), (64, 0.0004), (90, 0.0002)),
        *((128, 0.0002), (180, 0.0001), (256, 0.0001), (360, 0.0001), (512, 0.0001), (720, 0.00005)),
        *((1024, 0.00005), (1440, 0.00005), (2048, 0.00005), (2900, 0.00005), (4096, 0.00005)),
    ),
    # 5 + 5 runs in random order reach 2/252 = .00794 and no less.
    few=(
        *((5, 0.00794), (8, 0.0004), (11, 0.0004), (14, 0.0003), (20, 0.0003), (26, 0.0002), (35, 0.00016)),
        *((50, 0.0001), (71, 0.0001), (98, 0.0001)),
    ),
    # Of about 5% of the benchmarks of a suite; so all of a suite of 100 raise about 2% of false alarms.
    confirm=((20, 0.0006), (40, 0.0008), (100, 0.0012), (200, 0.0014)),
    layout_looks=LAYOUT_LOOKS,
)

RULES: Mapping[str, Rules] = {rules.name: rules for rules in (FIRST, CURRENT)}
"""All sets that stored runs may name."""
