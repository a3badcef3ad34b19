"""Reports as Jinja2 templates: what templates may call, and the environment that renders them.

The words of a report are in the folder ``templates``. They call functions for its parts, which each format writes its
own way, so that a section is the same for Markdown and HTML. Templates of users are rendered in the same sandbox.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from jinja2 import (
    FileSystemBytecodeCache,
    FileSystemLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    nodes,
    pass_context,
)
from jinja2.bccache import Bucket
from jinja2.environment import TemplateModule
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from platformdirs import user_cache_path
from pydantic import BaseModel

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.model.similar import did_you_mean
from perfflow.model.units import Dimension, format_change, format_quantity
from perfflow.report import tables
from perfflow.report.page import Page, ProfileTable
from perfflow.report.rows import ComparisonLine
from perfflow.report.same_function import Joined
from perfflow.report.sanitize import shortened
from perfflow.report.table import NOTHING, Table

_FOLDER = Path(__file__).with_name("templates")
_SECTIONS = "sections.j2"
_BLOCK, _ITEM = "\x1e", "\x1f"
"""Stand around each block and before each item of a list while a template is rendered. No shown text contains them."""
TEMPLATES = ("report", "analysis")
"""The layouts of perfflow, the default first."""
CALLED = ("section", "table", "part", "paragraph", "bullets", "tasks", "item", "code", "fold", "left_out", "chart")
"""The methods of a writer that templates call."""
LONGEST_TITLE = 120
"""Most letters of a name in a line of its own."""
_LINE_BREAK = re.compile(r"\s*\n\s*")


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox of all templates. They read the fields of a result, and no method that pydantic gives its parts."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, BaseModel):
            return attr in type(obj).model_fields or attr in type(obj).__dict__
        return super().is_safe_attribute(obj, attr, value)


class Writer(ABC):
    """The functions that templates call, as one format writes them."""

    between: str
    """The text between two blocks."""

    def __init__(self, page: Page | None = None, **variables: Any) -> None:
        """``variables`` are for templates, in addition to ``page`` and the functions."""
        self.page = page
        self._variables = variables

    def render(self, name: str) -> str:
        """Render a template of this package."""
        return self._rendered(environment().get_template(name))

    def render_own(self, path: Path, name: str = "") -> str:
        """Render a template of a user, called ``name`` in messages. Raises UserError if it fails."""
        own = name or str(path)
        try:
            return self._rendered(environment().from_string(_read(path, own)))
        except (TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
            raise UserError.of(f"{own}{_line_of(error)}: {error}", HELP) from error

    def _rendered(self, template: Template) -> str:
        return self.joined(self.own(template.render(self._context)))

    def add(self, **variables: Any) -> None:
        """Add variables for templates."""
        self._variables |= variables

    @cached_property
    def _context(self) -> dict[str, Any]:
        functions = {name: getattr(self, name) for name in CALLED}
        return {"writer": self, "page": self.page, "removed": (), **functions, **self._variables}

    @cached_property
    def _sections(self) -> TemplateModule:
        return environment().get_template(_SECTIONS).make_module(self._context)

    def joined(self, content: str) -> str:
        """Return the blocks of a text, with what the format writes between them."""
        parts = [part.strip() for part in self.safe(content).split(_BLOCK)]
        return self.own(self.between.join(part for part in parts if part))

    def own(self, text: str) -> str:
        """Mark text that the format has written itself, so that it is not escaped again."""
        return text

    def safe(self, text: str) -> str:
        """Return text that is escaped, unless the format has written it."""
        return str(text)

    def own_words(self, value: object) -> object:
        """Return what a template writes by ``{{ }}``; a format that escapes leaves it to Jinja2."""
        return Markup(str(value))  # noqa: S704 (Markdown has no markup of its own in these)

    def _block(self, text: str) -> str:
        return self.own(f"{_BLOCK}{text}{_BLOCK}")

    def _line(self, content: str) -> str:
        return self.own(_LINE_BREAK.sub(" ", self.safe(content).strip()))

    def _items(self, content: str) -> list[str]:
        return [self._line(item) for item in content.split(_ITEM)[1:]]

    # -- what templates call

    def section(self, name: str, **options: Any) -> str:
        """Return a section of the report by its name, '' if the run has no data for it."""
        if name not in SECTIONS:
            raise ValueError(f"unknown section {name!r}; known sections: {', '.join(SECTIONS)}")
        written: str = getattr(self._sections, name)(**options)
        return written

    def part(self, title: str = "", *, caller: Callable[[], str]) -> str:
        """Return blocks below a heading, or without one; '' without blocks."""
        body = self.joined(caller())
        return self._block(self._part(title, body)) if body else ""

    def paragraph(self, *, caller: Callable[[], str]) -> str:
        """Return a paragraph; line breaks in the template become spaces."""
        return self._block(self._paragraph(self._line(caller())))

    def bullets(self, *, caller: Callable[[], str]) -> str:
        """Return a list of what `item` was called with; '' without items."""
        items = self._items(caller())
        return self._block(self._bullets(items, tasks=False)) if items else ""

    def tasks(self, *, caller: Callable[[], str]) -> str:
        """Return a list with checkboxes."""
        items = self._items(caller())
        return self._block(self._bullets(items, tasks=True)) if items else ""

    def item(self, *, caller: Callable[[], str]) -> str:
        """Return an item of a list."""
        return self.own(f"{_ITEM}{self.safe(caller())}")

    def code(self, lines: Sequence[str], language: str = "text") -> str:
        """Return verbatim lines; '' without lines."""
        return self._block(self._code(lines, language)) if lines else ""

    def fold(self, title: str, *, caller: Callable[[], str]) -> str:
        """Return blocks that are hidden until a reader opens them."""
        return self._block(self._fold(title, self.joined(caller())))

    def table(self, what: str | Table | Joined | ProfileTable, **options: Any) -> str:
        """Return a table by its name, '' if the run has no data for it; or a table of one profile."""
        found = self._found(what, options)
        return self._block(self._table(found, what)) if found else ""

    def _found(self, what: str | Table | Joined | ProfileTable, options: Mapping[str, Any]) -> Table | None:
        if isinstance(what, Table):
            return what
        if isinstance(what, Joined):
            return tables.functions(what)
        if self.page is None:
            raise ValueError("there are tables only in the report of a run")
        if isinstance(what, ProfileTable):
            return tables.hotspots(self.page, what)
        if what not in tables.NAMED:
            raise ValueError(f"unknown table {what!r}; known tables: {', '.join(tables.NAMED)}")
        return tables.NAMED[what].build(self.page, **options)

    def left_out(self, name: str) -> int:
        """Return how many rows of a long table the report leaves out."""
        return self.page.others.get(name, 0) if self.page else 0

    def chart(self, name: str, row: ComparisonLine | None = None) -> str:  # noqa: ARG002 (Markdown has no pictures)
        """Return the pictures of a kind, or those of a row; '' where a format has none."""
        return ""

    # -- what a format writes

    @abstractmethod
    def _part(self, title: str, body: str) -> str: ...

    @abstractmethod
    def _paragraph(self, text: str) -> str: ...

    @abstractmethod
    def _bullets(self, items: Sequence[str], *, tasks: bool) -> str: ...

    @abstractmethod
    def _code(self, lines: Sequence[str], language: str) -> str: ...

    @abstractmethod
    def _fold(self, title: str, body: str) -> str: ...

    @abstractmethod
    def _table(self, table: Table, what: object) -> str: ...

    @abstractmethod
    def name(self, text: str) -> str:
        """Set a name given by a user or a tool."""

    @abstractmethod
    def words(self, text: str) -> str:
        """Set words that may contain text of tools and files."""

    @abstractmethod
    def strong(self, text: str) -> str:
        """Set emphasized words of perfflow's own."""


