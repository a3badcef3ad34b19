"""Compare two stored sets of samples, or two commands without a workflow file.

``compare_stored`` writes the samples of both sets as the events of a new run, which is then judged as any run.
``as_run`` makes the workflow behind ``perfflow compare -- OLD NEW``.
"""

from __future__ import annotations

import json
import secrets
import shlex
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from perfflow.execute.invoke import LEFT_RUNNING
from perfflow.execute.prepare import DISCARD
from perfflow.jobs.run.run import FinishedRun, RunRequest
from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.errors import Exit, UserError
from perfflow.model.readings import Design, Side
from perfflow.model.result import Result
from perfflow.model.tree_facts import STORED
from perfflow.model.units import duration
from perfflow.model.version import VERSION
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.session.perform import write
from perfflow.session.session import explaining_folder_errors, now
from perfflow.store import run_folder
from perfflow.store.history import summary
from perfflow.store.history.stored import OWN, Key, Stored, listed, with_same_statistic
from perfflow.store.record import SCHEMA, reading_to_json, record_of
from perfflow.store.run_folder import RunFolder
from perfflow.tools.tool_files import clean_name
from perfflow.verdict import row_text
from perfflow.verdict.judge import judge

STEP = "compare"


@dataclass(frozen=True)
class ComparisonNames:
    """The names of a comparison that a gate makes: its workflow, the title of its report, and the command line."""

    workflow: str
    component: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class CompareOptions:
    """Where the run's folder is created, and whether machines may differ.

    ``out`` None: a new run of the project at ``root``. ``names`` None: the names that `perfflow compare` uses.
    """

    out: Path | None
    across_machines: bool = False
    root: Path = Path()
    names: ComparisonNames | None = None


def compare_stored(first: Stored, second: Stored, options: CompareOptions) -> FinishedRun:
    """Compare stored samples. Nothing is measured, and results without pairs never fail a gate.

    Raises UserError if the sets are from different machines (unless allowed) or over different data, and with
    Exit.UNMEASURED if they have nothing in common. No folder is made then.
    """
    differing = require_comparable(first, second, across_machines=options.across_machines)
    first, renamed = _under_one_name(first, second)
    first, second, other_code = _of_same_code(first, second)
    keys, left_out = _in_common(first, second)
    first, second = (replace(side, series=_only(side, keys)) for side in (first, second))
    first, second, other = _with_same_statistic(first, second)
    cautions = [*_cautions(first, second, differing), *renamed, *other_code, *left_out, *other]
    with (
        run_folder.create(options.root, options.out) as folder,
        explaining_folder_errors(folder.path, can_resume=False),
    ):
        run = _run_info(folder, first, second, across=bool(differing))
        if options.names:
            names = options.names
            run |= {"workflow": names.workflow, "component": names.component, "command": list(names.command)}
        for event in _events(run | {"warnings": cautions}, first, second):
            folder.append(event)
        record = record_of(run_folder.events(folder.path))
        result = judge(record, record.criteria)
        write(result, folder.path)
    return FinishedRun(result, folder.path, interrupted=False)


def require_comparable(first: Stored, second: Stored, *, across_machines: bool) -> list[summary.FactDifference]:
    """Return how the two machines differ.

    Raises UserError for sets over different data, and for sets of different machines unless ``across_machines``.
    """
    _refuse_other_data(first, second)
    differing = summary.machine_differences(first.machine, second.machine)
    if differing and not across_machines:
        raise _other_machine(first, second, differing)
    return differing


def proven_regressions(result: Result) -> list[str]:
    """Return a line for each row whose whole interval is beyond the action threshold: these would fail a gate."""
    criteria = criteria_from_json(result.criteria)
    return [
        row_text.failure(row, criteria).text
        for row in result.benchmarks
        if (row.leading or row.gating)
        and row.decision == "regressed"
        and row_text.least_worse(row) > criteria.thresholds_of(row.name, row.metric).action
    ]


def across_gpus(first: Stored, second: Stored) -> bool:
    """Return whether both sides have GPU kernels, and from different GPUs."""
    return bool(first.gpus and second.gpus and set(first.gpus) != set(second.gpus))


def _only(side: Stored, keys: set[Key]) -> dict[Key, Any]:
    return {key: readings for key, readings in side.series.items() if key in keys}


