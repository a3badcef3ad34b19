"""What a step's tool found beside figures: its profiles, and hotspots by their place in the tree, each side's last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfflow.execute.prepare import Ready
from perfflow.model.kernels import GPU, KernelFacts, KernelOf
from perfflow.model.memory_curve import MemoryCurveOf
from perfflow.model.readings import HOTSPOT, Parsed, Side
from perfflow.plan.plan import Planned
from perfflow.session.benchmark_names import benchmark_of_kernel
from perfflow.session.session import RunSession
from perfflow.session.source_files import SourceFiles
from perfflow.store.receipts.files import sha256
from perfflow.store.run_facts import Found, FoundHotspot, StoredProfile


class Evidence:
    """Gathers what the calls of one step leave; of several calls of a side, the last one's files are there."""

    def __init__(self, session: RunSession, planned: Planned, benchmark: str = "") -> None:
        """``benchmark`` is whose evidence it is, where the step profiles several."""
        self._session, self._planned, self._benchmark = session, planned, benchmark
        self._devices: dict[str, None] = {}
        self._found: dict[Side, tuple[Ready, Parsed]] = {}

    def add(self, prepared: Ready, parsed: Parsed) -> None:
        """Take what the last call of a side left, in the place of what one before it did."""
        if parsed.device:
            self._devices.setdefault(parsed.device)
        if parsed.hotspots or parsed.profiles or parsed.kernels:
            self._found[prepared.side] = (prepared, parsed)

    def found(self) -> Found:
        """What the tool found, side by side."""
        found = Found(devices=self._gpus())
        for side in (side for side in Side if side in self._found):
            prepared, parsed = self._found[side]
            sources = sources_of(self._session, prepared)
            spots = (replace(sources.placed(spot), benchmark=self._benchmark) for spot in parsed.hotspots)
            found += Found(
                profiles=tuple(self._profiles(side, prepared, parsed)),
                hotspots=tuple(FoundHotspot(spot, side, sources.place_of(spot)) for spot in spots),
                kernels=tuple(KernelOf(facts, self._whose(facts), side.value) for facts in parsed.kernels),
                memory=(MemoryCurveOf(parsed.memory, side.value, self._benchmark),) if parsed.memory else (),
            )
        return found

    def _gpus(self) -> tuple[str, ...]:
        """The GPUs that the calls were of; of a tool for GPUs one without a name where none of them told it."""
        return (*self._devices,) or ((GPU,) if self._planned.tool and self._planned.tool.gpu else ())

    def _whose(self, facts: KernelFacts) -> str:
        return self._benchmark or benchmark_of_kernel(self._planned, facts.name)

    def _profiles(self, side: Side, prepared: Ready, parsed: Parsed) -> Iterator[StoredProfile]:
        folder = prepared.call.folder if prepared.call else self._session.folder_of(self._planned, side)
        for profile in parsed.profiles:
            path = folder / profile.path
            shown = str(path.relative_to(self._session.folder.path))
            tool = prepared.tool.name if prepared.tool else ""
            yield StoredProfile(side, shown, profile.kind, sha256(path), self._benchmark, tool, profile.stacks)


def flatness(parsed: Parsed) -> tuple[str, ...]:
    """Say where a profile has no hotspot, which is a finding, too."""
    if not parsed.hotspots or parsed.hotspots[0].share > HOTSPOT:
        return ()
    first = parsed.hotspots[0]
    return (f"no place has more than {HOTSPOT:.0%}; the largest, {first.location}, has {first.share:.1%}",)


def sources_of(session: RunSession, prepared: Ready) -> SourceFiles:
    """The source files of the tree that a call ran in."""
    return SourceFiles(session.tree_context_of(prepared.side).root, _folders(prepared))


def _folders(prepared: Ready) -> Iterator[Path]:
    """Where the compiler may have run: the step's folder, and those above the program, such as its crate."""
    yield prepared.cwd
    if prepared.call and prepared.call.command:
        yield from (prepared.cwd / prepared.call.command[0]).parents
