"""Steps that find out what the machine itself can do: one call, whatever is compared."""

from __future__ import annotations

from perfflow.flow.evidence import Evidence
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.schedule import StepRun
from perfflow.samples.peaks import peaks_details
from perfflow.samples.readings import Side


def survey(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """Run the tool once and keep the peaks that it found. Raises PreparationError and Failure."""
    shop.build_first(planned, run, (Side.BASELINE,))
    prepared, invoked = shop.invoke(planned, Side.BASELINE, run)
    evidence = Evidence(shop, planned)
    evidence.add(prepared, invoked.parsed)
    run.exit_code = invoked.exit_code
    run.warnings += invoked.parsed.warnings
    run.details |= peaks_details(invoked.parsed.peaks) | evidence.details()
