"""Steps that measure: fresh processes of both sides in coin-flip pairs, each round an event as soon as it is there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.errors import ToolOutputError
from perfflow.flow.benchmark_names import benchmark_name, named
from perfflow.flow.evidence import Evidence
from perfflow.flow.figures import per_operation, with_work
from perfflow.flow.gate.presence import missing_side
from perfflow.flow.own_code import SAME_CODE, OwnCode, are_set_alike
from perfflow.flow.paces import Paces
from perfflow.flow.progress import Taken
from perfflow.flow.python_luck import runs_python, with_luck
from perfflow.flow.sampling import Sampling
from perfflow.flow.stopping import BUDGET, Decider
from perfflow.flow.unread_output import UnreadOutput
from perfflow.flow.variants import Suite, subjects_of
from perfflow.flow.workshop import Workshop
from perfflow.machine.noise import NoiseClass, as_json, describe
from perfflow.measure import SCREENED, Design, LostError, Sampler, Subject, Take
from perfflow.plan.layouts import layouts_asked
from perfflow.plan.plan import Planned
from perfflow.run.context import context_of
from perfflow.run.invoke import LEFT_RUNNING, Failure, Invoked, Written, allowed_to_run, written
from perfflow.run.prepare import PreparationError, Ready, operations, ready, rendered, whole
from perfflow.run.schedule import StepRun
from perfflow.run.secrets import masked
from perfflow.samples.readings import Reading, Side
from perfflow.tools.pacing import Pace
from perfflow.tools.pattern_search import PatternTimeoutError, time_left
from perfflow.tools.regular_files import TooLargeError, read
from perfflow.units import duration
from perfflow.workflow.layout_checks import OFF
from perfflow.workflow.model import Parse
from perfflow.workflow.roles import figures_in

if TYPE_CHECKING:
    from perfflow.flow.code_layouts.drawing import Drawn

WARMUP = 1
STOPPED = "perfflow was stopped (^Z) while a sample was taken, which was taken again"
MOST_PARSED = 64 * 2**20
"""Bytes of output, or of a file, that ``parse`` reads."""
PATIENCE = 2
"""Times the default budget on a hostile machine."""


def measure_step(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Sample all benchmarks of a step until each is decided; each round is an event as soon as it is there."""
    bench = Bench(shop, planned, run)
    bench.note_files()
    subjects = bench.subjects()
    bench.sampling.recall(shop.earlier.samples_of(planned.id), subjects)
    bench.paces.recall(shop.earlier.samples_of(planned.id))
    with shop.budget.share(planned.id, len(subjects)) as ends:
        bench.measure(subjects, ends)
        bench.measure_over_layouts(subjects, ends)
    bench.sampling.tell_why_stopped(subjects)
    bench.warnings.update(bench.unread.warnings(lambda prepared: shop.start(prepared, run)))
    run.warnings += bench.warnings
    run.exit_code = 0
    run.details |= bench.evidence.details()
    if len(bench.sides) == 2:
        run.details["identical"] = bench.identical
        if bench.same_code and are_set_alike(shop, planned):
            run.warnings.append(SAME_CODE)
    if bench.failures:
        # Only now: what can be measured of the others is.
        first = next(iter(bench.failures.values()))
        reason = "; ".join(f"{name}: {failure.reason}" for name, failure in bench.failures.items())
        raise Failure(reason, timeout=first.timeout, exit_code=first.exit_code, log=first.log)


