"""Profiles as files for other viewers, each opened by the viewer's own parser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.stacks import Stack, StackProfile, read_folded
from perfflow.report.sanitize import visible
from perfflow.report.stack_files.files import FORMATS, files_of

READER = Path(__file__).with_name("viewers") / "speedscope.js"
VIEWERS = Path(__file__).parents[2] / ".venv" / "viewers"
"""The folder into which scripts/install puts speedscope and pprof."""
HOSTILE = [
    *("a;b", "x\ny", "\x1b[2J", "\u202egnp", "g" * 10_000, "  ", "", "f\x00", "naïve λ", "\ud800", "<b>&", '"quoted"'),
]
THREADS: Mapping[str, Mapping[Stack, int]] = {
    "main": {("main",): 5, ("main", "parse", "copy"): 2**40, ("main", "parse", "parse"): 7},
    "worker; 1": {("start", *HOSTILE): 11, ("start", "copy"): 3},
}
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.text(max_size=8) | st.sampled_from(HOSTILE)
STACKS = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=4).map(tuple), st.integers(1, 2**50), min_size=1, max_size=5
)


def profile(threads: Mapping[str, Mapping[Stack, int]], **about: Any) -> StackProfile:
    return StackProfile(
        **{"step": "hot", "benchmark": "b", "side": "baseline", "tool": "perf", "unit": "ns"} | about, threads=threads
    )


def content(form: str, made: StackProfile) -> bytes:
    ((_, found),) = files_of([made], [form])
    return found


def functions(threads: Mapping[str, Mapping[Stack, int]]) -> dict[str, tuple[int, int]]:
    """Return the own and the inclusive count of each function, which counts once per stack."""
    own, total = Counter[str](), Counter[str]()
    for stacks in threads.values():
        for stack, count in stacks.items():
            own[visible(stack[-1])] += count
            total.update(dict.fromkeys(map(visible, stack), count))
    return {name: (own[name], total[name]) for name in total}


def by_thread(threads: Mapping[str, Mapping[Stack, int]]) -> Iterator[tuple[str, int, dict[str, tuple[int, int]]]]:
    for thread, stacks in sorted(threads.items()):
        yield visible(thread), sum(stacks.values()), functions({thread: stacks})


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_profile_gives_the_same_bytes(form: str) -> None:
    backwards = {name: dict(reversed(list(own.items()))) for name, own in reversed(list(THREADS.items()))}
    assert content(form, profile(THREADS)) == content(form, profile(backwards))


@properties
@given(stacks=STACKS)
def test_folded_text_is_read_back_with_the_same_sum(stacks: dict[Stack, int]) -> None:
    read = read_folded(content("folded", profile({"": stacks})).decode())
    assert read.total() == sum(stacks.values())
    assert {len(stack) for stack in read} == {len(stack) for stack in stacks}
    assert "".join(map("".join, read)).isprintable()


@properties
@given(stacks=STACKS)
def test_speedscope_has_every_count_under_its_names(stacks: dict[Stack, int]) -> None:
    found = json.loads(content("speedscope", profile({"": stacks})))
    (only,) = found["profiles"]
    names = [frame["name"] for frame in found["shared"]["frames"]]
    read, wanted = Counter[Stack](), Counter[Stack]()
    for sample, weight in zip(only["samples"], only["weights"], strict=True):
        read[tuple(names[index] for index in sample)] += weight
    for stack, count in stacks.items():
        wanted[tuple(map(visible, stack))] += count
    assert read == wanted
    assert only["endValue"] == sum(stacks.values())


def test_names_of_files_are_safe_and_differ() -> None:
    same = [profile(THREADS, number=number, **about) for about in ({}, {"benchmark": "../é /x"}) for number in (0, 1)]
    twice = [*same, profile(THREADS, step="hot-b", benchmark="")]
    names = [name for name, _ in files_of(twice, ["folded"])]
    assert names[:2] == ["hot-b-baseline.folded", "hot-b-baseline-2.folded"]
    assert len(set(names)) == len(twice)
    assert all(re.fullmatch(r"[A-Za-z0-9_.=,~\[\]-]+", name) and not name.startswith(".") for name in names)


def test_an_estimate_says_so_in_every_file_that_has_a_title() -> None:
    guessed = profile(THREADS, is_call_pairs=True)
    assert "one level up only" in json.loads(content("speedscope", guessed))["name"]
    assert "one level up only" not in json.loads(content("speedscope", profile(THREADS)))["name"]


def test_speedscope_s_own_importer_finds_the_same_totals(tmp_path: Path) -> None:
    bundles = [*VIEWERS.glob("node_modules/speedscope/dist/release/speedscope-*.js")]
    if not shutil.which("node") or not bundles:
        pytest.skip("node or the npm package speedscope is not installed (scripts/install tools,dev)")
    file = tmp_path / "a.speedscope.json"
    file.write_bytes(content("speedscope", profile(THREADS)))
    (read,) = json.loads(subprocess.check_output(["node", READER, bundles[0], file], text=True, timeout=900))
    assert {item["unit"] for item in read} == {"nanoseconds"}
    found = [(item["name"], item["total"], {name: tuple(v) for name, v in item["functions"].items()}) for item in read]
    assert found == list(by_thread(THREADS))


@pytest.mark.long  # compiles for go's own pprof
def test_go_s_own_pprof_finds_the_same_totals(tmp_path: Path) -> None:
    pprof = VIEWERS / "pprof"
    if not pprof.exists():
        pytest.skip("pprof is not there: go is not installed, or scripts/install tools,dev was not run")
    threads = {
        "main": THREADS["main"],
        "worker; 1": {("start", "\u202egnp", "g" * 10_000): 11, ("start", "x;\x1b[2Jy"): 3},
    }
    file = tmp_path / "a.pb.gz"
    file.write_bytes(content("pprof", profile(threads, is_call_pairs=True)))
    every = ("-nodecount=0", "-nodefraction=0", "-edgefraction=0")
    top = subprocess.check_output([pprof, "-top", "-unit=nanoseconds", *every, file], text=True, timeout=900)
    assert "callers are known one level up only" in top
    rows = re.findall(r"^ *(\d+)(?:ns)? .*? +(\d+)(?:ns)? +\S+%  (.+)$", top, re.MULTILINE)
    assert {name: (int(own), int(total)) for own, total, name in rows} == functions(threads)
    raw = subprocess.check_output([pprof, "-raw", file], text=True, timeout=900)
    assert Counter(re.findall(r"thread:\[(.*)\]", raw)) == {"main": 3, "worker; 1": 2}
