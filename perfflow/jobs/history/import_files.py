"""Import result files of other tools as runs of a history, with the dates, machines and revisions in the files."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist

from perfflow.model.errors import Problem, ToolOutputError, UserError
from perfflow.model.metrics import METRICS, Metric, default_statistic
from perfflow.model.readings import Reading, Side
from perfflow.model.result import Result
from perfflow.store.history.find_stored import open_source
from perfflow.store.history.machines import identity_facts
from perfflow.store.history.summary import Point, RunSummary, State, summaries_of
from perfflow.tools import regular_files
from perfflow.tools.result_set import ResultSet
from perfflow.tools.shell import data_js
from perfflow.tools.tool_files import clean_name
from perfflow.verdict.comparison import summarise

Tell = Callable[[str], None]
_NORMAL = NormalDist()
_UNKNOWN = "unknown machine"
"""The machine of sets that do not name one. A suite's pages come from one kind of machine, if not from one machine."""
MOST_FILES = 100_000


def summaries(root: Path, words: list[str], tell: Tell) -> Iterator[RunSummary]:
    """Yield the runs in all named files and folders, each once.

    Unreadable files in a folder are left out; ``tell`` gets their number and the most frequent error. Raises UserError
    for a named file that cannot be read.
    """
    for word in words:
        path = Path(word)
        if path.is_dir() and not _is_one_set(path):
            yield from _in_folder(root, path, tell)
        else:
            yield from _of_file(root, word, tell)


def _is_one_set(folder: Path) -> bool:
    """Return whether a folder is criterion's, which is read as a whole."""
    return any(folder.glob("**/new/estimates.json")) or any(folder.glob("**/new/sample.json"))


def _in_folder(root: Path, folder: Path, tell: Tell) -> Iterator[RunSummary]:
    found, others = 0, list[Problem]()
    for path in _files(folder):
        try:
            for summary in _of_file(root, str(path), tell):
                found += 1
                yield summary
        except UserError as error:
            others.append(error.problems[0])
    shown = clean_name(str(folder))
    if not others and not found:
        hint = "name result files, or a folder of them: .benchmarks, an asv results folder, target/criterion"
        raise UserError.of(f"{shown}: the folder has no result files", hint)
    if others:
        (hint, count), *_ = Counter(problem.hint for problem in others).most_common(1)
        first = next(problem for problem in others if problem.hint == hint)
        many = "1 file cannot be read:" if len(others) == 1 else f"{len(others):,} files cannot be read; {count:,} like"
        said = f"{shown}: {many} {first.message}"
        if not found:
            raise UserError.of(said, hint)
        tell(said)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files that may be results, in order, without hidden files and without following links."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".git"))
        for name in sorted(names):
            if name.endswith((".json", ".txt", ".js", ".out")) and not name.startswith("."):
                yield Path(place, name)


def _of_file(root: Path, word: str, tell: Tell) -> Iterator[RunSummary]:
    path = Path(word)
    if path.is_file() and path.suffix == ".js":
        try:
            text = regular_files.read(path).decode("utf-8-sig", "replace")
        except OSError as error:
            raise UserError.of(f"{clean_name(word)}: {error.strerror}", "name a data.js") from error
        if not data_js.recognises(text):
            hint = "of .js files, only those of github-action-benchmark can be read"
            raise UserError.of(f"{clean_name(word)}: it has no window.BENCHMARK_DATA", hint)
        left_out = list[str]()
        try:
            for found in data_js.parse(text, left_out):
                yield summary_of_set(found)
        except ToolOutputError as error:
            raise UserError.of(f"{clean_name(word)}: {error}", "download it again") from error
        if left_out:
            many = "1 value is" if len(left_out) == 1 else f"{len(left_out):,} values are"
            tell(f"{clean_name(word)}: {many} 0 or negative and left out, the first of {clean_name(left_out[0])}")
        return
    source, _ = open_source(root, word)
    if isinstance(source, Result):
        yield from summaries_of(source)
    else:
        yield summary_of_set(source, _changed(path))


def _changed(path: Path) -> str:
    """Return when a file was last written, the date of results that contain no date."""
    try:
        seconds = path.stat().st_mtime
    except OSError:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def summary_of_set(found: ResultSet, changed: str = "") -> RunSummary:
    """Return the summary of another tool's set. ``changed`` is its date if it contains none."""
    facts = identity_facts(found.machine)
    known = json.dumps(facts, sort_keys=True, default=str)
    machine = f"{found.tool} {hashlib.sha256(known.encode()).hexdigest()[:12]}" if facts else _UNKNOWN
    revision = found.facts.get("commit", "")
    committed = found.facts.get("committed", "")
    started = found.started or committed or changed
    state = State(Side.BASELINE.value, revision, found.facts.get("branch", ""), committed=committed)
    points = tuple(_points(found))
    said = (
        found.tool,
        found.version,
        found.started,
        revision,
        known,
        [(p.benchmark, p.metric, p.value) for p in points],
    )
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:24]
    return RunSummary(
        f"{found.tool}-{digest}", found.tool, found.version, started, machine, facts, states=(state,), points=points
    )


def _points(found: ResultSet) -> Iterator[Point]:
    for (benchmark, name), values in found.benchmarks.items():
        metric = METRICS.get(name) or found.metrics[name]
        statistic, value, low, high, n = _figure(found, benchmark, metric, values)
        unit, better = metric.dimension.base_unit, metric.better.value
        yield Point(Side.BASELINE.value, benchmark, name, statistic, unit, better, value, low, high, n)


def _figure(
    found: ResultSet, benchmark: str, metric: Metric, values: tuple[float, ...]
) -> tuple[str, float, float | None, float | None, int]:
    """Return the statistic, the value, both ends of its interval, and the number of samples."""
    told = found.summaries.get((benchmark, metric.name))
    if told:
        reach = _NORMAL.inv_cdf(0.975) * told.error
        return told.statistic or "mean", values[0], values[0] - reach, values[0] + reach, told.count
    statistic = default_statistic(metric)
    if len(values) == 1:
        return statistic, values[0], None, None, 1
    readings = [Reading(metric.name, value, benchmark) for value in values]
    summary = summarise(readings, metric, statistic)
    if summary is None:
        raise ToolOutputError(f"{benchmark} has no value")
    return statistic, summary.value, summary.low, summary.high, summary.n


def own(root: Path, words: tuple[str, ...]) -> list[RunSummary]:
    """Return the runs that folders, ids or result files name. Raises UserError for results of other tools."""
    found: list[RunSummary] = []
    for word in words:
        source, _ = open_source(root, word)
        if not isinstance(source, Result):
            hint = f"`perfflow history import {clean_name(word)}` adds files of other tools"
            raise UserError.of(f"{clean_name(word)} is not a result of perfflow", hint)
        found += summaries_of(source)
    return found