class Bench:
    """The measuring of one step: its benchmarks, its sampler, and what was read so far."""

    def __init__(self, shop: Workshop, planned: Planned, run: StepRun) -> None:
        self.shop, self.planned, self.run = shop, planned, run
        self.context = context_of(shop.scene, planned)
        self.missing = missing_side(shop, planned)
        self.failures: dict[str, Failure] = {}
        """Why benchmarks of a suite could not be measured to the end."""
        sides = shop.sides_of(planned)
        self.able = tuple(side for side in sides if side is not self.missing)
        """The sides that have what this step measures."""
        self.sides = sides
        shop.build_first(planned, run, self.able)
        self.deterministic = bool(planned.tool and planned.tool.deterministic)
        # A deterministic tool is not warmed up: its figures have no caches behind them, and it is slow.
        least = 0 if self.deterministic else WARMUP
        self._warmup = _count("warmup", planned.step.warmup, self.context, least, least=0)
        self.warnings: dict[str, None] = {}
        self.evidence = Evidence(shop, planned)
        self.unread = UnreadOutput()
        self.drawn: Drawn | None = None
        """Code layouts that stand in the place of what was built, while some are measured."""
        self._python: dict[tuple[Side, tuple[str, ...]], bool] = {}
        self._prepared: dict[tuple[Side, int | None, str, Pace | None], Ready] = {}
        self.paces = Paces()
        self.budget = self._patience()
        self.start_over(shop.scene.seed)

    def _patience(self) -> float:
        """Seconds for one benchmark; where the workflow does not say, more of them on a hostile machine."""
        if not self.deterministic and self.shop.look_at_noise():
            self.run.warnings += hostility(self.shop)
        if self.planned.step.budget:
            return duration(str(rendered(self.planned.step.budget, self.context)))
        hostile = self.shop.noise is not None and self.shop.noise.kind is NoiseClass.HOSTILE
        return BUDGET * PATIENCE if hostile else BUDGET

    def start_over(self, seed: int) -> None:
        """Begin a comparison of its own: other coins, nothing read so far."""
        self._own_code = OwnCode(self.shop, self.run)
        criteria, goal = self.shop.scene.plan.criteria, self.shop.goal
        decider = Decider(
            criteria, self.planned, self.budget, lambda: self.identical, goal=goal, repeats=self.deterministic
        )
        self._sampler = Sampler(seed, warmup=self._warmup)
        self.sampling = Sampling(
            self.planned.id,
            self._sampler,
            decider,
            self.shop.folder.append,
            self.warnings,
            lambda taken: self.shop.progress.sampled(self.planned, self._shown(taken)),
        )

    def _shown(self, taken: Taken) -> Taken:
        """As everybody may see it: of a comparison that was typed, a benchmark's name is its command."""
        return replace(taken, benchmark=masked(taken.benchmark, self.shop.scene.secrets))

    def measure(self, subjects: Sequence[Subject], ends: float = math.inf) -> None:
        """Sample all benchmarks until each is decided, or as often as the workflow says.

        ``ends`` is the moment at which the step's share of the run's budget is spent.
        """
        two_sided, asked = len(self.sides) == 2, self.planned.step.confirm
        if self.deterministic:
            self._look_beside()
        patience = self.budget if self.planned.step.budget else math.inf
        gone = [subject for subject in subjects if subject.alone and subject.sides == (Side.BASELINE,)]
        # Of what head has lost, one run says what it was.
        self.sampling.take_rounds(gone, Design.FIXED, 1, ends)
        subjects = [subject for subject in subjects if subject not in gone]
        if self.planned.step.runs is not None:
            self.sampling.decider.start(subjects, ends)
            self.sampling.take_rounds(subjects, Design.FIXED, self.fixed_rounds(), ends)
        elif two_sided and not self.deterministic and self.shop.comparing - 1 + len(subjects) > SCREENED:
            self.sampling.screen(subjects, ends, patience, asked or 1)
            return
        else:
            self.sampling.take_until_decided(subjects, ends, patience)
        if two_sided and asked and not self.deterministic:
            self.sampling.confirm(subjects, ends, asked)

    @property
    def is_python(self) -> bool:
        """Whether all that it starts is Python, as far as that is known."""
        return bool(self._python) and all(self._python.values())

    @property
    def compares_trees(self) -> bool:
        """Whether its sides are two trees, each with a build of its own."""
        return bool(self.shop.scenes)

    def measure_over_layouts(self, subjects: Sequence[Subject], ends: float) -> None:
        """Measure what rests on one code layout over others too, where the workflow says so."""
        asked = layouts_asked(self.planned, in_trees=self.compares_trees)
        if asked != OFF and self.shop.scene.plan.criteria.rules.layout_looks:
            # Imported where it is needed: most runs draw no layouts.
            from perfflow.flow.code_layouts.deciding import decide_over_layouts

            decide_over_layouts(self, subjects, ends, asked)

    def with_luck(self, prepared: Ready, only: str) -> Ready:
        """The next process of a side, with the code layout, the hashes and the environment that are its turn."""
        if self.drawn:
            self.drawn.put(prepared.side, self._sampler.layout)
        if self.deterministic or not self._runs_python(prepared):
            return prepared
        return with_luck(prepared, f"{self.shop.scene.seed}\0{self.planned.id}\0{only}\0{self._sampler.number}")

    def _runs_python(self, prepared: Ready) -> bool:
        key = (prepared.side, prepared.argv)
        if key not in self._python:
            self._python[key] = runs_python(prepared)
        return self._python[key]

    @cached_property
    def files(self) -> Mapping[str, list[str]]:
        """Hashes of the files that each side executes. Raises PreparationError."""
        folder = self.shop.folder.step(self.planned.id)
        ops = next(iter(operations(self.shop.scene, self.planned)), None)
        prepared = {
            side: ready(self.shop.scene_of(side), self.planned, side, folder / side.value, ops) for side in self.able
        }
        return {side.value: executed_files(item) for side, item in prepared.items()}

    @property
    def identical(self) -> bool:
        """Whether both sides execute the same files, and the same code of them."""
        if self.planned.step.variants:
            return False
        return bool(next(iter(self.files.values()), [])) and self.same_code

    @property
    def same_code(self) -> bool:
        """Whether all that is known of what both sides execute is the same, and something is known."""
        hashes, loaded = list(self.files.values()), self._own_code.same()
        known = bool(hashes and hashes[0]) or loaded is not None
        return known and len(hashes) == 2 and hashes[0] == hashes[1] and loaded is not False

    def note_files(self) -> None:
        """Store what is about to be measured. Raises PreparationError where the run went on after it was changed."""
        before = self.shop.earlier.files_of(self.planned.id)
        if before and before != self.files:
            raise PreparationError("what it measures was changed since the run was interrupted; start a new run")
        if not before:
            event = {"event": "measuring", "step": self.planned.id, "files": dict(self.files)}
            self.shop.folder.append(event)

    def subjects(self) -> list[Subject]:
        """One for each benchmark of a suite that can run it alone, else one for the step."""
        if self.planned.step.variants:
            ids, name = self.shop.benchmarks(self.planned), self.planned.benchmark
            suite = Suite(name, ids, self.planned.pattern, self._taker, self._say)
            return subjects_of(self.planned.step.variants, suite)
        listed = self._listed() if self.planned.step.runs is None else {}
        if not listed:
            alone = self.able != self.sides
            return [Subject(self.planned.benchmark, self.able, self._taker(""), alone)]
        return [
            Subject(benchmark_name(self.planned, name), having, self._taker(name), having != self.sides)
            for name, having in listed.items()
        ]

    def _listed(self) -> dict[str, tuple[Side, ...]]:
        """The ids of a suite's benchmarks, and the sides that have each; the two trees of a gate may differ in them."""
        if not self.shop.scenes:
            return dict.fromkeys(self.shop.benchmarks(self.planned), self.sides)
        having: dict[str, list[Side]] = {}
        for side in self.able:
            for name in self.shop.benchmarks(self.planned, side):
                having.setdefault(name, []).append(side)
        return {name: tuple(sides) for name, sides in having.items()}

    def _say(self, text: str) -> None:
        self.warnings[text] = None

    def _taker(self, only: str) -> Take:
        def take(side: Side) -> tuple[Reading, ...]:
            while True:
                try:
                    readings, said, paused = _sample(self, side, only)
                except Failure as failure:
                    layout = f"with code layout {self._sampler.layout}: " if self._sampler.layout else ""
                    failure.reason = f"{self.shop.where(side)}{layout}{failure.reason}"
                    if not only:
                        raise
                    self.failures[benchmark_name(self.planned, only)] = failure
                    raise LostError from failure
                self.warnings.update(dict.fromkeys(said))
                if not paused or self.deterministic:
                    return readings
                self.warnings[STOPPED] = None

        return take

    def prepared(self, side: Side, ops: int | None, only: str) -> Ready:
        """What a sample starts: rendered once, since nothing that it depends on changes while the step measures.

        The second side to be warmed up takes as long as a sample will, which says how many fit into the time.
        """
        pace = self.paces.of(benchmark_name(self.planned, only))
        key = (side, ops, only, pace)
        if key not in self._prepared:
            self._prepared[key] = self.shop.prepare(self.planned, side, self.run, ops, only, pace)
        return self._prepared[key]

    def start(self, prepared: Ready) -> Invoked:
        """Run one call; one that is thrown away is watched for code of other trees. Raises Failure."""
        if self.warming:
            return self.unread.warm_up(prepared, self._own_code.start)
        invoked = self.shop.start(prepared, self.run)
        self.unread.note(prepared, invoked)
        return invoked

    @property
    def warming(self) -> bool:
        """Whether what runs now is thrown away, and tells how long the benchmark takes."""
        return self._sampler.warming

    def _look_beside(self) -> None:
        """See whose code a tool runs that is not warmed up. Raises Failure."""
        for side in self.able:
            ops = next(iter(operations(self.shop.scene_of(side), self.planned)), None)
            try:
                self._own_code.look_beside(self.prepared(side, ops, ""))
            except Failure as failure:
                failure.reason = f"{self.shop.where(side)}{failure.reason}"
                raise

    def fixed_rounds(self) -> int:
        """The number of rounds the workflow asks for."""
        return _count("runs", self.planned.step.runs, self.context, 1, least=1)


