"""The end of a report: notes, the commands to reproduce it, and the environment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from perfflow.machine.noise import describe
from perfflow.model.metrics import QUANTILES, TIMES, in_words
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, GatesBy, Result
from perfflow.model.tree_facts import STORED, TreeFacts, tree_of
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.rows import OTHER_THAN_MEDIANS, differ_from_medians, inner_p99
from perfflow.verdict.brief import settings_of

MOST_NAMES = 4
_NO_P99 = "p99 is not shown: a process takes fewer than 100 values, too few for a 99th percentile"
_OF_THIS_SESSION = (
    "targets are judged by intervals that cover only the variation within this session; "
    "a session at another time may differ by more"
)


@dataclass(frozen=True)
class Note:
    """A note with the names of what it is about. ``is_caution``: it says how to read the figures."""

    about: str
    text: str
    is_caution: bool = False

    def __str__(self) -> str:
        """Return the note as shown."""
        return f"{self.about}: {self.text}" if self.about else self.text


def notes(result: Result) -> Iterator[Note]:
    """Yield each warning once, with the names of the rows, steps and kernels that it is about."""
    cautions = {text for step in result.steps for text in step.cautions}
    measured = not any(sides_of(result))
    about: dict[str, dict[str, None]] = {}
    for row in result.benchmarks:
        for subject, text in _notes_of(row, measured=measured):
            about.setdefault(text, {})[subject] = None
    for step in result.steps:
        for text in step.warnings:
            about.setdefault(text, {})[f"step {step.id}"] = None
    for kernel in result.kernels:
        for text in kernel.warnings:
            about.setdefault(text, {})[kernel.name] = None
    for text, names in about.items():
        listed = ", ".join(list(names)[:MOST_NAMES])
        others = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield Note(f"{listed}{others}", text, is_caution=text in cautions)
    quantiles = {target.statistic for target in result.targets} & (set(QUANTILES) - {"p50"})
    if quantiles:
        yield Note("", "percentiles of a command are computed over its processes")
    if any(item.statistic in (*QUANTILES, "mean") and item.low != item.high for item in result.targets):
        yield Note("", _OF_THIS_SESSION)


def median_note(result: Result) -> str:
    """Return the note about changes that differ from the change of the medians beside them, or ''."""
    return next((str(note) for note in notes(result) if note.text == OTHER_THAN_MEDIANS), "")


def _notes_of(row: Benchmark, *, measured: bool) -> Iterator[tuple[str, str]]:
    """Yield each note with what it is about: the benchmark, or the row."""
    if (row.gating or row.leading) and row.why and row.metric in TIMES and row.gates_by != GatesBy.TARGET:
        yield row.name, f"judged by {in_words(row.metric)}: {row.why}"
    if row.gating and row.statistic != "value" and differ_from_medians(row):
        yield row.title, OTHER_THAN_MEDIANS
    sides = [side for side in (row.baseline, row.candidate) if side]
    if any(inner_p99(side) is None and inner_p99(side, 0) is not None for side in sides):
        yield row.title, _NO_P99
    few = [side.n for side in sides if side.low is None or side.high is None]
    if few:
        key = " (`runs: 6`)" if measured else ""
        counted = f"{min(few)} samples are" if min(few) > 1 else "1 sample is"
        yield row.title, f"{counted} too few for a 95% interval; at least 6 are needed{key}"
    yield from ((row.title, text) for text in row.warnings)


def sides_of(result: Result) -> Iterator[tuple[str, str]]:
    """Yield name and description of both sides of a comparison of stored results; nothing for a run that measured."""
    for name in Side:
        tree = tree_of(result.trees, name)
        if tree.kind == STORED:
            yield name.value, "; ".join(filter(None, _side_facts(tree)))


def _side_facts(tree: TreeFacts) -> Iterator[str]:
    yield tree.label
    yield f"{tree.tool} {tree.version}".strip()
    if tree.started:
        yield f"measured {tree.started[:16].replace('T', ' ')}"
    if tree.revision:
        yield f"at {_revision(tree.revision, tree)}"
    yield tree.machine


def _revision(revision: str, tree: TreeFacts) -> str:
    return f"{revision[:12]}{' with uncommitted changes' if tree.dirty else ''}"


def commands_of(result: Result) -> Iterator[str]:
    """Yield the commands that run the workflow again and render the report again, or repeat a stored comparison."""
    if result.run.command:
        yield shlex.join(result.run.command)
        return
    words = [*settings_of(result.run.params)]
    if result.run.file:
        words += [word for glob in result.run.chosen for word in ("--benchmark", glob)]
        words += ["--budget", f"{result.run.budget:g}s"] if result.run.budget is not None else []
        yield shlex.join(["perfflow", "run", result.run.file, *words, "--seed", str(result.run.seed)])
    judged = [word for spec in result.run.judged_by for word in ("--thresholds", spec)]
    yield shlex.join(["perfflow", "report", result.run.out or result.run.id, *judged])


def environment_of(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the facts of machine, system and run; for a comparison of stored results only its id, version and date."""
    run = result.run
    if any(sides_of(result)):
        # In a gate against a stored baseline, another run measured head.
        measured = "head was measured" if run.command[1:2] == ["gate"] else "nothing was measured"
        yield "comparison", f"{run.id}, perfflow {run.version}, {run.started}; {measured}"
        return
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
    if machine.get("noise"):
        yield "noise", describe(machine["noise"])
    tree = tree_of(result.trees, Side.BASELINE)
    if tree.revision:
        overlay = f", with head's {', '.join(tree.overlay)}" if tree.overlay else ""
        yield "tree", f"{_revision(tree.revision, tree)}{overlay}"
    for side, state in zip(("base", "head"), (tree_of(result.trees, side) for side in Side), strict=True):
        if state.built:
            yield f"build of {side}", f"kept from {state.built}; `perfflow gate --fresh` builds again"
    if run.library:
        yield "library", "; ".join(f"{item.reference} at {item.commit[:12]}" for item in run.library)
    yield "run", f"{run.id}, perfflow {run.version}, seed {run.seed}, started {run.started}{_took(result)}"


def _took(result: Result) -> str:
    """Return the duration of the run, and the time it waited for the machine."""
    if result.run.seconds is None:
        return ""
    waited = result.waited
    more = f", plus {format_quantity(waited, Dimension.TIME)} waiting for the machine" if waited >= 1 else ""
    return f", took {format_quantity(max(0.0, result.run.seconds - waited), Dimension.TIME)}{more}"
