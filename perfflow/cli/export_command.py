"""``perfflow export``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import click

from perfflow.api.run import FILES, Table, chunks, run_of
from perfflow.cli.ci import in_github, without_commands
from perfflow.cli.console import shown_path
from perfflow.cli.output import say, tell
from perfflow.jobs.export.export import (
    default_folder,
    export,
    profile_files,
    read_previous,
    read_result,
    unchanged_files,
)
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.payloads import claim
from perfflow.report.payloads.files import ExportOptions
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import find
from perfflow.trees import repository

FORMATS = ("summary", "comment", "check-run", "junit", "metrics", "codequality", "evidence")
CLAIM = "claim"
"""Not written by default: only some runs keep a candidate."""
CSV = "csv"
"""Not written by default: samples are for analysis, not for CI services."""
PROFILES = ("folded", "speedscope", "pprof")
"""Not written by default: one file for each profile with stacks, for other viewers."""
TABLES = ("samples", "decisions")


@click.command("export")
@click.argument("run", default="latest")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files (default: .perfflow/export/RUN). It may exist.",
)
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice([*FORMATS, CLAIM, CSV, *PROFILES]),
    help="The file to write (default: all files for CI services). May be repeated. Without --out, csv alone goes to "
    "stdout, as does claim. folded, speedscope and pprof write one file for each profile with stacks.",
)
@click.option(
    "--table",
    type=click.Choice(TABLES),
    help="The rows of csv: samples or decisions (default: samples on stdout, both with --out).",
)
@click.option(
    "--previous",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File with the current text of the comment, whose log of runs is continued.",
)
@click.option("--claimed", metavar="GAIN", default="", help="With --format claim: what the author claims, such as 3x.")
@click.option(
    "--unproven",
    type=click.Choice(["fail", "pass"]),
    default="fail",
    show_default=True,
    help="How an unproven verdict is shown. fail: a failure. pass: a neutral check run, and skipped in junit.xml.",
)
def command(
    run: str,
    out: Path | None,
    formats: tuple[str, ...],
    table: Table | None,
    previous: Path | None,
    claimed: str,
    unproven: str,
) -> None:
    """Write files for CI services from RUN's result.json. Measures, judges and sends nothing, and needs no token.

    The files are a job summary, a pull-request comment, a check run, JUnit, OpenMetrics, code quality, evidence lines.
    `--format claim` writes a comment about the candidates that the run kept, for the maintainers of the code.
    `--format csv` prints the run's samples or its decisions, one per row. `--format folded`, `speedscope` and `pprof`
    write the run's profiles for other viewers. RUN is a folder, an id, `latest`, or a single result.json.

    Exit: 0 the files were written, whatever the verdict is; 2 bad usage, or a run without profiles; 3 the files cannot
    be written, or the profiles cannot be read.
    """
    if table and CSV not in formats:
        raise UserError.of("--table applies only to --format csv", "add --format csv, or leave out --table")
    if claimed and CLAIM not in formats:
        raise UserError.of("--claimed applies only to --format claim", "add --format claim, or leave out --claimed")
    root = repository.project_here()
    place = find(root, run)
    result = read_result(place)
    to_stdout = set(formats) in ({CSV}, {CLAIM}) and out is None
    tables = _tables(result, place, table or ("samples" if to_stdout else None)) if CSV in formats else {}
    tables |= (
        {claim.FILE: iter([claim.claim_text(result, claimed, unchanged_files(root, result))])}
        if CLAIM in formats
        else {}
    )
    if to_stdout:
        _print(tables)
        return
    options = ExportOptions(unproven, read_previous(previous) if previous else "")
    lost: list[str] = []
    profiles = profile_files(result, place, [name for name in formats if name in PROFILES], lost.append)
    for reason in lost:
        tell(f"note: skipped: {visible(reason)}\n")
    chosen = [name for name in formats if name in FORMATS] if formats else FORMATS
    for path in export(result, chosen, out or default_folder(root, result), options, tables, profiles):
        say(visible(shown_path(path)))


def _tables(result: Result, place: Path, table: Table | None) -> dict[str, Iterator[str]]:
    """Return the text of each table in parts, by file name. Raises UserError if the events are damaged."""
    run = run_of(result, place if place.is_dir() else None)
    return {file: chunks(run, name) for name, file in FILES.items() if table in (None, name)}


def _print(tables: Mapping[str, Iterator[str]]) -> None:
    for part in chain.from_iterable(tables.values()):
        say(without_commands(part) if in_github() else part, end="")