def hostility(shop: Workshop) -> list[str]:
    """The warning that the machine deserves, if any."""
    if shop.noise is None or shop.noise.kind is not NoiseClass.HOSTILE:
        return []
    return [f"{describe(as_json(shop.noise.findings, shop.noise.test))}; `perfflow doctor` says more"]


def _count(key: str, value: int | str | None, context: dict[str, Any], default: int, *, least: int) -> int:
    return default if value is None else whole(key, rendered(value, context), least=least)


def _sample(bench: Bench, side: Side, only: str) -> tuple[tuple[Reading, ...], tuple[str, ...], bool]:
    """One sample: one process, or two with different ``ops`` whose difference drops the fixed part.

    Also returns what there is to say, and whether a process was paused, so that its times mean nothing.
    """
    shop, planned = bench.shop, bench.planned
    counts = operations(shop.scene_of(side), planned)
    found = []
    said: tuple[str, ...] = ()
    paused = False
    for count in counts or (None,):
        parse = planned.step.parse if planned.tool is None else None
        before = written(shop.parsed_file(planned, side)) if parse else None
        prepared = bench.prepared(side, count, only)
        invoked = bench.start(bench.with_luck(prepared, only))
        readings, paused = invoked.parsed.readings, paused or invoked.paused
        if parse:
            stdout = shop.folder.step(planned.id) / "stdout"
            left = time_left(prepared.timeout, invoked.usage.wall)
            readings = read_figures(parse, stdout, prepared.cwd, before, left)
        if only:
            readings = tuple(reading for reading in readings if reading.benchmark == only)
            if not readings:
                raise Failure(f"the suite lists {only!r} and does not report it when it is run alone")
        if bench.warming:
            bench.paces.notice(benchmark_name(planned, only), readings)
        for name, reason in invoked.parsed.failed.items():
            log = shop.folder.step(planned.id) / side.value / "stderr"
            bench.failures.setdefault(benchmark_name(planned, name), Failure(f"{shop.where(side)}{reason}", log=log))
        said += invoked.parsed.warnings
        if invoked.left and not any(LEFT_RUNNING in text for text in bench.warnings):
            said += (allowed_to_run(planned, invoked.left),)
        found.append(named(planned, readings))
    bench.evidence.add(prepared, invoked.parsed)
    figures = per_operation(found, counts)
    if bench.deterministic:
        figures = tuple(replace(figure, exact=True) for figure in figures)
    return with_work(figures, planned.step.work, bench.context), said, paused


