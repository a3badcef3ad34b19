"""``perfflow library``: workflows from other repositories, pinned by ``perfflow.lock``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from perfflow.cli.output import say, say_page, tell
from perfflow.cli.style import style_of
from perfflow.jobs.catalog.descriptions import LONGEST, preview
from perfflow.jobs.library import item_text, pin_references
from perfflow.jobs.library.pin_references import ItemState, Pinned, item_states, tested
from perfflow.library import pinned
from perfflow.library.pinned import is_tool
from perfflow.model.errors import Severity, UserError
from perfflow.plan.plan import MISSING
from perfflow.report import plan_text
from perfflow.report.sanitize import visible
from perfflow.report.table import mark, name, table
from perfflow.report.text_table import laid_out
from perfflow.session.open_workflow import open_workflow
from perfflow.trees import repository


@click.group("library")
def command() -> None:
    """Use workflows from other git repositories: git+https://HOST/OWNER/REPO@REV#PATH, or OWNER/REPO/PATH@REV.

    perfflow.lock records the commit and the checksum of each. Only add, update and vendor use the network.
    """


@command.command("add", short_help="Pin and fetch workflows, and show their files.")
@click.argument("references", nargs=-1, metavar="[REFERENCE...]")
def add(references: tuple[str, ...]) -> int:
    """Pin each REFERENCE in perfflow.lock, fetch its files, and show their text and the plan. Runs none of them.

    An item that is already pinned keeps its commit. Without REFERENCE: fetch every item of perfflow.lock.

    Exit: 0 done, 2 bad usage or item, 3 git is missing, or the repository cannot be reached.
    """
    done = _finish(lambda root: pin_references.add(root, references))
    say(f"{len(done.touched)} item{'' if len(done.touched) == 1 else 's'} pinned and fetched")
    return 0


@command.command("update", short_help="Pin the current commits of revisions, and show the changes.")
@click.argument("references", nargs=-1, metavar="[REFERENCE...]")
@click.option("--allow-moved", is_flag=True, help="Also accept tags that now point to another commit.")
def update(references: tuple[str, ...], allow_moved: bool) -> int:
    """Pin the current commit of each REFERENCE's revision (default: all), and show what changed in their files.

    Exit: 0 done, 1 a tag was moved and keeps its old pin, 2 bad usage or item, 3 the repository cannot be reached.
    """
    done = _finish(lambda root: pin_references.update(root, references, allow_moved=allow_moved))
    for text in done.moved:
        tell(f"{visible(text)}; ask its owner why, then accept it with: perfflow library update --allow-moved\n")
    return 1 if done.moved else 0


@command.command("vendor", short_help="Copy pinned workflows into the project.")
@click.argument("references", nargs=-1, metavar="[REFERENCE...]")
def vendor(references: tuple[str, ...]) -> int:
    """Copy the files of each REFERENCE (default: all of perfflow.lock) into workflows/vendor, and use them from there.

    Exit: 0 done, 2 bad usage or item, 3 the repository cannot be reached.
    """
    _finish(lambda root: pin_references.vendor(root, references))
    return 0


@command.command("remove", short_help="Unpin workflows, and delete their copies in the project.")
@click.argument("references", nargs=-1, required=True, metavar="REFERENCE...")
def remove(references: tuple[str, ...]) -> int:
    """Remove each REFERENCE from perfflow.lock, and delete its copy in the project. Does not use the network.

    Exit: 0 done, 2 bad usage, not pinned, or still used by a workflow in workflows/ or by another item.
    """
    root = repository.project_here()
    with pinned.changing_store(root, _tell_waiting):
        done = pin_references.remove_references(root, references)
        # Write the lock first: a copy without a pin is harmless, a pin without its copy is not.
        pinned.write_lock(done.root, done.after)
        pin_references.remove_unused(done)
    for text in done.notes:
        say(visible(text))
    return 0


@command.command("list", short_help="List the pinned workflows.")
@click.option("--json", "as_json", is_flag=True, help='Print {"items": [...]}.')
def list_(as_json: bool) -> None:
    """List the items of perfflow.lock: commit, state of the files, and whether the files were shown here."""
    rows = item_states(repository.project_here())
    if as_json:
        say(json.dumps({"items": [_as_json(row) for row in rows]}, ensure_ascii=False, indent=1))
    elif not rows:
        say("nothing is pinned; `perfflow library add REFERENCE` pins a workflow of another repository")
    else:
        columns = [
            name("reference"),
            mark("is a", rank=3),
            mark("commit", rank=4),
            mark("files"),
            mark("shown", rank=5),
        ]
        shown = {True: "yes", False: "no"}
        cells = (
            (row.name, row.pin.kind, row.pin.commit[:12], row.word, shown[row.is_shown or row.pin.vendored])
            for row in rows
        )
        laid = laid_out(table(columns, cells), style_of(sys.stdout).width)
        say_page([laid.head, *(line for entry in laid.entries for line in entry)])


@command.command("verify", short_help="Check the files against the checksums in perfflow.lock.")
def verify() -> int:
    """Check every file of every item against perfflow.lock. Does not use the network.

    Exit: 0 all files match, 1 a file was changed or is missing, 2 perfflow.lock cannot be read.
    """
    rows = item_states(repository.project_here())
    for row in rows:
        say(f"{visible(row.name)}: {row.word}, {len(row.pin.files)} file{'' if len(row.pin.files) == 1 else 's'}")
        for text in row.wrong if row.folder.is_dir() else ():
            say(f"  {visible(text)}")
    return 1 if any(row.wrong for row in rows) else 0


@command.command("init", short_help="Create a library repository for a team.")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def init(folder: Path) -> None:
    """Write a repository for the workflows of a team into DIR: one workflow, its test, and a README."""
    for path in pin_references.write_template(folder):
        say(f"wrote {visible(str(path))}")
    say(f"next: perfflow library test {visible(str(folder))}, then git init, commit and tag")


@command.command("test", short_help="Test the workflows of a library.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".", metavar="[DIR]")
def test(folder: Path) -> int:
    """Validate each workflow of the library in DIR, and run its tests/: parameters, plan, exit status, benchmarks.

    Exit: 0 all passed, 1 some failed, 2 bad usage or test file.
    """
    passed, failed = 0, 0
    for outcome in tested(folder):
        failed += bool(outcome.wrong)
        passed += not outcome.wrong
        say(f"{visible(outcome.name)}: {'failed' if outcome.wrong else 'ok'}")
        for text in outcome.wrong:
            say("\n".join(f"  {visible(line)}" for line in text.splitlines()))
    say(f"{passed} of {passed + failed} passed")
    return 1 if failed else 0


def _finish(change: Callable[[Path], Pinned]) -> Pinned:
    """Change the lock and write it, then print the items not shown yet. If one cannot be read, restore the lock.

    No other perfflow changes the lock or the cache meanwhile. An item counts as shown if all of its text was printed.
    """
    root = repository.project_here()
    with pinned.changing_store(root, _tell_waiting):
        done = change(root)
        if done.is_new:
            pinned.write_lock(done.root, done.after)
        try:
            texts = {name: "\n".join((*item_text.lines(done, name), *_plan(done, name))) for name in done.unseen}
        except UserError:
            if done.is_new:
                pinned.write_lock(done.root, done.before)
            raise
    # Not under the lock: a pager may wait for the reader.
    for text in done.notes:
        say(visible(text))
    for reference, text in texts.items():
        if say(text):
            pinned.mark_shown(reference, done.after[reference])
        else:
            tell(f"not all of {visible(reference)} was printed, so it counts as not shown\n")
    if done.is_new:
        say(f"wrote {pinned.LOCK_FILE}")
    return done


def _plan(done: Pinned, name: str) -> Iterator[str]:
    """Yield the commands of an item as its files plan them; nothing if it cannot be planned alone, such as a tool."""
    if is_tool(done.files(name)[done.after[name].path]):
        return
    opened = open_workflow(name)
    if any(item.severity is Severity.ERROR and item.rule != MISSING for item in opened.problems):
        return
    yield "  plan:"
    steps = preview(opened, frozenset(item.id for item in opened.plan.steps))
    yield from (f"    {line}" for line in plan_text.plan_lines(steps, LONGEST))


def _tell_waiting() -> None:
    tell("waiting for another `perfflow library` to finish\n")


def _as_json(row: ItemState) -> dict[str, Any]:
    return {
        "reference": row.name,
        "commit": row.pin.commit,
        "kind": row.pin.kind,
        "path": row.pin.path,
        "sha256": row.pin.sha256,
        "state": row.word,
        "shown": row.is_shown or row.pin.vendored,
        "folder": str(row.folder),
        "wrong": list(row.wrong),
    }
