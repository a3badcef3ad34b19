"""The JSON Schema for editors agrees with the model and with the files that perfflow accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from perfflow.library import search_path
from perfflow.tools import registry
from perfflow.workflow.load import load
from perfflow.workflow.model import Workflow, as_data
from perfflow.workflow.shape import schema, schema_text
from perfflow.workflow.yaml_text import read_file, read_text

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "schemas" / "workflow.schema.json"
VALIDATOR = Draft202012Validator(schema())
GOOD = sorted([*(ROOT / "tests" / "workflows" / "good").glob("*.yaml"), *(ROOT / "workflows").glob("*.yaml")])
SHAPELESS = ("unknown-key", "foreign-", "wrong-type", "version-", "stages-", "stage-a-step", "step-a-text", "comma-in")
BAD = sorted(path for path in (ROOT / "tests" / "workflows" / "bad").glob("*.yaml") if path.stem.startswith(SHAPELESS))


def test_the_file_is_what_the_model_says() -> None:
    assert SCHEMA.read_text() == schema_text(), "write it with: perfflow schema > schemas/workflow.schema.json"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_good_file_is_accepted(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read_file(path).data())] == []


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.name)
def test_a_file_of_the_wrong_shape_is_refused(path: Path) -> None:
    assert not VALIDATOR.is_valid(read_file(path).data())


@pytest.mark.parametrize(
    "text",
    [
        "perfflow: 1",
        "stages: {}",
        "perfflow: 1\nstages: {a: [{id: x, run: y, ran: z}]}",
        "perfflow: 1\nstages: {a: [{id: 'x y', run: y}]}",
        "perfflow: 1\nstages: {a: [{id: x, run: y, retries: -1}]}",
        "perfflow: 1\nstages: {a: [{id: x, run: y, ops: z}]}",
        "perfflow: 1\nstages: {a: {stepz: []}}",
        "perfflow: 1\nstages: {a: []}\nparams: {a: {defualt: 1}}",
        "perfflow: 1\nstages: {a: []}\nparams: {a-b: 1}",
        "perfflow: 1\nstages: {a: []}\nreport: {formats: [pdf]}",
    ],
)
def test_a_bad_shape_is_refused(text: str) -> None:
    assert not VALIDATOR.is_valid(read_text(text, "x").data())


def test_an_editor_knows_each_tool_and_its_keys() -> None:
    kinds = schema()["$defs"]
    step = kinds["Step"]["anyOf"][0]
    names = {item["const"]: item["description"] for item in step["properties"]["uses"]["anyOf"] if "const" in item}
    assert names.keys() == registry.MODULES.keys()
    assert all(names.values())
    chosen = {item["if"]["properties"]["uses"]["const"]: item["then"] for item in step["allOf"]}
    for name in names:
        part = kinds[chosen[name]["properties"]["with"]["$ref"].rpartition("/")[2]]
        adapter = registry.find(name)
        assert adapter is not None
        assert part["properties"].keys() == adapter.options.model_json_schema()["properties"].keys()
    frequency = kinds["with-perf"]["properties"]["frequency"]
    assert frequency == {"description": "Samples per second of CPU time.", "default": 999}


@pytest.mark.parametrize("stages", ["{a: [{x: null}, {id: y, run: z}]}", "{a: null}", "{a: {steps: [{x: null}]}}"])
@pytest.mark.parametrize("extends", ["a.yaml", "[a.yaml, 'lib:python-cpu']"])
def test_what_is_removed_and_several_parents_are_accepted(stages: str, extends: str) -> None:
    assert VALIDATOR.is_valid(read_text(f"perfflow: 1\nextends: {extends}\nstages: {stages}", "x").data())


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for argument in get_args(annotation):
        yield from models(argument)


def keys_in(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else []:
        yield from keys_in(item)


def test_every_key_of_the_format_is_in_a_good_file_and_described() -> None:
    used = {key for path in GOOD for key in keys_in(read_file(path).data())}
    for model in set(models(Workflow)):
        for name, field in model.model_fields.items():
            assert (field.alias or name) in used, f"no good file has {model.__name__}.{name}"


FILES = [*GOOD, *sorted(search_path.SHIPPED.glob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plain_data_of_a_workflow_is_that_of_pydantic(path: Path) -> None:
    workflow = load(path, search_path.resolve, search_path.readable(path)).workflow
    assert as_data(workflow) == workflow.model_dump(mode="json", exclude_unset=True)
    assert as_data(workflow, by_alias=True) == workflow.model_dump(mode="json", by_alias=True, exclude_unset=True)
