"""``perfflow judge``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from perfflow.cli.console import shown
from perfflow.cli.options import LOCK_TIMEOUT, SEED, TRUST, limit, placed, usable
from perfflow.cli.output import say, tell
from perfflow.jobs.judge.judge import Judged, JudgeRequest, judge
from perfflow.jobs.judge.submit import Patch
from perfflow.model.errors import Exit, UserError
from perfflow.model.judging import Outcome
from perfflow.plan.groups import Shard, shard_of
from perfflow.report.outcomes import flags_in_words
from perfflow.report.sanitize import visible
from perfflow.tools import regular_files

SUFFIXES = (".patch", ".diff")
"""Names of the patches in a folder."""
_STDIN = "-"


@click.command("judge")
@click.argument("patches", nargs=-1, required=True, metavar="PATCH...")
@click.option("-w", "--workflow", required=True, metavar="WORKFLOW", help="The workflow that judges them.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each patch, as soon as it is known.")
@click.option(
    "--budget",
    metavar="TIME",
    callback=limit,
    help="Longest time of each patch, its build and checks included, such as 3m. off: no limit.",
)
@click.option(
    "--isolate",
    type=click.Choice(["strict", "auto", "off"]),
    help="Run the patched programs in a sandbox, or refuse (default, unless the workflow says otherwise); auto: if "
    "possible.",
)
@click.option(
    "--shard",
    metavar="I/N",
    callback=lambda _context, _option, text: shard_of(text) if text else None,
    help="Judge only part I of N of the patches: every Nth one.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the run to this folder, which must be new or empty."
)
@click.option("--executor", metavar="NAME", help="Where to judge: an executor of executors.yaml, or `local`.")
@SEED
@LOCK_TIMEOUT
@TRUST
@click.option("--progress", type=click.Choice(["plain", "off"]), default="plain", help="Progress on stderr.")
def command(
    patches: tuple[str, ...],
    workflow: str,
    settings: tuple[str, ...],
    as_json: bool,
    budget: float | None,
    isolate: str | None,
    shard: Shard | None,
    out: Path | None,
    executor: str | None,
    seed: int | None,
    lock_timeout: float,
    trust: bool,
    progress: str,
) -> int:
    """Judge patches, each against the code as it is.

    PATCH is a file, a folder with files *.patch and *.diff, or - for lines of JSON on standard input, each with `patch`
    (the text) or `file`, and perhaps `id` and `why`. The original is built and checked once. A patch that is kept
    becomes a commit on a branch of its own. The working tree does not change.

    Exit: 0 every patch was judged, whatever the outcome, 2 bad usage or workflow, 3 a patch could not be judged, 130
    interrupted.
    """
    placement = placed(executor, None, settings, detach=False)
    if placement and (shard or out):
        raise UserError.of("--executor divides the patches by itself, into several runs", "leave out --shard and --out")
    opened = usable(workflow, settings, to_run=True, trust=trust)
    found = [patch for name in patches for patch in _patches(name)]
    if shard:
        found = found[shard.number - 1 :: shard.count]
    outcomes: list[Outcome | None] = []

    def told(item: Judged) -> None:
        outcomes.append(item.found.outcome)
        say(json.dumps(as_data(item), ensure_ascii=False) if as_json else visible(line(item)))
        sys.stdout.flush()

    words = ["perfflow", "judge", *patches, f"--workflow={workflow}", *(f"--set={setting}" for setting in settings)]
    words += [*([f"--isolate={isolate}"] if isolate else []), *([f"--shard={shard}"] if shard else [])]
    words += [f"--executor={executor}"] if executor else []
    asked = JudgeRequest(settings, budget, isolate or "", out, seed, lock_timeout, trust, words)
    with shown(progress, opened, ()) as display:
        if placement:
            from perfflow.jobs.judge.placed_judge import judge_placed

            interrupted = judge_placed(opened, found, asked, placement, display, told)
        else:
            interrupted = judge(opened, found, asked, display, told)
    if interrupted:
        tell(f"interrupted; {len(found) - len(outcomes)} of {len(found)} patches were not judged\n")
        return int(Exit.INTERRUPTED)
    return int(Exit.UNMEASURED if Outcome.CANNOT_JUDGE in outcomes else Exit.PASS)


def as_data(item: Judged) -> dict[str, Any]:
    """Return what became of a patch, as JSON data. Shares are fractions of 1; up is better."""
    found = item.found
    return {
        "patch": item.patch.name,
        "decision": found.outcome,
        "code": found.code,
        "reason": found.reason,
        "effect": found.effect.model_dump(mode="json") if found.effect else None,
        "flags": found.flags,
        "needs": found.needs.model_dump(mode="json") if found.needs else None,
        "benchmark": found.benchmark,
        "metric": found.metric,
        "revision": found.revision,
        "run": item.run,
        "seconds": round(item.seconds, 3),
    }


def line(item: Judged) -> str:
    """Return what became of a patch, as a line for humans."""
    found = item.found
    more = flags_in_words(found.flags) if found.outcome is Outcome.KEPT else ""
    needs = f"; needs --budget {found.needs.budget}" if found.needs else ""
    return f"{found.outcome:<12}  {item.patch.name}: {found.reason}{needs}{f'; note: {more}' if more else ''}"


def _patches(name: str) -> Iterator[Patch]:
    """Yield the patches that an argument names. Raises UserError if there are none."""
    place = Path(name)
    if name == _STDIN:
        yield from _lines()
    elif place.is_dir():
        files = sorted(file for file in place.iterdir() if file.suffix in SUFFIXES)
        if not files:
            raise UserError.of(f"{name}: no file *{' or *'.join(SUFFIXES)} is there", "name a file, or - for lines")
        yield from (Patch(str(file), _read(file)) for file in files)
    else:
        yield Patch(name, _read(place))


def _lines() -> Iterator[Patch]:
    for number, text in enumerate(sys.stdin.buffer, 1):
        if not text.strip():
            continue
        try:
            item = json.loads(text)
        except ValueError as error:
            raise _wrong_line(number, str(error)) from error
        if not isinstance(item, dict) or not all(isinstance(item.get(key, ""), str) for key in _KEYS):
            raise _wrong_line(number, "not an object whose values are texts")
        if ("patch" in item) == ("file" in item):
            raise _wrong_line(number, "it has neither `patch` nor `file`, or both")
        data = item["patch"].encode("utf-8", "surrogateescape") if "patch" in item else _read(Path(item["file"]))
        yield Patch(item.get("id") or item.get("file") or f"line {number}", data, " ".join(item.get("why", "").split()))


_KEYS = ("patch", "file", "id", "why")


def _wrong_line(number: int, what: str) -> UserError:
    return UserError.of(
        f"standard input, line {number}: {what}", 'write {"patch": TEXT} or {"file": PATH} on each line'
    )


def _read(file: Path) -> bytes:
    try:
        return regular_files.read(file, regular_files.LARGEST)
    except OSError as error:
        raise UserError.of(f"{file}: {error.strerror}", "name a patch, such as the output of `git diff`") from error
