"""The sections of a report and their order."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.report import sections
from perfflow.report.blocks import Document, Section, quoted
from perfflow.report.page import Page


def report_of(page: Page) -> Document:
    """Return the whole report by the workflow's template."""
    analysis = page.template == "analysis"
    title = "Performance Analysis" if analysis else "Performance Report"
    return Document((f"{title}: ", quoted(page.component)), tuple((_analysis if analysis else _report)(page)))


def _report(page: Page) -> Iterator[Section]:
    yield sections.opening(page)
    yield from sections.red_gate(page)
    yield from sections.by_cell(page)
    yield from sections.reasons(page)
    yield from sections.compared(page)
    yield from sections.benchmarks(page)
    yield from sections.profiles(page)
    yield from _measured_and_found(page)


def _analysis(page: Page) -> Iterator[Section]:
    yield sections.opening(page)
    yield from sections.reasons(page)
    yield from sections.baseline(page)
    yield from sections.profiles(page, "Bottlenecks")
    yield from _measured_and_found(page)


def _measured_and_found(page: Page) -> Iterator[Section]:
    yield from sections.machines(page)
    yield from sections.growth(page)
    yield from sections.kernels(page)
    yield from sections.roofline(page)
    yield from sections.optimizations(page)
    yield from sections.verification(page)
    yield from sections.requirements(page)
    yield from sections.summary(page)
    yield from sections.blame(page)
    yield from sections.impact(page)
    yield from sections.advice(page)
    yield from sections.gates(page)
    yield from sections.routing(page)
    yield from sections.troubles(page)
    yield from sections.evidence(page)
    yield from sections.notes(page)
    yield from sections.reproduce(page)
    yield from sections.environment(page)
