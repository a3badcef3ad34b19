"""Samples of small real programs: parsing, operations, work, pairs, and equal outputs."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Gate, Result
from perfflow.session.perform import result_of_events
from perfflow.session.session import RunSession, users_tree
from perfflow.session.steps.by_role import performer_of
from perfflow.session.steps.check import acceptable
from perfflow.store import run_folder
from perfflow.store.result_file import read, to_text
from tests.session.project import ProgressRecorder, Project, flow, row, samples, step

COUNTING = """#!/usr/bin/env python3
import sys
fixed, operations = 5000, int(sys.argv[1])
print(f"time {fixed + 3 * operations} us")
print(f"memory {64 + operations // 1000} KB")
"""


@pytest.fixture
def counting(project: Project) -> Project:
    """A program with a fixed cost of 5 ms and 3 us per operation."""
    project.write("count", COUNTING, executable=True)
    return project


PARSE = '{regex: ["time (?P<time>[0-9]+)", "memory (?P<rss>[0-9]+)"], units: {time: us, rss: KB}}'


def bench(keys: str, run: str = "./count ${{ ops }}", parse: str = PARSE) -> str:
    """Return a workflow of one step; what it runs must need no quotes beside those that it has."""
    return f"""
stages:
  baseline:
    - id: bench
      run: {run}
      runs: 2
      warmup: 0
      parse: {parse}
      {keys}
