"""The HTML report: its content, that no name can run or load anything, and that a browser finds no errors."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.model.stacks import StackProfile
from perfflow.report import markdown, terminal
from perfflow.report.html import charts, document, elements
from perfflow.report.html.svg import Scale
from perfflow.report.table import Span, TextKind
from perfflow.store.sample_order import TakingOrder, taking_order
from tests.report.exported import large
from tests.report.gated import gated, hostile_gate
from tests.report.optimized import hostile_ledger, optimized
from tests.report.pictured import followed, growing, over_layouts
from tests.report.results import JOINED_OR_EACH, everything, hostile, kernels, on_gpu, single, stored
from tests.verdict.records import criteria, ended, judged, pairs
from tests.verdict.test_roofs import ROOF, kernel, point

NOWHERE = TakingOrder({})
VOID = {"meta", "input", "path", "rect", "circle"}
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "script", "a", "header", "nav", "main", "footer", "section"),
    *("h1", "h2", "h3", "p", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "strong"),
    *("details", "summary", "figure", "figcaption", "span", "svg", "path", "rect", "circle", "text"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "href", "id", "aria-label", "aria-labelledby"),
    *("role", "aria-hidden", "tabindex", "scope", "data-filter"),
    *("type", "viewbox", "d", "x", "y", "width", "height", "cx", "cy", "r"),
}
RESULTS: dict[str, Callable[[], Result]] = {
    "everything": everything,
    "gated": gated,
    "optimized": optimized,
    "stored": stored,
    "single": single,
    "kernels": kernels,
    "on a gpu": on_gpu,
    "growing": growing,
    "followed": followed,
    "over layouts": over_layouts,
}


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
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self) -> str:
        """Return the visible text."""
        return (" ".join(data for element, data in self.texts if element not in ("style", "script"))).replace(
            "\N{NO-BREAK SPACE}", " "
        )


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
    for result in (hostile(name), hostile_gate(name), hostile_ledger(name), stored(name), on_gpu(name)):
        page(result)
    for result in (growing(name), followed(name), over_layouts(name)):
        page(result)


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


def test_the_same_result_gives_the_same_bytes() -> None:
    assert document.render(everything(), NOWHERE) == document.render(everything(), NOWHERE)


def test_long_suites_are_whole_and_can_be_filtered() -> None:
    names = [str(number) for number in range(600)]
    found = page(large(names, ["met"], [("same", None), ("improved", None)], ""))
    assert [name for name, _ in found.elements].count("tr") > 600
    filters = {attributes["data-filter"] for _, attributes in found.elements if "data-filter" in attributes}
    assert filters == {"Only changed", "Only unmet"}


def drawn(kind: str, found: Parsed) -> list[dict[str, str]]:
    """Return the attributes of the drawn elements of a class."""
    return [item for _, item in found.elements if item.get("class", "").split()[:1] == [kind]]


def test_samples_stand_in_the_order_they_were_taken() -> None:
    """The candidate was taken first in the first pair, so its first sample is left of the baseline's."""
    events = [*pairs("b", [0.010, 0.011, 0.012], [0.005, 0.006, 0.007]), ended("b")]
    for event in events:
        if event["event"] == "sample":
            event["first"] = "candidate"
    result = judged(*events)
    run = {"event": "run", "steps": [{"id": "b", "benchmark": "b"}]}
    found = Parsed(document.render(result, taking_order([run, *events])))
    baseline = [float(item["cx"]) for item in drawn("sample", found) if "cx" in item]
    candidate = [float(item["d"][1:].split()[0]) for item in drawn("sample", found) if "d" in item]
    assert len(baseline) == len(candidate) == 3
    assert candidate[0] < baseline[0] < candidate[1] < baseline[1] < candidate[2] < baseline[2]
    assert "in the order they were taken" in found.text()


