"""Benchmarks of Node.js by tinybench, mitata and vitest, run by the real node; and V8's profiles."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.adapter import Effort
from tests.long import rest_long
from tests.toolchains import needs_node, node_project
from tests.tools.harness import USAGE, call_of, listed, parsed_of, run, run_call, tool

pytestmark = needs_node
TINYBENCH = ["words/count (100)", "words/build map"]
MITATA = ["count words", "build 10", "build 100"]
VITEST = ["bench/words.bench.js > words > count (100)", "bench/words.bench.js > words > build map"]
FILES = {
    "bench/words.js": TINYBENCH,
    "bench/words.mitata.js": MITATA,
    "": VITEST,
    "bench/words.js bench/words.mitata.js": [
        *(f"bench/words.js/{name}" for name in TINYBENCH),
        *(f"bench/words.mitata.js/{name}" for name in MITATA),
    ],
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(node_project(tmp_path / "project"))


def _names(parsed: Parsed) -> list[str]:
    return [reading.benchmark for reading in parsed.readings]


@pytest.mark.parametrize("file", rest_long(FILES), ids=str)
def test_each_benchmark_is_listed_and_runs_alone(file: str, tmp_path: Path) -> None:
    names = FILES[file]
    call = replace(call_of("node-bench", tmp_path / "out", file=file), effort=Effort.BRIEF)
    assert listed("node-bench", call) == (0, names)
    for chosen in [(names[0],), (names[-1], names[0])]:
        shutil.rmtree(call.folder)
        parsed = parsed_of(run_call("node-bench", replace(call, chosen=chosen)))
        assert sorted(_names(parsed)) == sorted(chosen)
        for reading in parsed.readings:
            assert reading.value == reading.inner["p50"]
            assert reading.inner["n"] >= 10


def test_a_script_of_typescript_needs_the_loader_of_its_project(tmp_path: Path) -> None:
    text = Path("bench/words.js").read_text().replace("../words.js", "../words.ts")
    Path("words.ts").write_text(Path("words.js").read_text().replace("count(words)", "count(words: string[])"))
    Path("bench/words.ts").write_text(text)
    Path("loader.mjs").write_text(
        "import { readFileSync } from 'node:fs';\nimport { register } from 'node:module';\n"
        "const hooks = `import { readFileSync } from 'node:fs';\n"
        "export async function load(url, context, next) {\n  if (!url.endsWith('.ts')) return next(url, context);\n"
        "  const source = String(readFileSync(new URL(url))).replaceAll(': string[]', '');\n"
        "  return { format: 'module', source, shortCircuit: true };\n}`;\n"
        "register('data:text/javascript,' + encodeURIComponent(hooks));\n"
    )
    ran = run("node-bench", tmp_path / "out", file="bench/words.ts", node_args="--import ./loader.mjs")
    assert _names(parsed_of(ran)) == TINYBENCH


@pytest.mark.long  # starts node for each benchmark
def test_a_benchmark_that_throws_leaves_the_others(tmp_path: Path) -> None:
    parsed = run("node-bench", tmp_path / "out", file="bench/failing.js").parse()
    assert _names(parsed) == ["good"]
    assert parsed.failed == {"bad": "failed: no data"}


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("bench/broken.js", "ReferenceError: missing is not defined"),
        ("bench/none.js", "no benchmark ran"),
        ("missing.js", "Cannot find module"),
    ],
)
def test_why_there_are_no_figures(file: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        run("node-bench", tmp_path / "out", file=file).parse()


@pytest.mark.parametrize("file", rest_long(["bench/words.js", ""]))
def test_the_profiles_name_what_a_benchmark_calls_with_file_and_line(file: str, tmp_path: Path) -> None:
    suite = replace(call_of("node-bench", tmp_path / "out", file=file), effort=Effort.SAMPLED, chosen=(FILES[file][1],))
    (step,) = tool("node-bench").invocations(suite)
    call = replace(call_of("node-profile", tmp_path / "out", *step.argv), harness=tool("node-bench").suite.harness)
    ran = run_call("node-profile", call, dict(step.env))
    parsed = parsed_of(ran)
    worst = parsed.hotspots[0]
    assert (worst.location, worst.unit, Path(worst.file).name) == ("build", "time", "words.js")
    assert worst.line
    assert {cost.metric for cost in parsed.costs} == {"time"}
    assert not any("tinybench" in line for line in (call.folder / "cpu.folded").read_text().splitlines())


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": [], "samples": [7]}', '{"nodes": [{"id": 1}], "samples": []}'])
def test_a_damaged_profile_is_an_error(text: str, tmp_path: Path) -> None:
    call = call_of("node-profile", tmp_path, "node", "x.js")
    (tmp_path / "node.cpuprofile").write_text(text)
    with pytest.raises(ToolOutputError, match=r"node\.cpuprofile"):
        tool("node-profile").parse(call, USAGE)
