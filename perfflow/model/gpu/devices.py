"""Published peaks of GPUs: a table of data, looked up by the name that a driver reports.

Each figure has a source. The table is read on first use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from perfflow.model.errors import UserError
from perfflow.model.roofline import Roof

TABLE = Path(__file__).parent / "data" / "devices.yaml"
PRECISIONS = ("f64", "f64_tensor", "f32", "tf32", "f16", "bf16", "f8")
"""Precisions of peaks. From tf32 on, and f64_tensor: tensor cores, dense, with f32 accumulation."""
_SCALES: Mapping[str, int] = {
    "_mhz": 10**6,
    "_gb_s": 10**9,
    "_tflops": 10**12,
    "_kib": 1024,
    "_gbit_s": 10**9,
    "_bits": 1,
}
_VENDOR = {"nvidia", "tesla", "geforce"}


@dataclass(frozen=True)
class Figure:
    """A published number in base units, and its source document."""

    value: float
    source: str


@dataclass(frozen=True)
class Device:
    """Published figures of a GPU, by name without the unit, such as ``f32`` (FLOP/s) or ``memory`` (B/s).

    Others are ``sms``, ``boost`` (1/s), ``memory_bus`` (bit), ``memory_pin`` (bit/s) and ``l2`` (B). Figures that no
    source gives are missing.
    """

    name: str
    capability: str
    reported: tuple[str, ...]
    figures: Mapping[str, Figure]

    def roof(self, precision: str) -> Roof | None:
        """Return the roof of kernels in one of ``PRECISIONS``; None if the table lacks that peak."""
        memory, flops = self.figures.get("memory"), self.figures.get(precision)
        if precision not in PRECISIONS or memory is None or flops is None:
            return None
        return Roof(memory.value, flops.value)

    def peaks(self) -> tuple[tuple[str, float, str, str], ...]:
        """Return (metric, value, precision, source) of each peak: ``bandwidth`` in B/s, ``flops`` in FLOP/s.

        ``f64_tensor`` is left out, because ``f64`` figures do not tell which cores a kernel ran on.
        """
        named = [("bandwidth", "memory", ""), *(("flops", name, name) for name in PRECISIONS if name != "f64_tensor")]
        return tuple(
            (metric, found.value, precision, f"published for {self.name}: {found.source}")
            for metric, name, precision in named
            if (found := self.figures.get(name)) is not None
        )


@cache
def devices() -> tuple[Device, ...]:
    """Return all devices of the table, in order of generation."""
    table: dict[str, Any] = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    sources = {
        name: ", ".join(part for part in (entry["title"], entry.get("read"), entry["url"]) if part)
        for name, entry in table["sources"].items()
    }
    return tuple(
        Device(
            entry["name"],
            entry["capability"],
            tuple(entry["reported"]),
            {
                name: Figure(value, sources[source])
                for source, figures in entry["figures"].items()
                for name, value in (_base(key, number) for key, number in figures.items())
            },
        )
        for entry in table["devices"]
    )


def _base(key: str, number: float) -> tuple[str, float]:
    """Return a figure's name without its unit, and its value in base units: ``memory_gb_s: 900`` → ``memory``, 9e11."""
    for unit, scale in _SCALES.items():
        if key.endswith(unit):
            return key.removesuffix(unit), float(Decimal(str(number)) * scale)
    return key, float(number)


def find(name: str) -> Device | None:
    """Return the device that a driver or a profiler reports under this name; None if the table lacks it.

    Case, separators and the words NVIDIA, Tesla and GeForce do not matter. All other words must match: a laptop GPU, a
    part of a GPU (MIG) and an A10G differ from the board whose name they begin with.
    """
    return _by_name().get(_key(name))


def device(name: str) -> Device:
    """Return the device like ``find``; raise UserError with similar names if the table lacks it."""
    found = find(name)
    if found is None:
        like = ", ".join(_alike(name))
        raise UserError.of(
            f"no peaks are known for the GPU {name!r}",
            "set measured or published ones as `peaks:` in the workflow" + (f"; the table has {like}" if like else ""),
        )
    return found


def _alike(name: str) -> list[str]:
    """Return reported names that contain all words of this one, or only words of it."""
    words = set(_key(name).split())
    known = {each: set(_key(each).split()) for entry in devices() for each in entry.reported}
    return [each for each, own in known.items() if words and (own <= words or words <= own)]


@cache
def _by_name() -> Mapping[str, Device]:
    return {_key(each): entry for entry in devices() for each in (entry.name, *entry.reported)}


def _key(name: str) -> str:
    """Return a name's words in lower case without those of the vendor."""
    words = re.split(r"[\s_-]+", re.sub(r"\((?:r|tm)\)|[®™]", "", name, flags=re.IGNORECASE).strip().lower())
    return " ".join(word for word in words if word not in _VENDOR)
