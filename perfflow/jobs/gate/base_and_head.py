"""The regression gate: every measuring step compares base with head, each built in its own tree.

Find accepted regressions that are already in the base's copy of the workflow. They are merged, so they are spent.

The base of ``gate --against best-30d``: the best revision in the history of this machine.

The stored values only choose the revision. It is then measured again, in pairs with head, so a lucky value in the
history cannot fail a gate.
"""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import sides_of
from perfflow.jobs.history.collect import opened as opened_history
from perfflow.jobs.history.trends import Trend, moment
from perfflow.library import search_path
from perfflow.library.pinned import Library
from perfflow.machine.facts import facts
from perfflow.model.criteria import read_share
from perfflow.model.errors import UserError
from perfflow.model.metrics import is_exact
from perfflow.model.readings import Side
from perfflow.model.targets import matches
from perfflow.model.units import UnitError
from perfflow.plan.coverage import metrics_of
from perfflow.plan.plan import Planned, building_steps
from perfflow.report.history_tables import quantity
from perfflow.session.attribution.explain_failure import explain_failure
from perfflow.session.attribution.function_costs import blame
from perfflow.session.blind_lines import note_blind
from perfflow.session.build_key import build_key
from perfflow.session.missing_side import side_without_program
from perfflow.session.open_workflow import Opened
from perfflow.session.perform import failure_of, perform_all
from perfflow.session.planted_slowdown import plant
from perfflow.session.progress import Nested
from perfflow.session.session import RunSession, built_with, context_in, now
from perfflow.stats.paired_test import levels, quantile
from perfflow.store import run_folder
from perfflow.store.history.database import Measured, Series
from perfflow.store.history.summary import params_text
from perfflow.store.record import Record, record_of
from perfflow.store.run_folder import Subrun, own_events
from perfflow.tools.adapter import Role
from perfflow.trees import repository as repositories
from perfflow.trees.overlay import overlaid
from perfflow.trees.patches import changed_paths
from perfflow.trees.repository import Repository, State, describe_project
from perfflow.trees.shared_installs import share_crates
from perfflow.trees.slots import Kept, Slot, Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from perfflow.verdict.comparison import Comparison, Summary, compare
from perfflow.verdict.decide import rule
from perfflow.verdict.gating import deciding_metrics
from perfflow.workflow.load import load
from perfflow.workflow.yaml_text import Readable

BASE = "base"
"""Subrun of the run's folder for building the base."""


