"""Find the benchmarks of a gate that cannot have changed, because both sides execute and read the same.

Before anything is timed, the benchmarks run on each side while what they execute is recorded: suites of Python by their
own drivers, everything else by the tracer of native programs. The records stay in the folder of the step.
"""

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from perfflow.execute import invoke
from perfflow.execute.child import StartError, ending
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import HASH_SEED, ReadyProcess, first_count, ready
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Side
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.session.bench import Bench
from perfflow.session.blind_lines import note_executed
from perfflow.session.kept_traces import own_folders, recorded, words_of
from perfflow.session.own_code import checking_code, differ_in_code_only, runs_python
from perfflow.store.run_facts import UnchangedBenchmark
from perfflow.tools.adapter import FEWEST, Call, Invocation
from perfflow.unchanged import native
from perfflow.unchanged.model import BenchmarkTrace, Unchanged, compare
from perfflow.unchanged.native import Lines
from perfflow.unchanged.python_traces import lines_of_code, read_traces, write_settings

FOLDER = "trace"
AUDITED = 3
"""Fewest benchmarks that are timed although their code is the same."""
_PATIENCE, _EACH, _SHARE = 60.0, 2.0, 0.25
"""Seconds to record a suite: for the whole, and for each of its benchmarks; at most a share of the time left."""


def without_unchanged(
    bench: Bench, benchmarks: Sequence[BenchmarkToSample]
) -> tuple[list[BenchmarkToSample], list[BenchmarkToSample]]:
    """Return the benchmarks to measure, and those to audit; store an event for each one that cannot have changed.

    Raises Failure if a side runs code of another tree.
    """
    two_sided = {item.own_id: item for item in benchmarks if item.sides == tuple(Side)}
    if not two_sided or not _can_be_settled(bench):
        return list(benchmarks), []
    recording = _Recording(bench, tuple(filter(None, two_sided)))
    settled = {two_sided[own_id].name: unchanged for own_id, unchanged in recording.unchanged() if own_id in two_sided}
    if recording.known:
        note_executed(bench.session, bench.planned.id, recording.executed, recording.known)
    audited = _drawn([name for name, unchanged in settled.items() if unchanged.by == "code"], bench)
    for name, unchanged in settled.items():
        event = UnchangedBenchmark(
            bench.planned.id,
            name,
            unchanged.by,
            unchanged.files,
            unchanged.functions,
            audited=name in audited,
            native=unchanged.by == "code" and not recording.by_drivers,
        )
        bench.session.folder.append({"event": "unchanged", **to_json(event)})
    measured = [item for item in benchmarks if item.name not in settled]
    return measured, [item for item in benchmarks if item.name in audited]


def _drawn(names: Sequence[str], bench: Bench) -> frozenset[str]:
    """Draw the benchmarks to audit by the seed of the run: a tenth, but at least AUDITED."""
    luck = random.Random(f"{bench.session.context.seed}\0{bench.planned.id}\0audit")  # noqa: S311 (nothing is secret)
    number = min(len(names), max(AUDITED, math.ceil(len(names) / 10)))
    return frozenset(luck.sample(sorted(names), number))


def _can_be_settled(bench: Bench) -> bool:
    """Return whether the step times programs in two trees that differ in their code alone."""
    session, planned = bench.session, bench.planned
    if session.times_all or planned.tool is None or planned.tool.gpu or planned.tool.deterministic:
        return False
    # What a service executes is not recorded with the benchmark that asks it.
    serves = any(item.step.background for item in session.context.plan.steps)
    return differ_in_code_only(session, planned) and not (serves or planned.step.variants)


