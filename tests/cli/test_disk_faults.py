"""Full disks and read-only folders on real mounts: exit status, hint, and kept samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.namespace import script
from tests.long import rest_long

# Each process appends a line to a file on another disk and prints its number.
FLOW = """
perfflow: 1
name: faults
stages:
  baseline:
    - id: bench
      run: |
        echo run >> $COUNTER
        n=$(wc -l < $COUNTER)
        if test $n -ge $FROM; then cat /dev/zero > fill || true; fi
        echo ms=$((n + 1)).000
      candidate: {env: {SIDE: candidate}}
      runs: 20
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
"""
DISK = """
export COUNTER=$PWD/counter
mkdir disk
mount -t tmpfs -o size=512k tmpfs disk
cp flow.yaml disk
cd disk
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "flow.yaml").write_text(FLOW)
    return tmp_path


def test_a_run_on_a_disk_that_fills_up_keeps_its_samples_and_goes_on(place: Path) -> None:
    done = script(
        f"""{DISK}
        export FROM=13
        status perfflow run flow.yaml --progress off 2> ../full
        status perfflow report --json > ../kept 2> ../note
        rm fill
        export FROM=1000
        status perfflow run flow.yaml --resume --progress off --json > ../whole
        cp .perfflow/runs/latest/events.jsonl ..
        """,
        place,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "= 3\n"
    said = (place / "full").read_text()
    assert "No space left on device" in said or "is full" in said, said
    kept, *_, status = (place / "kept").read_text().rpartition("= ")
    assert status == "3\n"
    samples = json.loads(kept)["benchmarks"][0]["baseline"]["samples"]
    assert len(samples) >= 4
    whole, *_ = (place / "whole").read_text().rpartition("= ")
    row = json.loads(whole)["benchmarks"][0]
    assert row["baseline"]["samples"][: len(samples)] == samples
    events = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    assert [event["pair"] for event in events if event["event"] == "sample"] == list(range(20))
    values = [*row["baseline"]["samples"], *row["candidate"]["samples"]]
    assert len(set(values)) == 40


def test_the_other_commands_on_a_full_disk_stop_with_a_remedy_and_keep_what_was_there(place: Path) -> None:
    done = script(
        f"""{DISK}
        export FROM=1000
        perfflow run flow.yaml --progress off --unproven pass > ../first
        perfflow baseline save old latest > /dev/null
        first=$(readlink .perfflow/runs/latest)
        cat /dev/zero > fill || true
        status perfflow run flow.yaml --progress off
        status perfflow compare --runs 3 --out there -- true /bin/true
        status perfflow calibrate flow.yaml --trials 1 --budget 5s
        status perfflow baseline save new $first
        status perfflow baseline save old $first --force
        status perfflow compare old $first --out here
        rm fill
        perfflow baseline list
        status perfflow compare old $first
        """,
        place,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("= ")] == ["= 3"] * 6 + ["= 0"], done.stdout + done.stderr
    assert done.stderr.count("No space left on device") >= 5
    assert done.stderr.count("free some space") >= 5
    assert "defect" not in done.stderr
    assert any("old" in line for line in lines)
    assert not any("new" in line for line in lines)


@pytest.mark.long  # measures in several folders; a full disk is tried beside it
def test_a_project_that_may_only_be_read_is_measured_with_out_and_refused_without(place: Path) -> None:
    done = script(
        """
        export COUNTER=/dev/null HOME=$PWD/home XDG_CACHE_HOME=$PWD/home/cache
        mkdir project home
        cp flow.yaml project
        (cd project && git init -q . && FROM=1000 perfflow run flow.yaml --progress off > ../first)
        mount --bind project project
        mount -o remount,ro,bind project
        cd project
        export FROM=1000
        status perfflow run flow.yaml --progress off
        status perfflow calibrate flow.yaml --trials 1 --budget 5s
        status perfflow baseline save old latest
        status perfflow report latest > ../again
        status perfflow run flow.yaml --resume --progress off
        status perfflow compare --runs 3 --unproven pass -- true /bin/true > ../compared
        status perfflow run flow.yaml --progress off --out ../out --unproven pass > ../measured
        tail -q -n 1 ../again ../compared ../measured
        ls ../out
        """,
        place,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:7] == ["= 2"] * 4 + ["= 0"] * 3, done.stdout + done.stderr
    assert {"events.jsonl", "result.json", "report.md", "receipt.json"} <= set(done.stdout.splitlines())
    # The run in another folder is measured, and reports that it is not in the project's history.
    assert done.stderr.count("Read-only file system") == 5 + 1
    assert "/out` adds it" in done.stderr
    assert done.stderr.count("hint: ") == 4


def test_a_limit_of_file_sizes_stops_a_run_as_a_full_disk_does(place: Path) -> None:
    done = script(
        """
        export COUNTER=$PWD/counter FROM=1000
        (ulimit -f 2; status perfflow run flow.yaml --progress off) 2> said
        status perfflow run flow.yaml --resume --progress off --unproven pass > whole
        tail -n 1 whole
        wc -l < counter
        """,
        place,
    )
    first, second, counted = done.stdout.splitlines()
    said = (place / "said").read_text()
    assert (first, second) == ("= 3", "= 0"), done.stderr + said
    assert "File too large" in said
    assert "ulimit -f" in said
    # Both sides get one more warm-up, and at most one pair was being measured.
    assert 42 <= int(counted) <= 46


def test_a_verdict_that_cannot_be_printed_is_no_pass(place: Path) -> None:
    done = script(
        """
        export COUNTER=$PWD/counter FROM=1000
        perfflow run flow.yaml --progress off --unproven pass > /dev/full || echo = $?
        perfflow report > /dev/full || echo = $?
        """,
        place,
    )
    assert done.stdout == "= 3\n= 3\n"
    assert done.stderr.count("cannot write to standard output: No space left on device") == 2
    assert done.stderr.count("free some space where the output goes, or send it elsewhere") == 2
    # Another test may hold the machine.
    assert len([line for line in done.stderr.splitlines() if not line.startswith("waiting ")]) == 4


@pytest.mark.parametrize(
    "words", rest_long(["--help", "validate flow.yaml", "--version", "run --help", "list", "schema"], keep=2)
)
def test_a_full_output_gets_a_remedy_and_a_closed_one_stays_quiet(words: str, place: Path) -> None:
    done = script(f"perfflow {words} > /dev/full || echo = $?; perfflow {words} | true", place)
    assert done.stdout == "= 3\n"
    first, second = done.stderr.splitlines()
    assert first == "error: cannot write to standard output: No space left on device"
    assert second.startswith("  hint: free some space where the output goes, or send it elsewhere")
    assert "--out" not in second
