"""Steps that measure: fresh processes of both sides in coin-flip pairs, each round an event as soon as it is there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.execute.context import variables_of
from perfflow.execute.invoke import LEFT_RUNNING, Failure, Invoked, Written, allowed_to_run, written
from perfflow.execute.prepare import PreparationError, Ready, first_count, operations, ready, rendered, whole
from perfflow.execute.schedule import StepRun
from perfflow.machine.noise import NoiseClass, as_json, describe
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Reading, Side
from perfflow.model.secrets import masked
from perfflow.model.units import duration
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SCREENED, Design, LostError, Sampled, Sampler, Subject, Take
from perfflow.sampling.sampling import Sampling
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session.benchmark_names import benchmark_name, named
from perfflow.session.evidence import Evidence
from perfflow.session.figures import per_operation, with_work
from perfflow.session.own_code import OwnCode
from perfflow.session.paces import Paces
from perfflow.session.presence import missing_side
from perfflow.session.python_luck import runs_python, with_luck
from perfflow.session.session import RunSession
from perfflow.session.unread_output import UnreadOutput
from perfflow.session.variants import Suite, subjects_of
from perfflow.tools.pacing import Pace
from perfflow.tools.pattern_search import PatternTimeoutError, time_left
from perfflow.tools.regular_files import TooLargeError, read
from perfflow.workflow.model import Parse
from perfflow.workflow.roles import figures_in

if TYPE_CHECKING:
    from perfflow.session.code_layouts.drawing import Drawn

WARMUP = 1
STOPPED = "perfflow was stopped (^Z) while a sample was taken, which was taken again"
MOST_PARSED = 64 * 2**20
"""Bytes of output, or of a file, that ``parse`` reads."""
PATIENCE = 2
"""Times the default budget on a hostile machine."""


class Bench:
    """The measuring of one step: its benchmarks, its sampler, and what was read so far."""

    def __init__(self, session: RunSession, planned: Planned, run: StepRun) -> None:
        self.session, self.planned, self.run = session, planned, run
        self.context = variables_of(session.context, planned)
        self.missing = missing_side(session, planned)
        self.failures: dict[str, Failure] = {}
        """Why benchmarks of a suite could not be measured to the end."""
        sides = session.sides_of(planned)
        self.able = tuple(side for side in sides if side is not self.missing)
        """The sides that have what this step measures."""
        self.sides = sides
        session.build_first(planned, run, self.able)
        self.deterministic = bool(planned.tool and planned.tool.deterministic)
        # A deterministic tool is not warmed up: its figures have no caches behind them, and it is slow.
        least = 0 if self.deterministic else WARMUP
        self._warmup = _count("warmup", planned.step.warmup, self.context, least, least=0)
        self.warnings: dict[str, None] = {}
        self.evidence = Evidence(session, planned)
        self.unread = UnreadOutput()
        self._parse = planned.step.parse if planned.tool is None else None
        self.drawn: Drawn | None = None
        """Code layouts that stand in the place of what was built, while some are measured."""
        self._python: dict[tuple[Side, tuple[str, ...]], bool] = {}
        self._prepared: dict[tuple[Side, int | None, str, Pace | None], Ready] = {}
        self.paces = Paces()
        self.budget = self._patience()
        self.start_over(session.context.seed)

    def _patience(self) -> float:
        """Seconds for one benchmark; where the workflow does not say, more of them on a hostile machine."""
        if not self.deterministic and self.session.look_at_noise():
            self.run.warnings += hostility(self.session)
        if self.planned.step.budget:
            return duration(str(rendered(self.planned.step.budget, self.context)))
        hostile = self.session.noise is not None and self.session.noise.kind is NoiseClass.HOSTILE
        return BUDGET * PATIENCE if hostile else BUDGET

    def start_over(self, seed: int) -> None:
        """Begin a comparison of its own: other coins, nothing read so far."""
        self._own_code = OwnCode(self.session, self.run)
        criteria, goal = self.session.context.plan.criteria, self.session.goal
        stop_rule = StopRule(
            criteria, self.planned, self.budget, lambda: self.identical, goal=goal, repeats=self.deterministic
        )
        self._sampler = Sampler(seed, warmup=self._warmup)
        self.sampling = Sampling(
            self.planned.id,
            self._sampler,
            stop_rule,
            self.session.folder.append,
            self.warnings,
            lambda taken: self.session.progress.sampled(self.planned, self._shown(taken)),
        )

    def _shown(self, taken: Sampled) -> Sampled:
        """As everybody may see it: of a comparison that was typed, a benchmark's name is its command."""
        return replace(taken, benchmark=masked(taken.benchmark, self.session.context.secrets))

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
            self.sampling.stop_rule.start(subjects, ends)
            rounds = _count("runs", self.planned.step.runs, self.context, 1, least=1)
            self.sampling.take_rounds(subjects, Design.FIXED, rounds, ends)
        elif two_sided and not self.deterministic and self.session.comparing - 1 + len(subjects) > SCREENED:
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
        return bool(self.session.contexts)

    def _with_luck(self, prepared: Ready, only: str) -> Ready:
        """The next process of a side, with the code layout, the hashes and the environment that are its turn."""
        if self.drawn:
            self.drawn.put(prepared.side, self._sampler.layout)
        if self.deterministic or not self._runs_python(prepared):
            return prepared
        return with_luck(prepared, f"{self.session.context.seed}\0{self.planned.id}\0{only}\0{self._sampler.number}")

    def _runs_python(self, prepared: Ready) -> bool:
        key = (prepared.side, prepared.argv)
        if key not in self._python:
            self._python[key] = runs_python(prepared)
        return self._python[key]

    @cached_property
    def files(self) -> Mapping[str, list[str]]:
        """Hashes of the files that each side executes. Raises PreparationError."""
        folder = self.session.folder.step(self.planned.id)
        ops = first_count(self.session.context, self.planned)
        prepared = {
            side: ready(self.session.tree_context_of(side), self.planned, side, folder / side.value, ops)
            for side in self.able
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
        before = self.session.earlier.files_of(self.planned.id)
        if before and before != self.files:
            raise PreparationError("what it measures was changed since the run was interrupted; start a new run")
        if not before:
            event = {"event": "measuring", "step": self.planned.id, "files": dict(self.files)}
            self.session.folder.append(event)

    def subjects(self) -> list[Subject]:
        """One for each benchmark of a suite that can run it alone, else one for the step."""
        if self.planned.step.variants:
            ids, name = self.session.benchmarks(self.planned), self.planned.benchmark
            suite = Suite(name, ids, self.planned.pattern, self._taker, self._say)
            return subjects_of(self.planned.step.variants, suite)
        listed = self._listed() if self.planned.step.runs is None else {}
        part = self.session.parts.get(self.planned.id)
        if part:
            listed = {name: having for name, having in listed.items() if benchmark_name(self.planned, name) in part}
        if not listed and not part:
            alone = self.able != self.sides
            return [Subject(self.planned.benchmark, self.able, self._taker(""), alone)]
        return [
            Subject(benchmark_name(self.planned, name), having, self._taker(name), having != self.sides)
            for name, having in listed.items()
        ]

    def _listed(self) -> dict[str, tuple[Side, ...]]:
        """The ids of a suite's benchmarks, and the sides that have each; the two trees of a gate may differ in them."""
        if not self.session.contexts:
            return dict.fromkeys(self.session.benchmarks(self.planned), self.sides)
        having: dict[str, list[Side]] = {}
        for side in self.able:
            for name in self.session.benchmarks(self.planned, side):
                having.setdefault(name, []).append(side)
        return {name: tuple(sides) for name, sides in having.items()}

    def _say(self, text: str) -> None:
        self.warnings[text] = None

    def _taker(self, only: str) -> Take:
        return partial(self.sample, only)

    def sample(self, only: str, side: Side) -> tuple[Reading, ...]:
        """Take one sample: one process, or two with different ``ops`` whose difference drops the fixed part.

        A process that is thrown away is watched for code of other trees, and the first of each side has a reader.
        ``only``: which of a suite's benchmarks runs alone. Raises Failure, and LostError where just this one fails.
        """
        counts = operations(self.session.tree_context_of(side), self.planned)
        while True:
            found, paused, read = [], False, None
            try:
                for count in counts or (None,):
                    before = written(self.session.parsed_file(self.planned, side)) if self._parse else None
                    prepared = self._with_luck(self.prepared(side, count, only), only)
                    read = self.unread.with_reader(prepared) if self.warming else None
                    with self._own_code.watched(read or prepared) if self.warming else nullcontext(prepared) as started:
                        invoked = self.session.start(started, self.run)
                    if read:
                        self.unread.note_read(prepared, invoked)
                    elif not self.warming:
                        self.unread.note(prepared, invoked)
                    found.append(self._figures(prepared, invoked, before, only))
                    paused = paused or invoked.paused
            except Failure as failure:
                if read and failure.timeout:
                    # Without a reader it may be in time.
                    self.unread.give_up(read)
                    continue
                self._blame(failure, side, only)
                raise
            self.evidence.add(prepared, invoked.parsed)
            if not paused or self.deterministic:
                figures = per_operation(found, counts)
                if self.deterministic:
                    figures = tuple(replace(figure, exact=True) for figure in figures)
                return with_work(figures, self.planned.step.work, self.context)
            self.warnings[STOPPED] = None

    def _figures(self, prepared: Ready, invoked: Invoked, before: Written, only: str) -> tuple[Reading, ...]:
        """What one process says of its benchmarks. ``before``: the file that ``parse`` reads, before it ran."""
        readings = invoked.parsed.readings
        folder = self.session.folder.step(self.planned.id)
        if self._parse:
            left = time_left(prepared.timeout, invoked.usage.wall)
            readings = read_figures(self._parse, folder / "stdout", prepared.cwd, before, left)
        if only:
            readings = tuple(reading for reading in readings if reading.benchmark == only)
            if not readings:
                raise Failure(f"the suite lists {only!r} and does not report it when it is run alone")
        if self.warming:
            self.paces.notice(benchmark_name(self.planned, only), readings)
        for name, reason in invoked.parsed.failed.items():
            log = folder / prepared.side.value / "stderr"
            failure = Failure(f"{self.session.where(prepared.side)}{reason}", log=log)
            self.failures.setdefault(benchmark_name(self.planned, name), failure)
        self.warnings.update(dict.fromkeys(invoked.parsed.warnings))
        if invoked.left and not any(LEFT_RUNNING in text for text in self.warnings):
            self._say(allowed_to_run(self.planned, invoked.left))
        return named(self.planned, readings)

    def _blame(self, failure: Failure, side: Side, only: str) -> None:
        """Say which side and code layout failed. Raises LostError where others of the suite can be measured."""
        layout = f"with code layout {self._sampler.layout}: " if self._sampler.layout else ""
        failure.reason = f"{self.session.where(side)}{layout}{failure.reason}"
        if only:
            self.failures[benchmark_name(self.planned, only)] = failure
            raise LostError from failure

    def prepared(self, side: Side, ops: int | None, only: str) -> Ready:
        """What a sample starts: rendered once, since nothing that it depends on changes while the step measures.

        The second side to be warmed up takes as long as a sample will, which says how many fit into the time.
        """
        pace = self.paces.of(benchmark_name(self.planned, only))
        key = (side, ops, only, pace)
        if key not in self._prepared:
            self._prepared[key] = self.session.prepare(self.planned, side, self.run, ops, only, pace)
        return self._prepared[key]

    @property
    def warming(self) -> bool:
        """Whether what runs now is thrown away, and tells how long the benchmark takes."""
        return self._sampler.warming

    def _look_beside(self) -> None:
        """See whose code a tool runs that is not warmed up. Raises Failure."""
        for side in self.able:
            ops = first_count(self.session.tree_context_of(side), self.planned)
            try:
                self._own_code.look_beside(self.prepared(side, ops, ""))
            except Failure as failure:
                failure.reason = f"{self.session.where(side)}{failure.reason}"
                raise


def hostility(session: RunSession) -> list[str]:
    """The warning that the machine deserves, if any."""
    if session.noise is None or session.noise.kind is not NoiseClass.HOSTILE:
        return []
    return [f"{describe(as_json(session.noise.findings, session.noise.test))}; `perfflow doctor` says more"]


def _count(key: str, value: int | str | None, context: dict[str, Any], default: int, *, least: int) -> int:
    return default if value is None else whole(key, rendered(value, context), least=least)


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