class _Recording:
    """Records the benchmarks of a step on both sides. ``ids``: those of a suite; () for a command."""

    def __init__(self, bench: Bench, ids: tuple[str, ...]) -> None:
        self._bench, self._ids = bench, ids
        self._tool = bench.planned.tool
        left = bench.session.deadline.left
        self._ends = time.monotonic() + min(_PATIENCE + _EACH * len(ids), left * _SHARE)
        self.executed: Lines = {}
        """The source lines that the benchmarks execute on head."""
        self.known: Lines = {}
        """The lines of code of head's files; empty if not everything that is executed is known."""
        self._lines_are_known = True

    @property
    def by_drivers(self) -> bool:
        """Whether the drivers of a suite of Python record it, not the tracer of native programs."""
        return bool(self._tool and self._tool.can_trace and self._ids)

    def unchanged(self) -> Iterator[tuple[str, Unchanged]]:
        """Yield the benchmarks that cannot have changed, by their own ids ('' for a command). Raises Failure."""
        calls = {side: _prepared(self._bench, side, self._ids) for side in Side}
        same_words = words_of(calls[Side.BASELINE]) == words_of(calls[Side.CANDIDATE])
        if not same_words or any(item.first for item in calls.values()):
            return
        if self.by_drivers:
            record = (partial(self._of_python, prepared) for prepared in calls.values())
            traces = self._bench.session.at_once(*record)
            self._note_lines_of_python(calls[Side.CANDIDATE], traces[-1])
            for own_id in self._ids:
                result = compare(*(side[own_id] for side in traces)) if all(own_id in side for side in traces) else None
                if isinstance(result, Unchanged):
                    yield own_id, result
        else:
            yield from self._of_programs(is_python=any(map(runs_python, calls.values())))

    def _of_python(self, prepared: ReadyProcess) -> Mapping[str, BenchmarkTrace]:
        return recorded(prepared, self._about(prepared), partial(_python_traces, self._bench, prepared))

    def _about(self, prepared: ReadyProcess) -> list[str]:
        return [words_of(prepared), *self._bench.files[prepared.side]]

    def _of_programs(self, *, is_python: bool) -> Iterator[tuple[str, Unchanged]]:
        """Yield the benchmarks of programs that cannot have changed.

        All of one program run in one process first: most often all of them are unchanged, or most of them are not.
        ``is_python``: single benchmarks of Python's files cannot be told apart.
        """
        each: list[tuple[str, ...]] = []
        for ids in self._grouped(self._ids, _program) or [()]:
            whole = self._natively(ids, notes_lines=True)
            if whole:
                yield from ((own_id, whole) for own_id in ids or ("",))
            elif len(ids) > 1 and not is_python:
                each += (apart for apart in self._grouped(ids, _words) if apart != ids)
        if not self._lines_are_known:
            self.known = {}
        for ids in each:
            if unchanged := self._natively(ids):
                yield from ((own_id, unchanged) for own_id in ids)

    def _grouped(self, ids: Iterable[str], key: Callable[[Invocation], object]) -> list[tuple[str, ...]]:
        """Return the ids of the benchmarks with the same ``key`` of the process that runs one. Raises StepError."""
        groups: dict[object, list[str]] = {}
        for own_id in ids:
            first = _prepared(self._bench, Side.CANDIDATE, (own_id,)).invocations()[0]
            groups.setdefault(key(first), []).append(own_id)
        return [*map(tuple, groups.values())]

    def _note_lines_of_python(self, prepared: ReadyProcess, traces: Mapping[str, BenchmarkTrace]) -> None:
        if not set(self._ids) <= set(traces) or any(found.unknown or found.unseen for found in traces.values()):
            return
        for found in traces.values():
            for file, lines in found.lines.items():
                self.executed.setdefault(file, set()).update(lines)
        root = prepared.slot.path if prepared.slot else prepared.cwd
        sources = (file for file in self._bench.session.changed if file.endswith(".py"))
        self.known = {file: set(lines_of_code(root / file)) for file in sources}

    def _note_lines(self, prepared: ReadyProcess) -> None:
        """Note the lines of a traced program. Without its debug information, and addr2line, nothing is known."""
        try:
            folder = self._bench.session.folder_of(self._bench.planned, prepared.side) / FOLDER
            found = native.executed_lines(self._bench.session.spawner(), prepared, folder)
        except Failure:
            found = {}, {}
        self._lines_are_known &= bool(found[1])
        for lines, more in zip((self.executed, self.known), found, strict=True):
            for file, numbers in more.items():
                lines.setdefault(file, set()).update(numbers)

    def _natively(self, ids: tuple[str, ...], *, notes_lines: bool = False) -> Unchanged | None:
        """Return what is equal on both sides of programs, None if something differs or is not known."""
        base, head = (_prepared(self._bench, side, ids) for side in Side)
        traces = None
        if time.monotonic() <= self._ends:
            try:
                traces = self._bench.session.at_once(partial(self._traced, base), partial(self._traced, head))
            except Failure as failure:
                # It is timed, and told if it fails there as well.
                if failure.exit_code is None and not failure.timeout:
                    raise
        if traces is None or traces[-1].unknown or traces[-1].unseen:
            self._lines_are_known = False
        elif notes_lines:
            self._note_lines(head)
        result = compare(*traces) if traces else None
        return result if isinstance(result, Unchanged) else None

    def _traced(self, prepared: ReadyProcess) -> BenchmarkTrace:
        """Return the trace of a call, with as few iterations as its tool takes. Raises Failure."""
        if prepared.call is None:
            return BenchmarkTrace(unknown=("it has no call",))
        call = prepared.call
        return recorded(prepared, self._about(prepared), lambda: {"": self._traced_now(prepared, call)})[""]

    def _traced_now(self, prepared: ReadyProcess, call: Call) -> BenchmarkTrace:
        shutil.rmtree(call.folder, ignore_errors=True)
        call.folder.mkdir(parents=True)
        left = max(1.0, self._ends - time.monotonic())
        brief = replace(call, pace=FEWEST)
        bounded = replace(prepared, call=brief, timeout=min(prepared.timeout or left, left))
        with _checked(self._bench, bounded) as changed:
            return native.trace(self._bench.session.spawner(), changed, call.folder)


