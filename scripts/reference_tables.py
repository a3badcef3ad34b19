"""Write the tables of the reference pages from the code: commands, keys of workflows and tools, metrics, rules, GPUs.

A comment such as ``<!-- keys of massif -->`` marks the place of a table. The table below it is replaced. Below ``<!--
help of run -->`` is the help of a command, up to its options.
Usage: python -m scripts.reference_tables
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel

from perfflow.cli.main import COMMANDS, app
from perfflow.model import result
from perfflow.model.gpu.devices import devices
from perfflow.model.gpu.occupancy import ARCHITECTURES
from perfflow.model.gpu.stalls import stalls
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.units import Dimension, significant
from perfflow.report import outcomes
from perfflow.testing.contract import AdapterContract
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Builder, CommandOptions, Options, Suite
from perfflow.verdict import routing
from perfflow.verdict.kernels import LowOccupancy, Stalled, Wasted
from perfflow.workflow.criteria_checks import FACTS
from perfflow.workflow.declared_tool import ToolFile
from perfflow.workflow.model import Stage, Step, Workflow

DOCS = Path(__file__).parents[1] / "docs"
MARK = re.compile(
    r"<!-- (?P<what>keys|metrics|fields|commands|options|outcomes|codes|flags|facts|routes|rules|devices|limits|stalls)"
    r" of (?P<name>[a-z0-9_ -]+) -->\n(?:\n(?:\|.*\n)+)?"
)
HELP = re.compile(r"<!-- help of (?P<words>[a-z -]+) -->\n.*?(?=<!-- options of (?P=words) -->)", re.DOTALL)
TYPES = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false", "array": "list"}


def updated(text: str) -> str:
    """Return a page with tables generated from the code. Raises KeyError for a name that does not exist."""
    return MARK.sub(_table, HELP.sub(_help, text))


def by_hand(text: str) -> str:
    """Return a page without what is generated, and without blocks of code."""
    return MARK.sub("", HELP.sub("", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)))


def _help(match: re.Match[str]) -> str:
    command = _command(match["words"])
    usage = " ".join(["perfflow", match["words"], *command.collect_usage_pieces(click.Context(command))])
    paragraphs = [" ".join(part.split()).replace("*", "\\*") for part in (command.help or "").split("\n\n")]
    lines = (textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False) for part in paragraphs if part)
    return f"<!-- help of {match['words']} -->\n\n" + "\n\n".join([f"`{usage}`", *lines]) + "\n\n"


def pages() -> Iterator[Path]:
    """Yield the pages that have such tables."""
    for path in sorted(DOCS.rglob("*.md")):
        if MARK.search(path.read_text()):
            yield path


def _table(match: re.Match[str]) -> str:
    makers: Mapping[str, Callable[[str], Iterator[str]]] = {
        "keys": partial(_keys_of_workflow, page=match.string) if match["name"] in KEYS else _keys,
        "metrics": _metrics,
        "fields": _fields_of_tools if match["name"] in PARTS_OF_TOOLS else _fields,
        "options": _options,
        "outcomes": lambda _: _words("outcome", outcomes.OUTCOMES),
        "codes": lambda _: _codes(),
        "flags": lambda _: _words("flag", outcomes.FLAGS),
        "commands": lambda _: _commands(match.string),
        "facts": lambda _: _facts_of_runs(),
        "routes": lambda _: _routes(),
        "rules": lambda _: _rules(),
        "devices": lambda _: _devices(),
        "limits": lambda _: _limits(),
        "stalls": lambda _: _stalls(),
    }
    make = makers[match["what"]]
    return f"<!-- {match['what']} of {match['name']} -->\n\n" + "".join(f"{line}\n" for line in make(match["name"]))


CANDIDATE = ("technique", "why", "hotspot", "patch", "ref", "propose", "params")
"""Keys of a step that only a candidate of the optimize stage has."""
OF_ANY_STAGE = ("steps", "role", "env", "if", "working-directory", "shell", "timeout")


def _described(
    model: type[BaseModel], names: Collection[str] = (), without: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        key = field.alias or name
        if (key in names or not names) and key not in without:
            yield key, field.description or ""


KEYS: Mapping[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "a workflow": lambda: _described(Workflow),
    "a stage": lambda: _described(Stage, OF_ANY_STAGE),
    "a step": lambda: _described(Step, without=CANDIDATE),
    "a candidate": lambda: _described(Step, CANDIDATE),
    "the optimize stage": lambda: _described(Stage, without=OF_ANY_STAGE),
    "a tool file": lambda: _described(ToolFile),
}
"""Keys of the parts of a workflow file, with their descriptions."""


def _keys_of_workflow(name: str, page: str) -> Iterator[str]:
    sections = {key: _anchor(title) for title in _TITLE.findall(page) for key in re.findall(r"`([a-z-]+)`", title)}
    sections |= {_anchor(title): _anchor(title) for title in _TITLE.findall(page)}
    yield _row("key", "meaning")
    yield "|---|---|"
    for key, meaning in KEYS[name]():
        cell = f"[`{key}`](#{sections[key]})" if key in sections else f"`{key}`"
        yield _row(cell, _sentence(meaning.removeprefix("optimize: ")))


_TITLE = re.compile(r"^##+ (.*)$", re.MULTILINE)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


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


def _parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)


NAMED = {
    result.Result: "the whole file",
    result.Sample: "sample",
    result.Bounds: "bounds",
    result.Grown: "grown",
    result.ConfirmationOf: "confirmation",
    result.SizePoint: "points",
}
"""Sections of parts of result.json that stand under several keys."""


def _sections(model: type[BaseModel], name: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield a part of the model and those inside of it, with their sections: those of the keys that hold them."""
    yield NAMED.get(model, name), model
    for key, field in model.model_fields.items():
        for part in _parts(field.annotation):
            yield from _sections(part, field.alias or key)


