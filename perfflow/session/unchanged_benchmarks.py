"""Find the benchmarks of a gate that cannot have changed, because both sides execute and read the same.

Each benchmark of a suite is run a few times on each side while its code is recorded, before anything is timed. The
records stay in the folder of the step.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.child import StartError, ending
from perfflow.execute.prepare import HASH_SEED, Ready, ready
from perfflow.model.plain_data import to_json
from perfflow.model.readings import Side
from perfflow.sampling.pairs import Subject
from perfflow.session.bench import Bench
from perfflow.session.own_code import checking_code, differ_in_code_only
from perfflow.store.run_facts import UnchangedBenchmark
from perfflow.unchanged.model import Differs, Trace, compare
from perfflow.unchanged.python_traces import read_traces, write_settings

FOLDER = "trace"
_PATIENCE, _EACH = 60.0, 2.0
"""Seconds to record a suite: for the whole, and for each of its benchmarks."""


def without_unchanged(bench: Bench, subjects: Sequence[Subject]) -> list[Subject]:
    """Return the benchmarks to measure; store an event for each other one, which cannot have changed.

    Raises Failure if a side runs code of another tree.
    """
    asked = {item.own_id: item for item in subjects if item.own_id and item.sides == tuple(Side)}
    if not asked or not _can_be_settled(bench):
        return list(subjects)
    calls = {side: _prepared(bench, side, tuple(asked)) for side in Side}
    if _words(calls[Side.BASELINE]) != _words(calls[Side.CANDIDATE]) or any(item.first for item in calls.values()):
        return list(subjects)
    traces = {side: _traces(bench, prepared) for side, prepared in calls.items()}
    unchanged = {item.benchmark: item for item in _unchanged(bench, asked, traces)}
    for found in unchanged.values():
        bench.session.folder.append({"event": "unchanged", **to_json(found)})
    return [item for item in subjects if item.name not in unchanged]


def _can_be_settled(bench: Bench) -> bool:
    """Return whether the step times a suite that can be recorded, in two trees that differ in their code alone."""
    session, planned = bench.session, bench.planned
    if session.times_all or planned.tool is None or not planned.tool.can_trace or planned.step.variants:
        return False
    # What a service executes is not recorded with the benchmark that asks it.
    serves = any(item.step.background for item in session.context.plan.steps)
    return differ_in_code_only(session, planned) and not serves


def _prepared(bench: Bench, side: Side, chosen: tuple[str, ...]) -> Ready:
    """Return the call that records the chosen benchmarks on a side. Raises PreparationError."""
    session, planned = bench.session, bench.planned
    folder = session.folder_of(planned, side) / FOLDER
    found = ready(session.tree_context_of(side), planned, side, folder)
    call = replace(found.call, chosen=chosen, folder=folder) if found.call else None
    # The order of sets must be the same on both sides.
    return replace(found, call=call, env={HASH_SEED: "0", **found.env})


def _own(prepared: Ready) -> list[Path]:
    return [prepared.slot.path, prepared.slot.build] if prepared.slot else []


def _words(prepared: Ready) -> str:
    """Return the command line and the environment of a call, without the paths that belong to its side."""
    found = json.dumps({"argv": prepared.shown, "env": dict(prepared.env)}, sort_keys=True)
    for path in [*_own(prepared), *([prepared.call.folder] if prepared.call else [])]:
        found = found.replace(json.dumps(str(path))[1:-1], "<side>")
    return found


def _traces(bench: Bench, prepared: Ready) -> dict[str, Trace]:
    """Return the traces of a side by the benchmarks' own ids; of those that it could record. Raises Failure."""
    session, tool, call = bench.session, prepared.tool, prepared.call
    if tool is None or call is None or prepared.slot is None:
        return {}
    shutil.rmtree(call.folder, ignore_errors=True)
    write_settings(call, _own(prepared))
    with invoke.adapter_failures(tool):
        invocation = tool.tracing(call)
    if invocation is None:
        return {}
    timeout = min(prepared.timeout or _PATIENCE + _EACH * len(call.chosen), _PATIENCE + _EACH * len(call.chosen))
    reason = ""
    with checking_code(prepared, bench.run) as (changed, _):
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
    found = read_traces(call.folder)
    if reason and len(found) < len(call.chosen):
        bench.warnings[
            f"{session.where(prepared.side)}not all benchmarks could be recorded, so they are timed: {reason}"
        ] = None
    return found


def _unchanged(
    bench: Bench, asked: Mapping[str, Subject], traces: Mapping[Side, Mapping[str, Trace]]
) -> Iterator[UnchangedBenchmark]:
    for own_id, item in asked.items():
        both = [traces[side].get(own_id) for side in Side]
        if both[0] is None or both[1] is None:
            continue
        found = compare(both[0], both[1])
        if not isinstance(found, Differs):
            yield UnchangedBenchmark(bench.planned.id, item.name, found.by, found.files, found.functions)