def read_figures(
    parse: Parse, stdout: Path, cwd: Path, before: Written, seconds: float | None = None
) -> tuple[Reading, ...]:
    """Read what ``parse`` asks for from the output, or from a file that is not as it was ``before``.

    Raises Failure, also where a pattern takes more than so many ``seconds``.
    """
    source = cwd / parse.file if parse.file else stdout
    if parse.file and written(source) in (before, None):
        raise Failure(f"the command did not write {parse.file}", log=stdout)
    try:
        data = read(source, MOST_PARSED)
    except TooLargeError as error:
        hint = "print the figures alone, or write them to a file and name it with `parse: {file: NAME}`"
        reason = f"`parse` reads at most {MOST_PARSED >> 20} MiB, and {source.name} is longer; {hint}"
        raise Failure(reason, exit_code=0, log=stdout) from error
    except OSError as error:
        raise Failure(f"cannot read {source}: {error.strerror}", log=stdout) from error
    try:
        return figures_in(data.decode("utf-8", "replace"), parse, seconds)
    except ToolOutputError as error:
        raise Failure(str(error), isinstance(error, PatternTimeoutError), exit_code=0, log=stdout) from error


def executed_files(prepared: Ready) -> list[str]:
    """Hashes of the files that a command line names: the program, and scripts among its arguments.

    None where shell text stands between, which may run anything.
    """
    if prepared.tool is None or prepared.call is None or prepared.call.shell_text:
        return []
    found = []
    named = prepared.tool.executed(prepared.call)
    for word in prepared.call.command if named is None else named:
        try:
            path = prepared.cwd / word
            # Devices never end, and opening a FIFO waits for a writer.
            if path.is_file():
                with path.open("rb") as stream:
                    found.append(hashlib.file_digest(stream, "sha256").hexdigest())
        except (OSError, ValueError):
            continue  # not a file, or one that may be executed and not read
    return found
