"""Steps that run a command: build, setup, and whatever else has an exit status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.flow.own_code import run_check
from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run import invoke
from perfflow.run.invoke import Failure, require_there
from perfflow.run.prepare import Ready, ready
from perfflow.run.schedule import StepRun
from perfflow.samples.readings import Side
from perfflow.tools.protocol import made, results

OUTPUT_VARIABLE = "PERFFLOW_OUTPUT"
"""A step's command appends key=value lines to the file it names."""


def work(shop: Workshop, planned: Planned, run: StepRun) -> None:
    """A command whose exit status is all there is to it, tried again as often as ``retries`` says."""
    for attempt in range((planned.step.retries or 0) + 1):
        try:
            command(shop, planned, run)
        except Failure as failure:
            if attempt == (planned.step.retries or 0):
                raise
            run.warnings.append(f"try {attempt + 1} failed: {failure.reason}")
        else:
            return


def command(shop: Workshop, planned: Planned, run: StepRun) -> Path:
    """Run a command step and read its outputs; returns the file with what it printed."""
    folder = shop.folder.step(planned.id)
    prepared = ready(shop.scene, planned, Side.BASELINE, folder)
    outputs = folder / "outputs"
    # Made by the command, where it has any: a file for each step that has none is a quarter of what perfflow adds.
    outputs.unlink(missing_ok=True)
    env = {**prepared.env, OUTPUT_VARIABLE: str(outputs)}
    run.argv = list(prepared.shown)
    run.log = str((folder / ("stderr" if prepared.tool else "stdout")).relative_to(shop.folder.path))
    start = partial(invoke.run, shop.attendant(), folder=folder)
    invoked = run_check(replace(prepared, env=env), run, start)
    run.exit_code = invoked.exit_code
    run.warnings += [text for text in invoked.parsed.warnings if text not in run.warnings]
    found = {**dict(read_outputs(outputs)), **_results(prepared, folder)}
    shop.scene.outputs[planned.id] = run.details["outputs"] = found
    return folder / "stdout"


def _results(prepared: Ready, folder: Path) -> Mapping[str, str]:
    """What a tool that does work hands on to later steps, if all that it made is there. Raises Failure."""
    if not prepared.tool or not prepared.call:
        return {}
    try:
        for path in made(prepared.tool, prepared.call):
            require_there(path, folder / "stderr", prepared.tool.NAME)
        return results(prepared.tool, prepared.call)
    except ToolOutputError as error:
        raise Failure(f"{prepared.tool.NAME}: {error}", exit_code=0, log=folder / "stderr") from error


def read_outputs(path: Path) -> Iterator[tuple[str, str]]:
    """What a command wrote to the file of its outputs. Raises Failure."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise Failure(f"cannot read the outputs: {error.strerror}", exit_code=0) from error
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip():
            yield name.strip(), value
