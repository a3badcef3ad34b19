"""Tables of replayed gates: ``python -m benchmarks.replayed LOG``.

LOG has the lines of replay.py, wide.py and side_by_side.py.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Gate = Mapping[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; all columns but the first are numbers or short words."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def share(part: int, whole: int) -> str:
    """Return text such as ``3 of 60 (5.0%)``."""
    return f"{part} of {whole:,} ({part / whole:.1%})" if whole else "0 of 0"


def changes(gates: Iterable[Gate]) -> str:
    """Return the table of known changes, one line for each gate."""
    head = ["change", "direction", "known", "found", "others changed", "undecided", "not timed", "minutes", "load"]
    return table(
        head,
        (
            (
                f"{item['project']}: {item['change']}",
                "backwards" if item["backwards"] else "forwards",
                item["known"],
                item["found"],
                len(item["others"]),
                share(len(item["undecided"]), item["rows"]),
                sum(number for reason, number in item["unchanged"].items() if reason != "timed"),
                item["minutes"],
                f"{item['load']:.1f}",
            )
            for item in gates
        ),
    )


def by_project(gates: Iterable[Gate]) -> Iterator[tuple[str, list[Gate]]]:
    """Yield each project with its gates."""
    found: dict[str, list[Gate]] = {}
    for item in gates:
        found.setdefault(item["project"], []).append(item)
    yield from found.items()


def commits(gates: Iterable[Gate]) -> str:
    """Return the table of ordinary commits, one line for each project."""
    head = ["project", "gates", "red", "rows", "changed", "undecided", "same files", "same code", "audited"]
    rows = []
    for project, own in by_project(gates):
        every = sum(item["rows"] for item in own)
        reasons = sum((Counter(item["unchanged"]) for item in own), Counter[str]())
        changed = sum(len(item["others"]) for item in own)
        minutes = [item["minutes"] for item in own]
        rows.append(
            [
                *(project, len(own), sum(item["verdict"] == "fail" for item in own), f"{every:,}", changed),
                *(share(sum(len(item["undecided"]) for item in own), every),),
                *(share(reasons[reason], every) for reason in ("files", "code")),
                *(sum(item["audited"] for item in own), f"{statistics.median(minutes):.1f}", max(minutes)),
                f"{min(item['load'] for item in own):.0f} to {max(item['load'] for item in own):.0f}",
            ]
        )
    return table([*head, "median minutes", "most", "load"], rows)


def alarms(gates: Iterable[Gate]) -> str:
    """Return the table of commits against themselves with everything timed, one line for each project."""
    rows = []
    for project, own in by_project(gates):
        every = sum(item["rows"] for item in own)
        rows.append(
            [
                *(project, share(sum(len(item["others"]) for item in own), every)),
                *(share(sum(bool(item["others"]) for item in own), len(own)),),
                *(share(sum(len(item["undecided"]) for item in own), every),),
                f"{min(item['load'] for item in own):.0f} to {max(item['load'] for item in own):.0f}",
            ]
        )
    return table(["project", "rows called changed", "suites with one", "undecided", "load"], rows)


HEAD = """# Gates of real projects

Written by `python -m benchmarks.replayed dev/experiments/gates.jsonl`. Each gate ran once, with `--budget 10m` (those
of nothing changed with `--budget 2m`), on two cores beside a loop that computes all the time, and often beside tests of
perfflow; `load` is the average of five minutes. One gate is a repetition: toml 57f7bb8e backwards. Its first one proved
neither of the known changes, since it kept no time for their code layouts. That defect was mended.
`python -m benchmarks.replay --help` says how to repeat them.

- **Known** are the changes that the project documents, as names of benchmarks with wildcards; **found** are those of
  which a row is proven. **Others changed** are all other rows with a proven change of any size.
- **Undecided** rows are `unproven`, and a regression beyond `action` is not excluded.
- **Not timed** rows execute the [same files or code](../../docs/explanation/unchanged.md) on both
  sides.

"""


def pairs(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of how much a pair varies."""
    head = ["loops beside it", "in turn", "seconds of a pair", "side by side", "seconds of a pair", "load"]
    return table(
        head,
        (
            (
                item["busy"],
                *(f"{item['turn']:.1%}", f"{item['turn_seconds']:.1f}"),
                *(f"{item['side']:.1%}", f"{item['side_seconds']:.1f}", f"{item['load']:.1f}"),
            )
            for item in lines
        ),
    )


def page(log: Path) -> str:
    """Return the page of a log. A gate that could not measure is named."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    failed = [f"{item['change']}: {item['error'].splitlines()[-1]}" for item in lines if "error" in item]
    parts: list[tuple[str, str, Callable[[Sequence[Gate]], str]]] = [
        ("known", "Known changes", changes),
        ("commit", "Ordinary commits", commits),
        ("alike", "Nothing changed, everything timed", alarms),
        ("wide", "Many benchmarks", changes),
        ("pairs", "The standard deviation of a pair's log ratio, of 40 Python benchmarks against themselves", pairs),
    ]
    text = HEAD
    for kind, title, made in parts:
        own = [item for item in lines if item["kind"] == kind and "error" not in item]
        text += f"## {title}\n\n{made(own)}\n" if own else ""
    return text.rstrip() + "\n" + ("\nNot measured: " + "; ".join(failed) + "\n" if failed else "")


if __name__ == "__main__":
    print(page(Path(sys.argv[1])), end="")
