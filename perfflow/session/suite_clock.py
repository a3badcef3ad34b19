"""Find the benchmarks of a suite that only compute, and compile the libraries that replace a clock."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from perfflow.execute.child import StartError
from perfflow.execute.invoke import Invoked
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.readings import WAITED, Side
from perfflow.session.session import RunSession
from perfflow.tools import adapter

_DRIVERS = Path(adapter.__file__).parent / "drivers"
_PATIENCE = 60.0
_WHOLE = ("",)
"""Stands for all benchmarks of a suite that runs as a whole."""


def compiled(session: RunSession, step_id: str, name: str, prepared: ReadyProcess) -> Path | None:
    """Compile a library of tools/drivers for a step, once, and return its path; None if there is no C compiler."""
    path = session.folder.step(step_id) / f"{name}.so"
    if not path.exists():
        argv = ("cc", "-O1", "-shared", "-fPIC", "-o", str(path), str(_DRIVERS / f"{name}.c"))
        with contextlib.suppress(StartError):
            session.spawner().run(argv, env=prepared.env, cwd=path.parent, timeout=_PATIENCE)
    return path if path.exists() else None


class SuiteClock:
    """Lets a suite time by CPU time the benchmarks that only compute in one thread, on both sides.

    The warm-up runs, which use the ordinary clock and have the machine alone, show this. CPU time of the thread would
    not contain the waiting and the other threads of any other benchmark.
    """

    def __init__(self, session: RunSession) -> None:
        self._session = session
        self._computes: dict[tuple[Side, str], bool] = {}

    def note_warm_up(self, prepared: ReadyProcess, invoked: Invoked) -> None:
        """Note whether the benchmarks of a warm-up run only computed."""
        process = invoked.usage.only_computes
        found = {(item.benchmark, item.metric): item for item in invoked.parsed.readings}
        for name in (prepared.call and prepared.call.chosen) or _WHOLE:
            cpu, own = found.get((name, "cpu")), found.get((name, "uncontended"))
            # The suite's own figures of a benchmark say more than those of the process.
            known = own.value <= cpu.value * (1 + WAITED) if cpu and own and not own.at_most else process
            self._computes[prepared.side, name] = known and self._computes.get((prepared.side, name), True)

    def computes(self, name: str) -> bool:
        """Return whether a benchmark, by its id in the suite, was seen on both sides and only computed."""
        return all(self._computes.get((side, name)) for side in Side)

    def timed(self, prepared: ReadyProcess) -> ReadyProcess:
        """Return the call with the clock of CPU time, if all its benchmarks only compute."""
        call, tool = prepared.call, prepared.tool
        # A self-test plants its slowdown with a library of its own, before each reading of the clock.
        if not call or not tool or not tool.suite.times_by_clock or not self._computes or self._session.plants:
            return prepared
        sides = {side for side, _ in self._computes}
        if not all(self._computes.get((side, name)) for side in sides for name in call.chosen or _WHOLE):
            return prepared
        library = compiled(self._session, prepared.planned.id, "cpu_clock", prepared)
        return replace(prepared, call=replace(call, cpu_clock=library))
