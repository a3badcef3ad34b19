"""Tools defined by YAML files: problems have their places, and valid tools run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Reading, Usage
from perfflow.session.open_workflow import open_workflow
from perfflow.session.session import digest
from perfflow.tools.adapter import Adapter, Call, Effort, Role
from perfflow.workflow import declared_tool
from tests.cli.shell import perfflow, write
from tests.toolchains import needs_go
from tests.tools.harness import GO_MODULE
from tests.workflow.drafts import FILES

WORDS = (FILES / "words.yaml").read_text()
SUITE_TOOL = (FILES / "suite.yaml").read_text()


def tool_of(folder: Path, text: str) -> Adapter:
    (folder / "tool.yaml").write_text(text)
    tool, problems = declared_tool.load_tools(folder / "tool.yaml")
    assert tool, problems
    return tool.adapter


def project(folder: Path, tool: str, steps: str, head: str = "") -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "mine.yaml").write_text(tool)
    shutil.copy(FILES / "suite.sh", folder)
    write(folder, f"{head}stages: {{baseline: [{steps}]}}\n")


def run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = perfflow(
        *("run", "flow.yaml", "--json", "--progress", "off", "--budget", "20s", "--unproven=pass", *arguments),
        cwd=folder,
        env={"PERFFLOW_LOCK_FILE": str(folder / "lock")},
    )
    assert done.returncode in (0, 1, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_both_sides_are_measured_and_judged_in_its_own_metric(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b c d\n")
    (tmp_path / "b.txt").write_text("a b\n")
    step = "{id: count, uses: ./tools/mine.yaml, with: {file: a.txt}, candidate: {with: {file: b.txt}}}"
    project(tmp_path, WORDS, step, "targets: {count: {words: <3}}\n")
    status, result = run(tmp_path)
    assert status == 0
    (row,) = result["benchmarks"]
    assert (row["baseline"]["value"], row["candidate"]["value"], row["decision"]) == (4, 2, "improved")
    assert result["targets"][0]["status"] == "met"
    assert result["steps"][0]["argv"][1:] == ["-w", "a.txt"]


def test_a_suite_is_listed_and_each_benchmark_is_run_alone(tmp_path: Path) -> None:
    step = '{id: suite, uses: tools/mine.yaml, benchmark: "*", candidate: {env: {SECONDS_TAKEN: "1.0"}}}'
    project(tmp_path, SUITE_TOOL, step, "targets: {quick: {time: <1.2ms}}\n")
    status, result = run(tmp_path)
    assert status == 0
    assert {row["name"]: row["decision"] for row in result["benchmarks"]} == {"quick": "improved", "slow": "improved"}


LEAVES_NOTHING = """\
perfflow-tool: 1
argv: ["true"]
outputs: [out.json]
parse: {file: out.json, json: {time: t}, units: {time: s}}
"""
MISSING = WORDS.replace("program: wc", "program: no-such-wc").replace("argv: [wc", "argv: [no-such-wc")


@pytest.mark.parametrize(
    ("tool", "keys", "reason"),
    [
        (SUITE_TOOL, "runs: 3, env: {FAILS: slow}", "its output reports a failure: 'ERROR: slow broke'"),
        (LEAVES_NOTHING, "", "left no out.json"),
        (MISSING, "with: {file: a}", "install it: apt-get install coreutils"),
    ],
    ids=["exit status 0 after a failure", "an output that is not written", "a program that is not there"],
)
def test_what_measured_nothing_says_why(tool: str, keys: str, reason: str, tmp_path: Path) -> None:
    project(tmp_path, tool, f"{{id: x, uses: ./tools/mine.yaml, {keys}}}")
    status, result = run(tmp_path)
    assert status == 3
    assert reason in result["steps"][0]["reason"]


def test_a_command_is_handed_on_word_by_word(tmp_path: Path) -> None:
    (tmp_path / "length.py").write_text("import sys; print(len(sys.argv[1]))")
    text = """\
