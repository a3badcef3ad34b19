"""Every adapter of the registry passes the contract tests of ``perfflow.testing``, and keeps further rules."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.metrics import METRICS
from perfflow.testing import AdapterContract
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, CommandOptions, Role
from perfflow.tools.registry import MODULES, find
from tests.tools.contracts import CONTRACTS
from tests.tools.harness import PYTHON, call_of, tool

globals().update(CONTRACTS)
WRONG: dict[str, Any] = {
    "name": "Massif",
    "role": "profile",
    "parse": None,
    "outputs": (),
    "options": CommandOptions(),
    "program": "valgrind",
    "metrics": {"heap_peak": "B"},
    "deterministic": 1,
    "good_statuses": {0},
    "attaches": "pid",
    "interface": "1",
}


def test_every_adapter_has_a_contract() -> None:
    assert {each.adapter.name for each in CONTRACTS.values()} == MODULES.keys()


@pytest.mark.parametrize("name", MODULES)
def test_an_adapter_is_found_by_its_name_with_known_metrics_and_described_options(name: str) -> None:
    adapter = tool(name)
    assert adapter.name == name
    assert METRICS.items() >= adapter.metrics.items()
    assert bool(adapter.program) == bool(adapter.program.install)
    if issubclass(adapter.options, CommandOptions):
        keys, common = (each.model_json_schema()["properties"] for each in (adapter.options, CommandOptions))
        assert all(keys[key].get("description") for key in keys.keys() - common.keys())


def test_unknown_name() -> None:
    assert find("no-such-tool") is None


def test_a_wrong_field_is_an_error_where_the_adapter_is_made() -> None:
    good = tool("massif")
    for field, value in WRONG.items():
        with pytest.raises(TypeError, match=rf"^Adapter.*\b{field}\b"):
            replace(good, **{field: value})
    with pytest.raises(TypeError, match="parse"):
        Adapter(name="x", role=Role.MEASURE, invocations=good.invocations)  # type: ignore[call-arg]


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)
def test_invocations_name_program_and_outputs(contract: type[AdapterContract], tmp_path: Path) -> None:
    adapter = contract.adapter
    python = {"python": PYTHON} if "python" in adapter.options.model_fields else {}
    call = call_of(adapter.name, tmp_path, PYTHON, "a b.py", "it's", **python)
    # The programs of a suite that must be built are only known after the build: see test_odd_cargo.py.
    if not adapter.is_built_first or not adapter.is_suite:
        assert all(step.argv[0].startswith("/") for step in adapter.invocations(call))
    assert not any(tmp_path.iterdir())
    assert all(path.parent == tmp_path for path in adapter.outputs(call))


def test_only_the_registry_knows_adapters() -> None:
    own = Path(registry.__file__)
    for path in {*own.parent.rglob("*.py")} - {own}:
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        assert "ADAPTER" not in imported | used, path
