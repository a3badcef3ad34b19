"""What GPUs can do at most, as published: a table as data, looked up by the name that a driver reports.

Each figure has its source. The table is read when it is first asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.roofline import Roof

TABLE = Path(__file__).parent / "data" / "devices.yaml"
PRECISIONS = ("f64", "f64_tensor", "f32", "tf32", "f16", "bf16", "f8")
"""What peaks are known in; those from tf32 on, and f64_tensor, are tensor cores', dense, with f32 accumulation."""
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
    """A published number in base units, and the document it is from."""

    value: float
    source: str


@dataclass(frozen=True)
class Device:
    """A GPU as published. ``figures`` are by name without the unit, such as ``f32`` (FLOP/s) or ``memory`` (B/s).

    Others are ``sms``, ``boost`` (1/s), ``memory_bus`` (bit), ``memory_pin`` (bit/s) and ``l2`` (B). What no source
    gives is missing.
    """

    name: str
    capability: str
    reported: tuple[str, ...]
    figures: Mapping[str, Figure]

    def roof(self, precision: str) -> Roof | None:
        """The roof of kernels in one of ``PRECISIONS``; None where the table lacks that peak."""
        memory, flops = self.figures.get("memory"), self.figures.get(precision)
        if precision not in PRECISIONS or memory is None or flops is None:
            return None
        return Roof(memory.value, flops.value)

    def peaks(self) -> tuple[tuple[str, float, str, str], ...]:
        """Metric (``bandwidth`` in B/s, ``flops`` in FLOP/s), value, precision with flops, and how it was found.

        ``f64_tensor`` is left out: what is held against ``f64`` does not say which cores it ran on.
        """
        named = [("bandwidth", "memory", ""), *(("flops", name, name) for name in PRECISIONS if name != "f64_tensor")]
        return tuple(
            (metric, found.value, precision, f"published for {self.name}: {found.source}")
            for metric, name, precision in named
            if (found := self.figures.get(name)) is not None
        )


@cache
def devices() -> tuple[Device, ...]:
    """Every device of the table, in its order: by generation."""
    import yaml

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
    """A figure's name without its unit, and its value in base units: ``memory_gb_s: 900`` → ``memory``, 9e11."""
    for unit, scale in _SCALES.items():
        if key.endswith(unit):
            return key.removesuffix(unit), float(Decimal(str(number)) * scale)
    return key, float(number)


def find(name: str) -> Device | None:
    """The device that a driver or a profiler calls by this name; None if the table lacks it.

    Case, spelling of gaps and the words NVIDIA, Tesla and GeForce do not matter; every other word does: a laptop's GPU,
    a part of a GPU (MIG) and an A10G are not the board whose name they begin with.
    """
    return _by_name().get(_key(name))


def device(name: str) -> Device:
    """The same as ``find``; raises UserError for one that the table lacks, with the names most like it."""
    found = find(name)
    if found is None:
        like = ", ".join(_alike(name))
        raise UserError.of(
            f"no peaks are known for the GPU {name!r}",
            "give them as `peaks:` in the workflow, measured or published"
            + (f"; the table has {like}" if like else ""),
        )
    return found


def _alike(name: str) -> list[str]:
    """Reported names with all words of this one, or only words of it: what it may have been meant for."""
    words = set(_key(name).split())
    known = {each: set(_key(each).split()) for entry in devices() for each in entry.reported}
    return [each for each, own in known.items() if words and (own <= words or words <= own)]


@cache
def _by_name() -> Mapping[str, Device]:
    return {_key(each): entry for entry in devices() for each in (entry.name, *entry.reported)}


def _key(name: str) -> str:
    """A name's words without the vendor's, in lower case."""
    words = re.split(r"[\s_-]+", re.sub(r"\((?:r|tm)\)|[®™]", "", name, flags=re.IGNORECASE).strip().lower())
    return " ".join(word for word in words if word not in _VENDOR)
