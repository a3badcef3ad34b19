"""Chart of candidates: the effect of each on top of the changes kept before it, and of all kept changes together."""

from __future__ import annotations

import math

from markupsafe import Markup

from perfflow.model.units import significant
from perfflow.report.html import svg
from perfflow.report.html.charts import CHART_WIDTH
from perfflow.report.html.growth_chart import log_ticks
from perfflow.report.html.svg import Scale
from perfflow.report.ladder import Ladder
from perfflow.report.sanitize import shortened, visible
from perfflow.stats.paired_test import Interval

_ROW = 26.0
_NAMES = 190.0
_WORDS = 28
_DECISIONS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}


def ladder_figure(ladder: Ladder) -> Markup:
    """Return the chart of one ladder; its logarithmic axis shows times better than the baseline."""
    ends = [
        end
        for interval in (*(rung.reached for rung in ladder.rungs), *([ladder.together] if ladder.together else []))
        for end in (interval.low, interval.estimate, interval.high)
        if 0 < end < math.inf
    ]
    rows = len(ladder.rungs) + (ladder.together is not None)
    foot = 14 + rows * _ROW
    x = Scale(min(1.0, *ends) / 1.04, max(1.05, *ends) * 1.04, _NAMES, CHART_WIDTH - 110, logarithmic=True)
    parts = []
    for tick in log_ticks(x.low, x.high):
        parts.append(svg.line("grid", x(tick), 6, x(tick), foot))
        parts.append(svg.text(x(tick), foot + 12, f"{significant(tick)}x", "middle"))
    parts.append(svg.line("none", x(1.0), 6, x(1.0), foot))
    texts, middle, end = [], 14.0, 1.0
    for rung in ladder.rungs:
        word, kept = _DECISIONS[rung.decision], rung.decision == "accepted"
        kind = "good" if kept else "bad" if rung.reached.estimate < rung.start else "unsure"
        parts += _row(x, middle, shortened(rung.name, _WORDS), rung.reached, kind, word)
        parts.append(svg.line("rung", x(rung.start), middle, x(rung.reached.estimate), middle))
        if kept:
            end = rung.reached.estimate
            parts.append(svg.line("rung", x(end), middle, x(end), middle + _ROW))
        texts.append(f"{visible(rung.name)}: {word}, {significant(rung.reached.estimate)}x")
        middle += _ROW
    if ladder.together:
        parts += _row(x, middle, "all kept, measured together", ladder.together, "good", "")
        texts.append(f"together: {significant(ladder.together.estimate)}x")
    words = "times better than the baseline, logarithmic; bars are 95% intervals"
    parts.append(svg.text((_NAMES + CHART_WIDTH) / 2, foot + 26, words, "middle"))
    label = f"Candidates judged by {visible(ladder.benchmark)} {visible(ladder.metric)}. {'; '.join(texts)}"
    caption = Markup("<code>{}</code> <code>{}</code>: each candidate on top of the changes kept before it").format(
        visible(ladder.benchmark), visible(ladder.metric)
    )
    picture = svg.picture(CHART_WIDTH, foot + 32, label, parts)
    return Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(caption, picture)


def _row(x: Scale, middle: float, name: str, reached: Interval, kind: str, word: str) -> list[Markup]:
    low, high = (end if 0 < end < math.inf else other for end, other in ((reached.low, x.low), (reached.high, x.high)))
    label = " ".join(filter(None, (f"{significant(reached.estimate)}x", word)))
    return [
        svg.text(_NAMES - 10, middle + 4, name, "end"),
        svg.line(f"interval {kind}", x(low), middle, x(high), middle),
        svg.dot(f"point {kind}", x(reached.estimate), middle, 4),
        svg.text(max(x(high), x(reached.estimate)) + 8, middle + 4, label),
    ]
