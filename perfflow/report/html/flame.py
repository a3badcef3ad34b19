"""Flame graphs: before and after in one graph, per operation, with colours for changes; and the same as a table.

``flame.js`` draws them from the data in the page. Without scripts, the page shows a picture of the widest frames.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from perfflow.model.stacks import Stack, StackProfile
from perfflow.model.units import format_change
from perfflow.report.blocks import Block, Prose, named, quoted
from perfflow.report.html import svg
from perfflow.report.html.elements import LONGEST_NAME, Filter, block_html, joined, prose_html, table_html
from perfflow.report.html.flame_costs import AFTER, BEFORE, SHARE, Function, ProfileCosts, costs_of
from perfflow.report.html.flame_tree import DIGITS, Tree, tree_of, written
from perfflow.report.sanitize import shortened
from perfflow.report.table import NOTHING, Cell, mark, name, optional, table, value
from perfflow.verdict.attribution import COUNTED, ENOUGH, Changes, Noise, Trend

MOST_GRAPHS = 6
"""Most graphs of one page, since they are most of its size."""
MOST_FUNCTIONS, MOST_CHANGED, MOST_CALLS = 25, 100, 50
"""Rows of the tables: the largest functions, changed ones among the others, and calls."""
STRONG = 0.5
"""Relative change from which the stronger colour is used."""
WIDTH, ROW, LETTER, DEEPEST = 960.0, 17.0, 6.7, 32
"""Width of the picture, height of a frame and width of a letter, in the picture's units; and its most rows."""
NARROWEST = 0.006
"""Share of the picture below which a frame is left out."""
_KINDS = ("same", "more", "much-more", "less", "much-less", "new", "gone")
"""Kinds of frames. ``flame.js`` and ``page.css`` use these names."""
_MARKS = {Trend.MORE: "▲", Trend.LESS: "▼", Trend.NEW: "◆", Trend.GONE: "▼"}
_NOUNS = {"ns": "time"}


def flame_graphs(profiles: Sequence[StackProfile], first: Sequence[str] = ()) -> Iterator[Block | Markup]:
    """Yield a graph and a table for each profiled benchmark, those named in ``first`` at the start.

    A profile with direct callers only gets a table of calls instead of a graph, since its stacks are not known.
    """
    rank = {benchmark: place for place, benchmark in enumerate(first)}
    found = sorted(costs_of(profiles), key=lambda item: rank.get(item.benchmark, len(rank)))
    for number, item in enumerate(found[:MOST_GRAPHS]):
        title = ("", named(item.benchmark), " by ", named(item.tool), ": ", quoted(_measured(item)))
        parts = [block_html(part) for part in _parts(item)]
        if number == 0:
            yield Markup("<h3>{}</h3>").format(prose_html(title))
            yield joined(parts)
        else:
            shut = Markup("<details><summary>{}</summary>\n{}\n</details>")
            yield shut.format(prose_html(title), joined(parts))
    if len(found) > MOST_GRAPHS:
        yield Prose(f"{len(found) - MOST_GRAPHS} more profiles with stacks are in the folder of the run.")


def _measured(item: ProfileCosts) -> str:
    if item.unit == SHARE:
        return f"share of {_NOUNS.get(item.counted, item.counted)}"
    return f"{_NOUNS.get(item.unit, item.unit)} per operation"


def _parts(item: ProfileCosts) -> Iterator[Block | Markup]:
    tree = None if item.is_call_pairs else tree_of(*item.stacks)
    yield Prose(" ".join(_explained(item, tree)))
    if tree:
        yield _figure(item, tree)
    yield from _functions(item)
    if item.is_call_pairs:
        yield Prose("Who calls whom: the own cost of a function, by the function that called it.")
        yield from _calls(item)


