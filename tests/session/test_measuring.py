"""Samples of small real programs: parsing, operations, work, pairs, and equal outputs."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from perfflow.model.result import Gate
from perfflow.session.perform import result_of_events
from perfflow.store.result_file import read, to_text
from tests.session.project import Project, row, samples, step

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


def test_one_count_divides_totals_and_leaves_sizes(counting: Project) -> None:
    result = counting.run(bench("ops: 1000"))
    assert samples(result, "bench", "time") == pytest.approx([8e-6] * 2)
    assert samples(result, "bench", "rss") == [65_000.0] * 2


def test_two_counts_give_the_slope_in_which_the_fixed_part_drops_out(counting: Project) -> None:
    result = counting.run(bench("ops: [1000, 11000]"))
    assert samples(result, "bench", "time") == pytest.approx([3e-6] * 2)
    assert samples(result, "bench", "rss") == [75_000.0] * 2


def test_counts_are_known_before_the_first_sample(counting: Project) -> None:
    text = bench("ops: 1000\n      budget: 1s", run="./count ${{ ops }} > out").replace("      runs: 2\n", "")
    result = counting.run(text.replace("parse: {", "parse: {file: out, "))
    assert samples(result, "bench", "time")[0] == pytest.approx(8e-6)


def test_counts_may_come_from_a_parameter(counting: Project) -> None:
    text = "params: {n: {default: 1000}}" + bench("ops: '${{ params.n }}'")
    assert samples(counting.run(text, "n=5000"), "bench", "time") == pytest.approx([4e-6] * 2)


def test_work_turns_time_into_rates(counting: Project) -> None:
    result = counting.run(bench("ops: 1000\n      work: {bytes: 80, elements: '${{ 1 + 1 }}', flops: 16}"))
    assert samples(result, "bench", "throughput") == pytest.approx([10e6] * 2)
    assert samples(result, "bench", "rate") == pytest.approx([0.25e6] * 2)
    assert samples(result, "bench", "flops") == pytest.approx([2e6] * 2)
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
    result = project.run(
        "targets: {x: {time p99: '<101ms'}}"
        + bench(
            "",
            f"printf 'noise\\nname, t\\n{rows}'",
            "{csv: {benchmark: name, time: t}, units: {time: ms}, samples: true}",
        )
    )
    assert samples(result, "x", "time") == pytest.approx([0.051] * 2)
    side = row(result, "y", "time").baseline
    assert side
    assert side.readings
    assert side.readings[0]["inner"]["n"] == 101
    assert result.targets[0].measured == pytest.approx(0.1)
    assert result.targets[0].status == "unproven"
    assert result.targets[0].detail == "2 samples; a 95% interval of p99 needs 6"


def test_a_file_left_by_an_earlier_run_is_not_read_as_new(project: Project) -> None:
    old = project.write("out.json", '{"ms": 1}')
    os.utime(old, (1, 1))
    result = project.run(bench("", "'true'", "{file: out.json, json: {time: ms}, units: {time: ms}}"))
    assert step(result, "bench").reason == "the command did not write out.json"
    assert result.verdict == "error"


@pytest.mark.parametrize(
    ("run", "parse", "reason"),
    [
        ("echo nothing", '{regex: "ms=(?P<time>.*)", units: {time: ms}}', "nothing in the output matches"),
        ("echo ms=fast", '{regex: "ms=(?P<time>.*)", units: {time: ms}}', "`time` on line 1 is 'fast', not a number"),
        ("echo ms=-1", '{regex: "ms=(?P<time>.*)", units: {time: ms}}', "cannot be a measurement"),
        ("echo '{'", "{json: {time: a}, units: {time: ms}}", "the output is not JSON"),
        ('echo \'{"a": "1"}\'', "{json: {time: a}, units: {time: ms}}", "not a number"),
        ("echo '{}'", "{json: {time: a}, units: {time: ms}}", "nothing at 'a'"),
        ("echo a,b", "{csv: {time: a}, units: {time: ms}}", "a heading but no rows"),
        ("'true'", "{file: none.json, json: {time: a}, units: {time: ms}}", "the command did not write none.json"),
        ("echo ms=1; exit 1", '{regex: "ms=(?P<time>.*)", units: {time: ms}}', "bench exited with 1"),
    ],
)
def test_output_that_cannot_be_read_is_never_a_pass(project: Project, run: str, parse: str, reason: str) -> None:
    result = project.run(bench("", json.dumps(run) if ": " in run else run, parse))
    assert reason in step(result, "bench").reason
    assert (result.verdict, result.gate) == ("error", Gate(status="fail"))


def test_asserted_figures(project: Project) -> None:
    text = """