perfflow-tool: 1
argv: [env, "MODE=${{ with.mode }}", "${{ command }}", "${{ ['-v'] if with.verbose else [] }}"]
with: {mode: {default: "a b"}, verbose: {default: false}}
parse: {regex: '(?P<length>\\d+)', units: {length: B}}
"""
    step = "{id: x, uses: ./tools/mine.yaml, runs: 1, with: {command: [python3, length.py, 'a b;c']}}"
    project(tmp_path, text, step)
    status, result = run(tmp_path)
    assert status == 0
    assert result["benchmarks"][0]["baseline"]["value"] == 5
    assert result["steps"][0]["argv"][1] == "MODE=a b"


def test_a_profiler_leaves_stacks_and_hotspots(tmp_path: Path) -> None:
    text = """\
perfflow-tool: 1
role: profile
argv: [sh, -c, 'printf "main;work 3\\nmain 1\\n" > "$0/out.folded"', "${{ folder }}"]
outputs: [out.folded]
stacks: out.folded
"""
    project(tmp_path, text, "{id: x, run: 'true'}, {id: p, uses: ./tools/mine.yaml}")
    _, result = run(tmp_path)
    assert [(spot["location"], spot["share"]) for spot in result["hotspots"]] == [("work", 0.75), ("main", 0.25)]
    assert result["profiles"][0]["path"].endswith("out.folded")


@pytest.mark.parametrize(
    ("command", "expected", "said"),
    [
        ("echo 0 lost", 0, "lost = 0"),
        ("echo 2 lost", 1, "lost is 2"),
        ("echo 0 lost; exit 4", 0, "lost = 0"),
        ("echo 0 lost; exit 1", 1, "exited with 1"),
        ("echo nothing", 1, "nothing in the output matches"),
    ],
)
def test_a_check_asserts_figures_and_accepts_its_own_statuses(
    command: str, expected: int, said: str, tmp_path: Path
) -> None:
    text = f"""\