def _explained(item: ProfileCosts, tree: Tree | None) -> Iterator[str]:
    """Yield sentences on the meaning of widths and colours, and on what is not shown."""
    wholes = [sum(side.values()) for side in item.stacks]
    if item.unit == SHARE:
        yield "The cost of one operation is not known, so these are shares of the profile."
        if item.changes:
            yield (
                "If one function gets faster, the shares of all others grow: a change of a share is not a change "
                "of cost."
            )
    elif item.changes:
        yield f"One operation costs {item.text(wholes[BEFORE])} before and {item.text(wholes[AFTER])} after."
    else:
        yield f"One operation costs {item.text(max(wholes))}."
    if item.counted == "samples":
        yield " and ".join(_samples(side) for side in item.sides if side) + " samples were taken."
    if item.is_call_pairs:
        yield "No flame graph: this profiler records the direct caller of each function, but not the whole stack."
    if item.changes:
        yield from _rule(item, item.changes)
    if tree:
        yield f"Frames below {tree.smallest:.2%} are counted with their callers."


def _samples(side: Sequence[StackProfile]) -> str:
    return str(sum(sum(stacks.values()) for profile in side for stacks in profile.threads.values()))


def _rule(item: ProfileCosts, changes: Changes) -> Iterator[str]:
    """Yield sentences on the rule by which a function counts as changed."""
    z = f"{changes.needed:.1f} standard deviations of the noise"
    yield f"A function counts as changed if its own cost differs by more than {z}."
    before, after = map(len, item.sides)
    if changes.noise is Noise.MEASURED:
        yield f"The noise is measured: it is the spread of {before} profiles before and {after} after."
    elif changes.noise is Noise.COUNTED:
        yield f"These costs were counted, not sampled. They are assumed to vary by {COUNTED:.0%} from run to run."
    else:
        few = "one profile" if before == after == 1 else "so few profiles"
        yield f"With {few} of each side the noise is not measured; that takes {ENOUGH} of each."
        if changes.noise is Noise.SEEN:
            yield "It is estimated from how much most functions differ."
        else:
            yield "There are too few functions to estimate it, so the noise of an overloaded machine is assumed."


def _figure(item: ProfileCosts, tree: Tree) -> Markup:
    kinds = _kinds_of(item, tree)
    label = f"Flame graph of {item.benchmark} by {item.tool}. Widest by own cost: " + ", ".join(
        f"{row.name} {max(row.shares):.0%}" for row in item.functions[:5]
    )
    return Markup(
        '<figure class="flame">{}\n<script type="application/json">{}</script><figcaption class="key">{}</figcaption>'
        "</figure>"
    ).format(_picture(item, tree, kinds, label), _columns(item, tree, kinds), _legend(item))


def _legend(item: ProfileCosts) -> Markup:
    if not item.changes:
        return Markup("The width is the cost of a frame with all its callees; the shades only separate frames.")
    swatch = Markup('<span class="swatch {}">{}</span> {}')
    words = (
        ("more", "▲", "costs more"),
        ("much-more", "▲", f"by {STRONG:.0%} or more"),
        ("less", "▼", "costs less"),
        ("much-less", "▼", f"by {STRONG:.0%} or more, or is gone"),
        ("new", "◆", "new"),
        ("same", "", "no proven change; an edge leads to a callee that changed"),
    )
    return Markup(" ").join(swatch.format(*each) for each in words)


def _kinds_of(item: ProfileCosts, tree: Tree) -> list[int]:
    """Return the index in `_KINDS` for each name of the tree."""
    known = {row.name: row for row in item.functions}
    return [_KINDS.index(_kind(known[name])) if name in known else 0 for name in tree.names]


def _kind(row: Function) -> str:
    if row.trend in (Trend.MORE, Trend.LESS):
        return f"{'much-' if abs(row.relative) >= STRONG else ''}{row.trend.value}"
    return str(row.trend.value)


def _columns(item: ProfileCosts, tree: Tree, kinds: Sequence[int]) -> Markup:
    """Return the JSON for ``flame.js``: names, and numbers for each node in preorder. No name can end the element."""
    data: dict[str, object] = {
        "title": shortened(f"{item.benchmark} by {item.tool}, {_measured(item)}", 2 * LONGEST_NAME),
        "sides": [bool(side) for side in item.sides],
        "unit": item.unit,
        "step": tree.step,
        "threads": item.is_threaded,
        "kinds": _KINDS,
        "names": [shortened(each, LONGEST_NAME) for each in tree.names],
        "digits": DIGITS,
    }
    numbers = {"kind": kinds, "name": tree.name, "depth": tree.depth, "before": tree.before, "after": tree.after}
    data |= {column: written(each) for column, each in numbers.items()}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704


