"""JMH benchmarks of a Maven project, by the real Maven, Gradle and JMH: names, one alone, stale jars, profiles."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.adapter import Effort
from tests.toolchains import JMH_JAR, maven_project, needs_jmh
from tests.tools.harness import USAGE, Ran, call_of, listed, parsed_of, run_call, start, tool

pytestmark = needs_jmh
GRADLE = """apply plugin: 'java'
repositories { mavenLocal(); mavenCentral() }
dependencies {
    compile 'org.openjdk.jmh:jmh-core:1.37'
    compile 'org.openjdk.jmh:jmh-generator-annprocess:1.37'
}
task jmhJar(type: Jar, dependsOn: classes) {
    classifier = 'jmh'
    from sourceSets.main.output
    from { configurations.runtime.collect { it.isDirectory() ? it : zipTree(it) } }
}
"""
"""For the Gradle of Debian 12, which is 4.4. A newer one has other words, and its task jmhJar is run all the same."""
CHOSEN = ["name=x/y", "name=a.b*", "name=it's (one)"]
NAMES = {"OddBench.fails", "OddBench.rate", "OddBench.rateAndTime", "OddBench.sample", "OddBench.single"}
NAMES |= {f"OddBench.chosen/{name}/size={size}" for name in CHOSEN for size in (1, 2)}
NAMES |= {f"WordsBench.{name}/n={n}" for name in ("count", "index") for n in (10, 100)}


def _built(folder: Path, **options: object) -> Ran:
    """Run the preparations of a call: those of the built jar, unless it has a project."""
    call = call_of("jmh", folder, **({} if "project" in options else {"jar": str(JMH_JAR)}) | options)
    folder.mkdir()
    (build,) = tool("jmh").build.preparations(call)
    return Ran(start(build, folder), call, tool("jmh"))


def _alone(built: Ran, folder: Path, *chosen: str) -> Parsed:
    call = replace(built.call, chosen=chosen, effort=Effort.BRIEF, kept=built.call.folder, folder=folder)
    folder.mkdir()
    assert {start(step, folder) for step in tool("jmh").invocations(call)} == {0}
    return tool("jmh").parse(call, USAGE)


def test_names_have_all_combinations_of_parameters_that_can_be_chosen(tmp_path: Path) -> None:
    built = _built(tmp_path / "out")
    status, names = listed("jmh", built.call)
    assert (status, set(names), len(names)) == (0, NAMES, len(NAMES))


def test_chosen_benchmarks_run_alone_and_one_that_fails_leaves_the_others(tmp_path: Path) -> None:
    built = _built(tmp_path / "out")
    chosen = ("OddBench.rate", "OddBench.fails", "OddBench.chosen/name=a.b*/size=2", "WordsBench.index/n=10")
    parsed = _alone(built, tmp_path / "chosen", *chosen)
    assert {reading.benchmark for reading in parsed.readings} == {*chosen} - {"OddBench.fails"}
    assert parsed.failed == {"OddBench.fails": "failed: java.lang.IllegalStateException: no data"}
    comma = "org.example.OddBench.listed is left out: a value of its parameter letters contains a comma"
    assert parsed.warnings == (comma,)
    # Whatever the mode is, the figure is the time of an operation.
    assert all(0 < reading.value < 0.01 for reading in parsed.readings)


def test_what_an_operation_allocates_is_measured_apart(tmp_path: Path) -> None:
    built = _built(tmp_path / "out", alloc=True)
    parsed = _alone(built, tmp_path / "chosen", "WordsBench.count/n=10", "WordsBench.index/n=10")
    allocated = {reading.benchmark: reading.value for reading in parsed.readings if reading.metric == "alloc"}
    assert allocated["WordsBench.count/n=10"] == 0
    assert allocated["WordsBench.index/n=10"] > 100


@pytest.mark.long  # needs Gradle, which nothing else does: apt-get install gradle
@pytest.mark.skipif(shutil.which("gradle") is None, reason="gradle is not installed")
def test_gradle_builds_the_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = maven_project(tmp_path / "project")
    shutil.copytree(project / "core/src", project / "benchmarks/src", dirs_exist_ok=True)
    monkeypatch.chdir(project / "benchmarks")
    Path("pom.xml").unlink()
    Path("build.gradle").write_text(GRADLE)
    built = _built(tmp_path / "out", project=".")
    assert set(listed("jmh", built.call)[1]) == NAMES


@pytest.mark.long  # builds with Maven twice; CI runs the jar that scripts/install built
def test_the_jar_of_an_earlier_build_is_never_measured(tmp_path: Path) -> None:
    project = maven_project(tmp_path / "project")
    built = _built(tmp_path / "first", project=str(project), flags="-o")
    assert built.status == 0
    # Built elsewhere and at another time, the jar differs, but not what is in it.
    hashes = [
        path.read_text()
        for ran in (built, _built(tmp_path / "ready"))
        for path in ran.adapter.build.executed(ran.call) or ()
    ]
    assert hashes[0] == hashes[1]
    source = project / "core/src/main/java/org/example/Words.java"
    source.write_text(source.read_text().replace("words++", "missing++"))
    failed = _built(tmp_path / "second", project=str(project), flags="-o")
    assert failed.status == 1
    with pytest.raises(ToolOutputError, match=r"it does not compile: Words\.java:13: cannot find symbol"):
        failed.parse()
    assert not list(project.glob("benchmarks/target/benchmarks.jar"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"filter": "Nothing"}, "no benchmark matches the filter"),
        ({"filter": "listed"}, "a value of its parameter letters contains a comma"),
        ({"jar": "none.jar"}, "no such file"),
        ({"project": "."}, r"there is no pom\.xml and no build\.gradle"),
    ],
)
def test_why_there_are_no_figures(
    options: dict[str, str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolOutputError, match=reason):
        _built(tmp_path / "out", **options).parse()


def test_the_profile_names_what_a_benchmark_calls_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(maven_project(tmp_path / "project"))
    suite = replace(_built(tmp_path / "out").call, chosen=("WordsBench.index/n=100",), effort=Effort.SAMPLED)
    (step,) = tool("jmh").invocations(suite)
    call = replace(call_of("jfr", tmp_path / "out", *step.argv), harness=tool("jmh").suite.harness)
    parsed = parsed_of(run_call("jfr", call))
    for unit in ("time", "bytes"):
        worst = next(spot for spot in parsed.hotspots if spot.unit == unit)
        assert (worst.location, worst.file) == (
            "Words.index",
            str(tmp_path / "project/core/src/main/java/org/example/Words.java"),
        )
        assert worst.line
    assert {cost.metric for cost in parsed.costs} == {"time", "alloc"}
    lines = (call.folder / "cpu.folded").read_text().splitlines()
    assert [line for line in lines if "jmh" in line] == []


def test_only_java_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="jfr needs a command that begins with `java`"):
        tool("jfr").parse(call_of("jfr", tmp_path, "./program"), USAGE)
