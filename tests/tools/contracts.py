"""The contract of every tool: ``data/TOOL/contract.py``, beside its captured output."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from perfflow.testing import AdapterContract
from tests.tools.harness import DATA
from tests.tools.lies import Lied

CONTRACTS: Mapping[str, type[AdapterContract]] = {
    name: each
    for path in sorted(DATA.glob("*/contract.py"))
    for name, each in vars(import_module(f"tests.tools.data.{path.parent.name}.contract")).items()
    if name.startswith("Test")
}
"""The contracts by class name. A tool can have several."""


def contract_of(tool: str) -> type[AdapterContract]:
    """Return the first contract of a tool."""
    return next(each for each in CONTRACTS.values() if each.adapter.name == tool)


def lied_of(contract: type[AdapterContract]) -> Lied | None:
    """Return the lies of a contract for the whole command; None for a tool that need not be installed."""
    if contract.stand_in:
        return None
    by = "program" if contract.adapter.program else ""
    default = Lied(by) if contract.adapter.takes_command else Lied(by, children={})
    found: Lied = getattr(contract, "lied", default)
    return found
