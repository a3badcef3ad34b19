"""Flame graphs: both sides above each other, per operation, with colours for changes; and the same as a table.

- ``flame_graphs`` writes them, and ``graph_of`` is where a link to one leads. ``flame.js`` draws them from the data in
  the page. Without scripts, the page shows a picture of the widest frames.
- ``FlameTree`` has the stacks of both sides, merged into one tree without invisible frames and stored as columns in
  preorder. Each node has its own cost on both sides. The inclusive cost of a frame is the sum over its subtree, so the
  change of a caller is its own change plus the changes of its callees.
- ``ProfileCosts`` has the profiles of one benchmark by one tool as costs of one operation, or as shares if that cost is
  not known.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import median_low

from markupsafe import Markup

from perfflow.model.stacks import Stack, StackProfile
from perfflow.model.units import Dimension, format_change, format_quantity
from perfflow.report.html import svg
from perfflow.report.html.elements import LONGEST_NAME, Filter, joined, paragraph, prose_html, table_html
from perfflow.report.sanitize import shortened
from perfflow.report.table import NOTHING, SIDE_NAMES, Cell, Span, TextKind, mark, name, optional, table, value
from perfflow.verdict.attribution import COUNTED, ENOUGH, Changes, CostTrend, NoiseSource, OwnCosts, function_changes

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
_MARKS = {CostTrend.MORE: "▲", CostTrend.LESS: "▼", CostTrend.NEW: "◆", CostTrend.GONE: "▼"}
_NOUNS = {"ns": "time"}


def in_order(profiles: Sequence[StackProfile], first: Sequence[str] = ()) -> list[ProfileCosts]:
    """Return the profiles of each benchmark and tool, those of benchmarks named in ``first`` at the start."""
    rank = {benchmark: place for place, benchmark in enumerate(first)}
    return sorted(costs_of(profiles), key=lambda item: rank.get(item.benchmark, len(rank)))


def graph_of(profiled: Sequence[ProfileCosts], benchmark: str, tool: str = "") -> str:
    """Return the id of a benchmark's graph, by that tool if there is one; '' if there is none."""
    numbers = {
        item.tool: number
        for number, item in reversed(list(enumerate(profiled[:MOST_GRAPHS], 1)))
        if item.benchmark == benchmark and not item.is_call_pairs
    }
    return f"flame-{numbers.get(tool, min(numbers.values()))}" if numbers else ""


def flame_graphs(profiled: Sequence[ProfileCosts], names: Mapping[str, str] = SIDE_NAMES) -> Iterator[Markup]:
    """Yield a graph and a table for each profile. ``names``: how the report calls each side.

    A profile with direct callers only gets a table of calls instead of a graph, since its stacks are not known.
    """
    for number, item in enumerate(profiled[:MOST_GRAPHS], 1):
        benchmark, tool = Span(item.benchmark, TextKind.NAME), Span(item.tool, TextKind.NAME)
        title = prose_html((benchmark, " by ", tool, ": ", Span(_measured(item), TextKind.WORDS)))
        graph = Markup('<div id="flame-{}">\n{}\n</div>').format(
            number, joined(list(_parts(item, tuple(names.values()))))
        )
        if number == 1:
            yield Markup("<h3>{}</h3>").format(title)
            yield graph
        else:
            yield Markup("<details><summary>{}</summary>\n{}\n</details>").format(title, graph)
    if len(profiled) > MOST_GRAPHS:
        yield paragraph(f"{len(profiled) - MOST_GRAPHS} more profiles with stacks are in the folder of the run.")


def _measured(item: ProfileCosts) -> str:
    if item.unit == SHARE:
        return f"share of {_NOUNS.get(item.counted, item.counted)}"
    return f"{_NOUNS.get(item.unit, item.unit)} per operation"


def _parts(item: ProfileCosts, names: Sequence[str]) -> Iterator[Markup]:
    tree = None if item.is_call_pairs else tree_of(*item.stacks)
    yield paragraph(" ".join(_explained(item, tree, names)))
    if tree:
        yield _figure(item, tree, names)
    yield from _functions(item, names)
    if item.is_call_pairs:
        yield paragraph("Who calls whom: the own cost of a function, by the function that called it.")
        yield from _calls(item, names)


