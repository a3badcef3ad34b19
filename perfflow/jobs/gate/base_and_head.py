"""The regression gate: every measuring step compares base with head, each built in its own tree.

``without_spent`` finds accepted regressions that are already in the base's copy of the workflow. They are merged, so
they no longer apply.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import sides_of
from perfflow.library import search_path
from perfflow.library.pinned import Library
from perfflow.model.criteria import read_share
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.targets import matches
from perfflow.model.units import UnitError
from perfflow.plan.coverage import metrics_of
from perfflow.plan.plan import Planned, building_steps
from perfflow.session.attribution.explain_failure import explain_failure
from perfflow.session.attribution.function_costs import blame
from perfflow.session.blind_lines import note_blind
from perfflow.session.build_key import build_key
from perfflow.session.missing_side import side_without_program
from perfflow.session.open_workflow import Opened
from perfflow.session.perform import failure_of, perform_all
from perfflow.session.planted_slowdown import plant
from perfflow.session.progress import of_candidate
from perfflow.session.session import RunSession, built_with, context_in, now
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.run_folder import Subrun, own_events
from perfflow.tools.adapter import Role
from perfflow.trees.overlay import overlaid
from perfflow.trees.patches import changed_paths
from perfflow.trees.repository import CodeState, Repository
from perfflow.trees.shared_installs import share_crates
from perfflow.trees.slots import Kept, Slot, Slots, open_slots
from perfflow.trees.snapshots import at, snapshot
from perfflow.verdict.comparison import compare
from perfflow.verdict.decide import rule
from perfflow.workflow.load import load
from perfflow.workflow.yaml_text import Readable

BASE = "base"
"""Subrun of the run's folder for building the base."""


