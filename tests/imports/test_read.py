"""What ``read`` takes, how it knows it, and what it says of everything else; rarer shapes of ``go test -bench``."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.metrics import Better
from perfflow.model.units import Dimension
from perfflow.tools.read_file import ResultSet, is_perfflow_result, read
from tests.imports.harness import DATA

TREE = DATA / "criterion" / "0.5.1" / "tree" / "criterion"
JSON_CASES = ("hyperfine/1.15.0/named", "pyperf/2.10.0/time", "pytest-benchmark/5.3.1/plain")
EVENT = '{"reason": "benchmark-complete", "id": "x"}\n'
OLD_ASV = {"commit_hash": "abc", "results": {"time_it": 1.5}, "params": {}, "version": 1}
LARGE = {
    "time_wall_clock": {"value": 1.0, "unit": "second"},
    "memory_peak_resident": {"value": 1e18, "unit": "mebibyte"},
}
FORMATS = ("hyperfine", "criterion", "pyperf", "pytest-benchmark", "go test", "google-benchmark")
UNKNOWN = "unknown kind of result file"
CUT = [(DATA / case / "result.json").read_text().rstrip() for case in JSON_CASES]


def _refusal(path: Path) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        read(path)
    (problem,) = caught.value.problems
    assert problem.hint
    assert problem.message.startswith(f"{path}: ")
    return problem.message, problem.hint


def _file(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "message", "hints"),
    [
        ("", "the file is empty", []),
        (" \n\t\n", "the file is empty", []),
        ("\ufeff", "the file is empty", []),
        *((text[:end], "cut short", []) for text in CUT for end in (len(text) // 3, len(text) - 1)),
        ("[1,\n2", "cut short", []),
        ("hello\n", UNKNOWN, FORMATS),
        ("{}", UNKNOWN, FORMATS),
        ("[1, 2]", UNKNOWN, FORMATS),
        ('{"benchmarks": 3}', UNKNOWN, FORMATS),
        ('{"benchmarks": [1]}', UNKNOWN, FORMATS),
        ('{"results": [{"name": "x"}]}', UNKNOWN, FORMATS),
        ('{"results": []}', "no benchmark result", []),
        ('{"benchmarks": [], "context": {}}', "no benchmark result", []),
        ('{"benchmarks": [], "machine_info": {}}', "no benchmark result", []),
        ('{"benchmarks": [], "version": "1.0"}', "no benchmark result", []),
        ("goos: linux\npkg: a\nPASS\nok  \ta\t0.1s\n", "no benchmark result", []),
        ('{"Action":"start","Package":"a"}\n', "no benchmark result", []),
        (gzip.compress(b"{}", mtime=0), "compressed", ["unpack it first with gunzip"]),
        *(
            (text.encode(codec), "the file is UTF-16, not UTF-8", ["iconv -f UTF-16 -t UTF-8"])
            for text in ("{}", "goos: linux\n")
            for codec in ("utf-16", "utf-16-le", "utf-16-be")
        ),
        (EVENT * 2, "JSON lines", ["target/criterion"]),
        (json.dumps(OLD_ASV), "the file is from asv before 0.5", ["asv update"]),
        (
            json.dumps({"results": [{"command": "x", "measurements": [LARGE]}]}),
            "rss of x is 1.048576e+24, which is not valid",
            [],
        ),
    ],
)
def test_what_is_refused(content: str | bytes, message: str, hints: list[str], tmp_path: Path) -> None:
    said, hint = _refusal(_file(tmp_path, content))
    assert message in said
    assert all(part in hint for part in hints)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "No such file" in _refusal(tmp_path / "none.json")[0]


def test_the_name_of_the_file_tells_nothing(tmp_path: Path) -> None:
    for case in JSON_CASES:
        path = _file(tmp_path, (DATA / case / "result.json").read_bytes(), "bench.txt")
        assert read(path).tool == Path(case).parts[0]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    plain = DATA / "go/1.26.8/plain/bench.txt"
    assert read(_file(tmp_path, b"\xef\xbb\xbf" + plain.read_bytes())) == read(plain)


@pytest.mark.parametrize("name", ["result.json", "other", ""])
def test_a_result_of_perfflow_is_told_apart(tmp_path: Path, name: str) -> None:
    """Without a name, it is the folder of a run."""
    assert not is_perfflow_result(tmp_path)
    _file(tmp_path, '{"schema": "perfflow.result/2", "benchmarks": []}', name or "result.json")
    assert is_perfflow_result(tmp_path / name)
    assert "a result of perfflow, not of another tool" in _refusal(tmp_path / name)[0]


def test_results_of_other_tools_are_not_of_perfflow(tmp_path: Path) -> None:
    others = [*(DATA / case / "result.json" for case in JSON_CASES), tmp_path / "none", TREE]
    assert not any(map(is_perfflow_result, [*others, _file(tmp_path, '{"schema": 1}')]))


# criterion


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of a folder that criterion wrote."""
    return Path(shutil.copytree(TREE, tmp_path / "project" / "target" / "criterion"))


