"""Reports as Jinja2 templates: what templates may call, and the environment that renders them.

The words of a report are in the folder ``templates``. They call functions for its parts, which each format writes its
own way, so that a section is the same for Markdown and HTML. Templates of users are rendered in the same sandbox.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket
from jinja2.environment import TemplateModule
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup
from platformdirs import user_cache_path
from pydantic import BaseModel

from perfflow.model.units import Dimension, format_change, format_quantity
from perfflow.report import tables
from perfflow.report.page import Page, ProfileTable
from perfflow.report.same_function import Joined
from perfflow.report.sanitize import shortened
from perfflow.report.table import NOTHING, Table

_FOLDER = Path(__file__).with_name("templates")
_SECTIONS = "sections.j2"
_BLOCK, _ITEM = "\x1e", "\x1f"
"""Stand around each block and before each item of a list while a template is rendered. No shown text contains them."""
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
        self._environment = environment(None)

    def render(self, name: str, folder: Path | None = None) -> str:
        """Render a template by its name; ``folder`` is that of a user's template. Raises jinja2.TemplateError."""
        self._environment = environment(folder)
        return self.joined(self.own(self._environment.get_template(name).render(self._context)))

    def add(self, **variables: Any) -> None:
        """Add variables for templates."""
        self._variables |= variables

    @cached_property
    def _context(self) -> dict[str, Any]:
        functions: tuple[Callable[..., str], ...] = (
            *(self.part, self.paragraph, self.bullets, self.tasks, self.item, self.code, self.fold),
            *(self.table, self.section, self.chart),
        )
        known = {function.__name__: function for function in functions}
        own = {"writer": self, "page": self.page, "left_out": self.left_out, "removed": ()}
        return {**own, **known, **self._variables}

    @cached_property
    def _sections(self) -> TemplateModule:
        return self._environment.get_template(_SECTIONS).make_module(self._context)

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
            raise ValueError(f"there is no section {name!r}; there are {', '.join(SECTIONS)}")
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
            raise ValueError(f"there is no table {what!r}; there are {', '.join(tables.NAMED)}")
        return tables.NAMED[what](self.page, **options)

    def left_out(self, name: str) -> int:
        """Return how many rows of a long table the report leaves out."""
        return self.page.others.get(name, 0) if self.page else 0

    def chart(self, name: str) -> str:  # noqa: ARG002 (Markdown has no pictures)
        """Return the pictures of a kind, '' where a format has none."""
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


@lru_cache
def environment(folder: Path | None) -> _Environment:
    """Return the environment. A user's template may include files of its own ``folder``.

    One environment serves all formats, since it takes 0.1 s to compile the sections. A format that does not escape
    marks what ``{{ }}`` writes.
    """
    folders = [FileSystemLoader(_FOLDER), *([FileSystemLoader(folder)] if folder else [])]
    found = _Environment(
        loader=ChoiceLoader(folders[::-1]),
        bytecode_cache=_CompiledTemplates(),
        autoescape=True,
        finalize=_own_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"shortened": lambda text: shortened(text, LONGEST_TITLE)}
    found.filters |= {"quantity": _quantity, "change": format_change}
    found.filters |= {"name": _set_name, "words": _set_words, "strong": _set_strong}
    return found


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
