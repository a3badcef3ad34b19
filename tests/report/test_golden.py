"""Whole pages as they were. To accept a change: look at the .got file, then move it over the golden one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from perfflow.model.result import Result
from perfflow.report import bisect_page, markdown, terminal
from perfflow.report.payloads.files import PAYLOADS, ExportOptions
from tests.report import exported
from tests.report.gated import advised, gated, passed
from tests.report.optimized import nothing_kept, optimized
from tests.report.rendered import check_golden, screen
from tests.report.results import CALIBRATED, everything, kernels, on_gpu, single, stored

PAGES: dict[str, Callable[[], Result]] = (
    {"everything": everything, "single": single, "stored": stored, "kernels": kernels, "gpu": on_gpu}
    | {"gated": gated, "gate-passed": passed, "advised": advised, "optimized": optimized}
    | {"nothing-kept": nothing_kept, "analysis": partial(optimized, template="analysis")}
)
SCREENS: dict[str, tuple[Callable[[], Result], int, bool]] = {
    "everything": (everything, 100, True),
    "everything-60": (everything, 60, True),
    "everything-160": (everything, 160, True),
    "everything-ascii-80": (everything, 80, False),
    "stored-80": (stored, 80, True),
    "single": (single, 100, True),
    "nothing-kept": (nothing_kept, 100, True),
    "optimized": (optimized, 100, True),
    "advised": (advised, 100, True),
    "gated": (gated, 100, True),
    "gated-60": (gated, 60, True),
    "gated-ascii": (gated, 80, False),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_report_in_markdown(name: str) -> None:
    check_golden(f"{name}.md", markdown.render(PAGES[name]()))


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen(name: str) -> None:
    result, width, unicode = SCREENS[name]
    text = screen(result(), width, unicode=unicode)
    assert len(text.splitlines()) <= terminal.MOST_ROWS
    check_golden(f"{name}.txt", text)


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_file_for_a_service(name: str) -> None:
    check_golden(f"{name}.payload", PAYLOADS[name].make(exported.gated(), ExportOptions()))


@pytest.mark.parametrize("width", [40, 160])
def test_a_calibration(width: int) -> None:
    check_golden(f"calibration-{width}.txt", bisect_page.render(CALIBRATED, width=width, unicode=True))