class BaseAndHead:
    """Both trees of one gate. They are checked out and built when the first step needs them."""

    def __init__(
        self, session: RunSession, repository: Repository, base: CodeState, head: CodeState, *, fresh: bool = False
    ) -> None:
        """``fresh``: build both trees from nothing, whatever earlier runs have built."""
        self._session, self._repository, self._base, self._head = session, repository, base, head
        self._fresh = fresh
        self._of_side: dict[Side, Slot] = {}
        self._wanted: dict[Side, Kept] = {}
        self._building = building_steps(session.context.plan)
        self._slots: Slots | None = None
        self._contexts: dict[Side, TreeContext] = {}
        self._head_session: RunSession | None = None
        self._both: RunSession | None = None
        # A resumed run builds again in both trees, which is quick if nothing changed.
        done = {name: outputs for name, outputs in session.earlier.done.items() if name not in self._building}
        session.earlier = replace(session.earlier, done=done)

    def show(self, planned: Planned) -> None:
        """Show both trees before the first step that builds. Raises Failure if they cannot be checked out."""
        if planned.id in self._building:
            self._shown()

    def session_for(self, planned: Planned) -> RunSession:
        """Return the session in which a step runs.

        Building steps run in the base's tree first, then in head's. Measuring steps run in both trees at once. Steps
        that compare two commands run in head's tree, and the setup in the user's. Raises Failure if the base does not
        build or the trees cannot be checked out.
        """
        if planned.stage == "setup":
            return self._session
        contexts = self._shown()
        if self._head_session is None or self._both is None:
            # Kept, so that the machine's noise is checked once and not before every step.
            changed = frozenset(changed_paths(self._repository, self._base.tree, self._head.tree))
            self._head_session = replace(self._session, context=contexts[Side.CANDIDATE], changed=changed)
            self._both = replace(self._head_session, contexts=contexts)
        if planned.id in self._building:
            base = self._session.built_before(Side.BASELINE, planned)
            if base is not None:
                contexts[Side.BASELINE].outputs[planned.id] = dict(base)
                return self._head_session
            self._build_base(planned)
            share_crates(self._of_side[Side.BASELINE], self._of_side[Side.CANDIDATE])
            return self._head_session
        # Steps that compare (or check) two commands or variants have their own two sides, so they need one tree.
        return self._head_session if len(sides_of(contexts[Side.CANDIDATE], planned)) == 2 else self._both

    def why_not(self, planned: Planned) -> str:
        """Return why a gate skips a step, or ''.

        A gate tries no candidates. It profiles only regressed benchmarks, metrics that a target needs, and conditions.
        """
        if self._session.plants and planned.role is Role.PROFILE:
            return "a self-test does not explain what it slowed down"
        if planned.role is Role.CANDIDATE:
            return "a gate compares base with head and tries no candidates"
        if planned.role is Role.COMPARE:
            return "a gate already compares base with head in the measuring steps"
        if planned.role is Role.PROFILE and not self._is_wanted(planned):
            return "no benchmark that it profiles regressed"
        return ""

    def finish(self) -> None:
        """Profile what failed and was not profiled, and find the commits that changed the functions that got slower."""
        if self._session.plants:
            return
        explain_failure(self._session)
        blame(self._session, self._repository, self._base, self._head)
        note_blind(self._session, self._repository, self._base, self._head)

    def close(self) -> None:
        """Note what was built for later runs, and release the slots to other runs."""
        if self._slots:
            for side, slot in self._of_side.items():
                outputs = {name: self._contexts[side].outputs.get(name) for name in self._building}
                complete = {name: dict(found) for name, found in outputs.items() if found is not None}
                if len(complete) == len(outputs) and not slot.kept.built:
                    slot.keep(replace(self._wanted[side], built=now(), outputs=complete))
            self._slots.close()
            self._slots = None

    def _shown(self) -> dict[Side, TreeContext]:
        if not self._contexts:
            try:
                self._take_slots()
            except UserError as error:
                raise Failure(error.in_one_line) from error
            for side, slot in self._of_side.items():
                self._contexts[side] = context_in(self._session.context, slot, Settings())
            base, head = (self._contexts[side] for side in Side)
            if self._session.plants:
                plant(self._session, head)
            if not self._is_one:
                base.other, head.other = head.root, base.root
            done = {name: dict(outputs) for name, outputs in self._session.earlier.done.items()}
            self._contexts[Side.CANDIDATE].outputs.update(done)
        return self._contexts

    def _take_slots(self) -> None:
        """Show each side in a slot, and take over what earlier runs built there. Raises UserError."""
        context = self._session.context
        self._slots = open_slots(self._repository, context.plan.workflow.worktree.share)
        data = next(own_events(self._session.folder.path), {}).get("data") or {}
        for side, state in zip(Side, (self._base, self._head), strict=True):
            key = build_key(context, self._building, state.tree, data)
            self._wanted[side] = Kept(state.tree, side.value, key)
        slots = self._slots.pair(*self._wanted.values())
        self._of_side = dict(zip(Side, slots[:1] * 2 if self._is_one else slots, strict=True))
        built: dict[Side, Mapping[str, Mapping[str, str]]] = dict(self._session.built)
        for side, state in zip(Side, (self._base, self._head), strict=True):
            slot = self._of_side[side]
            if self._fresh:
                slot.clear()
            # Perhaps the build made them, and showing the state removes them.
            is_whole = not slot.left_files()
            self._show(slot, state)
            kept = slot.kept
            if is_whole and kept.key == self._wanted[side].key and _are_there(slot, kept.outputs):
                slot.keep(replace(kept, side=side.value))
                if self._building:
                    built.setdefault(side, kept.outputs)
                    self._session.folder.append({"event": "reused", "side": side.value, "built": kept.built})
            else:
                slot.keep(replace(self._wanted[side], key=""))
        for other in self._slots.every if Side.BASELINE not in built else ():
            share_crates(other, self._of_side[Side.BASELINE])
        self._session.built = built

    @property
    def _is_one(self) -> bool:
        """Whether base and head are the same state of the code, which is then built once, in one tree."""
        return (self._base.commit, self._base.tree) == (self._head.commit, self._head.tree)

    def _show(self, slot: Slot, state: CodeState) -> None:
        """Check out a state, and delete earlier builds with other settings or from sources that no longer exist.

        Otherwise the program of a deleted benchmark would still exist and be measured.
        """
        if self._session.built and slot.shows(state.tree):
            return
        changed = slot.switch(state.tree, state.commit)
        if any(not os.path.lexists(slot.path / path) for path in changed):
            slot.forget_builds_unless("")
        slot.forget_builds_unless(built_with(self._session.context, self._building))

    def _build_base(self, planned: Planned) -> None:
        subrun = Subrun(self._session.folder, BASE, Record())
        # A crate or folder that is new on head cannot be built on base.
        if side_without_program(self._contexts, planned, subrun.step(planned.id), folders_only=True) is Side.BASELINE:
            return
        progress = of_candidate(self._session.progress, planned)
        session = self._session.nested(self._contexts[Side.BASELINE], subrun, progress)
        (run,) = perform_all(session, [planned.id])
        if run.blocks:
            raise failure_of(run, session.folder.path, f"the base does not build: {run.reason}")

    def _is_wanted(self, planned: Planned) -> bool:
        criteria = self._session.context.plan.criteria
        if planned.tool and planned.tool.conditions:
            return True
        if any(target.metric.name in metrics_of(planned) for target in criteria.targets):
            return True
        record = record_of(run_folder.events(self._session.folder.path))
        for (benchmark, metric), series in record.series.items():
            ruling = rule(
                compare(series, criteria),
                criteria.thresholds_of(benchmark, metric),
                identical=False,
            )
            about = not planned.benchmark or matches(planned.benchmark, benchmark) or planned.benchmark == benchmark
            if about and ruling.is_regression:
                return True
        return False