def _refuse_other_data(first: Stored, second: Stored) -> None:
    if set(first.data_missing) != set(second.data_missing):
        side = first if set(first.data_missing) - set(second.data_missing) else second
        other = second if side is first else first
        absent = sorted(set(side.data_missing) - set(other.data_missing))
        text = f"{_name(side)} was measured without the data it declares: no file matched {listed(absent)}"
        raise UserError.of(text, "add the files or correct `data`, then measure it again")
    # If one side declares no data, no difference is known.
    if not first.data or not second.data or first.data == second.data:
        return
    paths = sorted({*first.data, *second.data})
    differing = [clean_name(path) for path in paths if first.data.get(path) != second.data.get(path)]
    text = f"{_name(first)} and {_name(second)} were measured over different data: {listed(differing)}"
    raise UserError.of(text, "results over different data are never compared; measure one of them again")


def _other_machine(first: Stored, second: Stored, differing: Sequence[summary.FactDifference]) -> UserError:
    facts = "; ".join(f"{item.fact}: {clean_name(item.first)} and {clean_name(item.second)}" for item in differing)
    text = f"{_name(first)} and {_name(second)} are from different machines ({facts})"
    return UserError.of(text, "use --across-machines to compare them anyway; every row is then marked")


def _name(side: Stored) -> str:
    return clean_name(side.label)


def _under_one_name(first: Stored, second: Stored) -> tuple[Stored, list[str]]:
    """If each side has exactly one benchmark, give both the second's name: hyperfine names it after its command."""
    names = first.benchmarks, second.benchmarks
    if [len(side) for side in names] != [1, 1] or names[0] == names[1]:
        return first, []
    old, new = names[0][0], names[1][0]
    series = {
        (new, metric): tuple(replace(reading, benchmark=new) for reading in readings)
        for (_, metric), readings in first.series.items()
    }
    note = f"`{old}` is compared with `{new}`: each side has only this one benchmark"
    kernels = tuple({**item, "benchmark": new} for item in first.kernels)
    return replace(first, series=series, kernels=kernels), [note]


def _of_same_code(first: Stored, second: Stored) -> tuple[Stored, Stored, list[str]]:
    """Leave out the benchmarks whose own code differs, since the two sides did different work."""
    differing = [
        name for name in first.versions if second.versions.get(name, first.versions[name]) != first.versions[name]
    ]
    if not differing:
        return first, second, []
    one, two = (_only(side, {key for key in side.series if key[0] not in differing}) for side in (first, second))
    said = f"left out, since the benchmark's own code changed: {listed(sorted(differing))}"
    return replace(first, series=one), replace(second, series=two), [said]


def _in_common(first: Stored, second: Stored) -> tuple[set[Key], list[str]]:
    """Return the keys to show, and a warning for each metric that is left out.

    Of a benchmark that both sides have, only the metrics that both measured are shown. Of a benchmark that only one
    side has, everything is shown, since it is new or gone. Raises UserError if nothing can be compared.
    """
    keys = (set(first.series), set(second.series))
    definitions = [(side.criteria or Criteria()) for side in (first, second)]
    # Whether a figure adds up over a run is part of how it is measured, not of what it means.
    both = {
        (name, metric)
        for name, metric in keys[0] & keys[1]
        if len({replace(known.metric(metric), total=False) for known in definitions}) == 1
    }
    if not both:
        shared = {name for name, _ in keys[0]} & {name for name, _ in keys[1]}
        hint = "; ".join(f"{_name(side)} has {_contents(side, shared)}" for side in (first, second))
        raise UserError.of(f"{_name(first)} and {_name(second)} have no benchmark in common", hint, Exit.UNMEASURED)
    compared = {name for name, _ in both}
    alone = {key for key in keys[0] ^ keys[1] if key[0] not in compared}
    notes = []
    if across_gpus(first, second):
        # Libraries use different kernels on different GPUs. Such kernels are neither new nor gone.
        names = sorted({name for name, _ in alone})
        notes += [f"left out, since only one of the GPUs ran them: {listed(names)}"] if names else []
        alone = set()
    for side, present in zip((first, second), keys, strict=True):
        lost = sorted(
            {metric for name, metric in present if name in compared and (name, metric) not in keys[0] & keys[1]}
        )
        if lost:
            notes.append(f"left out, since only {_name(side)} has them: {listed(lost)}")
    clash = sorted({metric for _, metric in (keys[0] & keys[1]) - both})
    if clash:
        notes.append(f"left out, since the two sides define them in different units or directions: {listed(clash)}")
    return both | alone, notes


def _with_same_statistic(first: Stored, second: Stored) -> tuple[Stored, Stored, list[str]]:
    """Leave out series whose statistic differs between the sides. Raises UserError if no series is left."""
    one, other, said = with_same_statistic(first, second)
    if not one.series.keys() & other.series.keys():
        raise UserError.of(f"{_name(first)} and {_name(second)} hold different statistics", said[0], Exit.UNMEASURED)
    return one, other, said


