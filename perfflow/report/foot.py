"""The foot of the page: warnings, how to run it again, and where it ran."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from perfflow.result import HAS_TARGET, Benchmark, Result
from perfflow.samples.criteria import Criteria
from perfflow.samples.metrics import QUANTILES, TIMES
from perfflow.units import Dimension, format_quantity

MOST_NAMES = 4


def notes(result: Result, criteria: Criteria) -> Iterator[str]:
    """Warnings travel to the foot of the page, each once, with what it is about."""
    about: dict[str, dict[str, None]] = {}
    for row in result.benchmarks:
        for text in _notes_of(row, criteria):
            about.setdefault(text, {})[row.name if text.startswith("judged by") else f"{row.name} {row.metric}"] = None
    for step in result.steps:
        for text in step.warnings:
            about.setdefault(text, {})[f"step {step.id}"] = None
    for text, names in about.items():
        listed = ", ".join(list(names)[:MOST_NAMES])
        others = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"{listed}{others}: {text}"
    quantiles = {target.statistic for target in result.targets} & (set(QUANTILES) - {"p50"})
    if quantiles:
        yield "percentiles of a command are taken over its processes"


def _notes_of(row: Benchmark, criteria: Criteria) -> Iterator[str]:
    if row.gating and row.why and row.metric in TIMES and row.why != HAS_TARGET:
        yield f"judged by {row.metric}: {row.why}"
    if not row.paired and row.change and not criteria.metric(row.metric).exact:
        yield "unpaired: the two sides were not taken in pairs, so this decides nothing"
    few = [side.n for side in (row.baseline, row.candidate) if side and (side.low is None or side.high is None)]
    if few:
        yield f"{min(few)} samples are too few for a 95% interval; `runs: 6` gives the first"
    yield from row.warnings


def commands_of(result: Result) -> Iterator[str]:
    """What to type to run it again, and to judge it again."""
    words = [word for name, value in result.run.params.items() for word in ("--set", f"{name}={_setting(value)}")]
    if result.run.file:
        words += ["--budget", f"{result.run.budget:g}s"] if result.run.budget is not None else []
        yield shlex.join(["perfflow", "run", result.run.file, *words, "--seed", str(result.run.seed)])
    thresholds = [word for spec in result.run.judged_by for word in ("--thresholds", spec)]
    yield shlex.join(["perfflow", "report", result.run.id, *thresholds])


def _setting(value: object) -> str:
    """A parameter's value as ``--set`` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(_setting(item) for item in value) if isinstance(value, list) else str(value)


def environment_of(result: Result) -> Iterator[tuple[str, str]]:
    """Where it ran, and on what."""
    machine = result.machine
    hardware = [
        machine.get("cpu"),
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"{machine['memory_gib']} GiB" if machine.get("memory_gib") else "",
        "virtual" if machine.get("virtual") else "",
    ]
    yield "machine", ", ".join(str(part) for part in hardware if part)
    software = [machine.get("system"), machine.get("kernel_series")]
    python = f"Python {machine['python']}" if machine.get("python") else ""
    yield "system", ", ".join(filter(None, (" ".join(str(part) for part in software if part), python)))
    yield "load at the start", ", ".join(str(value) for value in machine.get("load", []))
    tree = result.trees.get("baseline") or {}
    if tree.get("revision"):
        yield "tree", f"{tree['revision'][:12]}{' with uncommitted changes' if tree.get('dirty') else ''}"
    run = result.run
    took = f", took {format_quantity(run.seconds, Dimension.TIME)}" if run.seconds is not None else ""
    yield "run", f"{run.id}, perfflow {run.version}, seed {run.seed}, started {run.started}{took}"