class BaseAndHead:
    """Both trees of one gate. They are checked out and built when the first step needs them."""

    def __init__(
        self, session: RunSession, repository: Repository, base: State, head: State, *, fresh: bool = False
    ) -> None:
        """``fresh``: build both trees from nothing, whatever earlier runs have built."""
        self._session, self._repository, self._base, self._head = session, repository, base, head
        self._fresh = fresh
        self._of_side: dict[Side, Slot] = {}
        self._wanted: dict[Side, Kept] = {}
        self._building = building_steps(session.context.plan)
        self._slots: Slots | None = None
        self._contexts: dict[Side, TreeContext] = {}
        self._head_session: RunSession | None = None
        self._both: RunSession | None = None
        # A resumed run builds again in both trees, which is quick if nothing changed.
        done = {name: outputs for name, outputs in session.earlier.done.items() if name not in self._building}
        session.earlier = replace(session.earlier, done=done)

    def show(self, planned: Planned) -> None:
        """Show both trees before the first step that builds. Raises Failure if they cannot be checked out."""
        if planned.id in self._building:
            self._shown()

    def session_for(self, planned: Planned) -> RunSession:
        """Return the session in which a step runs.

        Building steps run in the base's tree first, then in head's. Measuring steps run in both trees at once. Steps
        that compare two commands run in head's tree, and the setup in the user's. Raises Failure if the base does not
        build or the trees cannot be checked out.
        """
        if planned.stage == "setup":
            return self._session
        contexts = self._shown()
        if self._head_session is None or self._both is None:
            # Kept, so that the machine's noise is checked once and not before every step.
            changed = frozenset(changed_paths(self._repository, self._base.tree, self._head.tree))
            self._head_session = replace(self._session, context=contexts[Side.CANDIDATE], changed=changed)
            self._both = replace(self._head_session, contexts=contexts)
        if planned.id in self._building:
            base = self._session.built.get(Side.BASELINE, {}).get(planned.id)
            if base is not None:
                contexts[Side.BASELINE].outputs[planned.id] = dict(base)
                return self._head_session
            self._build_base(planned)
            share_crates(self._of_side[Side.BASELINE], self._of_side[Side.CANDIDATE])
            return self._head_session
        # Steps that compare (or check) two commands or variants have their own two sides, so they need one tree.
        return self._head_session if len(sides_of(contexts[Side.CANDIDATE], planned)) == 2 else self._both

    def why_not(self, planned: Planned) -> str:
        """Return why a gate skips a step, or ''.

        A gate tries no candidates. It profiles only regressed benchmarks, metrics that a target needs, and conditions.
        """
        if self._session.plants and planned.role is Role.PROFILE:
            return "a self-test does not explain what it slowed down"
        if planned.role is Role.CANDIDATE:
            return "a gate compares base with head and tries no candidates"
        if planned.role is Role.COMPARE:
            return "a gate already compares base with head in the measuring steps"
        if planned.role is Role.PROFILE and not self._is_wanted(planned):
            return "no benchmark that it profiles regressed"
        return ""

    def finish(self) -> None:
        """Profile what failed and was not profiled, and find the commits that changed the functions that got slower."""
        if self._session.plants:
            return
        explain_failure(self._session)
        blame(self._session, self._repository, self._base, self._head)
        note_blind(self._session, self._repository, self._base, self._head)

    def close(self) -> None:
        """Note what was built for later runs, and release the slots to other runs."""
        if self._slots:
            for side, slot in self._of_side.items():
                outputs = {name: self._contexts[side].outputs.get(name) for name in self._building}
                complete = {name: dict(found) for name, found in outputs.items() if found is not None}
                if len(complete) == len(outputs) and not slot.kept.built:
                    slot.keep(replace(self._wanted[side], built=now(), outputs=complete))
            self._slots.close()
            self._slots = None

    def _shown(self) -> dict[Side, TreeContext]:
        if not self._contexts:
            try:
                self._take_slots()
            except UserError as error:
                raise Failure(error.in_one_line) from error
            for side, slot in self._of_side.items():
                self._contexts[side] = context_in(self._session.context, slot, Settings())
            base, head = (self._contexts[side] for side in Side)
            if self._session.plants:
                plant(self._session, head)
            if not self._is_one:
                base.other, head.other = head.root, base.root
            done = {name: dict(outputs) for name, outputs in self._session.earlier.done.items()}
            self._contexts[Side.CANDIDATE].outputs.update(done)
        return self._contexts

    def _take_slots(self) -> None:
        """Show each side in a slot, and take over what earlier runs built there. Raises UserError."""
        context = self._session.context
        self._slots = open_slots(self._repository, context.plan.workflow.worktree.share)
        data = next(own_events(self._session.folder.path), {}).get("data") or {}
        for side, state in zip(Side, (self._base, self._head), strict=True):
            key = build_key(context, self._building, state.tree, data)
            self._wanted[side] = Kept(state.tree, side.value, key)
        slots = self._slots.pair(*self._wanted.values())
        self._of_side = dict(zip(Side, slots[:1] * 2 if self._is_one else slots, strict=True))
        built: dict[Side, Mapping[str, Mapping[str, str]]] = dict(self._session.built)
        for side, state in zip(Side, (self._base, self._head), strict=True):
            slot = self._of_side[side]
            if self._fresh:
                slot.clear()
            # Perhaps the build made them, and showing the state removes them.
            is_whole = not slot.left_files()
            self._show(slot, state)
            kept = slot.kept
            if is_whole and kept.key == self._wanted[side].key and _are_there(slot, kept.outputs):
                slot.keep(replace(kept, side=side.value))
                if self._building:
                    built.setdefault(side, kept.outputs)
                    self._session.folder.append({"event": "reused", "side": side.value, "built": kept.built})
            else:
                slot.keep(replace(self._wanted[side], key=""))
        for other in self._slots.every if Side.BASELINE not in built else ():
            share_crates(other, self._of_side[Side.BASELINE])
        self._session.built = built

    @property
    def _is_one(self) -> bool:
        """Whether base and head are the same state of the code, which is then built once, in one tree."""
        return (self._base.commit, self._base.tree) == (self._head.commit, self._head.tree)

    def _show(self, slot: Slot, state: State) -> None:
        """Check out a state, and delete earlier builds with other settings or from sources that no longer exist.

        Otherwise the program of a deleted benchmark would still exist and be measured.
        """
        if self._session.built and slot.shows(state.tree):
            return
        changed = slot.switch(state.tree, state.commit)
        if any(not os.path.lexists(slot.path / path) for path in changed):
            slot.forget_builds_unless("")
        slot.forget_builds_unless(built_with(self._session.context, self._building))

    def _build_base(self, planned: Planned) -> None:
        subrun = Subrun(self._session.folder, BASE, Record())
        # A crate or folder that is new on head cannot be built on base.
        if side_without_program(self._contexts, planned, subrun.step(planned.id), folders_only=True) is Side.BASELINE:
            return
        progress = Nested(self._session.progress, planned)
        session = self._session.nested(self._contexts[Side.BASELINE], subrun, progress)
        (run,) = perform_all(session, [planned.id])
        if run.blocks:
            raise failure_of(run, session.folder.path, f"the base does not build: {run.reason}")

    def _is_wanted(self, planned: Planned) -> bool:
        criteria = self._session.context.plan.criteria
        if planned.tool and planned.tool.conditions:
            return True
        if any(target.metric.name in metrics_of(planned) for target in criteria.targets):
            return True
        record = record_of(run_folder.events(self._session.folder.path))
        for (benchmark, metric), series in record.series.items():
            ruling = rule(
                compare(series, criteria),
                criteria.thresholds_of(benchmark, metric),
                identical=False,
            )
            about = not planned.benchmark or matches(planned.benchmark, benchmark) or planned.benchmark == benchmark
            if about and ruling.is_regression:
                return True
        return False


