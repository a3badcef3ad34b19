"""The trials about code layout as tables, from the log alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.layout_experiment.judges import LIMIT, moved
from benchmarks.verdict_experiment.log import Entry

WAYS = {
    "off": "perfflow gate, as built (`layouts: off`)",
    "auto": "perfflow gate, `layouts: auto`",
    "hyperfine": "hyperfine, ratio of means",
    "criterion": "criterion, its own baseline",
}
DEVIATIONS = ((0.0, 0.02, "up to 2%"), (0.02, 0.08, "2% to 8%"), (0.08, 9.0, "over 8%"))


def tables(log: Sequence[Entry]) -> Iterator[str]:
    """Lines of Markdown; none where the log has no such trial."""
    if any("screened" in entry or "slower" in entry for entry in log):
        yield from ("", "## Accidents of code layout", "")
        yield "Small real programs in C and Rust; `perfflow gate` from a base commit to a head commit; no neighbour."
        yield from _screened([entry for entry in log if "screened" in entry])
        yield from _unchanged([entry for entry in log if "edit" in entry])
        yield from _slower([entry for entry in log if "slower" in entry])


def _screened(looked: Sequence[Entry]) -> Iterator[str]:
    if not looked:
        return
    yield from ("", "### How far edits move the plain builds", "")
    yield "Edits that change no instruction of the hot code: padding, an unused function, other order, a longer cold"
    yield "function, a function in another file or crate. Proven by objdump; others are left out. A few runs in turns."
    yield ""
    yield "| program | edits | proven | beyond 5%, looked at twice | fastest | slowest |"
    yield "|---|---|---|---|---|---|"
    for program in dict.fromkeys(_program(entry["screened"]) for entry in looked):
        own = [entry for entry in looked if _program(entry["screened"]) == program]
        ratios = [entry["ratios"] for entry in own if "ratios" in entry]
        far = sum(map(moved, ratios))
        ends = [f"{end(found[-1] for found in ratios) - 1:+.1%}" if ratios else "" for end in (min, max)]
        yield f"| {program} | {len(own)} | {len(ratios)} | {far} | {' | '.join(ends)} |"


def _program(name: str) -> str:
    return name.rsplit("/", 2)[0]


def _unchanged(trials: Sequence[Entry]) -> Iterator[str]:
    if not trials:
        return
    yield from ("", "### What is said of such edits", "")
    yield "Changed: called so, with an estimate beyond 5%. Gates have default thresholds. Some were chosen as they"
    yield "move the plain builds beyond 5%. About half are undone instead of made, so that they move to either side."
    yield ""
    yield "| judged by | edits | called changed | slower | faster | of the chosen | not exit 0 in 2 min | median s |"
    yield "|---|---|---|---|---|---|---|---|"
    for way, name in WAYS.items():
        if own := [entry for entry in trials if entry["way"] == way]:
            yield _way_row(name, own)


def _way_row(name: str, own: Sequence[Entry]) -> str:
    called = [entry for entry in own if entry["called"]]
    chosen = [entry for entry in own if entry["chosen"]]
    slower = sum(entry["change"][0] > 0 for entry in called)
    gates = [entry for entry in own if "exit" in entry]
    late = sum(entry["exit"] != 0 or entry["seconds"] > LIMIT for entry in gates)
    cells = [
        *(name, str(len(own)), str(len(called)), str(slower), str(len(called) - slower)),
        f"{sum(entry['chosen'] for entry in called)} of {len(chosen)}",
        *(str(late) if gates else "", f"{median(entry['seconds'] for entry in own):.1f}"),
    ]
    return "| " + " | ".join(cells) + " |"


def _slower(trials: Sequence[Entry]) -> Iterator[str]:
    if not trials:
        return
    yield from ("", "### True changes among them", "")
    yield "Such edits that also give the hot code more work. Found: called regressed. Deviation: of one side's time"
    yield "between layouts, as the gate estimates it; none where it drew no layouts."
    yield ""
    yield "| more work | layouts | deviation | edits | found | exit 0 | exit 1 | exit 4 | median change | median s |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for percent, way, name in sorted({(entry["percent"], entry["way"], _deviation(entry)) for entry in trials}):
        own = [e for e in trials if (e["percent"], e["way"], _deviation(e)) == (percent, way, name)]
        found = sum(entry["decision"] == "regressed" for entry in own)
        exits = [str(sum(entry["exit"] == status for entry in own)) for status in (0, 1, 4)]
        change, seconds = median(entry["change"][0] for entry in own), median(entry["seconds"] for entry in own)
        cells = [f"{percent}%", way, name, str(len(own)), f"{found} ({found / len(own):.0%})", *exits]
        yield "| " + " | ".join([*cells, f"{change:+.1%}", f"{seconds:.1f}"]) + " |"


def _deviation(entry: Entry) -> str:
    if not entry["layouts"] or entry["layouts"]["deviation"] is None:
        return "none"
    found = entry["layouts"]["deviation"]
    return next(name for low, high, name in DEVIATIONS if low <= found <= high)
