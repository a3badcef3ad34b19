"""Tools defined by YAML files: problems have their places, and valid tools run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import Problem, ToolOutputError
from perfflow.model.readings import Usage
from perfflow.tools.adapter import Adapter, Call, Effort, Role
from perfflow.workflow import declared_tool
from tests.cli.shell import perfflow, write

WORDS = """\
perfflow-tool: 1
name: words
description: Words of a file, counted by wc.
program: wc
version: [--version]
install: apt-get install coreutils
deterministic: true
with:
  file: {help: the file to count}
  flag: {default: w, enum: [w, c]}
argv: [wc, "-${{ with.flag }}", "${{ with.file }}"]
parse:
  regex: '^\\s*(?P<words>\\d+) \\S'
  units: {words: "1"}
  better: {words: lower}
"""
SUITE = """\
#!/bin/sh
# A program with two benchmarks; `slow` fails on request.
case "$1" in
list) printf 'quick\\nslow\\n'; exit 0 ;;
esac
for name in ${2:-quick slow}; do
  [ "$name" = "$FAILS" ] && { echo "ERROR: $name broke"; exit 0; }
  echo "$name took ${SECONDS_TAKEN:-1.5}000 ms"
done
echo done
"""
SUITE_TOOL = """\
perfflow-tool: 1
argv: [./suite.sh, run]
parse:
  regex: '^(?P<benchmark>\\w+) took (?P<time>[\\d.]+) ms$'
  units: {time: ms}
failed: ^ERROR
finished: ^done$
suite:
  list: [./suite.sh, list]
  only: ["${{ only }}"]
"""


def tool_of(folder: Path, text: str) -> Adapter:
    path = folder / "tool.yaml"
    path.write_text(text)
    tool, problems = declared_tool.load_tools(path)
    assert tool, problems
    return tool.adapter


def mistakes(folder: Path, text: str) -> tuple[Problem, ...]:
    path = folder / "tool.yaml"
    path.write_text(text)
    tool, problems = declared_tool.load_tools(path)
    assert tool is None
    return problems


def project(folder: Path, tool: str, steps: str, head: str = "") -> None:
    (folder / "tools").mkdir()
    (folder / "tools" / "mine.yaml").write_text(tool)
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
    (tmp_path / "suite.sh").write_text(SUITE)
    (tmp_path / "suite.sh").chmod(0o755)
    step = '{id: suite, uses: tools/mine.yaml, benchmark: "*", candidate: {env: {SECONDS_TAKEN: "1.0"}}}'
    project(tmp_path, SUITE_TOOL, step, "targets: {quick: {time: <1.2ms}}\n")
    status, result = run(tmp_path)
    assert status == 0
    assert {row["name"]: row["decision"] for row in result["benchmarks"]} == {"quick": "improved", "slow": "improved"}


def test_exit_status_0_after_a_failure_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "suite.sh").write_text(SUITE)
    (tmp_path / "suite.sh").chmod(0o755)
    project(tmp_path, SUITE_TOOL, "{id: suite, uses: tools/mine.yaml, runs: 3, env: {FAILS: slow}}")
    status, result = run(tmp_path)
    assert status == 3
    assert "its output reports a failure: 'ERROR: slow broke'" in result["steps"][0]["reason"]


def test_a_command_is_handed_on_word_by_word(tmp_path: Path) -> None:
    script = "import sys; print(len(sys.argv[1]))"
    (tmp_path / "length.py").write_text(script)
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


def test_an_output_that_is_not_written_is_an_error(tmp_path: Path) -> None:
    text = """\