def _contents(side: Stored, shared: Collection[str]) -> str:
    """List the benchmarks of one side. If a name is shared, the metrics differ, so list those benchmarks' metrics."""
    by_name = groupby(sorted(key for key in side.series if not shared or key[0] in shared), key=lambda key: key[0])
    metrics = {name: listed([metric for _, metric in keys]) for name, keys in by_name}
    return listed([f"{clean_name(name)} ({metrics[name]})" if shared else clean_name(name) for name in metrics])


def _cautions(first: Stored, second: Stored, differing: Sequence[summary.FactDifference]) -> Iterator[str]:
    """Yield the reasons why this comparison is weaker than one measured in pairs."""
    if differing:
        facts = "; ".join(f"{item.fact}: {item.first} and {item.second}" for item in differing)
        yield f"across machines: {facts}; the machines' differences are part of every change"
    elif not summary.certain_facts(first.machine, second.machine):
        unsure = [side.label for side in (first, second) if "identity" not in side.machine]
        yield f"perfflow cannot tell whether one machine measured both: no machine in {' and '.join(unsure)}"
    if across_gpus(first, second):
        gpus = " and ".join(listed(side.gpus) for side in (first, second))
        yield f"across GPUs: {gpus}; kernels are compared by their share of each GPU's roof, without a decision"
    yield _sessions(first, second)
    for side in (first, second):
        if _data_unknown(side, second if side is first else first):
            yield f"the input data of {side.label} is not known"
        yield from (f"{side.label}: {text}" for text in side.warnings)


def _sessions(first: Stored, second: Stored) -> str:
    if first.run_id and first.run_id == second.run_id:
        return "both sides are of the same run"
    drift = "drift between sessions is part of the difference"
    try:
        starts = [datetime.fromisoformat(side.started) for side in (first, second)]
        apart = abs((starts[1] - starts[0]).total_seconds())
    except (ValueError, TypeError):
        unknown = " and ".join(side.label for side in (first, second) if not side.started) or "one of them"
        return f"perfflow cannot tell how far apart they were measured: no date in {unknown}; {drift}"
    return f"measured {_span(apart)} apart; {drift}"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _data_unknown(side: Stored, other: Stored) -> bool:
    """Return whether a side's data is unknown.

    Older results of perfflow do not record their data. Any other side without data matters only if the other side
    declares some.
    """
    older = side.tool == OWN and side.data is None
    return older or (not side.data and bool(other.data))


def _run_info(folder: RunFolder, first: Stored, second: Stored, *, across: bool) -> dict[str, Any]:
    return {
        "id": folder.id,
        "workflow": STEP,
        "component": f"{first.label} → {second.label}",
        "started": now(),
        "seed": 0,
        "version": VERSION,
        "across_machines": across,
        "data_missing": list(second.data_missing),
        # Labels, because they keep their meaning; `latest` does not.
        "command": ["perfflow", "compare", *(["--across-machines"] if across else []), first.label, second.label],
    }


def _events(run: dict[str, Any], first: Stored, second: Stored) -> Iterator[dict[str, Any]]:
    tools = list(dict.fromkeys([first.tool, second.tool]))
    step: dict[str, Any] = {"id": STEP, "stage": "baseline", "tool": " and ".join(tools), "role": "measure"}
    step |= {"benchmark": "", "metric": None, "expect": [], "allowed": False, "selected": True}
    yield {
        "event": "run",
        "schema": SCHEMA,
        "run": run,
        "machine": dict(second.machine),
        "trees": {"baseline": _tree(first), "candidate": _tree(second)},
        "criteria": _criteria(first, second).to_json(),
        "data": None if second.data is None else dict(second.data),
        "steps": [step],
    }
    for name, side in zip(Side, (first, second), strict=True):
        yield from _samples(name, side)
    ended: dict[str, Any] = {"event": "step", "id": STEP, "time": now(), "status": "done", "reason": "", "log": ""}
    ended |= {"seconds": 0.0, "argv": [], "exit_code": None, "warnings": []}
    yield ended | _of_gpus(first, second)
    yield {"event": "end", "time": now()}


def _of_gpus(first: Stored, second: Stored) -> dict[str, Any]:
    """Return the kernels, peaks and devices of both sides; empty if there are no kernels."""
    shared = {name for name, _ in first.series} & {name for name, _ in second.series}
    sides = zip(Side, (first, second), strict=True)
    kernels = [
        {**item, "tree": name.value} for name, side in sides for item in side.kernels if item["benchmark"] in shared
    ]
    found = {"kernels": kernels, "peaks": [*first.peaks, *second.peaks]}
    devices = list(dict.fromkeys([*first.gpus, *second.gpus]))
    return {**found, "devices": devices} if kernels else {}


