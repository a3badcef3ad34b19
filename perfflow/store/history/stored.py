"""A stored set of samples from any tool: one side of a comparison, without pairs.

- ``stored_of`` makes it from a run, or from another tool's file.
- ``suggestion`` suggests a name for an unknown one.
- ``with_same_statistic`` converts two sets to the same statistic. A quartile is never compared with a mean.
- ``place_of`` finds the history of a project, and ``open_for_reading`` opens it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from perfflow.machine.private_folder import private_folder
from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.kernels import measured_of
from perfflow.model.metrics import METRICS, is_exact
from perfflow.model.readings import CAPPED, COUNT, ERROR, MEAN, Reading, Side
from perfflow.model.result import Benchmark, Result, Sample
from perfflow.model.similar import nearest
from perfflow.model.tree_facts import STORED, TreeFacts, tree_of
from perfflow.store.history.connections import DamagedError, PostgresConnection, SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.record import reading_from_json
from perfflow.store.run_folder import HISTORY, HOME, require_own, write_text
from perfflow.tools.result_set import ResultSet, StoredSummary
from perfflow.tools.tool_files import clean_name

Key = tuple[str, str]
"""Benchmark and metric."""
Source = Result | ResultSet
"""The source of a stored set."""
OWN = "perfflow"


@dataclass(frozen=True)
class Stored:
    """Samples by (benchmark, metric) in base units, and facts about their origin.

    ``started`` (RFC 3339), ``run_id`` and ``revision`` are '' if unknown; ``data`` is None if the declared input files
    are not known. ``failed`` are benchmarks without samples because they failed; ``versions`` are the versions of the
    benchmarks' own code, if the tool reports them.
    """

    label: str
    tool: str
    version: str
    series: Mapping[Key, tuple[Reading, ...]]
    machine: Mapping[str, Any]
    started: str = ""
    run_id: str = ""
    workflow: str = ""
    revision: str = ""
    dirty: bool = False
    data: Mapping[str, str] | None = None
    data_missing: tuple[str, ...] = ()
    criteria: Criteria | None = None
    failed: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    kernels: tuple[Mapping[str, Any], ...] = ()
    """GPU kernels of its side, in the form of events. ``peaks`` are the peaks of these GPUs."""
    peaks: tuple[Mapping[str, Any], ...] = ()

    @property
    def gpus(self) -> list[str]:
        """Names of the GPUs on which its kernels ran."""
        return list(dict.fromkeys(item["device"] for item in self.kernels if item["device"]))

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks in the order of the source, each once."""
        return list(dict.fromkeys(name for name, _ in self.series))


def stored_of(source: Source, label: str) -> Stored:
    """Return the candidate side of a run (or its only side), or all samples of another tool's file.

    Raises UserError if a run's samples are damaged.
    """
    return _of_result(source, label) if isinstance(source, Result) else _of_import(source, label)


def _of_import(imported: ResultSet, label: str) -> Stored:
    series = {
        key: tuple(_reading(key, value, imported.summaries.get(key)) for value in values)
        for key, values in imported.benchmarks.items()
    }
    failed = tuple(f"{name} {reason}" for name, reason in imported.failed.items())
    return Stored(
        label,
        imported.tool,
        imported.version,
        series,
        imported.machine,
        started=imported.started,
        revision=imported.facts.get("commit", ""),
        criteria=Criteria(metrics=imported.metrics),
        warnings=(*imported.warnings, *failed),
        failed=tuple(imported.failed),
        versions=imported.versions,
    )


def _reading(key: Key, value: float, summary: StoredSummary | None) -> Reading:
    if summary is None:
        return Reading(key[1], value, key[0])
    inner = {ERROR: summary.error, COUNT: float(summary.count)}
    return Reading(key[1], value, key[0], inner, statistic=summary.statistic)


def _of_result(result: Result, label: str) -> Stored:
    try:
        series = dict(_series(result))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{clean_name(label)}: its samples are damaged ({type(error).__name__}: {error})"
        raise UserError.of(text, "`perfflow report` can rebuild a result from the events.jsonl beside it") from error
    tree = _taken_tree(result)
    # The time of a comparison of stored sets is that of its second side.
    started = tree.started if tree.kind == STORED else result.run.started
    return Stored(
        label,
        OWN,
        result.run.version,
        series,
        result.machine,
        started=started,
        run_id=result.run.id,
        workflow=result.run.workflow,
        revision=tree.revision or "",
        dirty=bool(tree.dirty),
        data=result.data,
        data_missing=tuple(result.run.data_missing),
        criteria=criteria_from_json(result.criteria),
        warnings=(f"ended in error: {_why(result)}",) if result.unmeasured else (),
        kernels=tuple(_kernels(result)),
        peaks=tuple(peak.model_dump(exclude={"step", "unit"}) for peak in result.peaks if peak.step and peak.device),
    )


