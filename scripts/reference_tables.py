"""Write the tables of the reference pages from the code: options of commands, keys and metrics of tools.

A comment such as ``<!-- keys of massif -->`` marks the place of a table. The table below it is replaced.
Usage: python -m scripts.reference_tables
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from perfflow.cli.main import app
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.units import Dimension
from perfflow.report import outcomes
from perfflow.tools import registry
from perfflow.tools.adapter import CommandOptions, Options

DOCS = Path(__file__).parents[1] / "docs"
MARK = re.compile(
    r"<!-- (?P<what>keys|metrics|options|outcomes|codes|flags) of (?P<name>[a-z0-9 -]+) -->\n(?:\n(?:\|.*\n)+)?"
)
TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false", "array": "list"}


def updated(text: str) -> str:
    """Return a page with tables generated from the code. Raises KeyError for a name that does not exist."""
    return MARK.sub(_table, text)


def pages() -> Iterator[Path]:
    """Yield the pages that have such tables."""
    for path in sorted(DOCS.rglob("*.md")):
        if MARK.search(path.read_text()):
            yield path


def _table(match: re.Match[str]) -> str:
    make = {
        "keys": _keys,
        "metrics": _metrics,
        "options": _options,
        "outcomes": lambda _: _words("outcome", outcomes.OUTCOMES),
        "codes": lambda _: _codes(),
        "flags": lambda _: _words("flag", outcomes.FLAGS),
    }[match["what"]]
    return f"<!-- {match['what']} of {match['name']} -->\n\n" + "".join(f"{line}\n" for line in make(match["name"]))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _keys(name: str) -> Iterator[str]:
    adapter = registry.find(name)
    if adapter is None:
        raise KeyError(name)
    properties = adapter.options.model_json_schema().get("properties", {})
    yield _row("key", "type", "default", "meaning")
    yield "|---|---|---|---|"
    for key, schema in properties.items():
        if key not in CommandOptions.model_fields:
            meaning = _sentence(schema.get("description", ""))
            required = key in adapter.options.model_json_schema().get("required", ())
            default = "required" if required else _default(schema)
            yield _row(f"`{key}`", _type(schema, adapter.options), default, meaning)


def _type(schema: dict[str, Any], options: type[Options]) -> str:
    if "$ref" in schema:
        schema = options.model_json_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(part, options) for part in schema["anyOf"] if part.get("type") != "null")
    # A text that may be written as a number has both types.
    return TYPES[schema["type"] if isinstance(schema["type"], str) else schema["type"][0]]


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default", "")
    if value in ("", None) or value == []:
        return "–"
    if isinstance(value, list):
        return f"`[{', '.join(value)}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "…")) or not text else f"{text}."


def _metrics(name: str) -> Iterator[str]:
    if name == "all tools":
        yield from _all_metrics()
        return
    adapter = registry.find(name)
    if adapter is None:
        raise KeyError(name)
    yield _row("metric", "unit", "better")
    yield "|---|---|---|"
    for metric in adapter.metrics.values():
        yield _row(*_facts(metric))


def _facts(metric: Metric) -> tuple[str, str, str]:
    unit = "a share" if metric.dimension is Dimension.RATIO else metric.dimension.base_unit
    return f"`{metric.name}`", unit, "–" if metric.better is Better.NONE else metric.better.value


def _all_metrics() -> Iterator[str]:
    tools = {name: tool for name in sorted(registry.MODULES) if (tool := registry.find(name))}
    yield _row("metric", "unit", "better", "exact", "of")
    yield "|---|---|---|---|---|"
    for name, metric in METRICS.items():
        of = ", ".join(f"`{tool}`" for tool, adapter in tools.items() if name in adapter.metrics)
        yield _row(*_facts(metric), "yes" if metric.exact else "", of or "–")


def _command(words: str) -> click.Command:
    command: click.Command = app
    for word in words.split():
        found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if found is None:
            raise KeyError(words)
        command = found
    return command


def _options(words: str) -> Iterator[str]:
    yield _row("option", "default", "meaning")
    yield "|---|---|---|"
    for option in _command(words).params:
        if isinstance(option, click.Option):
            names = f"{', '.join(option.opts)} {_value(option)}".rstrip()
            default = f"`{option.default}`" if option.show_default and option.default is not None else "–"
            yield _row(f"`{names}`", default, _sentence(" ".join((option.help or "").split())))


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(str(choice) for choice in option.type.choices)
    return "PATH" if isinstance(option.type, click.Path) else "N" if isinstance(option.type, click.IntRange) else "TEXT"


def _words(title: str, words: Mapping[Any, str]) -> Iterator[str]:
    yield _row(title, "meaning")
    yield "|---|---|"
    for name, meaning in words.items():
        yield _row(f"`{name}`", meaning)


def _codes() -> Iterator[str]:
    yield _row("code", "outcome", "meaning")
    yield "|---|---|---|"
    for code, meaning in outcomes.CODES.items():
        yield _row(f"`{code}`", f"`{code.outcome}`", meaning)


if __name__ == "__main__":
    for page in pages():
        page.write_text(updated(page.read_text()))