def _are_there(slot: Slot, outputs: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether all files of the slot that outputs of build steps name still exist."""
    values = [
        value for found in outputs.values() for value in found.values() if value.startswith(f"{slot.path}{os.sep}")
    ]
    return all(map(os.path.lexists, values))


def ends(repository: Repository, base: str, head: str | None) -> tuple[str, str]:
    """Return the commit of head, and the merge base of head and ``base``. Raises UserError as ``states`` does."""
    tip = repository.revision(head) if head else repository.head()
    if tip is None:
        raise UserError.of("the repository has no commit yet", "commit the state that the gate should compare with")
    return tip, repository.merge_base(base, tip)


def states(
    repository: Repository, base: str, head: str | None, overlay: Sequence[str] = ()
) -> tuple[CodeState, CodeState, dict[str, Any]]:
    """Return the states of base and head, and their description for the result.

    The base is the merge base of head and the revision ``base``, with head's files under the paths ``overlay``. Without
    a revision, head is the working tree as it is. Raises UserError for unknown revisions, with the remedy for shallow
    clones, and as ``overlaid`` does.
    """
    tip, parted = ends(repository, base, head)
    other = at(repository, tip) if head else snapshot(repository)
    one, replaced = overlaid(repository, at(repository, parted), other, overlay)
    facts: dict[str, Any] = {
        "baseline": {"kind": "revision", "revision": parted, "name": base, "tree": one.tree},
        "candidate": {"kind": "revision" if head else "working tree", "revision": tip, "name": head or "HEAD"},
    }
    facts["candidate"]["tree"] = other.tree
    facts["candidate"]["dirty"] = other.tree != repository.tree(tip)
    if overlay:
        facts["baseline"] |= {"overlay": list(overlay), "replaced": replaced}
    return one, other, facts


class AcceptedEntry(NamedTuple):
    """The identity of an entry under ``accepted``."""

    benchmark: str
    metric: str
    change: float
    why: str
    until: str


def without_spent(opened: Opened, repository: Repository, base: CodeState) -> tuple[Opened, list[str]]:
    """Return the workflow with its merged entries marked as spent, and warnings.

    For a workflow outside the repository this is not known, so its entries count until their dates.
    """
    accepted = opened.plan.criteria.accepted
    if not accepted:
        return opened, []
    path = opened.path.resolve()
    if not path.is_relative_to(repository.root):
        text = "the workflow is not in the repository, so perfflow cannot tell which accepted regressions are merged"
        return opened, [f"{text}: each counts until its date"]
    library = Library(opened.root)
    merged = set(_entries(repository, base, path.relative_to(repository.root), library))
    marked = tuple(
        replace(item, spent=AcceptedEntry(item.benchmark, item.metric, item.change, item.why, item.until) in merged)
        for item in accepted
    )
    criteria = replace(opened.plan.criteria, accepted=marked)
    return replace(opened, plan=replace(opened.plan, criteria=criteria)), []


def _entries(repository: Repository, base: CodeState, name: Path, library: Library) -> Iterator[AcceptedEntry]:
    """Yield the entries of the base's copy of a workflow and of the files it extends; none if it cannot be read.

    Files from another repository are read in head's version.
    """
    with repository.scratch() as folder:
        top = folder.resolve()

        def shown(path: Path) -> Path:
            """Write the base's copy of a file below ``top``, and return its path."""
            inside = Path(*path.resolve().relative_to(top).parts)
            done = repository.git().attempt("cat-file", "blob", f"{base.commit}:{inside.as_posix()}")
            if done.status == 0:
                path.resolve().parent.mkdir(parents=True, exist_ok=True)
                path.resolve().write_bytes(done.stdout)
            return path

        def resolve(text: str, where: Path) -> Path:
            file = library.resolve(text, where)
            return shown(file) if file.resolve().is_relative_to(top) else file

        try:
            readable = library.reading(Readable.of(top, search_path.SHIPPED))
            written = load(shown(top / name), resolve, readable).workflow.accepted
        except UserError:
            return
        for entry in written:
            try:
                share = read_share(entry.change)
            except UnitError:
                continue
            yield AcceptedEntry(entry.benchmark, entry.metric or "", share, entry.why, entry.until)
