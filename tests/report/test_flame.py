"""Flame graphs of a page: both sides in one tree, colours for changes, and their behaviour in a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.profile_pair import CHANGED, PER_OPERATION, large_pair
from perfflow.model.result import Result
from perfflow.model.stacks import Stack, StackProfile, read_folded
from perfflow.report.html import document, flame
from perfflow.report.html.flame import DIGITS, MOST_NODES, ROOT, SHARE, SMALLER, FlameTree, costs_of, tree_of, written
from perfflow.verdict.attribution import CostTrend
from tests.report.browser import Browser
from tests.report.results import HOSTILE, JOINED_OR_EACH, everything
from tests.report.test_html import NOWHERE, Parsed, page

FOLDED = sorted((Path(__file__).parents[1] / "tools" / "data").rglob("*.folded"))
STACKS = st.dictionaries(st.lists(st.sampled_from("abcd"), max_size=6).map(tuple), st.integers(1, 2000), max_size=60)
BOTH = {("main", "a", "b"): 60, ("main", "a"): 20, ("main", "c"): 20}


@cache
def result() -> Result:
    """Return the result for the rest of the page."""
    return everything()


def profile(stacks: Mapping[Stack, int], side: str = "baseline", **changes: Any) -> StackProfile:
    """Return a sampled profile of one thread with the cost of an operation."""
    usual: dict[str, Any] = {"step": "cpu", "benchmark": "decode", "tool": "sampler", "unit": "samples"}
    return StackProfile(**usual | {"side": side, "threads": {"": stacks}, "per_operation": PER_OPERATION} | changes)


def both(before: Mapping[Stack, int], after: Mapping[Stack, int], **changes: Any) -> list[StackProfile]:
    """Return a pair of profiles whose operations cost one microsecond per sample."""
    return [
        profile(stacks, side, **{"per_operation": 1000.0 * sum(stacks.values()), **changes})
        for side, stacks in (("baseline", before), ("candidate", after))
    ]


def columns(found: Parsed) -> list[dict[str, Any]]:
    """Return the data of the graphs of a page."""
    data = {name.get("type"): name for element, name in found.elements if element == "script"}
    assert set(data) == {None, "application/json"}
    texts = [text for element, text in found.texts if element == "script"]
    read = [json.loads(text) for text in texts if text.startswith("{")]
    for data in read:
        for column in ("kind", "name", "depth", "before", "after"):
            data[column] = numbers(data[column], data["digits"])
    return read


def numbers(text: str, digits: str) -> list[int]:
    """Return the written numbers: the lowest digit first, digits of the second half followed by another one."""
    half = len(digits) // 2
    ends = [place for place, letter in enumerate(text) if digits.index(letter) < half]
    parts = [text[start + 1 : end + 1] for start, end in pairwise([-1, *ends])]
    return [sum(digits.index(letter) % half * half**place for place, letter in enumerate(part)) for part in parts]


def paths(tree: FlameTree) -> list[tuple[str, ...]]:
    """Return each node as the names from the root to it."""
    found: list[tuple[str, ...]] = []
    open_names: list[str] = []
    for name, depth in zip(tree.name, tree.depth, strict=True):
        open_names[depth:] = [tree.names[name]]
        found.append(tuple(open_names))
    return found


@given(STACKS, STACKS)
def test_what_a_frame_costs_is_the_sum_over_what_it_calls(before: dict[Stack, int], after: dict[Stack, int]) -> None:
    tree = tree_of(before, after)
    sides = zip((before, after), (tree.before, tree.after), tree.totals(), tree.step, strict=True)
    for side, own, total, step in sides:
        for node, path in enumerate(paths(tree)):
            below = [count for stack, count in side.items() if stack[: len(path) - 1] == path[1:]]
            assert total[node] * step == pytest.approx(sum(below), abs=1e-3 * sum(side.values()))
            assert own[node] * step == pytest.approx(side.get(path[1:], 0), abs=1e-3 * sum(side.values()))


@given(st.lists(st.integers(0, 2_000_000)))
def test_numbers_are_read_as_they_were_written(given: list[int]) -> None:
    assert len(DIGITS) % 2 == 0
    assert numbers(written(given), DIGITS) == given


def test_a_caller_changed_by_as_much_as_its_callees() -> None:
    tree = tree_of({("main", "f"): 10, ("main", "g"): 5}, {("main", "f"): 13, ("main", "h"): 4})
    assert paths(tree) == [(ROOT,), (ROOT, "main"), *((ROOT, "main", name) for name in "fgh")]
    before, after = tree.totals()
    changes = [new * tree.step[1] - old * tree.step[0] for old, new in zip(before, after, strict=True)]
    assert changes == pytest.approx([2, 2, 3, -5, 4], abs=1e-3)


def test_small_frames_are_counted_with_their_caller_or_together() -> None:
    alone: dict[Stack, int] = {("main", "large"): 99_990, ("main", "small", "deep"): 10}
    tree = tree_of(alone, {("main", "large"): 50_000})
    assert paths(tree)[1:] == [(ROOT, "main"), (ROOT, "main", "large")]
    assert [round(steps * tree.step[0]) for steps in tree.before] == [0, 10, 99_990]
    many = alone | {("main", f"small {number}"): 10 for number in range(100)}
    tree = tree_of(many, {("main", "small 7"): 1})
    assert paths(tree)[1:] == [(ROOT, "main"), *((ROOT, "main", name) for name in (SMALLER, "large", "small 7"))]
    assert tree.totals()[0][0] * tree.step[0] == pytest.approx(sum(many.values()))


def test_a_tree_has_a_largest_size() -> None:
    stacks: dict[Stack, int] = {("main", f"a{number}", f"b{number}", f"c{number}"): 1 for number in range(4500)}
    tree = tree_of(stacks, {})
    assert len(tree.name) <= MOST_NODES
    assert tree.totals()[0][0] * tree.step[0] == pytest.approx(4500)


def test_deep_recursion_is_no_obstacle() -> None:
    stacks = {("main", *["again"] * depth): 1 for depth in range(0, 3000, 10)}
    page(result(), both(stacks, stacks))


def test_three_changed_functions_of_5000_stacks_are_coloured_and_no_other() -> None:
    for profiles in (1, 3):
        found = large_pair(profiles)
        (item,) = costs_of(found)
        assert {row.name for row in item.functions if row.trend is not CostTrend.SAME} == set(CHANGED)
        for row in item.functions[:3]:
            assert row.costs[1] / row.costs[0] == pytest.approx(CHANGED[row.name], rel=0.1)
        (data,) = columns(page(result(), found))
        kinds = {name: data["kinds"][kind] for name, kind in zip(data["names"], data["kind"], strict=True)}
        expected = {"function 17": "much-more", "function 101": "much-less", "function 333": kinds["function 333"]}
        assert {name: kind for name, kind in kinds.items() if kind != "same"} == expected
        assert kinds["function 333"].endswith("more")


def test_where_the_cost_of_an_operation_is_unknown_shares_are_shown_and_said_to_be() -> None:
    (known,) = costs_of(both(BOTH, {stack: 3 * count for stack, count in BOTH.items()}))
    assert [row.relative for row in known.functions] == pytest.approx([2.0] * 3)
    unknown = both(BOTH, {stack: 3 * count for stack, count in BOTH.items()}, per_operation=None)
    (item,) = costs_of(unknown)
    assert item.unit == SHARE
    assert {row.trend for row in item.functions} == {CostTrend.SAME}
    assert "a change of a share is not a change of cost" in page(result(), unknown).text()
    assert "a change of a share" not in page(result(), both(BOTH, BOTH)).text()


def test_one_side_is_a_graph_without_decisions() -> None:
    found = page(result(), [profile(BOTH, "candidate")])
    (data,) = columns(found)
    assert data["sides"] == [False, True]
    assert data["before"] == [0] * len(data["name"])
    assert "no proven change" not in found.text()
    assert "1.20 ms" in found.text(), "60% of 2 ms"
    assert "100 samples were taken" in found.text()


def test_several_threads_lie_below_their_names_without_ids_and_addresses_do_not_tell_frames_apart() -> None:
    threads = [{f"worker 0x7f{side}0": BOTH, f"main ({side}4711)": {("main",): 7}} for side in (1, 2)]
    (item,) = costs_of([profile({}, "baseline", threads=threads[0]), profile({}, "candidate", threads=threads[1])])
    assert item.is_threaded
    assert {path[1] for path in paths(tree_of(*item.stacks)) if len(path) == 2} == {"worker …", "main (…)"}
    (item,) = costs_of(both({("main", "0x55aa01"): 10}, {("main", "0x55bb02"): 10}))
    assert [row.name for row in item.functions] == ["0x…"]


def test_call_pairs_are_a_table_and_no_false_tree() -> None:
    pairs = {("main",): 5, ("main", "parse"): 50, ("load", "parse"): 30, ("parse", "scan"): 15}
    found = page(result(), both(pairs, pairs, is_call_pairs=True, unit="ns"))
    assert not [name for name, attributes in found.elements if attributes.get("class") == "flame"]
    text = " ".join(found.text().split())
    # The last one is its own cost, whoever calls it.
    for row in ("parse main 50.0% 50.0%", "parse load 30.0% 30.0%", "parse 80.0% 80.0%"):
        assert row in text
    assert "were counted" not in text, "times differ from run to run"


@pytest.mark.parametrize("name", JOINED_OR_EACH, ids=ascii)
def test_no_name_breaks_out_of_the_data(name: str) -> None:
    stacks: dict[Stack, int] = {(name, "f"): 50, ("main", name): 50}
    changes = {"benchmark": name, "tool": name, "step": name, "threads": {name: stacks, "b": stacks}}
    for is_call_pairs in (False, True):
        page(result(), both(stacks, {("main", name): 5}, is_call_pairs=is_call_pairs, **changes))


@given(st.text(max_size=30) | st.text(alphabet="<>&'\"/=! script-", max_size=20))
def test_any_text_is_a_name(name: str) -> None:
    page(result(), both({("main", name): 50}, {(name, name): 50}))


@pytest.mark.parametrize("file", FOLDED, ids=lambda file: "/".join(file.parts[-4:-1]))
def test_profiles_of_real_tools_are_drawn(file: Path) -> None:
    stacks = read_folded(file.read_text())
    found = page(result(), [profile(stacks)])
    if not sum(stacks.values()):
        assert "Flame Graphs" not in found.text()
        return
    (data,) = columns(found)
    assert sum(data["before"]) * data["step"][0] == pytest.approx(PER_OPERATION, rel=1e-4)


def test_a_large_pair_is_small_and_gives_the_same_bytes() -> None:
    alone, once, again = (document.render(result(), NOWHERE, each) for each in ((), large_pair(), large_pair()))
    assert len(once.encode()) - len(alone.encode()) < 100_000
    assert once == again


def test_only_some_profiles_are_drawn_those_that_changed_first() -> None:
    found = [profile(BOTH, benchmark=f"b{number}") for number in range(flame.MOST_GRAPHS + 3)]
    parts = list(flame.flame_graphs(flame.in_order(found, ["b7"])))
    said = str(parts[0])
    assert "<code>b7</code>" in said
    assert "3 more profiles" in page(result(), found).text()


def opened(shown: Browser, folder: Path, profiles: Sequence[StackProfile], **how: Any) -> None:
    file = folder / "report.html"
    file.write_text(document.render(result(), NOWHERE, profiles))
    shown.open(file, **how)
    shown.run("document.querySelector('.flame').closest('.part').open = true")
    if how.get("scripts", True):
        shown.settle()


MATCHED = "document.querySelector('.matched').textContent"
FOCUS = "document.querySelector('.flame canvas').focus()"


def details(shown: Browser, start: str) -> bool:
    """Return whether the line about the selected frame starts so."""
    return str(shown.run("document.querySelector('.details').textContent")).startswith(start)


def coloured(shown: Browser, graph: str = "document.querySelector('figure.flame')") -> list[str]:
    """Return the functions that were painted in a colour of a change."""
    found: list[str] = json.loads(shown.run(f"{graph}.dataset.coloured"))
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_paints_what_changed(shown: Browser, tmp_path: Path, dark: bool) -> None:
    opened(shown, tmp_path, large_pair(), width=1440, dark=dark)
    assert coloured(shown) == sorted(CHANGED)
    seen = shown.run(PIXELS)
    wanted = {"much-more", "much-less", "same"}
    assert wanted <= set(seen), "the colours of the theme are those of the canvas"
    assert "new" not in seen


PIXELS = """(() => {
  const figure = document.querySelector("figure.flame"), canvas = figure.querySelector("canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let at = 0; at < pixels.length; at += 4) {
    seen.add("#" + Array.from(pixels.slice(at, at + 3), (part) => part.toString(16).padStart(2, "0")).join(""));
  }
  const names = ["same", "more", "much-more", "less", "much-less", "new"];
  return names.filter((name) => seen.has(getComputedStyle(figure).getPropertyValue("--flame-" + name).trim()));
})()"""


def test_keys_alone_zoom_search_and_reset(shown: Browser, tmp_path: Path) -> None:
    opened(shown, tmp_path, both(BOTH, {("main", "a", "b"): 60, ("main", "d", "b"): 80, ("main", "c"): 20}))
    shown.press("/")
    assert shown.run("document.activeElement.type") == "search"
    shown.press("b")
    assert shown.run(MATCHED) == "87.5% matched in 2 frames"
    shown.press("Enter")
    assert shown.run("document.activeElement.tagName") == "CANVAS"
    assert details(shown, "b: baseline 0 ns, 0.0%; candidate 80.0 µs, 50.0%; change +80.0 µs")
    shown.press("Enter")
    assert shown.run("document.querySelector('figure.flame').dataset.zoomed") == "b"
    shown.press("ArrowUp", "ArrowUp")
    assert details(shown, "main: ")
    shown.press("Enter", "ArrowDown")
    assert details(shown, "d: ")
    shown.press("ArrowLeft")
    assert details(shown, "c: ")
    shown.press("ArrowLeft", "ArrowLeft")
    assert details(shown, "a: baseline 80.0 µs, 80.0%; candidate 60.0 µs, 37.5%")
    shown.press("Escape", "Escape")
    assert shown.run(MATCHED) == ""
    assert details(shown, "all: baseline 100 µs")


def test_both_sides_are_above_each_other_and_zoom_together(shown: Browser, tmp_path: Path) -> None:
    opened(shown, tmp_path, both(BOTH, {("main", "a", "b"): 60, ("main", "d", "b"): 80, ("main", "c"): 20}))
    titles = "Array.from(document.querySelectorAll('.flame .pane'), (each) => each.textContent)"
    assert shown.run(titles) == ["candidate: 160 µs", "baseline: 100 µs"]
    heights = "Array.from(document.querySelectorAll('.flame canvas'), (each) => each.clientHeight)"
    assert shown.run(heights) == [4 * 18, 4 * 18]
    # A click into `c` of the baseline, at its right end, zooms both to it, and it calls nothing.
    box = "document.querySelectorAll('.flame canvas')[1].getBoundingClientRect()"
    x, y = shown.run(
        f"document.querySelectorAll('.flame canvas')[1].scrollIntoView(), [{box}.right - 3, {box}.top + 40]"
    )
    for kind in ("mousePressed", "mouseReleased"):
        shown.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert shown.run("document.querySelector('figure.flame').dataset.zoomed") == "c"
    assert shown.run(heights) == [3 * 18, 3 * 18]
    shown.run(CHOOSE.format(0, "before"))
    assert shown.run(titles) == ["baseline: 100 µs", "candidate: 160 µs"]


def test_a_hotspot_is_one_click_away_from_its_frame(shown: Browser, tmp_path: Path) -> None:
    """The link opens the folded graph and selects the widest frame of the function."""
    opened(shown, tmp_path, both({("main", "parse_object"): 60}, {("main", "parse_object"): 90}))
    shown.run("for (const each of document.querySelectorAll('.part')) each.open = each.querySelector('[data-find]')")
    (link,) = json.loads(
        shown.run("JSON.stringify([...document.querySelectorAll('a[data-find=parse_object]')].map((a) => a.hash))")
    )
    shown.run("document.querySelector('a[data-find=parse_object]').click()")
    shown.settle()
    assert shown.run(f"document.querySelector('{link} canvas').checkVisibility()")
    assert details(shown, "parse_object: baseline 60.0 µs, 100.0%; candidate 90.0 µs")


def test_matches_inside_of_matches_count_once(shown: Browser, tmp_path: Path) -> None:
    stacks = {("main", "again", "again"): 30, ("main", "again"): 10, ("main",): 60}
    opened(shown, tmp_path, both(stacks, stacks))
    shown.press("/", "again")
    assert shown.run(MATCHED) == "40.0% matched in 1 frame"


CHOOSE = """(() => {{
  const found = document.querySelectorAll(".flame select")[{}];
  found.value = "{}";
  found.dispatchEvent(new Event("change"));
}})()"""


def test_what_was_removed_has_a_shape_of_its_own(shown: Browser, tmp_path: Path) -> None:
    after = {stack: 100 * count for stack, count in BOTH.items()}
    removed = both({**after, ("main", "old", "deep"): 10_000}, after)
    opened(shown, tmp_path, removed)
    shown.run(CHOOSE.format(0, "removed"))
    assert coloured(shown) == ["deep"]
    shown.press("/", "deep")
    assert shown.run(MATCHED) == "100.0% matched in 1 frame"
    shown.run(CHOOSE.format(0, "before"))
    assert shown.run(MATCHED) == "50.0% matched in 1 frame"
    assert "▼ gone" in page(result(), removed).text()


def test_a_thread_can_be_chosen(shown: Browser, tmp_path: Path) -> None:
    threads = {"one": BOTH, "two": {("run",): 50}}
    opened(shown, tmp_path, [profile({}, side, threads=threads) for side in ("baseline", "candidate")])
    options = "Array.from(document.querySelectorAll('.flame select')[2].options, (option) => option.text)"
    assert shown.run(options) == ["all", "one", "two"]
    shown.run(FOCUS)
    shown.press("ArrowDown", "Enter")
    assert shown.run("document.querySelectorAll('.flame select')[2].selectedOptions[0].text") == "one"


def test_the_root_can_be_at_the_bottom(shown: Browser, tmp_path: Path) -> None:
    """Arrow up then selects a callee, since it is above."""
    opened(shown, tmp_path, both(BOTH, BOTH))
    shown.run(CHOOSE.format(1, "bottom"))
    shown.run(FOCUS)
    shown.press("ArrowUp", "ArrowUp")
    assert details(shown, "a: ")
    shown.press("ArrowDown")
    assert details(shown, "main: ")


def test_a_graph_is_drawn_when_it_is_unfolded(shown: Browser, tmp_path: Path) -> None:
    other = [replace(each, benchmark="other") for each in large_pair()]
    opened(shown, tmp_path, [*both(BOTH, BOTH), *other])
    second = "document.querySelectorAll('figure.flame')[1]"
    assert not shown.run(f"{second}.checkVisibility()")
    shown.run(f"{second}.closest('details').open = true")
    shown.settle()
    assert shown.run(f"{second}.querySelector('canvas').clientWidth") > 700
    assert coloured(shown, second) == sorted(CHANGED)
    shown.run(f"{second}.querySelector('canvas').focus()")
    shown.press("/")
    assert shown.run(f"{second}.contains(document.activeElement)")


def test_names_do_nothing_in_a_browser(shown: Browser, tmp_path: Path) -> None:
    names = [name for name in HOSTILE if len(name) < 200] + ["<img src=x onerror=document.title=1>"]
    stacks: dict[Stack, int] = {("main", name): 100 + number for number, name in enumerate(names)}
    opened(shown, tmp_path, both(stacks, stacks, threads={name: {("f",): 1000} for name in names}))
    title = shown.run("document.title")
    shown.run(FOCUS)
    for _ in names:
        shown.press("ArrowDown", "ArrowRight", "Enter", "Escape")
    assert shown.run("document.title") == title
    assert shown.run("document.images.length") == 0
    assert shown.run("document.scripts.length") == 3


def test_without_scripts_the_picture_and_the_tables_stay(shown: Browser, tmp_path: Path) -> None:
    opened(shown, tmp_path, both(BOTH, BOTH), scripts=False)
    tree = shown.call("DOM.getDocument", depth=-1)["root"]["nodeId"]
    for selector, count in ((".flame canvas", 0), (".flame .controls", 0), (".flame svg rect", 5)):
        found = shown.call("DOM.querySelectorAll", nodeId=tree, selector=selector)["nodeIds"]
        assert len(found) == count
    picture = shown.call("DOM.querySelector", nodeId=tree, selector=".flame svg")["nodeId"]
    assert shown.call("DOM.getBoxModel", nodeId=picture)["model"]["height"] > 50


@pytest.mark.parametrize("width", [360, 1440])
def test_a_graph_is_as_wide_as_the_page(shown: Browser, tmp_path: Path, width: int) -> None:
    opened(shown, tmp_path, large_pair(), width=width)
    assert shown.run("document.documentElement.scrollWidth") <= width
    assert shown.run("document.querySelector('.flame canvas').clientWidth") > width * 0.75


def test_on_paper_there_is_the_picture(shown: Browser, tmp_path: Path) -> None:
    opened(shown, tmp_path, both(BOTH, BOTH))
    visible = "['svg', 'canvas'].map((name) => document.querySelector('.flame ' + name).checkVisibility())"
    assert shown.run(visible) == [False, True]
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.run(visible) == [True, False]
    shown.call("Emulation.setEmulatedMedia", media="screen")
