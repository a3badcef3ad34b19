"""The HTML report: its content, that no name can run or load anything, and that a browser finds no errors."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.profile_pair import large_pair
from perfflow.model.result import Result
from perfflow.model.stacks import StackProfile
from perfflow.report import markdown, terminal
from perfflow.report.html import document, elements
from perfflow.report.table import Span, TextKind
from perfflow.store.sample_order import TakingOrder
from tests.report.exported import large
from tests.report.gated import gated, hostile_gate
from tests.report.optimized import hostile_ledger, optimized
from tests.report.pictured import followed, growing, over_layouts
from tests.report.results import JOINED_OR_EACH, everything, hostile, kernels, on_gpu, single, stored

NOWHERE = TakingOrder({})
VOID = {"meta", "input", "path", "rect", "circle"}
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "script", "a", "header", "nav", "main", "footer", "section"),
    *("h1", "h2", "h3", "p", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "strong"),
    *("details", "summary", "ol", "b", "figure", "figcaption", "span", "svg", "path", "rect", "circle", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "href", "id", "aria-label", "aria-labelledby"),
    *(
        "role",
        "aria-hidden",
        "tabindex",
        "scope",
        "data-filter",
        "data-tips",
        "data-find",
        "open",
        "preserveaspectratio",
    ),
    *("type", "viewbox", "d", "x", "y", "width", "height", "cx", "cy", "r"),
}
RESULTS: dict[str, Callable[[], Result]] = (
    {"everything": everything, "gated": gated, "optimized": optimized, "stored": stored, "single": single}
    | {"kernels": kernels, "on a gpu": on_gpu, "growing": growing, "followed": followed}
    | {"over layouts": over_layouts}
)


class Parsed(HTMLParser):
    """Elements, their attributes and their text, and whether all of them are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self) -> str:
        """Return the visible text."""
        visible = (data for element, data in self.texts if element not in ("style", "script"))
        return " ".join(visible).replace("\N{NO-BREAK SPACE}", " ")


def page(result: Result, profiles: Sequence[StackProfile] = ()) -> Parsed:
    """Return the parsed page of a result after the checks for every page."""
    return checked(document.render(result, NOWHERE, profiles), scripts=2 if profiles else 1)


