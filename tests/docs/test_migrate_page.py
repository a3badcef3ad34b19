"""What other tools say on docs/how-to/migrate.md is what they said, and of the files that perfflow compares there."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

import pytest

from tests.docs.console import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "migrate.md"
CAPTURED = {path.stem: path.read_text().splitlines() for path in (Path(__file__).parent / "captured").glob("*.txt")}
DATA = ROOT / "tests" / "imports" / "data"


def is_part(shown: list[str], captured: list[str]) -> bool:
    """Whether the lines are those of a capture, in its order."""
    lines = iter(captured)
    return all(line in lines for line in shown if line != "...")


@pytest.mark.parametrize("block", blocks(PAGE, "text"), ids=lambda text: text.split("\n", 1)[0])
def test_a_shown_output_was_captured(block: str) -> None:
    assert [name for name, captured in CAPTURED.items() if is_part(block.splitlines(), captured)]


def test_every_capture_is_shown() -> None:
    shown = [block.splitlines() for block in blocks(PAGE, "text")]
    assert not [name for name, captured in CAPTURED.items() if not any(is_part(lines, captured) for lines in shown)]


def figures(name: str, pattern: str) -> list[float]:
    return [float(text) for text in re.findall(pattern, "\n".join(CAPTURED[name]))]


def test_hyperfine_measured_the_files() -> None:
    sides = [json.loads((DATA / f"hyperfine/1.15.0/{side}/result.json").read_text()) for side in ("before", "after")]
    means = [round(side["results"][0]["mean"] * 1e3, 1) for side in sides]
    assert figures("hyperfine", r"Time .*?: +([\d.]+) ms ±") == means


def test_critcmp_compared_the_trees() -> None:
    means = []
    for name in ("even", "hash"):
        for side in ("after", "before"):
            path = DATA / f"criterion/0.5.1/{side}/criterion/decode/{name}/new/sample.json"
            sample = json.loads(path.read_text())
            times = [time / iterations for time, iterations in zip(sample["times"], sample["iters"], strict=True)]
            means.append(statistics.mean(times) / 1e3)
    # Its rows have a column for each side.
    assert figures("critcmp", r"([\d.]+)±") == pytest.approx(means, abs=0.051)


def test_asv_compared_the_files() -> None:
    sides = [json.loads((DATA / f"asv/0.6.6/{side}/results.json").read_text()) for side in ("before", "after")]
    names = ("words.Suite.time_count", "words.Suite.time_longest")
    values = [side["results"][name][0][0] * 1e6 for name in names for side in sides]
    assert figures("asv", r"([\d.]+)±") == pytest.approx(values, rel=0.005)
    assert [side["commit_hash"][:8] for side in sides] == re.findall(r"\[(\w{8})\]", "\n".join(CAPTURED["asv"]))


def _go(side: str, name: str) -> list[float]:
    text = (DATA / f"go/1.26.8/{side}/bench.txt").read_text()
    return [float(value) for value in re.findall(rf"Benchmark{name}-2.*?([\d.]+) ns/op", text)]


def test_benchstat_compared_the_files() -> None:
    medians = [statistics.median(_go(side, name)) for name in ("Join", "Sum") for side in ("before", "after")]
    assert figures("benchstat", r"([\d.]+)n ±") == pytest.approx(medians, abs=0.006)


def test_the_action_compared_the_files() -> None:
    """Each line of the run with the first line of the run before, if it is worse by more than 10%."""
    alerts = [
        (first, value)
        for name in ("Join", "Sum")
        for first in _go("before", name)[:1]
        for value in _go("after", name)
        if value / first > 1.1
    ]
    text = "\n".join(CAPTURED["github-action-benchmark"])
    said = re.findall(r"was ([\d.]+) and current value is ([\d.]+)\.", text)
    times = [(float(before), float(now)) for before, now in said if float(before) not in (56, 3)]
    # It gives each line twice: by its name alone, and as its time.
    assert times == [pair for pair in alerts for _ in range(2)]
    assert "Found 46 alerts" in text