perfflow-tool: 1
role: check
argv: [sh, -c, {command!r}]
exit: [0, 4]
parse: {{regex: '^(?P<lost>\\d+) lost', units: {{lost: "1"}}}}
assert: {{lost: 0}}
"""
    project(tmp_path, text, "{id: x, run: 'true'}, {id: c, uses: ./tools/mine.yaml}")
    status, result = run(tmp_path)
    assert status == expected, result
    assert said in json.dumps([result["verification"], result["steps"]])


def test_a_mistake_in_a_tool_file_is_shown_with_its_line(tmp_path: Path) -> None:
    project(tmp_path, WORDS.replace("with.file", "with.fil"), "{id: count, uses: ./tools/mine.yaml, with: {file: a}}")
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert '   11 | argv: [wc, "-${{ with.flag }}", "${{ with.fil }}"]' in done.stderr


def test_it_is_an_adapter_like_any_other(tmp_path: Path) -> None:
    tool = tool_of(tmp_path, SUITE_TOOL.replace('only: ["${{ only }}"]', 'only: ["${{ only }}"]\n  brief: [-q]'))
    assert (tool.name, tool.role, bool(tool.program)) == ("tool", Role.MEASURE, False)
    assert list(tool.metrics) == ["time"]
    call = Call(tool.options(), tmp_path, chosen=("slow",), effort=Effort.BRIEF)
    assert tool.invocations(call)[0].argv == ("./suite.sh", "run", "slow", "-q")
    listing = tool.suite.listing(call)
    assert listing
    assert listing.argv == ("./suite.sh", "list")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "stdout was not written"),
        ({"stdout": ""}, "stdout is empty"),
        ({"stdout": "quick took 1 ms\n"}, "incomplete"),
        ({"stdout": "done\n"}, "nothing in the output matches"),
        ({"stdout": "quick took 1 ms\nERROR\ndone\n"}, "its output reports a failure: 'ERROR'"),
        ({"stdout": "quick took 1 ms\ndone\n", "stderr": "ERROR: late\n"}, "reports a failure: 'ERROR: late'"),
    ],
)
def test_outputs_that_cannot_be_are_refused(files: Mapping[str, str], reason: str, tmp_path: Path) -> None:
    tool = tool_of(tmp_path, SUITE_TOOL)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ToolOutputError, match=re.escape(reason)):
        tool.parse(Call(tool.options(), tmp_path), Usage(wall=1.0))


def test_a_run_is_not_gone_on_with_once_its_tool_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, WORDS, "{id: count, uses: ./tools/mine.yaml, with: {file: a}}")
    monkeypatch.chdir(tmp_path)
    before = digest(open_workflow(str(tmp_path / "flow.yaml")))
    (tmp_path / "tools" / "mine.yaml").write_text(WORDS.replace("Words of", "All words of"))
    assert digest(open_workflow(str(tmp_path / "flow.yaml"))) != before


@pytest.mark.parametrize(("brief", "warned"), [("[-q]", True), ("[-x]", False), ("[]", False)])
def test_a_brief_run_that_disagrees_with_a_full_one_is_told_with_both_figures(
    tmp_path: Path, brief: str, warned: bool
) -> None:
    tool = SUITE_TOOL.replace('only: ["${{ only }}"]', f'only: ["${{{{ only }}}}"]\n  brief: {brief}')
    project(tmp_path, tool, "{id: suite, uses: ./tools/mine.yaml}")
    (tmp_path / "suite.sh").write_text(
        "#!/bin/sh\n"
        'test "$1" != list || { echo fast; echo slow; exit; }\n'
        'test "$3" = -q && took=30 || took=12\n'
        'echo "$2 took $took ms"\n'
        "echo done\n"
    )
    _, result = run(tmp_path)
    told = [text for text in result["steps"][0]["warnings"] if "brief" in text]
    assert bool(told) == warned
    assert all("fast time: 30.0 ms in brief runs of `mine`, 12.0 ms in a full run" in text for text in told)


@pytest.mark.long  # compiles; go-bench has tests of its own
@needs_go
def test_a_file_describes_go_benchmarks_whatever_their_names_are(tmp_path: Path) -> None:
    binary = tmp_path / "text.test"
    subprocess.run(["go", "test", "-c", "-o", str(binary), "./text"], cwd=GO_MODULE, check=True)
    tool = tool_of(tmp_path, (FILES / "go.yaml").read_text())
    call = Call(tool.read_options({"binary": str(binary)}), tmp_path / "out")
    call.folder.mkdir()
    assert tool.build.executed(call) == (binary,)
    listing = tool.suite.listing(call)
    assert listing
    printed = subprocess.run(listing.argv, capture_output=True, text=True, check=True, cwd=tmp_path)
    names = printed.stdout.splitlines()
    assert names[:2] == ["BenchmarkCount/n=1", "BenchmarkCount/n=10"]
    # a+b is a regular expression, and n=10 begins with n=1.
    for name in ("BenchmarkCount/n=1", "BenchmarkOdd/a+b", "BenchmarkOdd/x/y"):
        (process,) = tool.invocations(replace(call, chosen=(name,)))
        with (call.folder / "stdout").open("wb") as stdout:
            subprocess.run(process.argv, stdout=stdout, check=True)
        readings = tool.parse(call, Usage(1.0)).readings
        assert {reading.benchmark for reading in readings} == {name}
        # Only the benchmarks of Count set their bytes.
        assert ("throughput" in {reading.metric for reading in readings}) == ("Count" in name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("optional: [throughput]", "optional: [through]", "`through` is not one of the metrics of `parse`"),
        ("(?P<name>", "(?P<nam>", "the pattern has no group `name`"),
        ("names: '^", "names: '(^", "invalid regular expression"),
        ("only | regex", "only | regexp", "regexp"),
    ],
)
def test_a_mistake_about_names_has_a_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = (FILES / "go.yaml").read_text().replace(old, new)
    (tmp_path / "tool.yaml").write_text(text)
    tool, problems = declared_tool.load_tools(tmp_path / "tool.yaml")
    assert tool is None
    assert any(said in problem.message and problem.place for problem in problems), problems


PERCENTILES = """\
perfflow-tool: 1
argv: ["true"]
parse:
  json:
    p50: times.p50
    p99: times["p99"]
    p999: times["p99.9"]
    n: status[]
    rate: rate
  units: {time: ms, rate: 1/s}
