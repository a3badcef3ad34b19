"""Cost of each function on both sides, its owner, and the commits that touched it, stored in a step's events.

- ``owner`` is the crate of a function's file, or its Python package; '' if it has neither.
- ``FunctionCosts`` collects costs from one or more profiler calls per side. ``counted`` profilers give the same counts
  every time. For ``sampled`` and ``timed`` ones, each function's share of its side is stored with its variance, which
  covers the sampling noise and the differences between calls.
- ``blame`` finds the commits between base and head that touched each function that got slower. They are stored during
  the run, so that rejudging it does not need the repository.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath

from perfflow.execute.prepare import ReadyProcess
from perfflow.model.errors import UserError
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Cost, Parsed, Side
from perfflow.model.result import Attribution, CommitInfo
from perfflow.model.targets import matches
from perfflow.session.evidence import sources_of
from perfflow.session.own_code import SourceFiles
from perfflow.session.session import RunSession
from perfflow.store import run_folder
from perfflow.store.record import record_of
from perfflow.store.run_facts import BenchmarkCosts, Blame, FunctionCost, SideCost
from perfflow.tools.adapter import Adapter, ProfilingMethod
from perfflow.trees import line_history
from perfflow.trees.definitions import definition
from perfflow.trees.line_history import Touched, lines_of
from perfflow.trees.repository import CodeState, Repository
from perfflow.trees.snapshots import MESSAGE
from perfflow.verdict.judge import judge

_CRATE = re.compile(r"<?([a-z_][a-z0-9_]*)::")


def owner(root: Path, function: str, file: str) -> str:
    """Return the crate or package of a function; ``file`` is relative to the ``root`` of its tree."""
    path = PurePosixPath(file)
    if path.suffix == ".rs" or (not file and "::" in function):
        return _crate(root, path) or _named(function)
    if path.suffix == ".py":
        return _package(root, path)
    return ""


def _named(function: str) -> str:
    found = _CRATE.match(function)
    return found[1] if found else ""


@cache
def _crate(root: Path, path: PurePosixPath) -> str:
    """Return the package name in the nearest Cargo.toml above a file of the tree that declares one."""
    if path.is_absolute() or not path.name:
        return ""
    for folder in path.parents:
        try:
            content = tomllib.loads((root / folder / "Cargo.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        package = content.get("package")
        if isinstance(package, dict) and isinstance(package.get("name"), str):
            return str(package["name"])
    return ""


@cache
def _package(root: Path, path: PurePosixPath) -> str:
    """Return the outermost package above a module, else the module itself; outside the tree always the module."""
    if path.is_absolute():
        return path.stem
    packages = [folder for folder in path.parents if folder.name and (root / folder / "__init__.py").is_file()]
    return packages[-1].name if packages else path.stem


KEPT = 200
"""Number of functions whose costs are stored, the largest first. The totals include the others."""

_Place = tuple[str, str]


@dataclass
class _Counts:
    """Costs of the functions of one side in one metric, call by call."""

    calls: list[dict[_Place, float]] = field(default_factory=list)
    lines: dict[_Place, int] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(sum(call.values()) for call in self.calls)

    def of(self, place: _Place) -> float:
        return sum(call.get(place, 0.0) for call in self.calls)

    def share(self, place: _Place, kind: str) -> tuple[float, float | None]:
        """Return the share of a function and its variance, None if there are too few calls to estimate it."""
        total, count = self.total, self.of(place)
        share = count / total if total else 0.0
        spread = _jackknife([(call.get(place, 0.0), sum(call.values())) for call in self.calls])
        if kind != "sampled":
            return share, spread
        # A function without samples may have been missed, so assume one sample.
        likely = min(max(share, 1 / total), 1 - 1 / total) if total > 1 else 0.5
        return share, max(likely * (1 - likely) / max(total, 1), spread or 0.0)


def _jackknife(calls: Sequence[tuple[float, float]]) -> float | None:
    """Return the jackknife variance of a ratio of sums over the calls. Source: Efron 1982, chapter 2."""
    if len(calls) < 3:
        return None
    count, total = sum(part for part, _ in calls), sum(whole for _, whole in calls)
    left = [(count - part) / (total - whole) if total > whole else 0.0 for part, whole in calls]
    mean = sum(left) / len(left)
    return (len(left) - 1) / len(left) * sum((value - mean) ** 2 for value in left)


class FunctionCosts:
    """Collects the function costs that one profiler reports for one benchmark."""

    def __init__(
        self, session: RunSession, benchmark: str, tool: Adapter | None, ops: int | None = None, note: str = ""
    ) -> None:
        """``ops``: operations of one call; ``note``: why a better profiler was not used, '' if this is the best."""
        self._session, self._benchmark, self.ops, self._note = session, benchmark, ops, note
        self._tool = tool.name if tool else "run"
        self._kind = _kind(tool)
        self._found: dict[str, dict[Side, _Counts]] = {}
        self._sources: dict[Side, SourceFiles] = {}

    def add(self, prepared: ReadyProcess, parsed: Parsed) -> None:
        """Add the costs that one call on one side found."""
        sources = self._sources.setdefault(prepared.side, sources_of(self._session, prepared))
        by_metric: dict[str, list[Cost]] = {}
        for cost in parsed.costs:
            by_metric.setdefault(cost.metric, []).append(cost)
        for metric, costs in by_metric.items():
            counts = self._found.setdefault(metric, {side: _Counts() for side in Side})[prepared.side]
            call: dict[_Place, float] = {}
            for cost in costs:
                place = (cost.function, sources.from_root(cost.file))
                call[place] = call.get(place, 0.0) + cost.count
                counts.lines.setdefault(place, cost.line)
            counts.calls.append(call)

    def samples(self, side: Side) -> float:
        """Return the total count of a side so far, of the metric with the largest total."""
        return max((found[side].total for found in self._found.values()), default=0.0)

    def both_sides(self) -> tuple[BenchmarkCosts, ...]:
        """Return the costs in each metric that both sides have."""
        both = {metric: found for metric, found in self._found.items() if all(found[side].calls for side in Side)}
        return tuple(self._entry(metric, found) for metric, found in both.items())

    def _entry(self, metric: str, counts: Mapping[Side, _Counts]) -> BenchmarkCosts:
        return BenchmarkCosts(
            benchmark=self._benchmark,
            metric=metric,
            tool=self._tool,
            kind=self._kind,
            ops=self.ops,
            note=self._note,
            calls={side: len(counts[side].calls) for side in Side},
            totals={side: counts[side].total for side in Side},
            functions=tuple(self._functions(counts)),
        )

    def _functions(self, counts: Mapping[Side, _Counts]) -> Iterator[FunctionCost]:
        pairs = _paired(counts)

        def size(pair: tuple[_Place | None, _Place | None]) -> float:
            return max(counts[side].share(place, "")[0] for side, place in zip(Side, pair, strict=True) if place)

        root = self._session.tree_context_of(Side.CANDIDATE).root
        for pair in sorted(pairs, key=lambda pair: (-size(pair), str(pair)))[:KEPT]:
            name, file = shown = pair[1] or pair[0] or ("", "")
            line = counts[Side.CANDIDATE if pair[1] else Side.BASELINE].lines[shown]
            sides = []
            for side, place in zip(Side, pair, strict=True):
                count = counts[side].of(place) if place else 0.0
                sides.append(SideCost(count, *counts[side].share(place or shown, self._kind)))
            region = region_of(name, self._session.context.plan.workflow.regions)
            yield FunctionCost(name, file, line, owner(root, name, file), region, *sides)


def region_of(function: str, regions: Mapping[str, str]) -> str:
    """Return the region that names the function, else the first one whose glob matches it, else ''.

    The function is known with and without its parameters. Unlike in names of benchmarks, ``*`` also matches ``/``.
    """
    names = (function, function.partition("(")[0])
    exact = next((region for region, glob in regions.items() if glob in names), "")
    globs = {region: glob.replace("*", "**") for region, glob in regions.items()}
    return exact or next((region for region, glob in globs.items() if any(matches(glob, name) for name in names)), "")


def _kind(tool: Adapter | None) -> str:
    if tool and tool.deterministic:
        return "counted"
    return "sampled" if tool and tool.profiler and tool.profiler.method is ProfilingMethod.SAMPLES else "timed"


def _paired(found: Mapping[Side, _Counts]) -> list[tuple[_Place | None, _Place | None]]:
    """Pair the functions of both sides by name and file, or by name alone if a function moved to another file."""
    before, after = ({place for call in found[side].calls for place in call} for side in Side)
    pairs: list[tuple[_Place | None, _Place | None]] = [(place, place) for place in before & after]
    gone, new = before - after, after - before
    for place in sorted(new):
        moved = [other for other in gone if other[0] == place[0]]
        alone = len(moved) == 1 and sum(other[0] == place[0] for other in new) == 1
        pairs.append((moved[0] if alone else None, place))
        gone -= set(moved if alone else ())
    return [*pairs, *((place, None) for place in gone)]


UNCOMMITTED = "uncommitted changes"


def blame(session: RunSession, repository: Repository, base: CodeState, head: CodeState) -> None:
    """Store the commits that touched each function that the run found slower."""
    record = record_of(run_folder.events(session.folder.path))
    if not any(step.costs for step in record.steps.values()):
        return
    for attribution in judge(record, session.context.plan.criteria).attributions:
        place = None
        try:
            if not attribution.file:
                place = definition(repository, base.commit, head.commit, attribution.function.partition(" (")[0])
            where = attribution if place is None else attribution.model_copy(update=place._asdict())
            commits, note = _touched(repository, base, head, where)
        except UserError as error:
            commits, note = [], f"its commits cannot be listed: {error.problems[0].message}"
        touching = tuple(_touching(each, head) for each in commits)
        blamed = Blame(attribution.benchmark, attribution.function, attribution.file, touching, note)
        blamed = blamed if place is None else replace(blamed, defined_in=place.file, defined_at=place.line)
        session.folder.append({"event": "blamed", **to_json(blamed)})


def _touched(
    repository: Repository, base: CodeState, head: CodeState, attribution: Attribution
) -> tuple[list[Touched], str]:
    """Return the commits that touched a function, or else its file, and a note about them."""
    path = PurePosixPath(attribution.file)
    if not attribution.file or path.is_absolute() or ".." in path.parts:
        return [], "its source is not in the repository"
    text = line_history.content(repository, head.commit, attribution.file)
    if text is None:
        return [], "its source is not in the repository"
    lines = lines_of(text, attribution.file, attribution.function, attribution.line)
    if lines and (commits := line_history.of_lines(repository, base.commit, head.commit, attribution.file, lines)):
        return commits, ""
    whole = line_history.of_file(repository, base.commit, head.commit, attribution.file)
    if not whole:
        return [], "no commit between base and head touched its file: its callers may have changed"
    if lines:
        return whole, "no commit touched its lines; these commits touched its file"
    return whole, "its lines cannot be determined; these commits touched its file"


def _touching(touched: Touched, head: CodeState) -> CommitInfo:
    """Return the commit to store. perfflow's own commit of uncommitted changes gets no revision."""
    if touched.commit == head.commit and touched.subject == MESSAGE:
        return CommitInfo(revision="", subject=UNCOMMITTED)
    return CommitInfo(revision=touched.commit, subject=touched.subject, author=touched.author)