stages:
  baseline:
    - {{id: one, run: ls, runs: 1, warmup: 0}}
  verify:
    - id: precise
      run: printf 'diff=%s\\n' {values}
      parse: {{regex: "diff=(?P<max_abs_diff>.*)", units: {{max_abs_diff: "1"}}}}
      assert: {{max_abs_diff: <1e-5}}
"""
    result = project.run(text.format(values="1e-6 0 2e-6"))
    assert (result.verdict, result.verification[0].status) == ("pass", "passed")
    result = project.run(text.format(values="1e-6 0.25 2e-6"))
    assert result.verdict == "fail"
    assert result.verification[0].detail == "max_abs_diff is 0.250, required <1e-5"


def test_a_check_that_ran_but_wrote_nothing_fails(project: Project) -> None:
    parse = "{file: out.json, json: {max_abs_diff: diff}, units: {max_abs_diff: '1'}}"
    check = f"{{id: precise, run: 'true', parse: {parse}, assert: {{max_abs_diff: <1e-5}}}}"
    result = project.run(f"stages: {{verify: [{check}]}}")
    assert (result.verdict, step(result, "precise").not_started) == ("fail", False)


def test_pairs_are_in_coin_flip_order_and_both_sides_are_kept(project: Project) -> None:
    text = """
stages:
  baseline:
    - {id: bench, uses: command, runs: 16, warmup: 0, with: {command: "true a"}, candidate: "true b"}
"""
    result = project.run(text)
    events = [event for event in project.events() if event["event"] == "sample"]
    assert [event["pair"] for event in events] == list(range(16))
    assert {event["first"] for event in events} == {"baseline", "candidate"}
    cpu = row(result, "bench", "cpu")
    assert cpu.pairs == 16
    assert cpu.decision is not None
    project.run(text)
    again = [event["first"] for event in project.events() if event["event"] == "sample"]
    assert again == [event["first"] for event in events]


def test_a_candidate_that_uses_threads_has_no_uncontended_time_and_is_still_compared(project: Project) -> None:
    """`uncontended` is known for one thread only. If a side lacks it, it decides nothing and causes no error."""
    busy = "import time\ndef burn():\n  while time.thread_time() < 0.03: pass\n"
    project.write("one.py", busy + "burn()\n")
    project.write("two.py", busy + "import threading\nt = threading.Thread(target=burn); t.start(); burn(); t.join()\n")
    result = project.run("""
stages:
  baseline:
    - id: bench
      uses: command
      runs: 3
      warmup: 0
      with: {command: python3 one.py}
      candidate: python3 two.py
""")
    assert result.verdict in ("pass", "unproven", "fail")
    gone = row(result, "bench", "uncontended")
    assert (gone.decision, gone.gating, gone.candidate) == ("removed", False, None)
    assert row(result, "bench", "time").gating
    assert row(result, "bench", "time").pairs == 3


def test_scripts_that_differ_are_not_the_same_files(project: Project) -> None:
    project.write("a.py", "1")
    project.write("b.py", "2")
    text = """
stages:
  baseline:
    - {{id: bench, uses: command, runs: 1, warmup: 0, with: {{command: python3 a.py}}, candidate: python3 {other}}}
"""
    for other, identical in (("b.py", False), ("a.py --fast", True)):
        project.run(text.format(other=other))
        assert project.events()[-2].get("identical", False) is identical


def test_long_shell_text_with_a_candidate_is_no_file_name(project: Project) -> None:
    text = "echo /ms=1 " + "x" * 5000
    result = project.run(
        bench(f"candidate: {{command: '{text}'}}", text, '{regex: "ms=(?P<time>.)", units: {time: ms}}')
    )
    assert result.steps[0].status == "done"


def test_a_benchmark_that_only_one_side_has_turns_up_by_name(project: Project) -> None:
    text = bench(
        "candidate: {{command: \"printf '%s=1\\n' {candidate}\"}}",
        "printf '%s=1\\n' {baseline}",
        '{{regex: "(?P<benchmark>[a-z]+)=(?P<time>.*)", units: {{time: ms}}}}',
    )
    result = project.run(text.format(baseline="kept gone", candidate="kept"))
    assert row(result, "gone", "time").decision == "removed"
    assert "no longer measured: gone time" in result.reason_texts
    assert result.verdict == "error"
    result = project.run(text.format(baseline="kept", candidate="kept fresh"))
    assert (row(result, "fresh", "time").decision, row(result, "fresh", "time").level) == ("new", "ok")
    assert result.reason_texts == ["unproven: kept time: not settled after 2 pairs, too few to tell"]


def test_an_expected_benchmark_that_does_not_appear_is_an_error(project: Project) -> None:
    parse = '{regex: "(?P<benchmark>[a-z]+)=(?P<time>.*)", units: {time: ms}}'
    result = project.run(bench("expect: [a, 'b*']", "echo a=1", parse))
    assert result.verdict == "error"
    assert result.reason_texts == ["expected benchmark did not appear: b* (step bench)"]


def test_matrix_cells_are_benchmarks_of_their_own(project: Project) -> None:
    result = project.run(
        "targets: {'bench*': {time: <1s}}"
        + bench("matrix: {n: [1, 20]}", "echo ms=${{ matrix.n }}", '{regex: "ms=(?P<time>.*)", units: {time: ms}}')
    )
    assert samples(result, "bench[n=1]", "time") == [0.001] * 2
    assert samples(result, "bench[n=20]", "time") == [0.02] * 2
    assert {target.benchmark for target in result.targets} == {"bench[n=1]", "bench[n=20]"}


SAME = """
stages:
  baseline:
    - {{id: one, run: ls, runs: 1, warmup: 0}}
  verify:
    - id: same
      uses: same-output
      with: {{command: {command}, {options}}}
      {keys}