SECTIONS = dict(_sections(result.Result, ""))
"""Sections of the page of result.json, each with the part that it describes."""


def fields_of(section: str) -> Mapping[tuple[str, ...], str]:
    """Return the meanings of the fields of a section by their names; fields of one meaning share an entry."""
    model = SECTIONS[section]
    told = {name: text for part in reversed(model.__mro__) for name, text in _docstrings(part)}
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    groups: dict[str, list[str]] = {}
    for name, alias in aliases.items():
        same = re.fullmatch(r"See `(\w+)`\.", told[name])
        groups.setdefault(same[1] if same else alias, []).append(alias)
    names = {alias: name for name, alias in aliases.items()}
    return {tuple(group): told[names[first]] for first, group in groups.items()}


PARTS_OF_TOOLS = {"an adapter": Adapter, "a suite": Suite, "a builder": Builder, "a contract": AdapterContract}
_OF_EVERY_ADAPTER = ("name", "role", "invocations", "parse", "outputs", "is_of_file")
"""Fields that the page's example has, and one that no adapter sets."""


def _fields_of_tools(name: str) -> Iterator[str]:
    yield _row("field", "meaning")
    yield "|---|---|"
    for field, meaning in _docstrings(PARTS_OF_TOOLS[name]):
        if field not in _OF_EVERY_ADAPTER:
            yield _row(f"`{field}`", meaning.replace("``", "`"))