distribution: time
failed:
  '"error": "(?P<why>[^"]*)", "count": (?P<count>\\d+)': "{count} failed: {why}"
  'ERROR': ""
"""


ALL = {"p50", "p99", "p999"}


def read(folder: Path, text: str, printed: str) -> dict[str, Reading]:
    tool = tool_of(folder, text)
    (folder / "stdout").write_text(printed)
    parsed = tool.parse(Call(tool.options(), folder), Usage(wall=1.0))
    return {item.metric: item for item in parsed.readings}


@pytest.mark.parametrize(
    ("statuses", "known"), [({"200": 999}, {"p50"}), ({"200": 900, "204": 100}, {"p50", "p99"}), ({"200": 10**4}, ALL)]
)
def test_percentiles_of_a_process_are_one_reading_without_those_of_too_few_values(
    statuses: Mapping[str, int], known: Collection[str], tmp_path: Path
) -> None:
    printed = {"times": {"p50": 2, "p99": 3, "p99.9": 4}, "status": statuses, "rate": 7}
    found = read(tmp_path, PERCENTILES, json.dumps(printed))
    assert found.keys() == {"time", "rate"} == tool_of(tmp_path, PERCENTILES).metrics.keys()
    assert found["rate"].value == 7
    assert (found["time"].value, found["time"].statistic) == (0.002, "p50")
    assert found["time"].inner.keys() == {*known, "n"}
    assert found["time"].inner["n"] == sum(statuses.values())


def test_a_target_on_a_percentile_of_too_few_values_is_not_measured(tmp_path: Path) -> None:
    printed = {"times": {"p50": 2, "p99": 3, "p99.9": 4}, "status": {"200": 2000}, "rate": 7}
    (tmp_path / "out.json").write_text(json.dumps(printed))
    tool = PERCENTILES.replace('argv: ["true"]', "argv: [cat, out.json]")
    targets = "targets: {x: {time p99: <5ms, time p999: <5ms}}\n"
    project(tmp_path, tool, "{id: x, uses: ./tools/mine.yaml, runs: 6}", targets)
    _, result = run(tmp_path)
    assert {item["statistic"]: (item["status"], item["measured"]) for item in result["targets"]} == {
        "p99": ("met", 0.003),
        "p999": ("not measured", None),
    }
    assert "the 2000 values of a process are too few for p999" in {item["detail"] for item in result["targets"]}


def test_values_of_a_process_are_a_distribution_too(tmp_path: Path) -> None:
    text = "perfflow-tool: 1\nargv: ['true']\ndistribution: time\n"
    text += "parse: {regex: '^(?P<time>\\d+)$', units: {time: ms}, samples: true}\n"
    found = read(tmp_path, text, "".join(f"{number}\n" for number in range(1, 201)))
    assert found["time"].inner.keys() >= {"p50", "p90", "p95", "n"}
    assert "p99" not in found["time"].inner


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ('{"error": "refused", "count": 12}', "12 failed: refused"),
        ("an ERROR\n", "its output reports a failure: 'an ERROR'"),
        ('{"times": {"p50": 2, "p99": 1, "p99.9": 4}, "status": {"200": 1000}, "rate": 7}', "contradicts itself"),
        ('{"times": {"p50": null, "p99": 1, "p99.9": 4}, "status": {}, "rate": 7}', "is null, not a number"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_file(printed: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=re.escape(said)):
        read(tmp_path, PERCENTILES, printed)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{count} failed", "{number} failed", "the pattern has no group `number`"),
        ("'ERROR'", "'(ERROR'", "invalid regular expression"),
        ("distribution: time", "distribution: latency", "`units` of `parse` has no entry for `latency`"),
        ("rate: 1/s}", "rate: 1/s}\nprepare: [touch, '${{ only }}']", "`only` is defined only in"),
        ("distribution: time", "suite: {list: [a], only: [b]}", "`units` has no entry for `p50`"),
    ],
)
def test_a_mistake_about_percentiles_has_a_place(old: str, new: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "tool.yaml").write_text(PERCENTILES.replace(old, new))
    tool, problems = declared_tool.load_tools(tmp_path / "tool.yaml")
    assert tool is None
    assert any(said in problem.message and problem.place for problem in problems), problems


PREPARED = """\
perfflow-tool: 1
with: {file: {}}
prepare: [sh, -c, 'echo >> "$0"; ! [ "$0" = none ]', "${{ with.file }}"]
argv: ["${{ command }}"]
"""


def test_what_is_prepared_before_each_sample_is_not_timed_and_without_parse_the_process_is(tmp_path: Path) -> None:
    step = "{id: x, uses: ./tools/mine.yaml, runs: 3, with: {command: 'wc -l log', file: log}, stdout: discard}"
    project(tmp_path, PREPARED, step.replace(", stdout: discard", ""))
    status, result = run(tmp_path)
    assert status == 0, result
    assert {"time", "cpu", "rss"} <= {row["metric"] for row in result["benchmarks"]}
    assert len((tmp_path / "log").read_text()) == 3 + 1  # one to warm up
    plan = perfflow("plan", "flow.yaml", cwd=tmp_path)
    assert 'sh -c \'echo >> "$0"; ! [ "$0" = none ]\' log' in plan.stdout, plan.stdout


def test_a_preparation_that_fails_fails_the_step(tmp_path: Path) -> None:
    project(tmp_path, PREPARED, "{id: x, uses: ./tools/mine.yaml, with: {command: 'true', file: none}}")
    status, result = run(tmp_path)
    assert status == 3
    assert "`prepare` exited with 1" in result["steps"][0]["reason"]


@pytest.mark.parametrize("client", ["true", "false"])
def test_what_measures_another_process_is_not_profiled_itself(client: str, tmp_path: Path) -> None:
    tool = f"perfflow-tool: 1\nclient: {client}\nargv: [sh, -c, 'echo 5']\n"
    tool += "parse: {regex: '(?P<time>\\d+)', units: {time: ms}}\n"
    project(tmp_path, tool, "{id: x, uses: ./tools/mine.yaml, runs: 2}], profile: [{id: why, uses: auto}")
    _, result = run(tmp_path)
    (step,) = [step for step in result["steps"] if step["id"] == "why"]
    assert any("nothing to profile" in text for text in step["warnings"]) == (client == "true"), step


PROFILER = """\
perfflow-tool: 1
role: profile
argv: [sh, -c, 'folder=$0; only=$1; shift; echo "$only;$*" | tr " " _ | sed "s/$/ 9/" > "$folder/out"', WORDS]
outputs: [out]
stacks: out
"""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ('"${{ folder }}", "${{ only }}", "${{ command }}"', "run_quick"),
        ('"${{ folder }}", "${{ only }}", alone', "alone"),
    ],
)
def test_a_profiler_knows_which_benchmark_of_a_suite_it_profiles(words: str, found: str, tmp_path: Path) -> None:
    steps = "{id: suite, uses: ./tools/mine.yaml}], profile: [{id: why, uses: ./profiler.yaml, benchmark: quick}"
    project(tmp_path, SUITE_TOOL, steps)
    (tmp_path / "profiler.yaml").write_text(PROFILER.replace("WORDS", words))
    _, result = run(tmp_path)
    (profile,) = result["profiles"]
    text = (tmp_path / ".perfflow" / "runs" / "latest" / profile["path"]).read_text()
    assert text.startswith("quick;")
    assert found in text