def _tree(side: Stored) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": STORED, "machine": summary.described_machine(side.machine)}
    names = ("label", "tool", "version", "started", "revision", "dirty")
    return told | {name: getattr(side, name) for name in names}


def _criteria(first: Stored, second: Stored) -> Criteria:
    """Return the criteria to judge by: the second side's thresholds, and the metrics of both.

    Targets apply to one run, and accepted regressions to its own change, so both are left out.
    """
    own, other = (side.criteria or Criteria() for side in (second, first))
    return replace(own, targets=(), accepted=(), peaks={}, routes=(), metrics={**other.metrics, **own.metrics})


def _samples(name: Side, side: Stored) -> Iterator[dict[str, Any]]:
    """Yield one event for each value, because values of two metrics may come from different processes."""
    for readings in side.series.values():
        for reading in readings:
            event = {"event": "sample", "step": STEP, "design": Design.UNPAIRED}
            yield event | {name.value: [reading_to_json(reading)]}


BUDGET = "20s"
MOST_SEED = 2**63 - 1
"""The largest seed that a run accepts."""


@dataclass(frozen=True)
class Question:
    """Two commands and how to compare them. ``metric`` is auto or a timing.

    ``budget``: the longest time of the whole comparison, such as 20s. Without it, it is BUDGET, but slow commands still
    run a few times each.
    ``stdout`` and ``allow_left_running`` (the reason why processes may be left running) are as in a workflow.
    """

    old: str
    new: str
    budget: str | None = None
    metric: str = "auto"
    runs: int | None = None
    stdout: str = DISCARD
    allow_left_running: str | None = None


def require_commands(*commands: str) -> None:
    """Raise UserError if a command is empty or has an unclosed quotation."""
    for text in commands:
        if not text.strip():
            raise UserError.of("one of the commands is empty", "write a program and its arguments")
        try:
            shlex.split(text)
        except ValueError as error:
            raise UserError.of(f"{text!r}: {error}", "close the quotation") from error


def as_run(question: Question, request: RunRequest) -> tuple[Opened, RunRequest]:
    """Return the workflow and the request that compare both commands in pairs until the difference is settled.

    ``request``: the user's other options. Raises UserError for an unusable command.
    """
    for text in (question.old, question.new):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise UserError.of("a command contains bytes that are not UTF-8", "put it into a script, and compare that")
    with tempfile.TemporaryDirectory(prefix="perfflow-") as folder:
        path = Path(folder) / "compare.yaml"
        path.write_text(json.dumps(workflow_of(question), ensure_ascii=False), encoding="utf-8")
        opened = open_workflow(str(path))
    opened.require_usable(to_run=True)
    total = None if question.budget is None else duration(question.budget)
    # The comparison should take about a second; checking the machine's noise would take a quarter of it.
    return opened, replace(request, budget=total, checks_noise=False, command=_typed(question), typed=True)


def _typed(question: Question) -> list[str]:
    """Return the command line that asks this question."""
    usual = Question(question.old, question.new)
    options = [
        word
        for name in ("budget", "metric", "runs", "stdout", "allow_left_running")
        if (value := getattr(question, name)) != getattr(usual, name)
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    return ["perfflow", "compare", *options, "--", question.old, question.new]


def workflow_of(question: Question) -> dict[str, Any]:
    """Return the workflow as data, which is written as JSON because JSON is also YAML."""
    step: dict[str, Any] = {
        "id": STEP,
        "benchmark": _literal(question.new),
        "run": _literal(question.old),
        "candidate": _literal(question.new),
        "metric": question.metric,
        "budget": question.budget or BUDGET,
    }
    if question.runs is not None:
        step["runs"] = question.runs
    if question.stdout != DISCARD:
        step["stdout"] = _literal(question.stdout)
    if question.allow_left_running is not None:
        step["allow"] = {LEFT_RUNNING: _literal(question.allow_left_running)}
    component = f"{question.old} → {question.new}"
    return {"perfflow": 1, "name": STEP, "component": _literal(component), "stages": {"baseline": [step]}}


def _literal(text: str) -> str:
    """Return the text with ``${{`` escaped, so that it is not read as an expression."""
    return text.replace("${{", "${{ '${{' | raw }}")


def new_folder() -> Path:
    """Return a new folder in the user's cache, for a run that belongs to no project."""
    return user_cache_path("perfflow") / "compare" / secrets.token_hex(8)