"""


def printing(ms: int, keys: str = "") -> str:
    """Return a workflow of a step that prints milliseconds."""
    return bench(keys, f"echo ms={ms}", READ)


READ = '{regex: "ms=(?P<time>.*)", units: {time: ms}}'
NAMED = '{regex: "(?P<benchmark>[a-z]+)=(?P<time>.*)", units: {time: ms}}'


@pytest.mark.parametrize(
    ("ops", "settings", "time", "rss"),
    [
        ("1000", (), 8e-6, 65_000.0),
        # Of two counts the fixed part drops out.
        ("[1000, 11000]", (), 3e-6, 75_000.0),
        ("'${{ params.n }}'", ("n=5000",), 4e-6, 69_000.0),
    ],
)
def test_counts_divide_totals_and_leave_sizes(
    counting: Project, ops: str, settings: tuple[str, ...], time: float, rss: float
) -> None:
    result = counting.run("params: {n: {default: 1000}}" + bench(f"ops: {ops}"), *settings)
    assert samples(result, "bench", "time") == pytest.approx([time] * 2)
    assert samples(result, "bench", "rss") == [rss] * 2


def test_counts_are_known_before_the_first_sample(counting: Project) -> None:
    text = bench("ops: 1000\n      budget: 1s", run="./count ${{ ops }} > out").replace("      runs: 2\n", "")
    result = counting.run(text.replace("parse: {", "parse: {file: out, "))
    assert samples(result, "bench", "time")[0] == pytest.approx(8e-6)


def test_work_turns_time_into_rates(counting: Project) -> None:
    result = counting.run(bench("ops: 1000\n      work: {bytes: 80, elements: '${{ 1 + 1 }}', flops: 16}"))
    for metric, value in (("throughput", 10e6), ("rate", 0.25e6), ("flops", 2e6)):
        assert samples(result, "bench", metric) == pytest.approx([value] * 2)
    assert row(result, "bench", "throughput").better == "higher"


@pytest.mark.parametrize("amount", ["many", "0", "-1", "1e999", "nan"])
def test_work_that_is_no_amount_is_refused(counting: Project, amount: str) -> None:
    result = counting.run(
        "params: {n: {default: ''}}" + bench("ops: 1\n      work: {bytes: '${{ params.n }}'}"), f"n={amount}"
    )
    assert "work.bytes" in step(result, "bench").reason
    assert result.verdict == "error"


def test_json_with_several_benchmarks_from_a_file(project: Project) -> None:
    data = {"runs": [{"name": "a", "ms": 2.5, "req": 10}, {"name": "b", "ms": 4, "req": 20}]}
    project.write("data.json", json.dumps(data))
    result = project.run(
        bench(
            "benchmark: suite/*\n      expect: [suite/a, suite/b]",
            "cat data.json > out.json",
            "{file: out.json, json: {benchmark: 'runs[].name', time: 'runs[].ms', rate: 'runs[].req'},"
            " units: {time: ms, rate: K/s}}",
        )
    )
    assert samples(result, "suite/a", "time") == [0.0025] * 2
    assert samples(result, "suite/b", "rate") == [20_000.0] * 2
    assert result.verdict == "pass"


def test_csv_with_repeated_rows_is_one_sample_with_its_distribution(project: Project) -> None:
    rows = "".join(f"{name},{value}\\n" for name in "xy" for value in range(1, 102))
    parse = "{csv: {benchmark: name, time: t}, units: {time: ms}, samples: true}"
    text = bench("", f"printf 'noise\\nname, t\\n{rows}'", parse)
    result = project.run(f"targets: {{x: {{time p99: '<101ms'}}}}{text}")
    assert samples(result, "x", "time") == pytest.approx([0.051] * 2)
    side = row(result, "y", "time").baseline
    assert side
    assert side.readings
    assert side.readings[0]["inner"]["n"] == 101
    (target,) = result.targets
    assert target.measured == pytest.approx(0.1)
    assert (target.status, target.detail) == ("unproven", "2 samples; a 95% interval of p99 needs 6")


def test_a_file_left_by_an_earlier_run_is_not_read_as_new(project: Project) -> None:
    old = project.write("out.json", '{"ms": 1}')
    os.utime(old, (1, 1))
    result = project.run(bench("", "'true'", "{file: out.json, json: {time: ms}, units: {time: ms}}"))
    assert step(result, "bench").reason == "the command did not write out.json"
    assert result.verdict == "error"


@pytest.mark.parametrize(
    ("run", "parse", "reason"),
    [
        ("echo nothing", READ, "nothing in the output matches"),
        ("echo ms=fast", READ, "`time` on line 1 is 'fast', not a number"),
        ("echo ms=-1", READ, "cannot be a measurement"),
        ("echo '{'", "{json: {time: a}, units: {time: ms}}", "the output is not JSON"),
        ('echo \'{"a": "1"}\'', "{json: {time: a}, units: {time: ms}}", "not a number"),
        ("echo '{}'", "{json: {time: a}, units: {time: ms}}", "nothing at 'a'"),
        ("echo a,b", "{csv: {time: a}, units: {time: ms}}", "a heading but no rows"),
        ("'true'", "{file: none.json, json: {time: a}, units: {time: ms}}", "the command did not write none.json"),
        ("echo ms=1; exit 1", READ, "bench exited with 1"),
    ],
)
def test_output_that_cannot_be_read_is_never_a_pass(project: Project, run: str, parse: str, reason: str) -> None:
    result = project.run(bench("", json.dumps(run) if ": " in run else run, parse))
    assert reason in step(result, "bench").reason
    assert (result.verdict, result.gate) == ("error", Gate(status="fail"))


@pytest.mark.parametrize(
    ("figures", "verdict", "detail"),
    [("1e-6 0 2e-6", "pass", ""), ("1e-6 0.25 2e-6", "fail", "max_abs_diff is 0.250, required <1e-5")],
)
def test_asserted_figures(project: Project, figures: str, verdict: str, detail: str) -> None:
    parse = 'parse: {regex: "diff=(?P<max_abs_diff>.*)", units: {max_abs_diff: "1"}}'
    run = f"run: \"printf 'diff=%s\\\\n' {figures}\""
    check = f"{{id: precise, {run}, {parse}, assert: {{max_abs_diff: <1e-5}}}}"
    result = project.run(flow(baseline="{id: one, run: ls, runs: 1, warmup: 0}", verify=check))
    found = result.verification[0]
    assert (result.verdict, found.status) == (verdict, "passed" if verdict == "pass" else "failed")
    assert found.detail == detail or verdict == "pass"


def test_a_check_that_ran_but_wrote_nothing_fails(project: Project) -> None:
    parse = "{file: out.json, json: {max_abs_diff: diff}, units: {max_abs_diff: '1'}}"
    check = f"{{id: precise, run: 'true', parse: {parse}, assert: {{max_abs_diff: <1e-5}}}}"
    result = project.run(f"stages: {{verify: [{check}]}}")
    assert (result.verdict, step(result, "precise").not_started) == ("fail", False)


def test_pairs_are_in_coin_flip_order_and_both_sides_are_kept(project: Project) -> None:
    keys = 'runs: 16, warmup: 0, with: {command: "true a"}, candidate: "true b"'
    orders = []
    for _ in range(2):
        result = project.run(flow(baseline=f"{{id: bench, uses: command, {keys}}}"))
        events = [event for event in project.events() if event["event"] == "sample"]
        assert [event["pair"] for event in events] == list(range(16))
        orders.append([event["first"] for event in events])
    assert set(orders[0]) == {"baseline", "candidate"}
    assert orders[0] == orders[1]
    assert row(result, "bench", "cpu").pairs == 16
    assert row(result, "bench", "cpu").decision is not None


def test_a_candidate_that_uses_threads_has_no_uncontended_time_and_is_still_compared(project: Project) -> None:
    """`uncontended` is known for one thread only. If a side lacks it, it decides nothing and causes no error."""
    busy = "import time\ndef burn():\n  while time.thread_time() < 0.03: pass\n"
    project.write("one.py", busy + "burn()\n")
    project.write("two.py", busy + "import threading\nt = threading.Thread(target=burn); t.start(); burn(); t.join()\n")
    keys = "runs: 3, warmup: 0, with: {command: python3 one.py}, candidate: python3 two.py"
    result = project.run(flow(baseline=f"{{id: bench, uses: command, {keys}}}"))
    assert result.verdict in ("pass", "unproven", "fail")
    gone = row(result, "bench", "uncontended")
    assert (gone.decision, gone.gating, gone.candidate) == ("removed", False, None)
    assert row(result, "bench", "time").gating
    assert row(result, "bench", "time").pairs == 3


def test_scripts_that_differ_are_not_the_same_files(project: Project) -> None:
    project.write("a.py", "1")
    project.write("b.py", "2")
    for other, identical in (("b.py", False), ("a.py --fast", True)):
        keys = f"runs: 1, warmup: 0, with: {{command: python3 a.py}}, candidate: python3 {other}"
        project.run(flow(baseline=f"{{id: bench, uses: command, {keys}}}"))
        assert project.events()[-2].get("identical", False) is identical


def test_long_shell_text_with_a_candidate_is_no_file_name(project: Project) -> None:
    text = "echo /ms=1 " + "x" * 5000
    parse = '{regex: "ms=(?P<time>.)", units: {time: ms}}'
    result = project.run(bench(f"candidate: {{command: '{text}'}}", text, parse))
    assert result.steps[0].status == "done"


def test_a_benchmark_that_only_one_side_has_turns_up_by_name(project: Project) -> None:
    def compared(baseline: str, candidate: str) -> Result:
        other = f"candidate: {{command: \"printf '%s=1\\\\n' {candidate}\"}}"
        return project.run(bench(other, f"printf '%s=1\\n' {baseline}", NAMED))

    result = compared("kept gone", "kept")
    assert row(result, "gone", "time").decision == "removed"
    assert "no longer measured: gone time" in result.reason_texts
    assert result.verdict == "error"
    result = compared("kept", "kept fresh")
    assert (row(result, "fresh", "time").decision, row(result, "fresh", "time").level) == ("new", "ok")
    assert result.reason_texts == ["unproven: kept time: not settled after 2 pairs, too few to tell"]


def test_an_expected_benchmark_that_does_not_appear_is_an_error(project: Project) -> None:
    result = project.run(bench("expect: [a, 'b*']", "echo a=1", NAMED))
    assert result.verdict == "error"
    assert result.reason_texts == ["expected benchmark did not appear: b* (step bench)"]


def test_matrix_cells_are_benchmarks_of_their_own(project: Project) -> None:
    text = bench("matrix: {n: [1, 20]}", "echo ms=${{ matrix.n }}", READ)
    result = project.run(f"targets: {{'bench*': {{time: <1s}}}}{text}")
    assert samples(result, "bench[n=1]", "time") == [0.001] * 2
    assert samples(result, "bench[n=20]", "time") == [0.02] * 2
    assert {target.benchmark for target in result.targets} == {"bench[n=1]", "bench[n=20]"}


def compared_outputs(project: Project, command: str, options: str, keys: str) -> tuple[str, str | None, str]:
    """Return the status of a check whether the outputs of a command are the same, the verdict, and the detail."""
    check = f"{{id: same, uses: same-output, with: {{command: {command}, {options}}}, {keys}}}"
    result = project.run(flow(baseline="{id: one, run: ls, runs: 1, warmup: 0}", verify=check))
    (found,) = result.verification
    return found.status, result.verdict, found.detail


@pytest.mark.parametrize(
    ("options", "actual", "differs"),
    [
        ("", "1 x\n", ""),
        ("", "1.1 x\n", "line 1: expected '1 x', got '1.1 x'"),
        ("with: {absolute: 0.2}", "1.1 x\n", ""),
        ("with: {check: grep -q x}", "2 x\n", ""),
        ("with: {check: grep -q x}", "2 y\n", "`check` exited with 1"),
        ("with: {check: grep -q x, expected: baseline}", "2 x\n", "line 1: expected '1 x', got '2 x'"),
    ],
)
def test_what_a_measured_process_prints_is_judged_by_the_rules_of_its_checks(
    project: Project, options: str, actual: str, differs: str
) -> None:
    check = f"{{id: same, uses: same-output, benchmark: one, {options}}}" if options else "{id: other, run: ls}"
    opened = project.open(flow(baseline="{id: one, run: echo 1 x}", verify=check))
    with run_folder.create(opened.root, None) as folder:
        session = RunSession(users_tree(opened, folder, 1), folder, ProgressRecorder(), performer_of)
        try:
            found = acceptable(session, session.context.plan.by_id["one"], b"1 x\n", actual.encode())
        finally:
            session.close()
    assert found == differs


EMPTY = "both outputs are empty, so the comparison proves nothing"
WANT = "expected: want"
FILE = "shell: true, files: [out]"


@pytest.mark.parametrize(
    ("command", "options", "keys", "status", "detail"),
    [
        ("echo 1.0 x", WANT, "", "passed", "3 outputs the same as want"),
        ("echo 1.1 x", WANT, "", "failed", "baseline: line 1: expected '1.0 x', got '1.1 x'"),
        ("echo 1.1 x", f"{WANT}, absolute: 0.2", "", "passed", "3 outputs the same as want"),
        ("echo 1.1 x", f"{WANT}, absolute: 0.2, runs: 1", "", "passed", "1 output the same as want"),
        ("echo 1.1 x", f"{WANT}, relative: 0.01", "", "failed", "differs by 0.1, more than the allowed 0.01"),
        ("echo 1.1 y", f"{WANT}, absolute: 0.2", "", "failed", "line 1"),
        ("'true'", WANT, "", "failed", "the output is empty"),
        ("echo 1", "runs: 3", "", "passed", "2 outputs the same as the baseline's"),
        ("date +%N", "runs: 9", "", "failed", "line 1"),
        ("echo 1", "", "candidate: echo 1", "passed", "3 outputs the same as the baseline's"),
        ("echo 1", "runs: 4", "candidate: echo 1", "passed", "7 outputs the same as the baseline's"),
        ("echo 1", "", "candidate: echo 2", "failed", "candidate: line 1: expected '1', got '2'"),
        ("echo 1", "", "candidate: 'false'", "failed", "false exited with 1"),
        # Wrong in every third run, so that the first two runs pass.
        (
            "echo right",
            "",
            "candidate: bash now-and-then",
            "failed",
            "candidate: line 1: expected 'right', got 'wrong'",
        ),
        ("'true'", "", "candidate: 'true'", "failed", f"candidate: {EMPTY}"),
        ("'true'", "allow-empty: true", "candidate: 'true'", "passed", "3 outputs the same as the baseline's"),
        ("'true'", "expected: none", "candidate: 'true'", "failed", f"baseline: {EMPTY}"),
        ("date +%N", "check: grep -q .", "candidate: date +%s%N", "passed", "6 outputs right by `check`"),
        ("echo 1", "check: sh want-1", "candidate: echo 2", "failed", "candidate: `check` exited with 4: not 1"),
        ("echo 1.1 x", f"{WANT}, absolute: 0.2, check: grep -q y", "", "failed", "baseline: `check` exited with 1"),
        ("echo 1.1 x", f"{WANT}, check: grep -q x", "", "failed", "expected '1.0 x'"),
        ("echo 1.1 x", f"{WANT}, absolute: 0.2, check: grep -q x", "", "passed", "want; 3 outputs right by `check`"),
    ],
)
def test_same_output(project: Project, command: str, options: str, keys: str, status: str, detail: str) -> None:
    for name, text in {
        "want": "1.0 x\n",
        "none": "",
        "want-1": "grep 1 || { echo not 1; exit 4; }\n",
        "now-and-then": NOW_AND_THEN,
    }.items():
        project.write(name, text)
    found = compared_outputs(project, command, options, keys)
    assert found[:2] == (status, "pass" if status == "passed" else "fail")
    assert detail in found[2]


NOW_AND_THEN = "echo x >> ran; test $(wc -l < ran) -eq 3 && echo wrong || echo right"


@pytest.mark.parametrize(
    ("candidate", "options", "status", "detail"),
    [
        ("echo 1.0 > out", FILE, "passed", "3 outputs the same as the baseline's"),
        ("echo 1.1 > out", FILE, "failed", "candidate: out: line 1: expected '1.0', got '1.1'"),
        ("echo 1.1 > out", f"{FILE}, relative: 0.2", "passed", "3 outputs"),
        ("echo 1.0 > out; echo said", FILE, "failed", "candidate: 1 line instead of 0"),
        ("echo 1.0", FILE, "failed", "candidate: the command did not write out"),
        ("rm out", FILE, "failed", "candidate: the command did not write out"),
        (": > out", FILE, "failed", "candidate: out: the output is empty"),
        ("", "shell: true, files: out, runs: 2", "failed", f"baseline: out: {EMPTY}"),
    ],
)
def test_files_that_a_program_writes_are_compared(
    project: Project, candidate: str, options: str, status: str, detail: str
) -> None:
    command, keys = ("echo 1.0 > out", f"candidate: {json.dumps(candidate)}") if candidate else ("': > out'", "")
    found = compared_outputs(project, command, options, keys)
    assert found[:2] == (status, "pass" if status == "passed" else "fail")
    assert detail in found[2]


def test_same_output_without_its_expected_file_is_an_error(project: Project) -> None:
    assert compared_outputs(project, "echo 1", "expected: none.txt", "")[1] == "error"


def test_a_program_alone_must_agree_with_itself(project: Project) -> None:
    assert compared_outputs(project, "echo 1", "", "") == ("passed", "pass", "1 output the same as the baseline's")
    varies = compared_outputs(project, "echo x >> seen; wc -l < seen", "", "")
    assert varies[:2] == ("failed", "fail")


def test_interrupted_while_sampling_keeps_the_samples_and_never_passes(project: Project) -> None:
    project.write("slow", "#!/bin/sh\necho x >> count; echo ms=1; sleep 0.05\n", executable=True)
    main = threading.get_ident()
    stopping = threading.Event()

    def interrupt() -> None:
        count = project.folder / "count"
        while not stopping.is_set():
            if count.exists() and len(count.read_text()) > 12:
                signal.pthread_kill(main, signal.SIGINT)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=interrupt)
    killer.start()
    try:
        text = bench("", "./slow", READ).replace("runs: 2", "runs: 2000")
        finished = project.finish(f"{text}  verify: [{{id: tests, run: 'true'}}]\n")
    finally:
        stopping.set()
        killer.join()
    result = finished.result
    assert finished.interrupted
    assert result.run.interrupted
    assert 4 <= len(samples(result, "bench", "time")) < 2000
    assert (result.verdict, result.gate) == ("error", Gate(status="fail"))
    assert "the run was interrupted" in result.reason_texts
    assert {item.reason for item in result.steps} == {"interrupted before it ended"}
    assert read(finished.folder / "result.json") == result
    assert (finished.folder / "report.md").read_text().startswith("## Performance Report")


def test_judging_again_any_part_of_the_events_gives_a_result_or_a_clear_error(project: Project, tmp_path: Path) -> None:
    project.write("want", "1\n")
    finished = project.finish(
        printing(1, "candidate: {command: echo ms=2}")
        + "  profile: [{id: heap, uses: massif, with: {command: /bin/true}}]\n"
        + "  verify: [{id: same, uses: same-output, with: {command: echo 1, expected: want}}]\n"
    )
    events = (finished.folder / "events.jsonl").read_bytes()
    stored = (finished.folder / "result.json").read_text()
    assert to_text(result_of_events(finished.folder)) == stored == to_text(finished.result)
    ends = [number + 1 for number, letter in enumerate(events) if letter == ord("\n")]
    part = tmp_path / "part"
    part.mkdir()
    for end in sorted({*ends, *(end - 1 for end in ends), *range(0, len(events), 401)}):
        (part / "events.jsonl").write_bytes(events[:end])
        if end < ends[0]:
            with pytest.raises(UserError, match="holds no run"):
                result_of_events(part)
            continue
        result = result_of_events(part)
        if end < len(events):
            assert result.verdict != "pass"
            assert "(was it killed?)" in " ".join(result.reason_texts)
    assert result == finished.result


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"event":"sample"', '"event":"sample",,', "damaged line"),
        ('"steps":', '"stepz":', "KeyError: 'steps'"),
        ('"value":0.001', '"walue":0.001', "KeyError: 'value'"),
        ('"value":0.001', '"value":"fast"', "Error"),
        ('"status":"done"', '"status":"odd"', "odd"),
        ('"criteria":{', '"criteria":{"x":1},"criteria2":{', "KeyError"),
        ("", "[" * 100_000 + "\n", "damaged line"),
        (None, "", "holds no run"),
        (None, '{"some": "other file"}\n', "holds no run"),
    ],
)
def test_damaged_events_are_a_clear_error(project: Project, old: str | None, new: str, said: str) -> None:
    """``old`` is replaced by ``new``; None is the whole file."""
    finished = project.finish(printing(1))
    events = finished.folder / "events.jsonl"
    events.write_text(new if old is None else events.read_text().replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        result_of_events(finished.folder)
    assert said in str(caught.value)
    assert str(events) in str(caught.value)
    events.unlink()
    with pytest.raises(UserError, match="No such file"):
        result_of_events(finished.folder)


def test_progress_is_told_between_rounds(project: Project) -> None:
    steps = [
        "{id: a, uses: command, runs: 3, with: {command: 'true'}, candidate: 'true'}",
        "{id: b, uses: command, runs: 2, with: {command: 'true'}}",
    ]
    project.run(flow(baseline=steps))
    told = [(taken.benchmark, taken.count, taken.unit) for taken in project.told.taken]
    assert told == [("a", 1, "pair"), ("a", 2, "pair"), ("a", 3, "pair"), ("b", 1, "run"), ("b", 2, "run")]
    assert project.told.steps_to_come == project.told.granted_to == ["a", "b"]
