"""Bars that show the noise of a metric on this machine, and the smallest change that can be detected."""

from __future__ import annotations

import math

from markupsafe import Markup

from perfflow.report.html import svg
from perfflow.report.html.charts import ACTION, BAR_HEIGHT, BAR_WIDTH, CONCERN, EMPTY
from perfflow.report.html.svg import Scale
from perfflow.store.result_file import Finding

LEAST_SPAN = 0.12
"""Least share at the right end of a bar, so that both thresholds fit."""


def calibration_span(findings: list[Finding]) -> float:
    """Return the share at the right end of all bars."""
    ends = [end for item in findings for end in (_noise(item), item.smallest_change) if end is not None]
    return min(1.0, max([LEAST_SPAN, *(end * 1.1 for end in ends)]))


def calibration_bar(item: Finding, span: float) -> Markup:
    """Return a bar with the noise as a band from 0, the smallest change as a point, and lines at 5% and 10%."""
    noise = _noise(item)
    if noise is None:
        return EMPTY
    scale, middle = Scale(0.0, span, 2, BAR_WIDTH - 2), BAR_HEIGHT / 2
    parts = [
        svg.rectangle("share noise", scale(0.0), 4, max(1.0, scale(noise) - scale(0.0)), BAR_HEIGHT - 8),
        *(svg.line("threshold", scale(bound), 0, scale(bound), BAR_HEIGHT) for bound in (CONCERN, ACTION)),
        svg.line("none", scale(0.0), 0, scale(0.0), BAR_HEIGHT),
    ]
    if item.smallest_change is not None:
        kind = "good" if item.smallest_change <= CONCERN else "unsure" if item.smallest_change <= ACTION else "bad"
        parts.append(svg.dot(f"point {kind}", scale(item.smallest_change), middle, 4))
    return svg.picture(BAR_WIDTH, BAR_HEIGHT, "", parts, kind="bar")


def _noise(item: Finding) -> float | None:
    return None if item.noise is None else math.expm1(item.noise)
