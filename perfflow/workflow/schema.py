"""Generate the JSON Schema of workflow files from the models and the options of the tools, for editors.

Editors complete the names of tools and their keys under ``with``, and show descriptions. The schema does not check the
values of these keys, since any of them may be an expression or come from a candidate; ``perfflow validate`` does.
"""

from __future__ import annotations

import json
from typing import Any

from perfflow.tools import registry
from perfflow.workflow.model import Workflow, WorkflowPart

_REMOVED = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "null"}}
"""`ID: null` removes an inherited step."""
_SHORT_FORMS: dict[str, list[dict[str, Any]]] = {
    "Param": [{"type": ["string", "number", "boolean", "array"]}],
    "Candidate": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number"]}}],
    "RunsOn": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "Stage": [{"type": "array", "items": {"$ref": "#/$defs/Step"}}, {"type": "null"}],
    "Step": [_REMOVED],
}


def schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with the short forms that the models accept before validation."""
    parts = [WorkflowPart]
    for part in parts:
        # Old versions of pydantic cannot serialize a default whose model was not built yet.
        part.model_rebuild()
        parts += part.__subclasses__()
    found = Workflow.model_json_schema(by_alias=True, mode="validation")
    _add_tools(found["$defs"])
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


def _add_tools(parts: dict[str, Any]) -> None:
    """Add perfflow's own tools with their keys; other names stay allowed, for tool files and plugins."""
    adapters = [adapter for adapter in map(registry.find, registry.MODULES) if adapter]
    step = parts["Step"]
    names = [{"const": adapter.name, "description": registry.about(adapter)} for adapter in adapters]
    step["properties"]["uses"]["anyOf"] = [*names, *step["properties"]["uses"]["anyOf"]]
    chosen = []
    for adapter in adapters:
        keys = {name: _key(value) for name, value in adapter.options.model_json_schema()["properties"].items()}
        parts[f"with-{adapter.name}"] = {"type": "object", "properties": keys}
        uses = {"properties": {"uses": {"const": adapter.name}}, "required": ["uses"]}
        chosen.append({"if": uses, "then": {"properties": {"with": {"$ref": f"#/$defs/with-{adapter.name}"}}}})
    step["allOf"] = chosen


def _key(value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one key of a tool: its description, its default, and its values as examples if few."""
    shown = {name: value[name] for name in ("description", "default") if name in value}
    return shown | ({"examples": value["enum"]} if "enum" in value else {})


def _forbid_other_names(node: Any) -> None:
    """Forbid other keys in maps whose keys must match a pattern; pydantic allows them."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            _forbid_other_names(value)
    elif isinstance(node, list):
        for value in node:
            _forbid_other_names(value)


def schema_text() -> str:
    """Return the contents of ``schemas/workflow.schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
