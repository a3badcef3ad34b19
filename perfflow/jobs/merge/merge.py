"""Merge the parts of a run (``--shard I/N``) into a run of its own, which is judged once.

A part is stored as the job of a group, as if a cluster had measured it: its folder is copied, and one event stands for
its events. So the merged run can be judged, rendered and exported as any other.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfflow.jobs.history.collect import record as add_to_history
from perfflow.jobs.run.run import FinishedRun
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.tree_facts import tree_of
from perfflow.plan.groups import Shard, shard_of
from perfflow.session.perform import result_of_events, write, write_profiles
from perfflow.session.session import explaining_folder_errors
from perfflow.store import run_folder
from perfflow.store.receipts import manifest
from perfflow.store.record import GroupJob, Record
from perfflow.store.run_folder import json_lines

PARTS = "parts"
"""The folder of the merged parts in the run's folder."""


@dataclass(frozen=True)
class Part:
    """One part: its folder as the user named it, its shard, its first event, and what its events say.

    ``divided``: by step, the names of all benchmarks of a suite of which the part measured some.
    """

    name: str
    path: Path
    shard: Shard
    opening: Mapping[str, Any]
    record: Record
    divided: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def code(self) -> list[tuple[object, ...]]:
        """What must be the same for all parts of the code that they measured."""
        trees = [tree_of(self.record.trees, side) for side in Side]
        return [(tree.kind, tree.revision, tree.tree, tree.dirty, tree.overlay) for tree in trees]


def merge(root: Path, names: Sequence[str], out: Path | None) -> FinishedRun:
    """Merge parts, named as for ``run_folder.find``, into a new run; judge it and write its files.

    Raises UserError for runs that are no parts, not finished or damaged, for parts of different runs, for a part that
    is missing or there twice, and for files that cannot be written.
    """
    parts = sorted((_part(name, run_folder.find(root, name)) for name in names), key=lambda part: part.shard.number)
    _require_whole(parts)
    _require_same(parts)
    folder = run_folder.create(root, out)
    with folder, explaining_folder_errors(folder.path, can_resume=False):
        folder.append(_opening(parts, folder.id, names, out))
        for part in parts:
            place = folder.path / PARTS / str(part.shard.number)
            # Links could lead anywhere, and perfflow writes none into the folder of a run.
            shutil.copytree(part.path, place, ignore=_links)
            folder.append(_job(part, str(place.relative_to(folder.path))).event())
        finished = max(str(part.record.run.finished) for part in parts)
        folder.append({"event": "end", "time": finished})
        result = result_of_events(folder.path)
        template = parts[0].path / run_folder.TEMPLATE
        if template.is_file():
            shutil.copyfile(template, folder.path / run_folder.TEMPLATE)
        write(result, folder.path)
        write_profiles(result, folder.path)
        receipt = manifest.make(result, folder.path, {}, folder.chain)
        run_folder.write_text(folder.path / run_folder.RECEIPT, json_lines(receipt.items()))
    notes: list[str] = []
    if result.benchmarks:
        add_to_history(root, result, folder.path, notes.append)
    return FinishedRun(result, folder.path, interrupted=False, notes=tuple(notes))


def _part(name: str, path: Path) -> Part:
    """Read a part. Raises UserError if it is none, or not finished or damaged."""
    if not (path / run_folder.EVENTS).is_file():
        hint = f"name a folder with the {run_folder.EVENTS} of the part"
        raise UserError.of(f"{name}: its samples are not there, so it cannot be merged", hint)
    run_folder.require_ended(path)
    record, divided, opening = Record(), dict[str, list[str]](), dict[str, Any]()
    with run_folder.explaining_damage(path / run_folder.EVENTS):
        for event in run_folder.own_events(path):
            record.fold(event)
            if event.get("event") == "run":
                opening = event
            elif event.get("event") == "divided":
                divided[event["step"]] = [str(item) for item in event["names"]]
    if not record.run.shard:
        raise UserError.of(f"{name}: this run is no part of another one", "name runs that were made with --shard I/N")
    if not record.ended:
        hint = "resume it with the same command and --resume, then merge"
        raise UserError.of(f"{name}: part {record.run.shard} was not measured to its end", hint)
    return Part(name, path, shard_of(record.run.shard), opening, record, divided)


def _require_whole(parts: Sequence[Part]) -> None:
    """Raise UserError unless each part of one division is there, once."""
    counts = {part.shard.count: part for part in parts}
    if len(counts) > 1:
        parts_told = " and ".join(f"{part.name} is part {part.shard}" for part in list(counts.values())[:2])
        raise UserError.of(f"{parts_told}, so they are of different divisions", "name the parts of one run")
    count = parts[0].shard.count
    have = Counter(part.shard.number for part in parts)
    twice = [number for number, times in have.items() if times > 1]
    if twice:
        same = ", ".join(part.name for part in parts if part.shard.number == twice[0])
        raise UserError.of(f"part {twice[0]}/{count} is there more than once: {same}", "name each part once")
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in have]
    if missing:
        hint = "all parts together give the verdict; measure what is missing with --shard"
        raise UserError.of(f"missing: part {', '.join(missing)}", hint)


def _require_same(parts: Sequence[Part]) -> None:
    """Raise UserError for parts that measured other code, or in another way."""
    first = parts[0]
    for part in parts[1:]:
        one, other = first.record.run, part.record.run
        kinds = {
            "another version of perfflow": one.version != other.version,
            "another workflow, or other parameters": one.digest != other.digest,
            "other benchmarks (--benchmark)": one.chosen != other.chosen,
            "another base": first.code[0] != part.code[0],
            "another head": first.code[1] != part.code[1],
        }
        different = next((kind for kind, is_so in kinds.items() if is_so), "")
        if different:
            text = f"{part.name} (part {part.shard}) measured {different} than {first.name} (part {first.shard})"
            raise UserError.of(text, "only parts of one run can be merged")
        for step in first.divided.keys() & part.divided.keys():
            odd = sorted(set(first.divided[step]) ^ set(part.divided[step]))
            if odd:
                text = f"step {step}: part {first.shard} and part {part.shard} list different benchmarks: "
                hint = "the suite must list the same on all machines, else benchmarks are lost or measured twice"
                raise UserError.of(text + ", ".join(odd[:5]), hint)


def _opening(parts: Sequence[Part], run_id: str, names: Sequence[str], out: Path | None) -> dict[str, Any]:
    """Return the first event of the merged run: that of the first part, with the steps of all parts."""
    first = parts[0].opening
    selected = {name for part in parts for name, step in part.record.planned.items() if step.selected}
    warnings = dict.fromkeys(text for part in parts for text in part.record.run.warnings)
    run = {
        **first["run"],
        "id": run_id,
        "started": min(part.record.run.started for part in parts),
        "command": ["perfflow", "merge", *names],
        "out": str(out.absolute()) if out else "",
        "shard": "",
        "warnings": list(warnings),
    }
    return {**first, "run": run, "steps": [{**step, "selected": step["id"] in selected} for step in first["steps"]]}


def _job(part: Part, folder: str) -> GroupJob:
    return GroupJob(
        group=f"part {part.shard}",
        attempt=1,
        folder=folder,
        state="done",
        node=f"part {part.shard}",
        machine=part.record.machine,
    )


def _links(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if (Path(folder) / name).is_symlink()}
