"""Every adapter of the registry passes the contract tests of ``perfflow.testing``."""

from __future__ import annotations

from perfflow.tools.registry import MODULES
from tests.tools.contracts import CONTRACTS

globals().update(CONTRACTS)


def test_every_adapter_has_a_contract() -> None:
    assert {each.adapter.name for each in CONTRACTS.values()} == MODULES.keys()