def _picture(item: ProfileCosts, tree: Tree, kinds: Sequence[int], label: str) -> Markup:
    """Return a picture of the widest frames of the side after, or of the only side, with the root on top."""
    side = AFTER if item.sides[AFTER] else BEFORE
    totals = tree.totals()[side]
    place = [0] * len(totals)
    """For each open caller, by depth: the end of its callees so far, in steps."""
    parts: list[Markup] = []
    deepest = 0
    for node, (level, total) in enumerate(zip(tree.depth, totals, strict=True)):
        start = place[level - 1] if level else 0
        place[level] = start
        if level:
            place[level - 1] += total
        share = total / (totals[0] or 1)
        if level >= DEEPEST or share < NARROWEST:
            continue
        deepest = max(deepest, level)
        name = tree.name[node]
        is_own = tree.before[node] or tree.after[node]
        kind = _KINDS[kinds[name]] if item.changes and is_own else "same" if item.changes else f"s{name % 3}"
        x, width = start / (totals[0] or 1) * WIDTH, share * WIDTH
        parts.append(svg.rectangle(kind, x, level * ROW, width - 1 if width > 3 else width, ROW - 1))
        letters = int((width - 6) / LETTER)
        if letters >= 3:
            parts.append(svg.text(x + 3, level * ROW + 12, shortened(tree.names[name], letters)))
    return svg.picture(WIDTH, (deepest + 1) * ROW, label, parts)


def _functions(item: ProfileCosts) -> Iterator[Block | Markup]:
    """Yield the table of the largest functions, and of changed ones among the others."""
    changed = [row for row in item.functions[MOST_FUNCTIONS:] if row.trend is not Trend.SAME]
    shown = [*item.functions[:MOST_FUNCTIONS], *changed[:MOST_CHANGED]]
    if item.changes:
        titles = map(value, ("Own share before", "After", "Own change"))
        cells = ([*_cells(item, row), _decision(row)] for row in shown)
        wanted = Filter("Only changed", [row.trend is not Trend.SAME for row in shown])
        yield table_html(table([name("Function"), *titles, mark("Decision")], cells), wanted=wanted)
    else:
        costs = None if item.unit == SHARE else value("Per operation")
        own = [name("Function"), value("Own share"), costs]
        yield table(own, ([row.name, f"{max(row.shares):.1%}", item.text(max(row.costs))] for row in shown))
    if len(item.functions) > len(shown):
        yield Prose(f"{len(item.functions) - len(shown)} smaller functions are not listed.")


def _cells(item: ProfileCosts, row: Function) -> list[Cell]:
    """Return a function's name, its shares and its change."""
    before, after = (f"{share:.1%}" if share else NOTHING for share in row.shares)
    relative = f" ({format_change(row.relative)})" if row.costs[BEFORE] and row.costs[AFTER] else ""
    sign = "+" if row.difference > 0 else ""
    return [row.name, before, after, f"{sign}{item.text(row.difference)}{relative}"]


def _decision(row: Function) -> str:
    words = {Trend.MORE: "costs more", Trend.LESS: "costs less", Trend.SAME: "no proven change"}
    return f"{_MARKS.get(row.trend, '')} {words.get(row.trend, row.trend.value)}".strip()


def _calls(item: ProfileCosts) -> Iterator[Block]:
    """Yield the table of the calls with the largest own cost of the callee."""
    costs: dict[Stack, list[float]] = {}
    for place, side in enumerate(item.stacks):
        whole = sum(side.values())
        for stack, cost in side.items():
            costs.setdefault(stack[-2:], [0.0, 0.0])[place] += cost / whole
    ranked = sorted(costs, key=lambda call: (-max(costs[call]), call))
    titles = ["Share before", "After"] if item.changes else ["Share"]
    rows = []
    for call in ranked[:MOST_CALLS]:
        shares = costs[call] if item.changes else [max(costs[call])]
        caller = call[0] if len(call) > 1 else ""
        rows.append(
            [call[-1] if call else "?", optional(caller), *(f"{share:.1%}" if share else NOTHING for share in shares)]
        )
    yield table([name("Function"), name("Called by"), *map(value, titles)], rows)
    if len(ranked) > MOST_CALLS:
        yield Prose(f"{len(ranked) - MOST_CALLS} smaller calls are not listed.")