def test_bars_show_which_side_of_the_bound_an_interval_lies_on() -> None:
    result = everything()
    found = page(result)
    bounds = drawn("bound", found)
    assert len(bounds) >= len([target for target in result.targets if target.measured is not None])
    good = [item for item in drawn("interval", found) if "good" in item["class"]]
    bad = [item for item in drawn("interval", found) if "bad" in item["class"]]
    assert good
    assert bad


def test_a_kernel_stands_below_its_roof_by_its_share_of_it() -> None:
    """On logarithmic axes, the distance of a kernel to its roof is the logarithm of its share."""
    result = kernel(ROOF)
    found = page(result)
    (roof,) = drawn("roof", found)
    corners = [tuple(map(float, corner.split())) for corner in roof["d"][1:].split("L")]
    assert corners[1][1] == corners[2][1] < corners[0][1]
    charted = charts.roofline_chart(result)
    (x, y) = re.findall(r'class="sample before" cx="([\d.]+)" cy="([\d.]+)"', charted)[0]
    (left, foot), (knee, top) = corners[:2]
    above = foot + (top - foot) * (float(x) - left) / (knee - left)
    decade = (foot - top) / math.log10(ROOF["flops f32"] / (ROOF["bandwidth"] * 0.125))
    share = point(result).share
    assert share is not None
    assert 10 ** ((above - float(y)) / decade) == pytest.approx(share, rel=0.05)
    assert f"b: {share:.0%} of its roof" in charted


def test_effects_stand_on_the_side_of_the_threshold_that_they_reached() -> None:
    result = optimized()
    assert result.run.accept is not None
    for item in result.optimizations:
        bar = str(charts.effect_bar(item, result.run.accept))
        if item.effect is None or item.effect.value is None:
            assert bar == ""
            continue
        (threshold,) = re.findall(r'class="bound" d="M([\d.]+)', bar)
        (at,) = re.findall(r'cx="([\d.]+)"', bar)
        assert (float(at) > float(threshold)) == (item.effect.value > result.run.accept)
        assert ('class="point good"' in bar) == (item.decision == "accepted")


def test_shares_of_functions_are_as_long_as_they_are_large() -> None:
    found = Parsed(charts.share_bar(0.5, 0.25))
    assert [(item["class"], float(item["width"])) for item in drawn("share", found)] == [
        ("share before", charts.BAR_WIDTH / 2),
        ("share after", charts.BAR_WIDTH / 4),
    ]
    assert drawn("share", page(optimized()))


def test_bytes_have_round_ticks_in_the_units_that_are_shown() -> None:
    result = judged(*pairs("b", [14.2 * 2**20] * 3, [8.6 * 2**20] * 3, "rss"), ended("b"))
    chart = charts.samples_chart(result.benchmarks[0], {}, criteria({}))
    assert {float(number) for number in re.findall(r">([\d.]+) MiB</text>", chart)} <= {0.0, 5.0, 8.0, 10.0, 12.0, 14.0}


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.floats())
def test_a_scale_stays_in_its_picture(low: float, high: float, value: float) -> None:
    if not math.isnan(value):
        assert 2 <= Scale(min(low, high), max(low, high), 2, 158)(value) <= 158


@given(st.floats(1e-12, 1e12), st.floats(1.001, 1e6))
def test_ticks_are_few_and_inside(low: float, factor: float) -> None:
    found = charts.ticks(low, low * factor)
    assert 1 <= len(found) <= 7
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in found)


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not on PATH")
@pytest.mark.parametrize("kind", ["everything", "gated", "optimized"])
def test_a_browser_finds_nothing_wrong(kind: str, tmp_path: Path) -> None:
    """The script ran, the policy refused nothing, and the console is empty."""
    file = tmp_path / "report.html"
    file.write_text(document.render(RESULTS[kind](), NOWHERE))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    argv = ["chromium", *options, f"--user-data-dir={tmp_path}/profile", file.as_uri()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=True)
    assert "CONSOLE" not in done.stderr
    assert '<button type="button">' in done.stdout