perfflow-tool: 1
argv: ["true"]
outputs: [out.json]
parse: {file: out.json, json: {time: t}, units: {time: s}}
"""
    project(tmp_path, text, "{id: x, uses: ./tools/mine.yaml}")
    status, result = run(tmp_path)
    assert status == 3
    assert "left no out.json" in result["steps"][0]["reason"]


def test_a_program_that_is_not_there_stops_the_run_with_its_remedy(tmp_path: Path) -> None:
    text = WORDS.replace("program: wc", "program: no-such-wc").replace("argv: [wc", "argv: [no-such-wc")
    project(tmp_path, text, "{id: x, uses: ./tools/mine.yaml, with: {file: a}}")
    status, result = run(tmp_path)
    assert status == 3
    assert "install it: apt-get install coreutils" in result["steps"][0]["reason"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("program", "progrm", 4, "unknown key `progrm`", "did you mean `program`?"),
        ("with.file", "with.fil", 11, "`with` has no key `fil`", "did you mean `file`?"),
        ("with.file", "params.file", 11, "unknown name `params`", ""),
        ("with.file", "only", 11, "`only` is defined only in", ""),
        ('"1"', "msx", 14, "unknown unit 'msx'", "did you mean 'ms'?"),
        ("default: w", "default: x", 10, "the default of `flag` is 'x', but `enum` allows w, c", "change one of them"),
        ("  flag:", "  command:", 10, "`command` is a reserved key of `with`", ""),
        ("install: apt-get install coreutils\n", "", 4, "`program` needs `install`", "install: apt-get install wc"),
        ("name: words", "name: massif", 2, "`massif` is the name of a built-in tool", ""),
        ("perfflow-tool: 1\n", "", 1, "`perfflow-tool` is missing", ""),
        ("parse:", "outputs: [stdout]\nparse:", 12, "`stdout` is always kept", ""),
        ("parse:", "failed: '('\nparse:", 12, "invalid regular expression", ""),
        ("parse:", "assert: {words: 1}\nparse:", 12, "`assert` needs the role check", "role: check"),
        ("  regex:", "  file: x.json\n  regex:", 13, "`x.json` is not one of the `outputs`", "outputs: [x.json]"),
        ("deterministic: true", "role: chek", 7, "`role` must be one of", "did you mean 'check'?"),
        ("deterministic: true", "role: check", 12, "a check with `parse` needs `assert`", ""),
    ],
)
def test_a_mistake_has_a_place_and_a_hint(
    old: str, new: str, line: int, message: str, hint: str, tmp_path: Path
) -> None:
    assert old in WORDS
    found = [item for item in mistakes(tmp_path, WORDS.replace(old, new, 1)) if message in item.message]
    assert found, mistakes(tmp_path, WORDS.replace(old, new, 1))
    assert found[0].place
    assert found[0].place.line == line
    assert hint in found[0].hint


def test_every_mistake_of_workflow_and_tool_file_is_shown_at_once_in_its_own_file(tmp_path: Path) -> None:
    text = WORDS.replace("program", "progrm").replace("with.file", "with.fil")
    project(tmp_path, text, "{id: count, uses: ./tools/mine.yaml, with: {file: a}, tmeout: 3s}")
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    places = re.findall(r"^(\S+):(\d+):\d+: error", done.stderr, re.MULTILINE)
    assert places == [("flow.yaml", "2"), ("tools/mine.yaml", "4"), ("tools/mine.yaml", "5"), ("tools/mine.yaml", "11")]
    assert '   11 | argv: [wc, "-${{ with.flag }}", "${{ with.fil }}"]' in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{}", "`file` is missing"),
        ("{file: a, fle: b}", "unknown key `fle`"),
        ("{file: a, flag: z}", "`flag` must be one of 'w', 'c', not 'z'"),
        ("{file: [a]}", "`file` must be a string, not ['a']"),
    ],
)
def test_its_options_are_validated(options: str, message: str, tmp_path: Path) -> None:
    project(tmp_path, WORDS, f"{{id: count, uses: ./tools/mine.yaml, with: {options}}}")
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_that_is_not_there_is_answered_with_its_neighbour(tmp_path: Path) -> None:
    project(tmp_path, WORDS, "{id: count, uses: ./tools/mien.yaml, with: {file: a}}")
    done = perfflow("validate", "flow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("flow.yaml:2:39: error: tools/mien.yaml: no such file\n")
    assert "did you mean tools/mine.yaml?" in done.stderr


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
        (
            {"stdout": "quick took 1 ms\ndone\n", "stderr": "ERROR: late\n"},
            "its output reports a failure: 'ERROR: late'",
        ),
    ],
)
def test_outputs_that_cannot_be_are_refused(files: Mapping[str, str], reason: str, tmp_path: Path) -> None:
    tool = tool_of(tmp_path, SUITE_TOOL)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ToolOutputError, match=re.escape(reason)):
        tool.parse(Call(tool.options(), tmp_path), Usage(wall=1.0))


def test_a_run_is_not_gone_on_with_once_its_tool_file_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from perfflow.session.open_workflow import open_workflow
    from perfflow.session.session import digest

    project(tmp_path, WORDS, "{id: count, uses: ./tools/mine.yaml, with: {file: a}}")
    monkeypatch.chdir(tmp_path)
    before = digest(open_workflow(str(tmp_path / "flow.yaml")))
    (tmp_path / "tools" / "mine.yaml").write_text(WORDS.replace("Words of", "All words of"))
    assert digest(open_workflow(str(tmp_path / "flow.yaml"))) != before


@pytest.mark.parametrize(("brief", "warned"), [("[-q]", True), ("[-x]", False), ("[]", False)])
def test_a_brief_run_that_disagrees_with_a_full_one_is_told_with_both_figures(
    tmp_path: Path, brief: str, warned: bool
) -> None:
    suite = """#!/bin/sh
test "$1" != list || { echo fast; echo slow; exit; }
took=12; test "$3" != -q || took=30
echo "$2 took $took ms"
echo done
"""
    (tmp_path / "suite.sh").write_text(suite)
    (tmp_path / "suite.sh").chmod(0o755)
    tool = SUITE_TOOL.replace('only: ["${{ only }}"]', f'only: ["${{{{ only }}}}"]\n  brief: {brief}')
    project(tmp_path, tool, "{id: suite, uses: ./tools/mine.yaml}")
    _, result = run(tmp_path)
    told = [text for text in result["steps"][0]["warnings"] if "brief" in text]
    assert bool(told) == warned
    assert all("fast time: 30.0 ms in brief runs of `mine`, 12.0 ms in a full run" in text for text in told)
