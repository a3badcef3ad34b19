"""The log as tables: what was said, how often it was wrong with the upper 95% bound, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from scipy import stats

from benchmarks.layout_experiment import summary as layouts
from benchmarks.verdict_experiment.live import CHANGED
from benchmarks.verdict_experiment.log import Entry


def upper_bound(found: int, trials: int) -> float:
    """One-sided upper 95% bound of a rate (Clopper and Pearson 1934)."""
    return 1.0 if found >= trials else float(stats.beta.ppf(0.95, found + 1, trials - found))


def tables(log: Sequence[Entry]) -> str:
    """Markdown, from the log alone."""
    parts = [*_head(log), *_live(log), *_waits(log), *_peers(log), *_suites(log), *_live_suites(log)]
    parts += [*_blocks(log), *_look(log), *layouts.tables(log)]
    return "\n".join(parts) + "\n"


def _head(log: Sequence[Entry]) -> Iterator[str]:
    starts = [entry for entry in log if "start" in entry]
    yield "# How often verdicts are right: an experiment"
    yield ""
    yield "Written by `python -m benchmarks.verdicts table` from the log beside it; each trial is a line of that."
    yield ""
    for machine in dict.fromkeys(_machine(entry["machine"]) for entry in starts):
        yield f"- machine: {machine}"
    for neighbour in dict.fromkeys(entry["neighbour"] for entry in log if "neighbour" in entry):
        yield f"- neighbour, but for the experiment on layouts: {neighbour}"
    yield ""
    yield "| part | perfflow | seed | begun | ended | load at the start | at the end |"
    yield "|---|---|---|---|---|---|---|"
    yield from (_session_row(log, start) for start in starts)


def _machine(machine: Entry) -> str:
    virtual = ", virtual" if machine["virtual"] else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB{virtual},\n"
        f"  {machine['system']} {machine['kernel_series']}, Python {machine['python']}"
    )


def _session_row(log: Sequence[Entry], start: Entry) -> str:
    part, tree = start.get("part"), start["tree"]
    own = [entry for entry in log[log.index(start) + 1 :] if entry.get("part") == part]
    last = next((entry for entry in own if "start" in entry or "end" in entry), {})
    dirty = ", with uncommitted changes" if tree["dirty"] else ""
    cells = [
        *(part or "all", f"{start['perfflow']} at {str(tree['revision'])[:12]}{dirty}", str(start["options"]["seed"])),
        *(start["start"], last.get("end", "cut"), _load(start["machine"]["load"]), _load(last.get("load", ()))),
    ]
    return "| " + " | ".join(cells) + " |"


def _load(found: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in found)


def is_changed(entry: Entry) -> bool:
    """Whether any metric that gates was called changed."""
    return bool(entry["called"]) if "called" in entry else entry["decision"] in CHANGED


def _live(log: Sequence[Entry]) -> Iterator[str]:
    trials = [entry for entry in log if "kind" in entry and "decision" in entry]
    if not trials:
        return
    yield from ("", "## Live comparisons", "")
    yield "`perfflow compare -- OLD NEW` as typed: seconds from the start of the command to its end. Both are one file"
    yield "with another argument, but for the two builds. Changed: any metric that gates was called so."
    for entry in (entry for entry in log if "budget" in entry):
        yield f"Identical ones have `--budget {entry['budget']}`."
        break
    yield ""
    yield "| compared | trials | called changed | upper 95% bound | same | unproven | median s | p90 s | median pairs |"
    yield "|---|---|---|---|---|---|---|---|---|"
    kinds = sorted({entry["kind"] for entry in trials})
    for kind in kinds:
        yield _live_row(kind, [entry for entry in trials if entry["kind"] == kind])
    identical = [entry for entry in trials if entry["kind"].startswith("identical")]
    if identical:
        yield _live_row("identical, both", identical)
    for kind in (name for name in kinds if "slower" in name):
        own = [entry for entry in trials if entry["kind"] == kind]
        right = [entry for entry in own if entry["decision"] == "regressed"]
        quick = [entry for entry in right if entry["seconds"] <= 20]
        found = f"{len(right)} of {len(own)} found ({len(right) / len(own):.1%})"
        measured = median(entry["change"][0] for entry in own)
        yield from ("", f"{kind}: {found}, {len(quick)} of them within 20 s; median measured change {measured:+.2%}.")
    said = [entry["seconds"] for entry in identical if entry["decision"] == "same"]
    if said:
        yield from ("", f"`same` of identical programs: {len(said)} of {len(identical)}, median {median(said):.2f} s.")


def _live_row(kind: str, own: list[Entry]) -> str:
    decisions = [entry["decision"] for entry in own]
    changed = sum(map(is_changed, own))
    seconds = sorted(entry["seconds"] for entry in own)
    cells = [
        *(kind, str(len(own)), str(changed)),
        f"{upper_bound(changed, len(own)):.2%}" if kind.startswith("identical") else "",
        *(str(decisions.count("same")), str(decisions.count("unproven"))),
        f"{median(seconds):.2f}",
        f"{seconds[int(0.9 * (len(seconds) - 1))]:.2f}",
        f"{median(entry['pairs'] for entry in own):g}",
    ]
    return "| " + " | ".join(cells) + " |"


def _waits(log: Sequence[Entry]) -> Iterator[str]:
    trials = [entry for entry in log if "waits" in entry]
    if not trials:
        return
    yield from ("", "## Programs that wait longer", "")
    yield "19 ms of computing and 1 ms of waiting, against the same with a wait that is longer by a share of the whole."
    yield "Exit statuses of `perfflow compare`: 0 nothing that matters, 1 slower by more than 10%, 4 unproven."
    yield ""
    yield "| waits for | longer by | trials | exit 0 | exit 1 | exit 4 | median change of what decides | median s |"
    yield "|---|---|---|---|---|---|---|---|"
    for mode, percent in sorted({(entry["waits"], entry["percent"]) for entry in trials}):
        own = [entry for entry in trials if (entry["waits"], entry["percent"]) == (mode, percent)]
        exits = [str(sum(entry["exit"] == status for entry in own)) for status in (0, 1, 4)]
        changes = median(entry["change"][0] for entry in own)
        seconds = median(entry["seconds"] for entry in own)
        cells = [mode, f"{percent}%", str(len(own)), *exits, f"{changes:+.1%}", f"{seconds:.2f}"]
        yield "| " + " | ".join(cells) + " |"


def _peers(log: Sequence[Entry]) -> Iterator[str]:
    trials = [entry for entry in log if "kind" in entry and "different" in entry]
    if not trials:
        return
    yield from ("", "## hyperfine beside the same neighbour", "")
    yield "Its own defaults with `-N`; how often each rule calls the two different."
    yield ""
    rules = list(trials[0]["different"])
    yield "| compared | trials | " + " | ".join(rules) + " | median s |"
    yield "|---|---|" + "---|" * (len(rules) + 1)
    for kind in sorted({entry["kind"] for entry in trials}):
        own = [entry for entry in trials if entry["kind"] == kind]
        counts = [str(sum(entry["different"][rule] for entry in own)) for rule in rules]
        seconds = median(entry["seconds"] for entry in own)
        yield f"| {kind.partition(': ')[2]} | {len(own)} | " + " | ".join(counts) + f" | {seconds:.2f} |"


def _suites(log: Sequence[Entry]) -> Iterator[str]:
    entries = [entry for entry in log if "suite" in entry]
    if not entries:
        return
    yield from ("", "## Suites of 100 benchmarks, replayed", "")
    yield "Runs recorded just before, through perfflow's screening and confirmation; in some, 5 of 100 cost more."
    yield ""
    yield "| program | truly changed | suites | with any alarm | upper 95% bound | changes found | pairs of each |"
    yield "|---|---|---|---|---|---|---|"
    groups = sorted({(entry["suite"], entry["factor"]) for entry in entries})
    for mode, factor in groups:
        own = [entry for entry in entries if (entry["suite"], entry["factor"]) == (mode, factor)]
        alarmed = sum(entry["alarms"] > 0 for entry in own)
        found, true = (sum(entry[key] for entry in own) for key in ("found", "changed"))
        cells = [
            *(mode, f"5 by {factor - 1:.0%}" if true else "none", str(len(own))),
            *(f"{alarmed} ({alarmed / len(own):.1%})", f"{upper_bound(alarmed, len(own)):.2%}"),
            f"{found} of {true} ({found / true:.1%})" if true else "",
            f"{sum(entry['pairs'] for entry in own) / len(own):.1f}",
        ]
        yield "| " + " | ".join(cells) + " |"


def _live_suites(log: Sequence[Entry]) -> Iterator[str]:
    own = [entry for entry in log if "live suite" in entry]
    if not own:
        return
    alarmed = sum(entry["alarms"] > 0 for entry in own)
    found, true = (sum(entry[key] for entry in own) for key in ("found", "changed"))
    pairs, seconds = (median(entry[key] for entry in own) for key in ("pairs", "seconds"))
    yield from ("", "## Suites of 100 benchmarks, live", "")
    yield f"{len(own)} runs of a workflow with 100 memory-bound benchmarks, five of them 2% slower:"
    yield f"{found} of {true} found ({found / true:.0%}), {alarmed} suites with any alarm;"
    yield f"{pairs:.1f} pairs of each, {seconds:.0f} s at the median."


def _blocks(log: Sequence[Entry]) -> Iterator[str]:
    entries = [entry for entry in log if "blocks" in entry]
    if not entries:
        return
    yield from ("", "## The same recordings, judged in blocks", "")
    yield "n runs of A and then n runs of B, wall time: the share of trials in which each rule calls them different."
    yield ""
    sizes = sorted({entry["runs"] for entry in entries})
    yield "| program | true change | rule | " + " | ".join(f"n = {size}" for size in sizes) + " |"
    yield "|---|---|---|" + "---|" * len(sizes)
    for mode, factor, rule in dict.fromkeys((entry["blocks"], entry["factor"], entry["rule"]) for entry in entries):
        own = [entry for entry in entries if (entry["blocks"], entry["factor"], entry["rule"]) == (mode, factor, rule)]
        cells = [f"{entry['different'] / entry['trials']:.0%} of {entry['trials']}" for entry in own]
        yield f"| {mode} | {factor - 1:.0%} | {rule} | " + " | ".join(cells) + " |"


def _look(log: Sequence[Entry]) -> Iterator[str]:
    end = next((entry for entry in log if "look" in entry), None)
    if end is None:
        return
    yield from ("", "## What one look costs", "")
    yield "The computing between two rounds, for a command with all its metrics, median of 20:"
    yield ""
    yield "; ".join(f"{taken * 1e3:.1f} ms at {pairs} pairs" for pairs, taken in end["look"].items()) + "."