def _taken_tree(result: Result) -> TreeFacts:
    """Return the tree of the selected side."""
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return candidate if candidate.kind else baseline


def branch_of(source: Source) -> str:
    """Return the branch that a run measured; '' if unknown or for a detached head."""
    branch = (_taken_tree(source).branch or "") if isinstance(source, Result) else source.facts.get("branch", "")
    return "" if branch == "HEAD" else branch


def _kernels(result: Result) -> Iterator[Mapping[str, Any]]:
    """Yield the kernels of the candidate, or of the only side."""
    trees = {item.tree for item in result.kernels}
    for item in result.kernels:
        if item.tree == "candidate" or trees == {"baseline"}:
            yield measured_of(item).model_dump(exclude_defaults=True)


def _why(result: Result) -> str:
    return result.reasons[0].text if result.reasons else "no reason is given"


def error_of(source: Source) -> str:
    """Return why a run ended in error; '' for other runs."""
    return _why(source) if isinstance(source, Result) and source.unmeasured else ""


def ending_of(source: Source) -> str:
    """Return the note stored with a run that failed or ended in error; '' for other runs."""
    words = {"fail": "this run failed", "error": "this run ended in error"}
    if not isinstance(source, Result) or source.verdict not in words:
        return ""
    return f"{words[source.verdict]}: {_why(source)}"


def _series(result: Result) -> Iterator[tuple[Key, tuple[Reading, ...]]]:
    two_sided = any(row.candidate for row in result.benchmarks)
    for row in result.benchmarks:
        # Rows that only the baseline has do not belong to the candidate.
        gone = two_sided and row.decision == "removed"
        side = row.candidate or (None if gone else row.baseline)
        if side and side.samples:
            yield (row.name, row.metric), tuple(_readings(row, side))


def _readings(row: Benchmark, side: Sample) -> Iterator[Reading]:
    data = side.readings or [{"metric": row.metric, "value": value} for value in side.samples]
    for item in data:
        reading = replace(reading_from_json(item), metric=row.metric, benchmark=row.name, exact=is_exact(row.statistic))
        if not math.isfinite(reading.value) or (row.metric in METRICS and reading.value < 0):
            raise ValueError(f"a value of {row.name} {row.metric} is {reading.value}")
        yield reading


MOST = 8


def suggestion(name: str, known: Sequence[str], kind: str) -> str:
    """Return a hint with the nearest name, else with all known names."""
    if near := nearest(name, known):
        return f"did you mean {near!r}?"
    return f"{kind}: {listed(known)}" if known else f"there are no {kind} yet"


def listed(names: Sequence[str]) -> str:
    """Return the first ``MOST`` names as text, and the number of further ones."""
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


_MEDIAN = "p50"
_WORDS = {
    "": "single values",
    MEAN: "the mean of each process",
    CAPPED: "the capped mean of each process",
    _MEDIAN: "the median of each process",
}
_Readings = tuple[Reading, ...]


def with_same_statistic(first: Stored, second: Stored) -> tuple[Stored, Stored, list[str]]:
    """Return both sets with common metrics as the same statistic, without those that have none, and warnings."""
    kept: tuple[dict[Key, _Readings], dict[Key, _Readings]] = (dict(first.series), dict(second.series))
    left_out: dict[tuple[str, str], list[str]] = defaultdict(list)
    turned: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key in first.series.keys() & second.series.keys():
        pair = first.series[key], second.series[key]
        old, new = (series[0].statistic for series in pair)
        shown = clean_name(f"{key[0]} {key[1]}")
        if old == new or any(reading.exact for side in pair for reading in side):
            continue
        common = next((name for name in (new, old, MEAN, _MEDIAN) if all(_holds(side, name) for side in pair)), "")
        if common:
            turned[old, new, common].append(shown)
        else:
            left_out[old, new].append(shown)
        for side, series in zip(kept, pair, strict=True):
            side[key] = tuple(_as(reading, common) for reading in series)
            if not common:
                del side[key]
    warnings = [*_turned(first, second, turned), *_left_out(first, second, left_out)]
    return replace(first, series=kept[0]), replace(second, series=kept[1]), warnings


def _holds(series: Sequence[Reading], statistic: str) -> bool:
    return bool(statistic) and all(reading.statistic == statistic or statistic in reading.inner for reading in series)


def _as(reading: Reading, statistic: str) -> Reading:
    return replace(reading, value=reading.inner.get(statistic, reading.value), statistic=statistic)


