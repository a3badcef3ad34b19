"""Background steps: start a service and wait until it is ready. Later steps run while it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.execute.context import PORT_VARIABLE, TreeContext, variables_of
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import PreparationError, ready, rendered, whole
from perfflow.execute.schedule import StepRun
from perfflow.execute.service import LOOPBACK, Address, MatchedLine, Port, Probe, Service, accepts, free_port
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.services import StartedService
from perfflow.session.session import RunSession
from perfflow.session.steps.check import read_outputs
from perfflow.tools.parsed_output import PatternTimeoutError
from perfflow.workflow.model import OUTPUT_VARIABLE
from perfflow.workflow.service_checks import pattern_mistake, url_mistake

READY_TIMEOUT = 60.0
"""Seconds until a service must be ready, without a ``timeout``."""
_PAUSE = 0.05
"""Seconds between two checks. A ready service must still run this much later."""
_HIGHEST_PORT = 65535


def serve(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Start a service and return once it is ready. Raises Failure if it ends before, or is not ready in time.

    Its outputs are ``pid``, those of ``ready`` (``port``, ``url``, the pattern's groups), and those that it writes.
    """
    folder = session.folder.step(planned.id)
    context = _with_free_port(session.context)
    prepared = ready(context, planned, Side.BASELINE, folder)
    for name in ("outputs", "stdout", "stderr"):
        (folder / name).unlink(missing_ok=True)
    timeout = prepared.timeout or READY_TIMEOUT
    probe = _probe(planned, variables_of(context, planned), folder, timeout)
    _require_free(probe)
    run.argv = list(prepared.shown)
    run.log = session.log_in(folder, "stdout")
    service = Service(
        session.extra_spawner(),
        prepared.argv,
        env={**prepared.env, OUTPUT_VARIABLE: str(folder / "outputs")},
        cwd=prepared.cwd,
        stdout=folder / "stdout",
        stderr=folder / "stderr",
    )
    started = StartedService(run, service, folder, session.context.secrets)
    session.services.add(started)
    try:
        _await(started, probe, timeout)
    except Failure:
        session.services.remove(started)
        raise
    outputs = {"pid": str(service.pid), **probe.outputs(), **dict(read_outputs(str(folder / "outputs")))}
    session.context.outputs[planned.id] = run.outputs = outputs


def _with_free_port(context: TreeContext) -> TreeContext:
    return replace(context, inherited={**context.inherited, PORT_VARIABLE: str(free_port())})


def _probe(planned: Planned, variables: Mapping[str, Any], folder: Path, timeout: float) -> Probe:
    """Return the check of whether the service is ready. ``timeout``: seconds. Raises PreparationError."""
    how = planned.step.ready
    if how is None:
        raise PreparationError("`ready` is missing")
    if how.port is not None:
        number = whole("ready.port", rendered(how.port, variables), least=1)
        if number > _HIGHEST_PORT:
            raise PreparationError(f"`ready.port` is {number}, but the highest port is {_HIGHEST_PORT}")
        return Port(number)
    if how.url is not None:
        url = str(rendered(how.url, variables))
        if url_mistake(url):
            raise PreparationError(url_mistake(url))
        return Address(url)
    pattern = str(rendered(how.regex, variables))
    if pattern_mistake(pattern):
        raise PreparationError(pattern_mistake(pattern))
    return MatchedLine(pattern, (folder / "stdout", folder / "stderr"), timeout)


def _require_free(probe: Probe) -> None:
    """Raise PreparationError if another process already listens at the service's address."""
    taken = None
    if isinstance(probe, Port) and any(accepts(host, probe.number) for host in LOOPBACK):
        taken = probe.number
    elif isinstance(probe, Address) and accepts(probe.host, probe.port):
        taken = probe.port
    if taken is not None:
        hint = f"end the process that listens there, or let the service listen on ${PORT_VARIABLE}, a free port"
        raise PreparationError(f"port {taken} is in use before the service is started; {hint}")


def _await(started: StartedService, probe: Probe, seconds: float) -> None:
    """Wait until the service is ready. Raises Failure, and KeyboardInterrupt if the run is stopped."""
    service, name = started.service, started.planned.id
    ends = time.monotonic() + seconds
    is_ready = False
    while not service.wait(_PAUSE):
        # Check once more that it runs: a service whose port is taken exits soon after another process answered.
        if is_ready:
            return
        try:
            is_ready = probe.holds()
        except PatternTimeoutError as error:
            raise Failure(f"the service `{name}`: {error}", timeout=True, log=started.log) from error
        if not is_ready and time.monotonic() >= ends:
            reason = f"the service `{name}` was not ready within {seconds:g} s: {probe.waits_for}"
            raise Failure(reason, timeout=True, log=started.log)
    if service.was_stopped:
        raise KeyboardInterrupt
    hint = "; it must stay in the foreground" if service.exit_code == 0 else ""
    reason = f"the service `{name}` {service.unexpected_end} before it was ready{hint}"
    raise Failure(reason, exit_code=service.exit_code, log=started.log)
