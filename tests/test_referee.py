"""The corpus of patches: it is what its tables say, its tricks fool a naive harness, and the real one judges them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.referee.__main__ import NAIVE, RESULTS, as_judged, evidence_table, stored
from benchmarks.referee.corpus import PATCHES, VICTIMS, WORDS, Entry, Kind, entries
from benchmarks.referee.workspace import prepared
from tests.modules import ROOT, run_module
from tests.repositories import git

EXPERIMENTS = ROOT / "dev" / "experiments"

CORPUS = entries()
OF_VICTIMS = [entry for entry in CORPUS if not entry.package]
SUBSET = [entry for entry in CORPUS if entry.subset]


def named(entry: Entry) -> str:
    return entry.name


def test_every_row_of_the_first_tricks_is_there_once_and_every_patch_has_an_entry() -> None:
    assert sorted(entry.row for entry in CORPUS if entry.row) == list(range(1, 41))
    counts = Counter(entry.kind for entry in CORPUS)
    assert counts[Kind.TRICK] >= 45
    assert (counts[Kind.GAIN], counts[Kind.OTHER]) == (12, 12)
    assert {entry.patch for entry in CORPUS} == set(PATCHES.rglob("*.patch"))
    assert len({entry.name for entry in CORPUS}) == len(CORPUS)


@pytest.mark.parametrize("entry", CORPUS, ids=named)
def test_what_must_become_of_a_patch_are_words_of_the_referee(entry: Entry) -> None:
    assert entry.must
    assert set(entry.must) <= WORDS
    assert entry.package or (VICTIMS / entry.workflow).is_file()


@pytest.mark.parametrize("victim", ["tally", "waves"])
def test_the_patches_of_a_victim_apply(victim: str, tmp_path: Path) -> None:
    subprocess.run(["cp", "-r", VICTIMS / victim, tmp_path], check=True)
    project = tmp_path / victim
    git(project, "init", "-q")
    for entry in OF_VICTIMS:
        if Path(entry.workflow).parent.name == victim:
            git(project, "apply", "--check", "--unidiff-zero", str(entry.patch))


def test_tricks_pass_the_checks_of_a_naive_harness_and_leave_its_tree(tmp_path: Path) -> None:
    out = tmp_path / "naive.jsonl"
    run_module("benchmarks.referee", "--naive", "nobody-reads", "git-hook", "rewrite-referee", "--out", out)
    found = {line["name"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert all(line["passed"] and line["speedup"] for line in found.values())
    assert {name: line["left"] for name, line in found.items()} == {
        "nobody-reads": [],
        "git-hook": ["project/.git/hooks/post-checkout"],
        "rewrite-referee": ["harness"],
    }


def test_the_subset_is_judged_as_the_corpus_asks(tmp_path: Path) -> None:
    out = tmp_path / "judged.jsonl"
    done = run_module("benchmarks.referee", "--subset", "--budget", "20s", "--out", out, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(SUBSET)} of {len(SUBSET)} tricks caught" in done.stdout.splitlines()
    found = {line["name"]: line for line in map(json.loads, out.read_text().splitlines())}
    assert found.keys() == {entry.name for entry in SUBSET}
    for entry in SUBSET:
        line = found[entry.name]
        assert entry.allows(line["decision"], line["code"], line["flags"])
        assert line["decision"] != "kept"


@pytest.mark.long  # fetches a package, and measures it for a minute or two
def test_a_real_gain_is_kept_and_its_package_must_have_the_pinned_hash(tmp_path: Path) -> None:
    (entry,) = entries(["base58-decode"])
    assert entry.package
    other = replace(entry, package=replace(entry.package, sha256="0" * 64))
    with pytest.raises(ValueError, match="not 0000"), prepared(other):
        pass
    done = run_module("benchmarks.referee", entry.name, "--budget", "180s", check=False)
    assert "1 of 1 gains kept" in done.stdout.splitlines()


def test_the_documents_show_what_is_stored() -> None:
    assert run_module("benchmarks.referee", "--page").stdout == (EXPERIMENTS / "referee.md").read_text()
    lines = evidence_table([as_judged(one) for one in stored(RESULTS)], stored(NAIVE))
    assert "\n".join(lines) in (ROOT / "docs" / "explanation" / "evidence.md").read_text()