def _are_there(slot: Slot, outputs: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether all files of the slot that outputs of build steps name still exist."""
    values = [
        value for found in outputs.values() for value in found.values() if value.startswith(f"{slot.path}{os.sep}")
    ]
    return all(map(os.path.lexists, values))


def ends(repository: Repository, base: str, head: str | None) -> tuple[str, str]:
    """Return the commit of head, and the merge base of head and ``base``. Raises UserError as ``states`` does."""
    tip = repository.revision(head) if head else repository.head()
    if tip is None:
        raise UserError.of("the repository has no commit yet", "commit the state that the gate should compare with")
    return tip, repository.merge_base(base, tip)


def states(
    repository: Repository, base: str, head: str | None, overlay: Sequence[str] = ()
) -> tuple[State, State, dict[str, Any]]:
    """Return the states of base and head, and their description for the result.

    The base is the merge base of head and the revision ``base``, with head's files under the paths ``overlay``. Without
    a revision, head is the working tree as it is. Raises UserError for unknown revisions, with the remedy for shallow
    clones, and as ``overlaid`` does.
    """
    tip, parted = ends(repository, base, head)
    other = at(repository, tip) if head else snapshot(repository)
    one, replaced = overlaid(repository, at(repository, parted), other, overlay)
    told: dict[str, Any] = {
        "baseline": {"kind": "revision", "revision": parted, "name": base, "tree": one.tree},
        "candidate": {"kind": "revision" if head else "working tree", "revision": tip, "name": head or "HEAD"},
    }
    told["candidate"]["tree"] = other.tree
    told["candidate"]["dirty"] = other.tree != repository.tree(tip)
    if overlay:
        told["baseline"] |= {"overlay": list(overlay), "replaced": replaced}
    return one, other, told


class Entry(NamedTuple):
    """The identity of an entry under ``accepted``."""

    benchmark: str
    metric: str
    change: float
    why: str
    until: str


def without_spent(opened: Opened, repository: Repository, base: State) -> tuple[Opened, list[str]]:
    """Return the workflow with its merged entries marked as spent, and warnings.

    For a workflow outside the repository this is not known, so its entries count until their dates.
    """
    accepted = opened.plan.criteria.accepted
    if not accepted:
        return opened, []
    path = opened.path.resolve()
    if not path.is_relative_to(repository.root):
        text = "the workflow is not in the repository, so perfflow cannot tell which accepted regressions are merged"
        return opened, [f"{text}: each counts until its date"]
    library = Library(opened.root)
    merged = set(_entries(repository, base, path.relative_to(repository.root), library))
    marked = tuple(
        replace(item, spent=Entry(item.benchmark, item.metric, item.change, item.why, item.until) in merged)
        for item in accepted
    )
    criteria = replace(opened.plan.criteria, accepted=marked)
    return replace(opened, plan=replace(opened.plan, criteria=criteria)), []


def _entries(repository: Repository, base: State, name: Path, library: Library) -> Iterator[Entry]:
    """Yield the entries of the base's copy of a workflow and of the files it extends; none if it cannot be read.

    Files from another repository are read in head's version.
    """
    with repository.scratch() as folder:
        top = folder.resolve()

        def shown(path: Path) -> Path:
            """Write the base's copy of a file below ``top``, and return its path."""
            inside = Path(*path.resolve().relative_to(top).parts)
            done = repository.git().attempt("cat-file", "blob", f"{base.commit}:{inside.as_posix()}")
            if done.status == 0:
                path.resolve().parent.mkdir(parents=True, exist_ok=True)
                path.resolve().write_bytes(done.stdout)
            return path

        def resolve(text: str, where: Path) -> Path:
            found = library.resolve(text, where)
            return shown(found) if found.resolve().is_relative_to(top) else found

        try:
            readable = library.reading(Readable.of(top, search_path.SHIPPED))
            written = load(shown(top / name), resolve, readable).workflow.accepted
        except UserError:
            return
        for item in written:
            try:
                share = read_share(item.change)
            except UnitError:
                continue
            yield Entry(item.benchmark, item.metric or "", share, item.why, item.until)


Tell = Callable[[str], None]
_SPEC = re.compile(r"best-([1-9][0-9]{0,3})d")
_NOISES = 2
"""A benchmark's loss counts only beyond this multiple of its noise. Otherwise the noisiest would always choose."""
_DEVIATION = 1.4826 / math.sqrt(1.5)
"""Factor from the median distance of a normal value to the middle of two others, to their standard deviation."""
_WIDTH = 2 * 1.96
"""Standard errors in a 95% interval."""
_DEEPEN = "git fetch --unshallow gets the whole history"


@dataclass(frozen=True)
class Best:
    """The chosen revision, and why: the benchmark that decided, its stored value, and how old the revision is.

    ``value`` is in base units. ``lost`` is the share by which the newest level is worse than the best. ``days`` and
    ``commits`` are the revision's age. It was chosen from ``of`` revisions. ``others`` of ``benchmarks`` were best at
    another revision.
    """

    spec: str
    revision: str
    series: Series
    value: float
    measured: str
    days: int
    commits: int
    lost: float
    of: int
    benchmarks: int
    others: int

    @property
    def text(self) -> str:
        """The sentence for the report."""
        series = self.series
        back = f"{_number(self.days, 'day')} and {_number(self.commits, 'commit')} back"
        now = f"{self.lost:.1%} worse" if self.lost >= 0.0005 else "no worse"
        said = (
            f"base: {self.revision[:12]}, the best of {_number(self.of, 'revision')} of the last {days_of(self.spec)} "
            f"days in this machine's history: {series.benchmark} {series.metric} was {quantity(self.value, series)} "
            f"on {self.measured[:10]}, {back}, and the level is {now} now"
        )
        if not self.others:
            return said
        many = f"{self.others} of {_number(self.benchmarks, 'benchmark')}"
        return f"{said}; {many} were best at another revision, and {series.benchmark} has lost most since its best"

    @property
    def about(self) -> dict[str, Any]:
        """The facts about the base for the result, beside its revision."""
        names = ("value", "measured", "days", "commits", "lost")
        series = {name: getattr(self.series, name) for name in ("benchmark", "metric", "unit")}
        return {"name": self.spec, "best": series | {name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class _Line:
    """Head's history, oldest commit first, and the commits that cannot be the base because their code is head's.

    ``shallow``: this clone lacks the older commits.
    """

    places: Mapping[str, int]
    same_code: frozenset[str]
    shallow: bool


@dataclass(frozen=True)
class _Followed:
    """One deciding metric of one benchmark: a value for each revision, in the order of the commits."""

    trend: Trend
    revisions: tuple[str, ...]
    values: tuple[float, ...]
    levels: tuple[float, ...]
    best: int
    """Index of the best revision that can be the base."""

    @property
    def lost(self) -> float:
        """The share by which the newest level is worse than the best one."""
        best, newest = self.levels[self.best], self.levels[-1]
        old, new = (best, newest) if self.trend.series.better == "lower" else (newest, best)
        if old == 0:
            return math.inf if new > 0 else 0.0
        return new / old - 1

    @property
    def rank(self) -> tuple[float, float]:
        """The loss beyond the noise, then the whole loss."""
        exact = is_exact(self.trend.series.statistic)
        return self.lost - (0 if exact else _NOISES * _noise(self.trend, self.values)), self.lost


def days_of(spec: str) -> int:
    """Return the number of days in ``best-Nd``. Raises UserError for any other text."""
    found = _SPEC.fullmatch(spec)
    if not found:
        hint = "write --against best-30d: the revision with the best value of the last 30 days in the history"
        raise UserError.of(f"--against {spec!r} is not best-Nd", hint)
    return int(found[1])


def best_revision(opened: Opened, selected: Collection[str], spec: str, head: str | None, tell: Tell) -> Best:
    """Choose the base: take the deciding metric that has lost most since its best, and return its best revision.

    Only head's own history counts, and only values of this machine, workflow and parameters.
    head: a revision; None for the working tree. Raises UserError if there is no such value or its commit is missing.
    """
    days = days_of(spec)
    repository = repositories.look_at(opened.root)
    line = _line(opened, repository, head)
    now = datetime.now(UTC)
    found, elsewhere = _series(opened, now - timedelta(days=days), line, tell)
    of = {point.revision for trend in found for point in trend.points}
    ranked = [item for trend in _deciding(opened, selected, found) if (item := _followed(trend, line))]
    if not ranked:
        raise _nothing(opened, spec, of, elsewhere, shallow=line.shallow)
    first = max(ranked, key=lambda item: item.rank)
    revision = first.revisions[first.best]
    if revision not in line.places:
        text = f"the best revision of the last {days} days, {revision[:12]}, is not in this shallow clone"
        raise UserError.of(text, _DEEPEN)
    measured = max(point.started for point in first.trend.points if point.revision == revision)
    return Best(
        spec,
        revision,
        first.trend.series,
        first.values[first.best],
        measured,
        max(0, (now - moment(measured)).days),
        len(line.places) - 1 - line.places[revision],
        max(0.0, first.lost),
        len(of),
        len({item.trend.series.benchmark for item in ranked}),
        len({item.trend.series.benchmark for item in ranked if item.revisions[item.best] != revision}),
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _line(opened: Opened, repository: Repository, head: str | None) -> _Line:
    tip = repository.revision(head) if head else repository.head()
    if tip is None:
        raise UserError.of("the repository has no commit yet", "commit the state that the gate should compare with")
    lines = repository.git().run("rev-list", "--date-order", "--reverse", "--format=%H %T", tip).decode().splitlines()
    trees = dict(line.split(" ") for line in lines if not line.startswith("commit "))
    # Head compared with itself would always pass.
    changed = not head and bool(describe_project(opened.root, inspecting=True).get("dirty"))
    same = frozenset() if changed else frozenset(name for name, tree in trees.items() if tree == trees[tip])
    return _Line({name: place for place, name in enumerate(trees)}, same, repository.shallow)


def _series(opened: Opened, since: datetime, line: _Line, tell: Tell) -> tuple[list[Trend], int]:
    """Return the eligible values of this machine, and the number of series of other machines."""
    identity, params = facts()["identity"], params_text(opened.plan.params)
    found, elsewhere = [], 0
    with opened_history(opened.root, tell) as history:
        for series in history.series():
            if (series.workflow, series.params) != (opened.plan.workflow.name, params):
                continue
            if series.machine != identity:
                elsewhere += 1
                continue
            points = [point for point in history.points(series.id) if _counts(point, since, line)]
            points.sort(key=lambda point: (line.places.get(point.revision, -1), point.started))
            if points:
                found.append(Trend(series, tuple(points)))
    return found, elsewhere


def _counts(point: Measured, since: datetime, line: _Line) -> bool:
    # In a shallow clone, an unknown commit may be an ancestor of head.
    known = point.revision in line.places or (line.shallow and bool(point.revision))
    return known and not point.dirty and moment(point.started) >= since


def _deciding(opened: Opened, selected: Collection[str], found: Sequence[Trend]) -> Iterator[Trend]:
    """Yield, for each benchmark to be measured, the metrics that decide a gate and the metrics with a target."""
    steps = [item for item in opened.plan.steps if item.id in selected and item.role is Role.MEASURE]
    # Steps that compare two commands or variants do not compare base with head.
    steps = [item for item in steps if not (item.step.candidate or item.step.variants)]
    by_name: dict[str, dict[str, Trend]] = defaultdict(dict)
    for trend in sorted(found, key=lambda trend: trend.points[-1].started):
        by_name[trend.series.benchmark][trend.series.metric] = trend
    for name, by_metric in by_name.items():
        own = [item for item in steps if may_measure(item, name)]
        if not own:
            continue
        comparisons = {metric: _as_comparison(opened, trend) for metric, trend in by_metric.items()}
        wanted = set(deciding_metrics([item.step.metric for item in own], comparisons))
        wanted |= {item.metric.name for item in opened.plan.criteria.targets if matches(item.benchmark, name)}
        yield from (by_metric[metric] for metric in by_metric if metric in wanted)


def may_measure(item: Planned, name: str) -> bool:
    """Return whether a step may measure a benchmark. In a suite step's pattern, ``*`` stands for the suite's ids."""
    before, star, after = item.pattern.partition("*")
    if star:
        return name.startswith(before) and name.endswith(after)
    return not item.pattern or matches(item.pattern, name)


def _as_comparison(opened: Opened, trend: Trend) -> Comparison:
    """Return the newest value in the form that ``deciding_metrics`` takes."""
    series, point = trend.series, trend.points[-1]
    summary = Summary(point.value, point.low, point.high, point.n, (point.value,))
    metric = opened.plan.criteria.metric(series.metric)
    return Comparison(series.benchmark, metric, series.statistic, "", "", None, summary)


def _followed(trend: Trend, line: _Line) -> _Followed | None:
    by_revision: dict[str, list[float]] = defaultdict(list)
    for point in trend.points:
        by_revision[point.revision].append(point.value)
    revisions = tuple(by_revision)
    values = tuple(quantile(each, 0.5) for each in by_revision.values())
    smooth = values if is_exact(trend.series.statistic) else tuple(levels(values))
    sign = -1 if trend.series.better == "higher" else 1
    able = [at for at, revision in enumerate(revisions) if revision not in line.same_code]
    if not able or trend.series.better == "none":
        return None
    # Of equal values the newest, since it differs least from head.
    best = min(able, key=lambda at: (sign * smooth[at], sign * values[at], -at))
    return _Followed(trend, revisions, values, smooth, best)


def _noise(trend: Trend, values: Sequence[float]) -> float:
    """Return the relative standard deviation of a value, estimated from its neighbours and from its own interval.

    The median distance from the middle of the two neighbours is not affected by steps and drifts.
    """
    threes = zip(values, values[1:], values[2:], strict=False)
    apart = [abs(at - (before + behind) / 2) / at for before, at, behind in threes if at]
    between = quantile(apart, 0.5) * _DEVIATION if apart else 0.0
    ends = [(point.low, point.high, point.value) for point in trend.points]
    widths = [(high - low) / _WIDTH / at for low, high, at in ends if low is not None and high is not None and at]
    return max(between, quantile(widths, 0.5) if widths else 0.0)


def _nothing(opened: Opened, spec: str, of: Collection[str], elsewhere: int, *, shallow: bool) -> UserError:
    name, days = opened.plan.workflow.name, days_of(spec)
    if of:
        text = f"the history of the last {days} days has values of {name} only for the code of head"
        return UserError.of(text, "the next commit can be compared with it; --base REV compares with any revision")
    text = f"the history has no value of {name} from the last {days} days, by this machine, for a commit of head"
    others = "; values of other machines are never compared" if elsewhere else ""
    deepen = f"; {_DEEPEN}" if shallow else ""
    hint = "`perfflow run` adds values of the checked-out commit; --base REV compares with any revision"
    return UserError.of(f"{text}{others}", f"{hint}{deepen}")
