"""docs/gpu.md has the tables that the package has."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.gpu.devices import Device, devices
from perfflow.model.gpu.occupancy import ARCHITECTURES, OccupancyLimits
from perfflow.model.gpu.stalls import StallMeaning, stalls

DOCUMENT = (Path(__file__).parents[3] / "docs" / "gpu.md").read_text(encoding="utf-8")


def device_row(entry: Device) -> str:
    def cell(name: str, scale: float) -> str:
        found = entry.figures.get(name)
        return f"{found.value / scale:.5g}" if found else ""

    peaks = [cell(name, 1e12) for name in ("f64", "f32", "tf32", "f16", "bf16", "f8")]
    cells = [entry.name, entry.capability, cell("sms", 1), cell("boost", 1e6), cell("memory", 1e9), *peaks]
    return "| " + " | ".join(cells) + " |"


def limits_row(row: OccupancyLimits) -> str:
    sizes = row.shared // 1024, row.shared_per_block // 1024
    cells = [row.capability, row.architecture, row.warps, row.blocks, *sizes, row.f32_cores, row.barriers or ""]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def stall_row(stall: StallMeaning) -> str:
    return f"| `{stall.name}` | {stall.means} | {stall.lowers} |"


@pytest.mark.parametrize(
    "row", [*map(device_row, devices()), *map(limits_row, ARCHITECTURES.values()), *map(stall_row, stalls().values())]
)
def test_a_row_of_the_package_is_in_the_document(row: str) -> None:
    assert row in DOCUMENT.splitlines()