def _turned(first: Stored, second: Stored, found: dict[tuple[str, str, str], list[str]]) -> Iterator[str]:
    for (old, new, common), names in found.items():
        yield (
            f"compared by {_words(common)}, which both contain: {listed(sorted(names))} "
            f"({_name(first)} was judged by {_words(old)}, {_name(second)} by {_words(new)})"
        )


def _left_out(first: Stored, second: Stored, found: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    older = second if first.started and second.started and second.started < first.started else first
    for (old, new), names in found.items():
        yield (
            f"skipped, because {_name(first)} contains {_words(old)} and {_name(second)} {_words(new)}: "
            f"{listed(sorted(names))}; measure {_name(older)} again to compare them"
        )


def _words(statistic: str) -> str:
    return _WORDS.get(statistic, f"the {statistic} of each process")


def _name(side: Stored) -> str:
    return clean_name(side.label)


NOT_READ = "history-address"
"""A file with this name in the project's folder is not used: whoever wrote the project would choose the server."""
VARIABLE = "PERFFLOW_HISTORY"
_WAIT = 2
"""Seconds to wait for a server that is only needed to estimate the duration of a run."""
_SSL = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_ADDRESS = re.compile(
    r"postgresql(?:\+psycopg)?://(?:[A-Za-z0-9_.%+-]+@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::[0-9]{1,5})?"
    rf"/[A-Za-z0-9_.$-]+(?:\?sslmode=(?:{'|'.join(_SSL)}))?"
)
_PASSWORD = re.compile(r"[a-z0-9+]+://[^/@]*:[^/]*@.*")


@dataclass(frozen=True)
class HistoryLocation:
    """The place of a project's history: the address of a server, or '' for the file in its own folder."""

    root: Path
    address: str

    @property
    def file(self) -> Path:
        """The file of a history in the project's own folder."""
        return self.root / HOME / HISTORY

    @property
    def shown(self) -> str:
        """The place as text, which never contains a password."""
        return self.address or str(self.file)


def place_of(root: Path) -> HistoryLocation:
    """Return the place set by PERFFLOW_HISTORY or stored by ``history use``, else the project's own file.

    Raises UserError for an address that is not valid, and for links out of the project.
    """
    require_own(root)
    address = os.environ.get(VARIABLE, "").strip() or _stored(root)
    return HistoryLocation(root, checked(address) if address else "")


def store(root: Path, address: str) -> None:
    """Store the address of a project's history in the user's configuration, or remove it for ''. Raises OSError."""
    path = _settings(root)
    if not address:
        path.unlink(missing_ok=True)
        return
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    private_folder(path.parent, below=path.parent.parent)
    write_text(path, f"{json.dumps({'project': os.path.realpath(root), 'address': address})}\n")


def _stored(root: Path) -> str:
    try:
        about = json.loads(_settings(root).read_text(encoding="utf-8"))
        return str(about["address"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _settings(root: Path) -> Path:
    """Return the file with the address of a project's history: outside of the project, named by its real path."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]
    return user_config_path("perfflow") / "histories" / f"{name}.json"


def checked(address: str) -> str:
    """Return the address of a server: user, host, port, database and sslmode. Raises UserError for anything else.

    Other parameters of a connection can name files to read, programs and other servers.
    """
    if not address.startswith(("postgresql://", "postgresql+psycopg://")):
        hint = f"write postgresql://USER@HOST/DATABASE, or unset {VARIABLE} to use the project's own file"
        raise UserError.of("the address of the history is not a PostgreSQL address", hint)
    if _PASSWORD.fullmatch(address):
        hint = "set PGPASSWORD, or write it to ~/.pgpass; the address is stored and shown"
        raise UserError.of("the address of the history contains a password", hint)
    if not _ADDRESS.fullmatch(address):
        hint = f"write postgresql://USER@HOST:PORT/DATABASE?sslmode=MODE, where MODE is {', '.join(_SSL)}"
        raise UserError.of("the address of the history may have a user, host, port, database and sslmode only", hint)
    return address


@contextmanager
def open_for_reading(root: Path, *, server: bool) -> Iterator[History | None]:
    """Open the history for reading; None if there is none or it cannot be read.

    ``server``: whether to connect to a server. Commands that only show data do not.
    """
    place = place_of(root)
    if not (server if place.address else place.file.is_file()):
        yield None
        return

    history: History | None = None
    try:
        address = place.address
        connection = PostgresConnection(address, _WAIT) if address else SqliteConnection(place.file, read_only=True)
        history = History(connection)
    except (UserError, DamagedError):
        history = None
    try:
        yield history
    finally:
        if history:
            history.close()