def _names(imported: ResultSet) -> set[str]:
    return {name for name, _ in imported.benchmarks}


def test_criterion_is_found_from_above_and_below(tree: Path) -> None:
    everything = read(tree)
    assert read(tree.parent) == read(tree.parents[1]) == everything
    assert _names(read(tree / "decode_bytes")) == {name for name in _names(everything) if name.startswith("decode/")}
    assert _names(read(tree / "decode_bytes" / "hash" / "1024")) == {"decode/bytes/hash/1024"}


def test_a_group_may_be_called_criterion(tree: Path) -> None:
    (tree / "sort").rename(tree / "criterion")
    assert read(tree).benchmarks.keys() == read(TREE).benchmarks.keys()


def test_a_saved_baseline_of_criterion(tree: Path) -> None:
    saved, newest = read(Path(f"{tree}:main")), read(tree)
    assert saved.benchmarks.keys() == newest.benchmarks.keys()
    assert saved != newest
    assert read(Path(f"{tree}:new")) == newest
    assert "no results called mian, but main, new" in _refusal(Path(f"{tree}:mian"))[0]
    assert "no results called *" in _refusal(Path(f"{tree}:*"))[0]
    tree.rename(odd := tree.with_name("criterion:main"))
    assert read(odd) == newest


def test_a_folder_without_results(tmp_path: Path) -> None:
    message, hint = _refusal(tmp_path)
    assert "no results of a supported tool" in message
    assert "cargo bench" in hint


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("sample.json", None, "sample.json was not written"),
        ("sample.json", "", "sort/500/new: sample.json is empty"),
        ("sample.json", "[]", "sort/500/new: sample.json is not an object"),
        ("sample.json", '{"times": [1], "iters": []}', "1 times but 0 iters"),
        ("sample.json", '{"times": [], "iters": []}', "sample.json: times is empty"),
        ("sample.json", '{"times": [0], "iters": [1]}', "times[0] is 0, which is not valid"),
        ("sample.json", '{"times": [1], "iters": [0]}', "iters[0] is 0, which is not valid"),
        ("benchmark.json", '{"full_id": "x", "throughput": {"Apples": 1}}', "throughput.Apples of x is not known"),
        ("benchmark.json", '{"full_id": "x", "throughput": 4}', "throughput of x is not an object"),
        ("benchmark.json", '{"full_id": "median of 50"}', "have the same name median of 50"),
        ("benchmark.json", "{}", "benchmark.json: full_id is missing"),
    ],
)
def test_a_damaged_tree(file: str, content: str | None, reason: str, tree: Path) -> None:
    path = tree / "sort" / "500" / "new" / file
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert reason in _refusal(tree)[0]


# go test -bench


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def _of(file: Path, text: str) -> ResultSet:
    file.write_text(text)
    return read(file)


def _event(text: str, package: str = "a") -> str:
    return json.dumps({"Action": "output", "Package": package, "Output": text})


