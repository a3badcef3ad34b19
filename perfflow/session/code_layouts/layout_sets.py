"""Code layouts of both sides of one step: made in advance, and put in place while nothing is timed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from perfflow.execute.prepare import Ready
from perfflow.model.readings import Side
from perfflow.session.code_layouts.sources import Build, Linked, Source, folder_of, source_of
from perfflow.trees.swap_files import ASIDE, InPlace

MADE = "made"
"""Subfolder for the layouts to measure, in a tree's folder for code layouts."""


class Drawn:
    """The layouts of both sides. In a shared tree, the other side's files are as built while one side runs."""

    def __init__(self, builds: Mapping[Side, Build], calls: Callable[[Side], list[Ready]], draw: str) -> None:
        """``calls``: the calls of a side; ``draw``: the seed text of its layouts, different for every run."""
        self._builds, self._calls, self._draw = builds, calls, draw
        self._sources: dict[Side, Source] = {}
        self._files: dict[tuple[Side, int], Mapping[Path, Path]] = {}
        folders = {side: folder_of(build) for side, build in builds.items()}
        self._made = {side: folder / MADE / side.value for side, folder in folders.items()}
        places = {folder: InPlace(folder / ASIDE) for folder in folders.values()}
        self._places = {side: places[folder] for side, folder in folders.items()}
        self._standing: dict[InPlace, tuple[Side, int] | None] = {}
        self.clear()

    def begin(self) -> float:
        """Find out how to make layouts; return the seconds to make one layout of every side.

        Raises LayoutsRefusedError with the reason if none can be made.
        """
        for side, build in self._builds.items():
            if side not in self._sources:
                work = self._made[side] / "source"
                work.mkdir(parents=True, exist_ok=True)
                self._sources[side] = source_of(build, self._calls(side), work, f"{self._draw}\0{side.value}")
                self._places[side].hold(self._sources[side].places)
        return sum(source.seconds for source in self._sources.values())

    def make(self, numbers: Iterable[int], ends: float) -> int:
        """Make layouts of each side until the time ``ends``; return the last number that all sides have.

        Raises LayoutsRefusedError and OSError.
        """
        self.begin()
        last = 0
        # Nothing is measured meanwhile, so both sides can link at once. Builds cannot: they may write the same files.
        together = len(self._sources) if all(isinstance(item, Linked) for item in self._sources.values()) else 1
        with ThreadPoolExecutor(together) as pool:
            for number in numbers:
                if time.monotonic() >= ends and last:
                    break
                made = pool.map if together > 1 else map
                files = made(partial(self._one, number), self._sources)
                self._files |= {(side, number): found for side, found in zip(self._sources, files, strict=True)}
                last = number
        self.rest()
        return last

    def _one(self, number: int, side: Side) -> Mapping[Path, Path]:
        folder = self._made[side] / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return self._sources[side].make(number, folder)

    def put(self, side: Side, number: int) -> None:
        """Put a side's layout of this number in place for its next process; 0 is the program as built."""
        places, wanted = self._places[side], (side, number) if number else None
        if self._standing.get(places) != wanted:
            places.put(self._files[side, number] if number else {})
            self._standing[places] = wanted

    def rest(self) -> None:
        """Put the files as built back in place."""
        for places in set(self._places.values()):
            places.reset()
        self._standing.clear()

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove layouts that are no longer needed."""
        for number in numbers:
            for side in self._builds:
                self._files.pop((side, number), None)
                shutil.rmtree(self._made[side] / str(number), ignore_errors=True)

    def clear(self) -> None:
        """Restore all files as built, and remove all layouts."""
        for places in set(self._places.values()):
            places.restore()
        self._standing.clear()
        for folder in self._made.values():
            shutil.rmtree(folder, ignore_errors=True)