def _explained(profile: ProfileCosts, tree: FlameTree | None, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences on the meaning of widths and colours, and on what is not shown."""
    wholes = [sum(side.values()) for side in profile.stacks]
    if profile.unit == SHARE:
        yield "The cost of one operation is not known, so these are shares of the profile."
        if profile.changes:
            yield (
                "If one function gets faster, the shares of all others grow: a change of a share is not a change "
                "of cost."
            )
    elif profile.changes:
        costs = (f"{profile.text(whole)} in {name}" for whole, name in zip(wholes, names, strict=True))
        yield f"One operation costs {' and '.join(costs)}."
    else:
        yield f"One operation costs {profile.text(max(wholes))}."
    if profile.counted == "samples":
        yield " and ".join(_samples(side) for side in profile.sides if side) + " samples were taken."
    if profile.is_call_pairs:
        yield "No flame graph: this profiler records the direct caller of each function, but not the whole stack."
    if profile.changes:
        yield from _rule(profile, profile.changes, names)
    if tree:
        yield f"Frames below {tree.smallest:.2%} are counted with their callers."


def _samples(side: Sequence[StackProfile]) -> str:
    return str(sum(sum(stacks.values()) for profile in side for stacks in profile.threads.values()))


def _rule(profile: ProfileCosts, changes: Changes, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences on the rule by which a function counts as changed."""
    z = f"{changes.needed:.1f} standard deviations of the noise"
    yield f"A function counts as changed if its own cost differs by more than {z}."
    before, after = map(len, profile.sides)
    if changes.noise is NoiseSource.MEASURED:
        yield f"The noise is measured: it is the spread of {before} profiles of {names[0]} and {after} of {names[1]}."
    elif changes.noise is NoiseSource.COUNTED:
        yield f"These costs were counted, not sampled. They are assumed to vary by {COUNTED:.0%} from run to run."
    else:
        few = "one profile" if before == after == 1 else "so few profiles"
        yield f"With {few} of each side the noise is not measured; that takes {ENOUGH} of each."
        if changes.noise is NoiseSource.SEEN:
            yield "It is estimated from how much most functions differ."
        else:
            yield "There are too few functions to estimate it, so the noise of an overloaded machine is assumed."


def _figure(item: ProfileCosts, tree: FlameTree, names: Sequence[str]) -> Markup:
    kinds = _kinds_of(item, tree)
    label = f"Flame graph of {item.benchmark} by {item.tool}. Widest by own cost: " + ", ".join(
        f"{row.name} {max(row.shares):.0%}" for row in item.functions[:5]
    )
    return Markup(
        '<figure class="flame">{}\n<script type="application/json">{}</script><figcaption class="key">{}</figcaption>'
        "</figure>"
    ).format(_picture(item, tree, kinds, label), _columns(item, tree, kinds, names), _legend(item))


def _legend(profile: ProfileCosts) -> Markup:
    if not profile.changes:
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


def _kinds_of(item: ProfileCosts, tree: FlameTree) -> list[int]:
    """Return the index in `_KINDS` for each name of the tree."""
    known = {row.name: row for row in item.functions}
    return [_KINDS.index(_kind(known[name])) if name in known else 0 for name in tree.names]


def _kind(row: FlameFunction) -> str:
    if row.trend in (CostTrend.MORE, CostTrend.LESS):
        return f"{'much-' if abs(row.relative) >= STRONG else ''}{row.trend.value}"
    return str(row.trend.value)


def _columns(profile: ProfileCosts, tree: FlameTree, kinds: Sequence[int], names: Sequence[str]) -> Markup:
    """Return the JSON for ``flame.js``: names, and numbers for each node in preorder. No name can end the element."""
    data: dict[str, object] = {
        "title": shortened(f"{profile.benchmark} by {profile.tool}, {_measured(profile)}", 2 * LONGEST_NAME),
        "sides": [bool(side) for side in profile.sides],
        "called": list(names),
        "unit": profile.unit,
        "step": tree.step,
        "threads": profile.is_threaded,
        "kinds": _KINDS,
        "names": [shortened(each, LONGEST_NAME) for each in tree.names],
        "digits": DIGITS,
    }
    numbers = {"kind": kinds, "name": tree.name, "depth": tree.depth, "before": tree.before, "after": tree.after}
    data |= {column: written(each) for column, each in numbers.items()}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704


def _picture(profile: ProfileCosts, tree: FlameTree, kinds: Sequence[int], label: str) -> Markup:
    """Return a picture of the widest frames of the side after, or of the only side, with the root on top."""
    side = AFTER if profile.sides[AFTER] else BEFORE
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
        kind = _KINDS[kinds[name]] if profile.changes and is_own else "same" if profile.changes else f"s{name % 3}"
        x, width = start / (totals[0] or 1) * WIDTH, share * WIDTH
        parts.append(svg.rectangle(kind, x, level * ROW, width - 1 if width > 3 else width, ROW - 1))
        letters = int((width - 6) / LETTER)
        if letters >= 3:
            parts.append(svg.text(x + 3, level * ROW + 12, shortened(tree.names[name], letters)))
    return svg.picture(WIDTH, (deepest + 1) * ROW, label, parts)


def _functions(profile: ProfileCosts, names: Sequence[str]) -> Iterator[Markup]:
    """Yield the table of the largest functions, and of changed ones among the others."""
    changed = [row for row in profile.functions[MOST_FUNCTIONS:] if row.trend is not CostTrend.SAME]
    shown = [*profile.functions[:MOST_FUNCTIONS], *changed[:MOST_CHANGED]]
    if profile.changes:
        titles = map(value, (f"Own share {names[0]}", names[1].capitalize(), "Own change"))
        cells = ([*_cells(profile, row), _decision(row)] for row in shown)
        only_changed = Filter("Only changed", [row.trend is not CostTrend.SAME for row in shown])
        yield table_html(table([name("Function"), *titles, mark("Decision")], cells), wanted=only_changed)
    else:
        costs = None if profile.unit == SHARE else value("Per operation")
        columns = [name("Function"), value("Own share"), costs]
        rows = ([row.name, f"{max(row.shares):.1%}", profile.text(max(row.costs))] for row in shown)
        yield table_html(table(columns, rows))
    if len(profile.functions) > len(shown):
        yield paragraph(f"{len(profile.functions) - len(shown)} smaller functions are not listed.")


def _cells(item: ProfileCosts, row: FlameFunction) -> list[Cell]:
    """Return a function's name, its shares and its change."""
    before, after = (f"{share:.1%}" if share else NOTHING for share in row.shares)
    relative = f" ({format_change(row.relative)})" if row.costs[BEFORE] and row.costs[AFTER] else ""
    sign = "+" if row.difference > 0 else ""
    return [row.name, before, after, f"{sign}{item.text(row.difference)}{relative}"]


def _decision(row: FlameFunction) -> str:
    words = {CostTrend.MORE: "costs more", CostTrend.LESS: "costs less", CostTrend.SAME: "no proven change"}
    return f"{_MARKS.get(row.trend, '')} {words.get(row.trend, row.trend.value)}".strip()


def _calls(profile: ProfileCosts, names: Sequence[str]) -> Iterator[Markup]:
    """Yield the table of the calls with the largest own cost of the callee."""
    costs: dict[Stack, list[float]] = {}
    for place, side in enumerate(profile.stacks):
        whole = sum(side.values())
        for stack, cost in side.items():
            costs.setdefault(stack[-2:], [0.0, 0.0])[place] += cost / whole
    ranked = sorted(costs, key=lambda call: (-max(costs[call]), call))
    titles = [f"Share {names[0]}", names[1].capitalize()] if profile.changes else ["Share"]
    rows = []
    for call in ranked[:MOST_CALLS]:
        shares = costs[call] if profile.changes else [max(costs[call])]
        caller = call[0] if len(call) > 1 else ""
        rows.append(
            [call[-1] if call else "?", optional(caller), *(f"{share:.1%}" if share else NOTHING for share in shares)]
        )
    yield table_html(table([name("Function"), name("Called by"), *map(value, titles)], rows))
    if len(ranked) > MOST_CALLS:
        yield paragraph(f"{len(ranked) - MOST_CALLS} smaller calls are not listed.")


SMALLEST = 0.0002
"""Share of a side below which a frame is dropped, if it is below on both sides."""
MOST_NODES = 8_000
"""Most nodes of one tree; the smallest share is doubled until there are no more."""
STEPS = 100_000
"""Costs are whole numbers of at most this many steps, so that they are short in the page."""
DIGITS = "".join(letter for letter in map(chr, range(33, 127)) if letter not in '"\\<>&~')
"""Digits of whole numbers: a digit of the second half is followed by another digit of the same number."""
ROOT, SMALLER = "all", "(smaller frames)"
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_THREAD_ID = re.compile(r"0x[0-9a-fA-F]+|\b\d{4,}\b")

Costs = tuple[float, float]
"""Before and after."""


@dataclass(frozen=True)
class FlameTree:
    """A node for each frame in its context, the root first, callees after their caller, sorted by name.

    ``names`` holds each name once, and ``name`` an index into it for each node. ``before`` and ``after`` are own costs
    in units of ``step``. ``smallest`` is the share below which frames are dropped: they are counted with their caller,
    or as `SMALLER` if those of one caller exceed that share together.
    """

    names: Sequence[str]
    name: Sequence[int]
    depth: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    step: Costs
    smallest: float

    def totals(self) -> tuple[list[int], list[int]]:
        """Return the inclusive cost of each node, before and after, in steps."""
        sums = (list(self.before), list(self.after))
        for node, parent in reversed(list(enumerate(_parents(self.depth)))[1:]):
            for side in sums:
                side[parent] += side[node]
        return sums


def merged_name(name: str) -> str:
    """Return a name without addresses, which differ from process to process."""
    return _ADDRESS.sub("0x…", name) if "0x" in name else name


def stacks_of(profile: StackProfile, is_threaded: bool) -> Counter[Stack]:
    """Return the stacks of all threads with merged names, below their thread's name if ``is_threaded``."""
    counts: Counter[Stack] = Counter()
    known: dict[str, str] = {}
    for thread, stacks in profile.threads.items():
        above = (_THREAD_ID.sub("…", thread) or "(unnamed thread)",) if is_threaded else ()
        for stack, count in stacks.items():
            for frame in stack:
                if frame not in known:
                    known[frame] = merged_name(frame)
            counts[above + tuple(known[frame] for frame in stack)] += count
    return counts


def tree_of(before: Mapping[Stack, float], after: Mapping[Stack, float]) -> FlameTree:
    """Return the tree of the costs of both sides, each in its own unit. A side may have no stacks."""
    frames, depth, own_costs = _preorder(before, after)
    parents = _parents(depth)
    totals = [list(costs) for costs in own_costs]
    for node in range(len(frames) - 1, 0, -1):
        for side in (0, 1):
            totals[node and parents[node]][side] += totals[node][side]
    wholes = [whole or 1.0 for whole in totals[0]]
    shares = [max(total[0] / wholes[0], total[1] / wholes[1]) for total in totals]
    smallest = SMALLEST
    while sum(share >= smallest for share in shares) > MOST_NODES:
        smallest *= 2
    rest: dict[int, list[float]] = {}
    for node in range(1, len(frames)):
        if shares[node] < smallest <= shares[parents[node]]:
            of_caller = rest.setdefault(parents[node], [0.0, 0.0])
            for side in (0, 1):
                of_caller[side] += totals[node][side]
    rows = []
    for node, share in enumerate(shares):
        if share < smallest and node:
            continue
        small = rest.get(node, [0.0, 0.0])
        is_shown = max(small[0] / wholes[0], small[1] / wholes[1]) >= smallest
        kept = [own_costs[node][side] + (0.0 if is_shown else small[side]) for side in (0, 1)]
        rows.append((frames[node], depth[node], kept))
        if is_shown:
            rows.append((SMALLER, depth[node] + 1, small))
    return _tree_columns(rows, (_step(before, totals[0][0]), _step(after, totals[0][1])), smallest)


def _preorder(
    before: Mapping[Stack, float], after: Mapping[Stack, float]
) -> tuple[list[str], list[int], list[list[float]]]:
    """Return names, depths and own costs of all nodes. In sorted order, stacks with a common start are adjacent."""
    frames, depth, own_costs = [ROOT], [0], [[0.0, 0.0]]
    previous: Stack = ()
    for stack in sorted({**before, **after}):
        common = 0
        for one, other in zip(stack, previous, strict=False):
            if one != other:
                break
            common += 1
        for level in range(common, len(stack)):
            frames.append(stack[level])
            depth.append(level + 1)
            own_costs.append([0.0, 0.0])
        own_costs[-1][0] += before.get(stack, 0.0)
        own_costs[-1][1] += after.get(stack, 0.0)
        previous = stack
    return frames, depth, own_costs


def _parents(depth: Sequence[int]) -> list[int]:
    """Return the caller of each node; the root is its own caller."""
    path: list[int] = []
    parents = []
    for node, level in enumerate(depth):
        del path[level:]
        parents.append(path[-1] if path else 0)
        path.append(node)
    return parents


def _step(costs: Mapping[Stack, float], whole: float) -> float:
    """Return the cost of one step: the smallest cost if all are multiples of it, else a fixed part of the whole."""
    least = min((cost for cost in costs.values() if cost), default=1.0)
    if whole / least <= STEPS and all(abs(cost / least - round(cost / least)) < 1e-6 for cost in costs.values()):
        return least
    return whole / STEPS


def _tree_columns(rows: Sequence[tuple[str, int, Sequence[float]]], step: Costs, smallest: float) -> FlameTree:
    ranked = Counter(name for name, _, _ in rows).most_common()
    number = {name: place for place, (name, _) in enumerate(ranked)}
    return FlameTree(
        names=list(number),
        name=[number[name] for name, _, _ in rows],
        depth=[level for _, level, _ in rows],
        before=_steps((costs[0] for _, _, costs in rows), step[0]),
        after=_steps((costs[1] for _, _, costs in rows), step[1]),
        step=step,
        smallest=smallest,
    )


def _steps(costs: Iterable[float], step: float) -> list[int]:
    """Return whole steps, rounded so that the sum over any subtree (a range of nodes) is off by at most one step."""
    ends = [round(cost / step) for cost in accumulate(costs, initial=0.0)]
    return [end - start for start, end in pairwise(ends)]


def written(numbers: Iterable[int]) -> str:
    """Return whole numbers >= 0 as text, the lowest digit first, without separators."""
    half = len(DIGITS) // 2
    letters = []
    for number in numbers:
        rest = number
        while rest >= half:
            letters.append(DIGITS[half + rest % half])
            rest //= half
        letters.append(DIGITS[rest])
    return "".join(letters)


SHARE = "share"
"""The unit of costs if the cost of an operation is not known."""
BEFORE, AFTER = 0, 1
_DIMENSIONS = {"ns": (Dimension.TIME, 1e-9), "bytes": (Dimension.BYTES, 1.0)}


@dataclass(frozen=True)
class FlameFunction:
    """A function with its own costs and shares, before and after, and its trend."""

    name: str
    costs: Costs
    shares: Costs
    trend: CostTrend

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.costs[AFTER] - self.costs[BEFORE]

    @property
    def relative(self) -> float:
        """The difference as a share of the cost before; infinite if that is 0."""
        return self.difference / self.costs[BEFORE] if self.costs[BEFORE] else float("inf")


@dataclass(frozen=True)
class ProfileCosts:
    """Profiles of one step, benchmark and tool. ``sides``: before and after, of which one may be empty.

    ``stacks`` are the costs of both sides in ``unit``, which is the unit of an operation's cost or `SHARE`. ``counted``
    is the unit of the profile's counts.
    """

    step: str
    benchmark: str
    tool: str
    counted: str
    unit: str
    sides: tuple[Sequence[StackProfile], Sequence[StackProfile]]
    stacks: tuple[Mapping[Stack, float], Mapping[Stack, float]]
    functions: Sequence[FlameFunction]
    changes: Changes | None
    """The changes of functions; None if only one side was profiled."""
    is_threaded: bool

    @property
    def is_call_pairs(self) -> bool:
        """Whether only direct callers are known."""
        return any(profile.is_call_pairs for side in self.sides for profile in side)

    def text(self, cost: float) -> str:
        """Return a cost as text."""
        if self.unit == SHARE:
            return f"{cost:.1%}"
        dimension, base = _DIMENSIONS.get(self.unit, (Dimension.COUNT, 1.0))
        return format_quantity(cost * base, dimension)


def costs_of(profiles: Iterable[StackProfile]) -> Iterator[ProfileCosts]:
    """Join the profiles of each step, benchmark, tool and unit, in order; profiles without samples are ignored."""
    joined: dict[tuple[str, ...], tuple[list[StackProfile], list[StackProfile]]] = {}
    for profile in profiles:
        key = (profile.step, profile.benchmark, profile.tool, profile.unit, profile.cost_unit)
        if any(count for stacks in profile.threads.values() for count in stacks.values()):
            joined.setdefault(key, ([], []))[BEFORE if profile.side == "baseline" else AFTER].append(profile)
    for (step, benchmark, tool, counted, _), sides in joined.items():
        both = [profile for side in sides for profile in side]
        unit = _unit(both)
        is_threaded = max(len(profile.threads) for profile in both) > 1
        given = [[(stacks_of(profile, is_threaded), profile) for profile in side] for side in sides]
        before, after = ([_own(stacks, profile, unit) for stacks, profile in side] for side in given)
        changes = function_changes(before, after) if before and after else None
        yield ProfileCosts(
            step,
            benchmark,
            tool,
            counted,
            unit,
            sides,
            (_mean(given[BEFORE], unit), _mean(given[AFTER], unit)),
            _flame_functions(before, after, changes),
            changes,
            is_threaded,
        )


def _unit(profiles: Sequence[StackProfile]) -> str:
    units = {profile.cost_unit for profile in profiles}
    is_known = all(profile.per_operation for profile in profiles)
    return units.pop() if is_known and len(units) == 1 else SHARE


def _scale(profile: StackProfile, whole: int, unit: str) -> float:
    """Return the cost of one count."""
    return (1.0 if unit == SHARE else profile.per_operation or 0.0) / whole


def _mean(side: Sequence[tuple[Counter[Stack], StackProfile]], unit: str) -> dict[Stack, float]:
    costs: dict[Stack, float] = {}
    for stacks, profile in side:
        scale = _scale(profile, stacks.total(), unit) / len(side)
        for stack, count in stacks.items():
            costs[stack] = costs.get(stack, 0.0) + count * scale
    return costs


def _own(stacks: Counter[Stack], profile: StackProfile, unit: str) -> OwnCosts:
    own: Counter[str] = Counter()
    for stack, count in stacks.items():
        own[stack[-1] if stack else "?"] += count
    return OwnCosts(own, _scale(profile, stacks.total(), unit), _sample(profile, stacks.values()))


def _sample(profile: StackProfile, counts: Iterable[int]) -> float:
    """Return the count of one sample, 0 if the tool counts exactly.

    For weighted samples it is the median, since most stacks were seen in few samples.
    """
    if profile.unit == "samples":
        return 1.0
    if profile.unit in ("bytes", "allocations") or profile.is_call_pairs:
        # A profiler of calls measures times and takes no samples. At 1 ns a sample, counting adds no noise.
        return 1.0 if profile.unit == "ns" else 0.0
    return float(median_low(count for count in counts if count))


def _flame_functions(
    before: Sequence[OwnCosts], after: Sequence[OwnCosts], changes: Changes | None
) -> list[FlameFunction]:
    """Return all functions, sorted by their larger share of the two sides."""
    trends = changes.trends if changes else {}
    costs = tuple(_mean_costs(side) for side in (before, after))
    wholes = tuple(sum(side.values()) or 1.0 for side in costs)
    rows = []
    for function in {**costs[BEFORE], **costs[AFTER]}:
        old, new = (side.get(function, 0.0) for side in costs)
        shares = (old / wholes[BEFORE], new / wholes[AFTER])
        rows.append(FlameFunction(function, (old, new), shares, trends.get(function, CostTrend.SAME)))
    return sorted(rows, key=lambda row: (-max(row.shares), row.name))


def _mean_costs(side: Sequence[OwnCosts]) -> dict[str, float]:
    names = {name for profile in side for name in profile.counts}
    return {name: sum(each.counts.get(name, 0) * each.scale for each in side) / len(side) for name in sorted(names)}