def _docstrings(part: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class of perfflow, each with the text below it."""
    if not part.__module__.startswith("perfflow."):
        return
    (body,) = (node.body for node in ast.parse(inspect.getsource(part)).body if isinstance(node, ast.ClassDef))
    for field, text in itertools.pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, " ".join(words.split())


def _fields(section: str) -> Iterator[str]:
    model = SECTIONS[section]
    parts = {
        field.alias or name: next((key for key, part in SECTIONS.items() if part in _parts(field.annotation)), "")
        for name, field in model.model_fields.items()
    }
    yield _row("field", "meaning")
    yield "|---|---|"
    for names, meaning in fields_of(section).items():
        cells = (f"[`{name}`](#{parts[name]})" if parts[name] else f"`{name}`" for name in names)
        yield _row(", ".join(cells), meaning)


def _commands(page: str) -> Iterator[str]:
    yield _row("command", "does")
    yield "|---|---|"
    titles = [_anchor(title) for title in _TITLE.findall(page)]
    for name, does in COMMANDS.items():
        # Of a command with commands of its own, the first that the page describes.
        section = next(title for title in titles if f"{title}-".startswith(f"perfflow-{name}-"))
        yield _row(f"[`perfflow {name}`](#{section})", does)


def _facts_of_runs() -> Iterator[str]:
    yield _row("fact", "type", "meaning")
    yield "|---|---|---|"
    for name, fact in FACTS.items():
        yield _row(f"`{name}`", fact.kind.value, fact.meaning)


def _routes() -> Iterator[str]:
    yield _row("rule", "if", "to", "why")
    yield "|---|---|---|---|"
    for name, route in routing.built_in():
        yield _row(f"`{name}`", f"`{route.condition}`", f"`{route.to}`", route.why)


def _rules() -> Iterator[str]:
    yield _row("rule", "finding", "when", "why that much", "advice")
    yield "|---|---|---|---|---|"
    for rule in routing.rules():
        when = "; ".join(_when(condition) for condition in rule.conditions)
        yield _row(f"`{rule.id}`", rule.finding, when, rule.reason, rule.advice)


def _when(condition: routing.Condition) -> str:
    """Return a condition of a rule in words, with all of its thresholds."""
    match condition:
        case routing.CallShare(share, of, functions, calls, files):
            what = calls or f"in {_any(functions[:1] or files[:1])} and the like"
            return f"{_amount(share)} of {_or(of)}: {what}"
        case routing.HotPlace(share, of, by, functions, code, any_code, count):
            counted = f", counted {_amount(count)} times" if count else ""
            source = " and ".join(
                [*(f"*{use}*" for use in code), *([_or(f"*{use}*" for use in any_code)] * bool(any_code))]
            )
            shows = (
                f", whose line shows: {source}" if source else f", {_any(functions[:1])} and the like" * bool(functions)
            )
            return f"{_amount(share)} of {_or(of)} in one place by {_any(by)}{counted}{shows}"
        case routing.ProvenGrowth(metric, grew):
            return f"{_any(metric)} grew by {_amount(grew)}"
        case routing.Rate(metric, over, per, least):
            rate = f" per `{per}`" if per else ""
            return f"{_any(metric)}{rate} over {_amount(over)}{f', with at least {_amount(least)}' if least else ''}"
        case routing.Low(metric, under, time):
            return f"{_any(metric)} under {_amount(under)}{_of_kernel(time) if time else ''}"
        case LowOccupancy(limiter, occupancy, busy, time):
            idle = f"while neither SMs nor memory reach {_amount(busy)} of their peak"
            limited = f"occupancy by the model under {_amount(occupancy)}, limited by {_or(limiter)}"
            return f"{limited}, {idle}{_of_kernel(time)}"
        case Wasted(uncoalesced, time):
            return f"{_amount(uncoalesced)} of the sectors of global memory moved for nothing{_of_kernel(time)}"
        case Stalled(stalls, waiting, time):
            return f"warps wait for {_any(stalls)} for {_amount(waiting)} of their time{_of_kernel(time)}"


def _of_kernel(time: float) -> str:
    return f", of a kernel with {_amount(time)} of the device's time"


def _amount(value: float) -> str:
    return f"{value:,g}" if value >= 1 or value == 0 else f"{float(significant(value * 100)):g}%"


def _or(words: Iterable[str]) -> str:
    return " or ".join(words)


def _any(words: Iterable[str]) -> str:
    return _or(f"`{word}`" for word in words)


def _devices() -> Iterator[str]:
    yield _row("GPU", "CC", "SMs", "boost MHz", "GB/s", *(peaks := ("f64", "f32", "tf32", "f16", "bf16", "f8")))
    yield "|---" * (5 + len(peaks)) + "|"
    scales = {"sms": 1, "boost": 1e6, "memory": 1e9} | dict.fromkeys(peaks, 1e12)
    for entry in devices():
        found = {name: entry.figures.get(name) for name in scales}
        yield _row(
            *(entry.name, entry.capability),
            *(f"{figure.value / scales[name]:.5g}" if figure else "" for name, figure in found.items()),
        )


def _limits() -> Iterator[str]:
    yield _row("CC", "architecture", "warps", "blocks", "shared KiB", "of a block", "f32 cores", "barriers")
    yield "|---" * 8 + "|"
    for row in ARCHITECTURES.values():
        sizes = row.shared // 1024, row.shared_per_block // 1024
        cells = (row.capability, row.architecture, row.warps, row.blocks, *sizes, row.f32_cores, row.barriers or "")
        yield _row(*map(str, cells))


def _stalls() -> Iterator[str]:
    yield _row("reason", "what the warp does", "what usually lowers it")
    yield "|---|---|---|"
    for stall in stalls().values():
        yield _row(f"`{stall.name}`", stall.means, stall.lowers)


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
