"""Steps that measure the peak performance of the machine with one call, whatever is compared."""

from __future__ import annotations

from dataclasses import replace

from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.evidence import Evidence
from perfflow.session.session import RunSession


def measure_peaks(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Run the tool once and keep the peaks that it measured. Raises PreparationError and Failure."""
    session.build_first(planned, run, (Side.BASELINE,))
    prepared, invoked = session.invoke(planned, Side.BASELINE, run)
    evidence = Evidence(session, planned)
    evidence.add(prepared, invoked.parsed)
    run.exit_code = invoked.exit_code
    run.warnings += invoked.parsed.warnings
    run.found = replace(evidence.found(), peaks=invoked.parsed.peaks)