def checked(text: str, scripts: int = 1, links: str = "") -> Parsed:
    """Check what must hold for every page; ``links``: pattern of allowed links to other pages."""
    found = Parsed(text)
    names = [name for name, _ in found.elements]
    assert set(names) <= ELEMENTS
    assert names.count("style") == names.count("main") == names.count("h1") == 1
    types = [attributes.get("type") for name, attributes in found.elements if name == "script"]
    assert set(types) <= {None, "application/json"}
    assert types.count(None) == scripts
    every = [attributes["href"] for _, attributes in found.elements if "href" in attributes]
    inner = [link for link in every if not (links and re.fullmatch(links, link))]
    for name, attributes in found.elements:
        assert set(attributes) <= ATTRIBUTES, (name, attributes)
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {link[:1] for link in inner} <= {"#"}
    assert {link[1:] for link in inner} <= set(ids)
    (policy,) = (item["content"] for _, item in found.elements if item.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    contents = {kind: [data for element, data in found.texts if element == kind] for kind in ("style", "script")}
    contents["script"] = [data for data, kind in zip(contents["script"], types, strict=True) if kind is None]
    for kind, texts in contents.items():
        digests = [base64.b64encode(hashlib.sha256(data.encode()).digest()).decode() for data in texts]
        hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
        assert f"; {kind}-src {hashes};" in policy
    assert all(letter.isprintable() or letter in "\n\t" for letter in text)
    return found


@pytest.mark.parametrize("name", JOINED_OR_EACH, ids=ascii)
def test_no_name_breaks_the_page(name: str) -> None:
    for made in (hostile, hostile_gate, hostile_ledger, stored, on_gpu, growing, followed, over_layouts):
        page(made(name))


@given(st.text(max_size=40) | st.text(alphabet="<>&'\"/=! ascriptsvgonload", max_size=24))
def test_any_text_anywhere(name: str) -> None:
    page(hostile(name))
    page(hostile_ledger(name))


@pytest.mark.parametrize("kind", RESULTS)
def test_it_says_what_the_other_formats_say(kind: str) -> None:
    result = RESULTS[kind]()
    found = page(result)
    said = markdown.render(result)
    headings = {line[4:] for line in said.splitlines() if line.startswith("### ")}
    shown = {data for element, data in found.texts if element in ("h2", "h3")}
    assert headings <= shown
    text = " ".join(found.text().split())
    for row in re.findall(r"^\|.*\|$", said, re.MULTILINE):
        for cell in re.findall(r"`([^`|]+)`", row):
            # Drawings with characters in Markdown are pictures here.
            assert re.search("[●━◂▸]", cell) or " ".join(cell.split()) in text
    if result.verdict:
        assert result.verdict.upper() in text
        assert result.verdict.upper() in terminal.render(result, width=80, color=False, unicode=True)


@pytest.mark.parametrize(
    ("words", "html"),
    [
        ("`if: a < b` is false", "<code>if: a &lt; b</code> is false"),
        ("raise `runs` or `budget`", "raise <code>runs</code> or <code>budget</code>"),
        ("a lone ` is itself", "a lone ` is itself"),
    ],
)
def test_what_stands_between_backticks_is_code(words: str, html: str) -> None:
    assert elements.span_html(Span(words, TextKind.WORDS)) == html
    assert elements.prose_html((Span("`a`", TextKind.VALUE),)) == "`a`"


@pytest.mark.parametrize(
    ("kind", "changes", "told"),
    [
        ("gated", {}, "git show 3fa2c1d"),
        ("gated", {}, "Mend what failed: broken , same-output , see why"),
        ("everything", {}, "Mend what failed: gone , tests , see why"),
        ("everything", {"verdict": "unproven"}, "Measure longer"),
        ("single", {"verdict": "error"}, "Measure what is missing"),
        ("stored", {"verdict": None}, "perfflow gate measures two revisions in one session"),
        ("optimized", {}, "git cherry-pick"),
        ("growing", {}, "Add a step under profile to the workflow"),
        ("followed", {}, "Nothing: no target is missed"),
    ],
)
def test_the_head_says_what_to_do(kind: str, changes: dict[str, Any], told: str) -> None:
    text = document.render(RESULTS[kind]().model_copy(update=changes), NOWHERE)
    _, _, rest = text.partition('<h2 id="next">What to do</h2>')
    (head, end, _) = rest.partition("</header>")
    assert end
    assert told in " ".join(re.sub("<[^>]+>", " ", head).split())


@pytest.mark.parametrize(("kind", "sides"), [("everything", "baseline → candidate"), ("gated", "base → head")])
def test_a_page_has_one_pair_of_words_for_the_sides(kind: str, sides: str) -> None:
    pair = [replace(each, benchmark="decode") for each in large_pair()]
    text = page(RESULTS[kind](), pair).text().lower()
    first, second = sides.split(" → ")
    assert f"own share {first} " in text
    assert f"{first} against" not in text
    assert f"{second} against {first}" in text
    assert (sides in text, "before → after" in text) == (True, False)
    for other in {"base", "head", "baseline", "candidate"} - {first, second}:
        assert not re.search(rf"\b(own share|in|of|share) {other}\b", text)


def test_the_same_result_gives_the_same_bytes() -> None:
    assert document.render(everything(), NOWHERE) == document.render(everything(), NOWHERE)


def test_long_suites_are_whole_and_can_be_filtered() -> None:
    names = [str(number) for number in range(600)]
    found = page(large(names, ["met"], [("same", None), ("improved", None)], ""))
    assert [name for name, _ in found.elements].count("tr") > 600
    filters = {attributes["data-filter"] for _, attributes in found.elements if "data-filter" in attributes}
    assert filters == {"Only changed", "Only unmet"}