def _program(process: Invocation) -> str:
    return process.argv[0]


def _words(process: Invocation) -> tuple[tuple[str, ...], ...]:
    return process.argv, *sorted(process.env.items())


def _prepared(bench: Bench, side: Side, chosen: tuple[str, ...]) -> ReadyProcess:
    """Return the call that records the chosen benchmarks on a side. Raises PreparationError."""
    session, planned = bench.session, bench.planned
    context, folder = session.tree_context_of(side), session.folder_of(planned, side)
    found = ready(context, planned, side, folder, first_count(context, planned), chosen)
    call = replace(found.call, kept=found.call.place, folder=folder / FOLDER) if found.call else None
    # The order of sets must be the same on both sides.
    return replace(found, call=call, env={HASH_SEED: "0", **found.env})


@contextmanager
def _checked(bench: Bench, prepared: ReadyProcess) -> Iterator[ReadyProcess]:
    """Yield the call with its modules recorded. Raises Failure, with the side, if code of another tree ran."""
    try:
        with checking_code(prepared, bench.run) as (changed, _):
            yield changed
    except Failure as failure:
        failure.reason = f"{bench.session.where(prepared.side)}{failure.reason}"
        raise


def _python_traces(bench: Bench, prepared: ReadyProcess) -> dict[str, BenchmarkTrace]:
    """Return the traces of a side by the benchmarks' own ids; of those that it could record. Raises Failure."""
    session, tool, call = bench.session, prepared.tool, prepared.call
    if tool is None or call is None or prepared.slot is None:
        return {}
    shutil.rmtree(call.folder, ignore_errors=True)
    write_settings(call, own_folders(prepared))
    with invoke.adapter_failures(tool):
        invocation = tool.suite.tracing(call)
    if invocation is None:
        return {}
    timeout = min(prepared.timeout or _PATIENCE + _EACH * len(call.chosen), _PATIENCE + _EACH * len(call.chosen))
    reason = ""
    with _checked(bench, prepared) as changed:
        try:
            done = session.spawner().run(
                invocation.argv,
                env={**changed.env, **invocation.env},
                cwd=prepared.cwd / invocation.cwd,
                stdout=call.folder / "stdout",
                stderr=call.folder / "stderr",
                timeout=timeout,
            )
            reason = ending(done.status) if done.status else ""
        except StartError as error:
            reason = str(error)
    traces = read_traces(call.folder)
    if reason and len(traces) < len(call.chosen):
        bench.warnings[
            f"{session.where(prepared.side)}not all benchmarks could be recorded, so they are timed: {reason}"
        ] = None
    return traces
