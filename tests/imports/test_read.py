"""What ``read`` takes, how it knows it, and what it says of everything else."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.tools.read_file import ResultSet, is_perfflow_result, read
from tests.imports.harness import DATA

TREE = DATA / "criterion" / "0.5.1" / "tree" / "criterion"
JSON_CASES = ("hyperfine/1.15.0/named", "pyperf/2.10.0/time", "pytest-benchmark/5.3.1/plain")


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


@pytest.mark.parametrize("content", ["", " \n\t\n", "\ufeff"])
def test_an_empty_file(tmp_path: Path, content: str) -> None:
    assert "the file is empty" in _refusal(_file(tmp_path, content))[0]


def test_a_missing_file(tmp_path: Path) -> None:
    assert "No such file" in _refusal(tmp_path / "none.json")[0]


@pytest.mark.parametrize("case", JSON_CASES)
def test_a_truncated_file(tmp_path: Path, case: str) -> None:
    text = (DATA / case / "result.json").read_text().rstrip()
    for end in (len(text) // 3, len(text) - 1):
        assert "cut short" in _refusal(_file(tmp_path, text[:end]))[0]


@pytest.mark.parametrize(
    "content",
    ["hello\n", "{}", "[]", "[1, 2]", '{"benchmarks": 3}', '{"benchmarks": [1]}', '{"results": [{"name": "x"}]}'],
)
def test_another_kind_of_file_lists_the_formats(tmp_path: Path, content: str) -> None:
    message, hint = _refusal(_file(tmp_path, content))
    assert "unknown kind of result file" in message
    for tool in ("hyperfine", "criterion", "pyperf", "pytest-benchmark", "go test", "google-benchmark"):
        assert tool in hint


@pytest.mark.parametrize(
    "content",
    [
        '{"results": []}',
        '{"benchmarks": [], "context": {}}',
        '{"benchmarks": [], "machine_info": {}}',
        '{"benchmarks": [], "version": "1.0"}',
        "goos: linux\npkg: a\nPASS\nok  \ta\t0.1s\n",
        '{"Action":"start","Package":"a"}\n',
    ],
)
def test_a_file_without_results_is_an_error(tmp_path: Path, content: str) -> None:
    assert "no benchmark result" in _refusal(_file(tmp_path, content))[0]


def test_a_compressed_file(tmp_path: Path) -> None:
    assert _refusal(_file(tmp_path, gzip.compress(b"{}")))[1] == "unpack it first with gunzip"


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["{}", "goos: linux\n"])
def test_a_file_in_utf_16(tmp_path: Path, text: str, codec: str) -> None:
    message, hint = _refusal(_file(tmp_path, text.encode(codec)))
    assert "the file is UTF-16, not UTF-8" in message
    assert "iconv -f UTF-16 -t UTF-8" in hint


def test_json_lines(tmp_path: Path) -> None:
    event = '{"reason": "benchmark-complete", "id": "x"}\n'
    message, hint = _refusal(_file(tmp_path, event * 2))
    assert "JSON lines" in message
    assert "target/criterion" in hint
    assert "cut short" in _refusal(_file(tmp_path, "[1,\n2"))[0]


def test_results_of_asv_before_0_5(tmp_path: Path) -> None:
    old = {"commit_hash": "abc", "results": {"time_it": 1.5}, "params": {}, "version": 1}
    message, hint = _refusal(_file(tmp_path, json.dumps(old)))
    assert "the file is from asv before 0.5" in message
    assert "asv update" in hint


def test_a_figure_that_its_unit_makes_too_large(tmp_path: Path) -> None:
    run = {"time_wall_clock": {"value": 1.0, "unit": "second"}}
    size = {"memory_peak_resident": {"value": 1e18, "unit": "mebibyte"}}
    content = {"results": [{"command": "x", "measurements": [run | size]}]}
    assert "rss of x is 1.048576e+24, which is not valid" in _refusal(_file(tmp_path, json.dumps(content)))[0]


def test_the_name_of_the_file_tells_nothing(tmp_path: Path) -> None:
    for case in JSON_CASES:
        path = _file(tmp_path, (DATA / case / "result.json").read_bytes(), "bench.txt")
        assert read(path).tool == Path(case).parts[0]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    plain = DATA / "go/1.26.8/plain/bench.txt"
    assert read(_file(tmp_path, b"\xef\xbb\xbf" + plain.read_bytes())) == read(plain)


def test_text_and_stream_of_go_name_the_same_benchmarks() -> None:
    text, stream = (read(DATA / "go/1.26.8" / name) for name in ("plain/bench.txt", "json/bench.json"))
    assert text.benchmarks.keys() == stream.benchmarks.keys()
    assert {len(values) for values in stream.benchmarks.values()} == {5}


@pytest.mark.parametrize("name", ["result.json", "other"])
def test_a_result_of_perfflow_is_told_apart(tmp_path: Path, name: str) -> None:
    path = _file(tmp_path, json.dumps({"schema": "perfflow.result/2", "benchmarks": []}), name)
    assert is_perfflow_result(path)
    assert "a result of perfflow, not of another tool" in _refusal(path)[0]


def test_a_run_folder_of_perfflow_is_told_apart(tmp_path: Path) -> None:
    assert not is_perfflow_result(tmp_path)
    _file(tmp_path, '{"schema": "perfflow.result/2"}', "result.json")
    assert is_perfflow_result(tmp_path)
    assert "a result of perfflow, not of another tool" in _refusal(tmp_path)[0]


def test_results_of_other_tools_are_not_of_perfflow(tmp_path: Path) -> None:
    assert not any(is_perfflow_result(DATA / case / "result.json") for case in JSON_CASES)
    assert not is_perfflow_result(tmp_path / "none")
    assert not is_perfflow_result(TREE)
    assert not is_perfflow_result(_file(tmp_path, '{"schema": 1}'))


def _copy_of_tree(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TREE, tmp_path / "project" / "target" / "criterion"))


def _names(imported: ResultSet) -> set[str]:
    return {name for name, _ in imported.benchmarks}


def test_criterion_is_found_from_above_and_below(tmp_path: Path) -> None:
    tree = _copy_of_tree(tmp_path)
    everything = read(tree)
    assert read(tree.parent) == read(tree.parents[1]) == everything
    assert _names(read(tree / "decode_bytes")) == {name for name in _names(everything) if name.startswith("decode/")}
    assert _names(read(tree / "decode_bytes" / "hash" / "1024")) == {"decode/bytes/hash/1024"}


def test_a_group_may_be_called_criterion(tmp_path: Path) -> None:
    tree = _copy_of_tree(tmp_path)
    (tree / "sort").rename(tree / "criterion")
    assert read(tree).benchmarks.keys() == read(TREE).benchmarks.keys()


def test_a_saved_baseline_of_criterion(tmp_path: Path) -> None:
    tree = _copy_of_tree(tmp_path)
    saved, newest = read(Path(f"{tree}:main")), read(tree)
    assert saved.benchmarks.keys() == newest.benchmarks.keys()
    assert saved != newest
    assert read(Path(f"{tree}:new")) == newest
    tree.rename(odd := tree.with_name("criterion:main"))
    assert read(odd) == newest


def test_an_unknown_baseline_of_criterion_lists_those_there_are(tmp_path: Path) -> None:
    path = Path(f"{_copy_of_tree(tmp_path)}:mian")
    assert "no results called mian, but main, new" in _refusal(path)[0]
    assert "no results called *" in _refusal(path.with_name("criterion:*"))[0]


def test_a_folder_without_results(tmp_path: Path) -> None:
    message, hint = _refusal(tmp_path)
    assert "no results of a supported tool" in message
    assert "cargo bench" in hint


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("sample.json", "", "sort/500/new: sample.json is empty"),
        ("sample.json", "[]", "sort/500/new: sample.json is not an object"),
        ("sample.json", '{"times": [1], "iters": []}', "1 times but 0 iters"),
        ("sample.json", '{"times": [], "iters": []}', "sample.json: times is empty"),
        ("sample.json", '{"times": [0], "iters": [1]}', "times[0] is 0, which is not valid"),
        ("sample.json", '{"times": [1], "iters": [0]}', "iters[0] is 0, which is not valid"),
        (
            "benchmark.json",
            '{"full_id": "x", "throughput": {"Apples": 1}}',
            "throughput.Apples of x is not known",
        ),
        ("benchmark.json", '{"full_id": "x", "throughput": 4}', "throughput of x is not an object"),
        ("benchmark.json", '{"full_id": "median of 50"}', "have the same name median of 50"),
        ("benchmark.json", "{}", "benchmark.json: full_id is missing"),
    ],
)
def test_a_damaged_tree(tmp_path: Path, file: str, content: str, reason: str) -> None:
    tree = _copy_of_tree(tmp_path)
    (tree / "sort" / "500" / "new" / file).write_text(content)
    assert reason in _refusal(tree)[0]


def test_a_sample_that_is_missing(tmp_path: Path) -> None:
    tree = _copy_of_tree(tmp_path)
    (tree / "sort" / "500" / "new" / "sample.json").unlink()
    assert "sample.json was not written" in _refusal(tree)[0]
