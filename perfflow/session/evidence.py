"""Results of a step's tool besides figures: profiles and hotspots, from the last call of each side."""

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
from perfflow.store.run_facts import FoundHotspot, StepFindings, StoredProfile


class Evidence:
    """Collects the profiles, hotspots and kernels of one step. Only the files of a side's last call exist."""

    def __init__(self, session: RunSession, planned: Planned, benchmark: str = "") -> None:
        """``benchmark``: the benchmark that was profiled, if the step profiles several."""
        self._session, self._planned, self._benchmark = session, planned, benchmark
        self._devices: dict[str, None] = {}
        self._found: dict[Side, tuple[Ready, Parsed]] = {}

    def add(self, prepared: Ready, parsed: Parsed) -> None:
        """Replace the results of a side by those of its last call."""
        if parsed.device:
            self._devices.setdefault(parsed.device)
        if parsed.hotspots or parsed.profiles or parsed.kernels:
            self._found[prepared.side] = (prepared, parsed)

    def found(self) -> StepFindings:
        """Return the results of both sides."""
        found = StepFindings(devices=self._gpus())
        for side in (side for side in Side if side in self._found):
            prepared, parsed = self._found[side]
            sources = sources_of(self._session, prepared)
            spots = (replace(sources.placed(spot), benchmark=self._benchmark) for spot in parsed.hotspots)
            found += StepFindings(
                profiles=tuple(self._profiles(side, prepared, parsed)),
                hotspots=tuple(FoundHotspot(spot, side, sources.place_of(spot)) for spot in spots),
                kernels=tuple(KernelOf(facts, self._whose(facts), side.value) for facts in parsed.kernels),
                memory=(MemoryCurveOf(parsed.memory, side.value, self._benchmark),) if parsed.memory else (),
            )
        return found

    def _gpus(self) -> tuple[str, ...]:
        """Return the GPUs that the calls reported; a nameless one if a GPU tool reported none."""
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
    """Return a note if a profile has no hotspot."""
    if not parsed.hotspots or parsed.hotspots[0].share > HOTSPOT:
        return ()
    first = parsed.hotspots[0]
    return (f"no hotspot above {HOTSPOT:.0%}; the largest is {first.location} with {first.share:.1%}",)


def sources_of(session: RunSession, prepared: Ready) -> SourceFiles:
    """Return the source files of the tree that a call ran in."""
    return SourceFiles(session.tree_context_of(prepared.side).root, _folders(prepared))


def _folders(prepared: Ready) -> Iterator[Path]:
    """Yield folders where the compiler may have run: the step's folder, and those above the program (its crate)."""
    yield prepared.cwd
    if prepared.call and prepared.call.command:
        yield from (prepared.cwd / prepared.call.command[0]).parents