class _CompiledTemplates(FileSystemBytecodeCache):
    """Keeps compiled templates beside the sources, as Python does for modules, or else for the user."""

    def __init__(self) -> None:
        folder = _FOLDER / "__pycache__"
        if not os.access(_FOLDER, os.W_OK):
            folder = user_cache_path("perfflow") / "templates"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        super().__init__(str(folder))

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().dump_bytecode(bucket)


@cache
def environment() -> _Environment:
    """Return the environment of all templates.

    One environment serves all formats, since it takes 0.1 s to compile the sections. A format that does not escape
    marks what ``{{ }}`` writes.
    """
    jinja = _Environment(
        loader=FileSystemLoader(_FOLDER),
        bytecode_cache=_CompiledTemplates(),
        autoescape=True,
        finalize=_own_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {"shortened": lambda text: shortened(text, LONGEST_TITLE)}
    jinja.filters |= {"quantity": _quantity, "change": format_change}
    jinja.filters |= {"name": _set_name, "words": _set_words, "strong": _set_strong, "tojson": _as_json}
    return jinja


HELP = "`perfflow report --template-help` lists what templates may use"
_VARIABLES = {
    "result": "result.json, as docs/reference/result.md describes it: `result.verdict`, `result.benchmarks`",
    "link": "the option --link of `perfflow publish`, else ''",
}
_FUNCTIONS = {
    "section(NAME)": "a section of the report",
    "table(NAME)": "a table of the report",
    "part(TITLE)": "a heading with what is below it: `{% call part('Notes') %}...{% endcall %}`",
    "paragraph()": "a paragraph, in a `call` block like `part`; `item()` is one in a list",
    "bullets(), tasks()": "a list of `{% call item() %}...{% endcall %}`, with checkboxes or without",
    "code(LINES, LANGUAGE)": "verbatim lines",
    "fold(TITLE)": "what is hidden until a reader opens it, in a `call` block",
    "left_out(NAME)": "how many rows of a long table are only in result.json",
}
_FILTERS = {
    "name": "a name of a user or a tool, as code: `{{ row.name|name }}`",
    "words": "text of tools and files, escaped",
    "strong": "bold words",
    "quantity(UNIT)": "a value with a unit that suits it: `{{ row.candidate.value|quantity(row.unit) }}`",
    "change": "a share as a change: `{{ row.change.value|change }}` is `+12.0%`",
    "shortened": "a text of at most 120 letters",
    "tojson": "a text, list or section as JSON, with its quotes: `{\"text\": {{ section('reasons')|tojson }}}`",
}


def help_text() -> str:
    """Return everything that a template may use, as text."""
    known = {"Variables": _VARIABLES, "Functions": _FUNCTIONS, "Sections": SECTIONS}
    known["Tables"] = {name: item.about for name, item in tables.NAMED.items()}
    known["Filters, and those of Jinja2"] = _FILTERS
    parts = ["\n".join([f"{title}:", *tables.described(list(rows.items()))]) for title, rows in known.items()]
    whole = "Templates of the whole report, to begin with: report.md.j2 and analysis.md.j2 in\n  " + str(_FOLDER)
    return "\n\n".join([*parts, whole])


def problems(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, message and hint of each mistake in a user's template. Raises UserError if it cannot be read."""
    source = _read(path, str(path))
    known = environment()
    try:
        tree = known.parse(source)
        known.compile(source)
    except TemplateSyntaxError as error:  # includes unknown filters and tests
        yield error.lineno, str(error.message), HELP
        return
    for call in tree.find_all(nodes.Call):
        kinds = {"section": SECTIONS, "table": tables.NAMED}
        names = kinds.get(call.node.name) if isinstance(call.node, nodes.Name) else None
        given = call.args[0] if call.args else None
        if names and isinstance(given, nodes.Const) and given.value not in names:
            kind = call.node.name if isinstance(call.node, nodes.Name) else ""
            yield call.lineno, f"unknown {kind} {given.value!r}", did_you_mean(str(given.value), names, f"{kind}s")
    for read in tree.find_all(nodes.Getattr):
        if isinstance(read.node, nodes.Name) and read.node.name == "result" and not hasattr(Result, read.attr):
            fields = [name for name in Result.model_fields if not name.endswith("_")]
            if read.attr not in fields:
                yield read.lineno, f"`result` has no {read.attr!r}", did_you_mean(read.attr, fields, "keys")
    writable = {*_VARIABLES, *CALLED}
    for unknown in sorted(find_undeclared_variables(tree) - writable):
        line = next((node.lineno for node in tree.find_all(nodes.Name) if node.name == unknown), 1)
        yield line, f"unknown variable {unknown!r}", did_you_mean(unknown, writable, "variables and functions")


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UserError.of(f"cannot read the template {name}: {why}", "name a file such as report.md.j2") from error


def _line_of(error: Exception) -> str:
    """Return the line of the template in which it failed, as ``:3``; '' if that is not known."""
    if isinstance(error, TemplateSyntaxError):
        return f":{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return f":{lines[-1]}" if lines else ""


@pass_context
def _own_text(context: Context, value: Any) -> Any:
    return context["writer"].own_words(value)


@pass_context
def _set_name(context: Context, text: object) -> str:
    return cast("Writer", context["writer"]).name(str(text))


@pass_context
def _set_words(context: Context, text: object) -> str:
    return cast("Writer", context["writer"]).words(str(text))


@pass_context
def _set_strong(context: Context, text: object) -> str:
    return cast("Writer", context["writer"]).strong(str(text))


@pass_context
def _as_json(context: Context, value: Any, indent: int | None = None) -> Markup:
    """Return a value as JSON. The blocks of a section are joined as in a report."""
    value = context["writer"].joined(value) if isinstance(value, str) else value
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=_plain)
    return Markup(text)  # noqa: S704 (no template of HTML has JSON)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{value} is neither a text nor part of a result")  # an undefined value says what it is


def _quantity(value: float | None, unit: str) -> str:
    """Return a value with a unit that suits it: ``0.00125|quantity("s")`` is ``1.25 ms``."""
    dimension = next((known for known in Dimension if known.base_unit == unit), Dimension.COUNT)
    return NOTHING if value is None else format_quantity(value, dimension)


SECTIONS: Mapping[str, str] = {
    "verdict": "the verdict, its headline, and the evidence lines if they are few",
    "culprits": "what a gate that fails needs first: blamed functions, the command to bisect, how to accept the change",
    "cells": "what changed with which value of the key of `compare`",
    "reasons": "why the verdict is not a pass, and the warnings",
    "compared": "what two stored results are",
    "benchmarks": "both sides of each benchmark with the change; the figures of one side; further figures, folded",
    "further": "further figures, folded",
    "baseline": "all figures of the baseline",
    "machines": "the machines of a cluster",
    "growth": "how times grow with the size of the input",
    "hotspots": "the functions of all profiles, and each profile; option `heading`",
    "kernels": "GPU kernels, warp stalls, and kernels on several GPUs",
    "roofline": "each benchmark's performance as a share of the roof",
    "optimizations": "the plan, each candidate, and where the kept changes are",
    "verification": "the steps that check correctness",
    "requirements": "each target with the measured value",
    "regressions": "the rows of a gate by decision, and its regressions",
    "attributions": "the functions that got slower, and the commits that touched them",
    "impact": "the absolute change of each regression, and of each area",
    "recommendations": "the advice of rules, and the list of tasks",
    "gates": "the status of each gate; option `short`",
    "routing": "who is next, with a brief",
    "steps": "the steps that did not run or failed; option `short`",
    "evidence": "the evidence lines, folded, unless `verdict` has them",
    "notes": "warnings and remarks",
    "reproduce": "the commands that repeat the run",
    "environment": "the machine and the tools, folded",
}
"""What templates may pass to ``section``, and what it is."""