"""


@pytest.mark.parametrize(
    ("command", "options", "keys", "status", "detail"),
    [
        ("echo 1.0 x", "expected: want", "", "passed", "3 outputs the same as want"),
        ("echo 1.1 x", "expected: want", "", "failed", "baseline: line 1: expected '1.0 x', got '1.1 x'"),
        ("echo 1.1 x", "expected: want, absolute: 0.2", "", "passed", "3 outputs the same as want"),
        ("echo 1.1 x", "expected: want, absolute: 0.2, runs: 1", "", "passed", "1 output the same as want"),
        ("echo 1.1 x", "expected: want, relative: 0.01", "", "failed", "differs by 0.1, more than the allowed 0.01"),
        ("echo 1.1 y", "expected: want, absolute: 0.2", "", "failed", "line 1"),
        ("'true'", "expected: want", "", "failed", "the output is empty"),
        ("echo 1", "runs: 3", "", "passed", "2 outputs the same as the baseline's"),
        ("date +%N", "runs: 9", "", "failed", "line 1"),
        ("echo 1", "", "candidate: echo 1", "passed", "3 outputs the same as the baseline's"),
        ("echo 1", "runs: 4", "candidate: echo 1", "passed", "7 outputs the same as the baseline's"),
        ("echo 1", "", "candidate: echo 2", "failed", "candidate: line 1: expected '1', got '2'"),
        ("echo 1", "", "candidate: 'false'", "failed", "false exited with 1"),
    ],
)
def test_same_output(project: Project, command: str, options: str, keys: str, status: str, detail: str) -> None:
    project.write("want", "1.0 x\n")
    result = project.run(SAME.format(command=command, options=options, keys=keys))
    assert (result.verification[0].status, result.verdict) == (status, "pass" if status == "passed" else "fail")
    assert detail in result.verification[0].detail


def test_output_that_is_wrong_now_and_then_is_found(project: Project) -> None:
    # Wrong in every third run, so that the first two runs pass.
    text = "echo x >> ran; test $(wc -l < ran) -eq 3 && echo wrong || echo right"
    project.write("now-and-then", text)
    result = project.run(SAME.format(command="echo right", options="", keys="candidate: bash now-and-then"))
    assert result.verification[0].detail == "candidate: line 1: expected 'right', got 'wrong'"


EMPTY = "both outputs are empty, so the comparison proves nothing"


@pytest.mark.parametrize(
    ("options", "status", "detail"),
    [
        ("", "failed", f"candidate: {EMPTY}"),
        ("allow-empty: true", "passed", "3 outputs the same as the baseline's"),
        ("expected: none", "failed", f"baseline: {EMPTY}"),
    ],
)
def test_empty_output_proves_nothing(project: Project, options: str, status: str, detail: str) -> None:
    project.write("none", "")
    result = project.run(SAME.format(command="'true'", options=options, keys="candidate: 'true'"))
    assert (result.verification[0].status, result.verdict) == (status, "pass" if status == "passed" else "fail")
    assert detail in result.verification[0].detail


@pytest.mark.parametrize(
    ("candidate", "options", "status", "detail"),
    [
        ("echo 1.0 > out", "", "passed", "3 outputs the same as the baseline's"),
        ("echo 1.1 > out", "", "failed", "candidate: out: line 1: expected '1.0', got '1.1'"),
        ("echo 1.1 > out", "relative: 0.2", "passed", "3 outputs"),
        ("echo 1.0 > out; echo said", "", "failed", "candidate: 1 line instead of 0"),
        ("echo 1.0", "", "failed", "candidate: the command did not write out"),
        ("rm out", "", "failed", "candidate: the command did not write out"),
        (": > out", "", "failed", "candidate: out: the output is empty"),
    ],
)
def test_files_that_a_program_writes_are_compared(
    project: Project, candidate: str, options: str, status: str, detail: str
) -> None:
    keys = f"candidate: {json.dumps(candidate)}"
    chosen = ", ".join(filter(None, ("shell: true, files: [out]", options)))
    result = project.run(SAME.format(command="echo 1.0 > out", options=chosen, keys=keys))
    assert (result.verification[0].status, result.verdict) == (status, "pass" if status == "passed" else "fail")
    assert detail in result.verification[0].detail


def test_an_empty_file_proves_nothing(project: Project) -> None:
    options = "shell: true, files: out, runs: 2"
    result = project.run(SAME.format(command="': > out'", options=options, keys=""))
    assert f"baseline: out: {EMPTY}" in result.verification[0].detail


def test_same_output_with_nothing_to_compare_is_an_error(project: Project) -> None:
    for options in ("", "expected: none.txt"):
        result = project.run(SAME.format(command="echo 1", options=options, keys=""))
        assert result.verdict == "error"


def test_interrupted_while_sampling_keeps_the_samples_and_never_passes(project: Project) -> None:
    project.write("slow", "#!/bin/sh\necho x >> count; echo ms=1; sleep 0.05\n", executable=True)
    main = threading.get_ident()
    stopping = threading.Event()

    def interrupt() -> None:
        count = project.folder / "count"
        while not stopping.is_set():
            if count.exists() and len(count.read_text()) > 12:
                import signal

                signal.pthread_kill(main, signal.SIGINT)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=interrupt)
    killer.start()
    try:
        finished = project.finish(
            bench("", "./slow", '{regex: "ms=(?P<time>.*)", units: {time: ms}}').replace("runs: 2", "runs: 2000")
            + "  verify: [{id: tests, run: 'true'}]\n"
        )
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
    from perfflow.model.errors import UserError

    project.write("want", "1\n")
    finished = project.finish(
        bench("candidate: {command: echo ms=2}", "echo ms=1", '{regex: "ms=(?P<time>.*)", units: {time: ms}}')
        + "  profile: [{id: heap, uses: massif, with: {command: /bin/true}}]\n"
        + "  verify: [{id: same, uses: same-output, with: {command: echo 1, expected: want}}]\n"
    )
    events = (finished.folder / "events.jsonl").read_bytes()
    assert (
        to_text(result_of_events(finished.folder))
        == (finished.folder / "result.json").read_text()
        == to_text(finished.result)
    )
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
    ("damage", "said"),
    [
        (lambda text: text.replace('"event":"sample"', '"event":"sample",,', 1), "damaged line"),
        (lambda text: text.replace('"steps":', '"stepz":', 1), "KeyError: 'steps'"),
        (lambda text: text.replace('"value":0.001', '"walue":0.001', 1), "KeyError: 'value'"),
        (lambda text: text.replace('"value":0.001', '"value":"fast"', 1), "Error"),
        (lambda text: text.replace('"status":"done"', '"status":"odd"', 1), "odd"),
        (lambda text: text.replace('"criteria":{', '"criteria":{"x":1},"criteria2":{', 1), "KeyError"),
        (lambda text: "[" * 100_000 + "\n" + text, "damaged line"),
        (lambda text: text[:0], "holds no run"),
        (lambda text: '{"some": "other file"}\n' + text[:0], "holds no run"),
    ],
)
def test_damaged_events_are_a_clear_error(project: Project, damage: object, said: str) -> None:
    from perfflow.model.errors import UserError

    finished = project.finish(bench("", "echo ms=1", '{regex: "ms=(?P<time>.*)", units: {time: ms}}'))
    events = finished.folder / "events.jsonl"
    assert callable(damage)
    events.write_text(damage(events.read_text()))
    with pytest.raises(UserError) as caught:
        result_of_events(finished.folder)
    assert said in str(caught.value)
    assert str(events) in str(caught.value)


def test_events_that_are_gone_are_a_clear_error(project: Project) -> None:
    from perfflow.model.errors import UserError

    with pytest.raises(UserError, match="No such file"):
        result_of_events(project.folder)


def test_progress_is_told_between_rounds(project: Project) -> None:
    project.run(
        "stages:\n  baseline:\n    - {id: a, uses: command, runs: 3, with: {command: 'true'}, candidate: 'true'}\n"
        "    - {id: b, uses: command, runs: 2, with: {command: 'true'}}\n"
    )
    told = [(taken.benchmark, taken.count, taken.unit) for taken in project.told.taken]
    assert told == [("a", 1, "pair"), ("a", 2, "pair"), ("a", 3, "pair"), ("b", 1, "run"), ("b", 2, "run")]
    assert project.told.steps_to_come == project.told.granted_to == ["a", "b"]