ONE = "BenchmarkA-8 100 20.0 ns/op\n"
WHOLE, HALF = _event("BenchmarkA 1 2 ns/op\n"), _event("BenchmarkA-2 \t")
TWO_COMMITS = """\
commit: a
toolchain: go1.25
pkg: example.com/x
BenchmarkGet-2 10 1.0 ns/op 500 req/s 3.5 p99-ms 7 widgets
commit: b
BenchmarkGet-2 10 2.0 ns/op 250 req/s 7.0 p99-ms 7 widgets
PASS
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("BenchmarkX 100 1,6 ns/op\n", "ns/op of BenchmarkX is '1,6', not a number"),
        ("BenchmarkA 1 0 ns/op\n", "time of BenchmarkA is 0"),
        (f"{ONE}BenchmarkA-8 100 20.0", "cut short"),
        (f"{ONE}BenchmarkA-8 100 20.0 ns", "cut short"),
        (f"{ONE}BenchmarkA-8 10", "cut short"),
        (f"{WHOLE}\n{WHOLE[:-9]}", "line 2 is cut short"),
        (f"{WHOLE}\n{HALF}\n", "cut short"),
        (TWO_COMMITS, r"(?s)example\.com/x\.BenchmarkGet has results with commit=a, commit=b.*one: --where commit=a"),
    ],
)
def test_go_refuses(text: str, reason: str, file: Path) -> None:
    with pytest.raises(UserError, match=reason):
        _of(file, text)


PIECES = [("a", "BenchmarkA \t"), ("b", "BenchmarkB \t"), ("a", "1 2 ns/op\n"), ("b", "1 4 ns/op\n")]
MIXED = "\n".join(_event(text, package) for package, text in PIECES)
SUFFIXES = "BenchmarkA/n-10 1 2 ns/op\nBenchmarkA/n-20 1 3 ns/op\n"
PROSE = "Benchmarks 12 3 x\nBenchmarkA 4 of us\nBenchmarkA 1 2 ns/op\nBenchmarkB hello\n  100 3.0 ns/op\n"
FAILED = "BenchmarkA 1 2 ns/op\nFAIL\texample.com/b [build failed]\n"
PACKAGE = "pkg: a\nBenchmarkX 1 2 ns/op\nok a 1s\n"
PACKAGES = f"{PACKAGE}pkg: b\nBenchmarkX 1 3 ns/op\nok b 1s\n"


@pytest.mark.parametrize(
    ("text", "times", "warning"),
    [
        (ONE.replace(" ", " \t "), {"BenchmarkA": 20e-9}, ""),
        # A suffix is kept unless all have it.
        (SUFFIXES, {"BenchmarkA/n-10": 2e-9, "BenchmarkA/n-20": 3e-9}, ""),
        (f"pkg: a\n{ONE}", {"a.BenchmarkA": 20e-9}, "there is no final ok or FAIL, so the run may have been cut short"),
        (MIXED, {"a.BenchmarkA": 2e-9, "b.BenchmarkB": 4e-9}, ""),
        (PROSE, {"BenchmarkA": 2e-9}, "a result without a name was skipped: the benchmark's output broke its line"),
        (FAILED, {"BenchmarkA": 2e-9}, "go test reports: FAIL example.com/b [build failed]"),
        # Names do not depend on what else is in the file.
        (PACKAGE, {"a.BenchmarkX": 2e-9}, ""),
        (PACKAGES, {"a.BenchmarkX": 2e-9, "b.BenchmarkX": 3e-9}, ""),
    ],
)
def test_go_reads(text: str, times: dict[str, float], warning: str, file: Path) -> None:
    found = _of(file, text)
    assert {name: value for (name, _), (value,) in found.benchmarks.items()} == pytest.approx(times)
    assert {metric for _, metric in found.benchmarks} == {"time"}
    assert found.warnings == ((warning,) if warning else ())


def test_go_takes_a_suffix_that_all_have_is_the_number_of_processors(file: Path) -> None:
    assert _of(file, ONE).machine == {"gomaxprocs": "8"}


def test_go_benchmark_that_failed_leaves_the_others(file: Path) -> None:
    found = _of(file, "BenchmarkA 1 2 ns/op\n--- FAIL: BenchmarkB\nFAIL\n")
    assert (set(found.benchmarks), found.failed) == ({("BenchmarkA", "time")}, {"BenchmarkB": "failed"})


def test_go_throughput_of_zero_is_left_out(file: Path) -> None:
    found = _of(file, "BenchmarkA 1 2 ns/op 0.00 MB/s 0 B/op x odd\n")
    assert set(found.benchmarks) == {("BenchmarkA", "time"), ("BenchmarkA", "alloc")}
    assert len(found.warnings) == 2


def test_go_configuration_holds_for_what_follows_it(file: Path) -> None:
    file.write_text(TWO_COMMITS)
    found = read(file, {"commit": "b"})
    assert found.benchmarks["example.com/x.BenchmarkGet", "time"] == (2e-9,)
    assert found.facts == {"commit": "b", "toolchain": "go1.25", "package": "example.com/x"}
    with pytest.raises(UserError, match=r"no result has commit=c, but commit=a, commit=b"):
        read(file, {"commit": "c"})


def test_go_units_of_the_authors_have_dimension_and_direction(file: Path) -> None:
    found = _of(file, TWO_COMMITS.replace("commit: b", "Unit widgets better=higher"))
    assert {name: (metric.dimension, metric.better) for name, metric in found.metrics.items()} == {
        "req/s": (Dimension.RATE, Better.HIGHER),
        "p99-ms": (Dimension.TIME, Better.LOWER),
        "widgets": (Dimension.COUNT, Better.HIGHER),
    }
    assert found.benchmarks["example.com/x.BenchmarkGet", "p99-ms"] == (3.5e-3, 7e-3)
