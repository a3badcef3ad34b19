"""A part of a run's folder for one candidate, separate from the steps of the run itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from perfflow.store.record import Record
from perfflow.store.run_folder import file_name


class EventStore(Protocol):
    """A store for the events and files of steps: a run's folder, or a part of it."""

    @property
    def path(self) -> Path:
        """The run's folder."""

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event."""

    def step(self, step_id: str) -> Path:
        """Return the folder of one step's files, and create it on first use."""


class Subrun:
    """Files below the folder of the step ``name``, and events with that name as ``trial``.

    Each event is also folded into ``record``.
    """

    def __init__(self, whole: EventStore, name: str, record: Record) -> None:
        self._whole, self.name, self.record = whole, name, record

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._whole.path

    def append(self, event: Mapping[str, Any]) -> None:
        """Add one event, marked with the name of this subrun."""
        self._whole.append({**event, "trial": self.name})
        self.record.fold(event)

    def step(self, step_id: str) -> Path:
        """Return the folder of one step's files in this subrun, and create it on first use."""
        folder = self._whole.step(self.name) / file_name(step_id)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
