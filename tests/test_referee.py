"""The corpus of patches: it is what its tables say, its tricks work against a naive harness, and the real one judges."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.referee.corpus import PATCHES, VICTIMS, WORDS, Entry, Kind, entries
from tests.repositories import git

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
