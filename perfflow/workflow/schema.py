"""The JSON Schema of workflow files, generated from the models, for editors and their completion."""

from __future__ import annotations

import json
from typing import Any

from perfflow.workflow.model import Workflow

_SHORT_FORMS: dict[str, list[dict[str, Any]]] = {
    "Param": [{"type": ["string", "number", "boolean", "array"]}],
    "Candidate": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number"]}}],
    "Stage": [{"type": "array", "items": {"$ref": "#/$defs/Step"}}],
}


def schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with the short forms that the models accept before validation."""
    found = Workflow.model_json_schema(by_alias=True, mode="validation")
    for name, forms in _SHORT_FORMS.items():
        full = found["$defs"][name]
        found["$defs"][name] = {"anyOf": [full, *forms], "description": full.pop("description", "")}
    _forbid_other_names(found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "workflow.schema.json",
        "title": "perfflow workflow",
        **{key: value for key, value in found.items() if key != "title"},
    }


def _forbid_other_names(node: Any) -> None:
    """A map whose keys must fit a pattern has no others; pydantic leaves that open."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            _forbid_other_names(value)
    elif isinstance(node, list):
        for value in node:
            _forbid_other_names(value)


def schema_text() -> str:
    """The file ``schemas/workflow.schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
