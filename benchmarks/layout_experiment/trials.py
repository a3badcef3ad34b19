"""The parts of the experiment about accidents of code layout: edits that change nothing hot, and true changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from benchmarks.layout_experiment import judges, proof
from benchmarks.layout_experiment.edits import KINDS, PROGRAMS, Edit, Program
from benchmarks.layout_experiment.projects import Project
from benchmarks.verdict_experiment.log import Entry, Session

FULL = 40
"""Edits of a full run."""
CHOSEN = 0.4
"""The part of them that is chosen since it moves the time of the plain builds, either way."""
DRAWS = {"c": 6, "rust": 2}
"""Edits of each kind that are looked at in a full run."""
SLOWER = ((5, 64), (20, "auto"))
"""Percent of more work, and the layouts that its gate draws."""


@dataclass(slots=True)
class Bench:
    """The projects of one session, each made when it is first needed."""

    session: Session
    projects: dict[Program, Project] = field(default_factory=dict)
    warm: set[Path] = field(default_factory=set)

    def project(self, program: Program) -> Project:
        """The program's repository, with its base built."""
        if program not in self.projects:
            self.projects[program] = Project.create(program, self.session.folder)
        return self.projects[program]

    def judge(self, edit: Edit, way: str, seed: int, *, reverse: bool = False) -> Entry:
        """What one of the ways says of the edit."""
        project = self.project(edit.program)
        sides = project.commit(edit, reverse=reverse)
        if way == "hyperfine":
            return judges.hyperfine(project, sides)
        if way == "criterion":
            return judges.criterion(project, sides)
        if project.root not in self.warm:
            # A project's dependencies are built before its pull requests come.
            self.warm.add(project.root)
            judges.gate(project, sides, "off", seed)
        return judges.gate(project, sides, way, seed)


def unchanged(session: Session) -> None:
    """Judge edits that change no instruction of the hot code, of which many move the plain builds beyond 5%."""
    bench = Bench(session)
    drafts = {edit.name: edit for edit in _drafts(session.count)}
    for edit in drafts.values():
        if edit.name not in session.noted("screened"):
            session.note(_screened(bench, edit))
    looked = [entry for entry in session.entries if entry.get("screened") in drafts]
    done = {(entry["edit"], entry["way"]) for entry in session.entries if "edit" in entry}
    for name, chosen in select(looked, session.count).items():
        rng = session.draws("edit", name)
        # What an edit makes slower, undoing it makes faster.
        reverse = rng.random() < 0.5
        own = "hyperfine" if drafts[name].program.language == "c" else "criterion"
        for way in rng.sample(["off", "auto", own], 3):
            seed = rng.randrange(2**31)
            if (name, way) not in done:
                found = bench.judge(drafts[name], way, seed, reverse=reverse)
                told = {"edit": name, "chosen": chosen, "reverse": reverse, "way": way, "seed": seed}
                session.note({**told, **found})


def _drafts(count: int) -> Iterator[Edit]:
    for program in PROGRAMS:
        for draw in range(-(-DRAWS[program.language] * count // FULL)):
            yield from (Edit(program, kind, draw) for kind in KINDS)


def _screened(bench: Bench, edit: Edit) -> Entry:
    """Whether the hot code is the same, and how the plain builds differ: looked at twice where it seems much."""
    project = bench.project(edit.program)
    sides = project.commit(edit)
    old, new = (project.executable(name) for name in sides)
    entry: Entry = {"screened": edit.name, "differs": old.read_bytes() != new.read_bytes()}
    entry["same_code"] = proof.same_code(old, new, edit.program.hot)
    if entry["differs"] and entry["same_code"]:
        ratios = [judges.ratio(project, sides)]
        if abs(ratios[0] - 1) > judges.BEYOND:
            ratios.append(judges.ratio(project, sides))
        entry["ratios"] = [round(found, 4) for found in ratios]
    return entry


def select(looked: Sequence[Entry], count: int) -> dict[str, bool]:
    """Names of edits -> whether each was chosen since the plain builds differ; programs take turns in both parts."""
    able = [entry for entry in looked if "ratios" in entry]
    moved = [entry["screened"] for entry in able if judges.moved(entry["ratios"])]
    chosen = list(_in_turns(moved))[: round(count * CHOSEN)]
    others = _in_turns(entry["screened"] for entry in able if entry["screened"] not in chosen)
    plain = [name for name, _ in zip(others, range(count - len(chosen)), strict=False)]
    return dict.fromkeys(chosen, True) | dict.fromkeys(plain, False)


def _in_turns(names: Iterable[str]) -> Iterator[str]:
    """One of each program, then the next one of each."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rsplit("/", 2)[0], []).append(name)
    for turn in zip_longest(*groups.values()):
        yield from (name for name in turn if name is not None)


def slower(session: Session) -> None:
    """Judge edits that move code and also give the hot code 5% or 20% more work."""
    bench = Bench(session)
    for number, (percent, layouts), rng in session.trials(SLOWER):
        program = PROGRAMS[number // len(SLOWER) % len(PROGRAMS)]
        edit = Edit(program, rng.choice(KINDS), 1000 + number, percent)
        project, seed = bench.project(program), rng.randrange(2**31)
        old, new = (project.executable(name) for name in project.commit(edit))
        # What counts the rounds is the last of them.
        same = proof.same_code(old, new, program.hot[:-1])
        found = bench.judge(edit, str(layouts), seed)
        told = {"trial": number, "slower": edit.name, "percent": percent, "factor": edit.factor(), "same_code": same}
        session.note({**told, "way": str(layouts), "seed": seed, **found})
