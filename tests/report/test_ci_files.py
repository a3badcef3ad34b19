"""The files for CI services: check run, JUnit, OpenMetrics, code quality, evidence lines."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from perfflow.model.result import Result
from perfflow.report import markdown, terminal
from perfflow.report.html import document
from perfflow.report.payloads import files
from perfflow.report.payloads.comment import UNPROVEN_AS, comment, path_in_repository
from perfflow.report.payloads.escape import clipped
from perfflow.report.payloads.files import PAYLOADS, ExportOptions
from perfflow.store.sample_order import TakingOrder
from tests.report.exported import HEAD, blamed, gated, hostile_gate, large
from tests.report.results import JOINED_OR_EACH, everything, single, stored, wave
from tests.report.test_comment import LINES
from tests.verdict.records import ended, judged, pairs, planned

RESULTS = {"gated": gated(), "everything": everything(), "single": single(), "stored": stored()}


def text_of(name: str, result: Result, **options: str) -> str:
    return PAYLOADS[name].make(result, ExportOptions(**options))


def requests(result: Result, **options: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(text_of("check-run", result, **options))
    return read


def cases(result: Result, **options: str) -> dict[str, tuple[str, str]]:
    """Return outcome and message of each case by its class and name."""
    root = ET.fromstring(text_of("junit", result, **options))  # noqa: S314 (our own text)
    found = {}
    for case in root.iter("testcase"):
        (told,) = list(case) or [ET.Element("passed")]
        outcome = "passed" if told.tag in ("passed", "system-out") else told.tag
        found[f"{case.get('classname')}: {case.get('name')}"] = (outcome, told.get("message") or told.text or "")
    for level in (root, root[0]):
        assert int(level.attrib["tests"]) == len(list(root.iter("testcase")))
        for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(level.attrib[word]) == len(list(root.iter(tag)))
    return found


def values(result: Result) -> dict[tuple[str, str], float]:
    families = list(text_string_to_metric_families(text_of("metrics", result)))  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples if sample.name == "perfflow_value"]
    return {(sample.labels["benchmark"], sample.labels["metric"]): sample.value for sample in samples}


def ended_in(verdict: str) -> Result:
    steps = [planned("b")]
    if verdict == "error":
        return judged(*pairs("b", [0.01] * 8, [0.01] * 8), steps=steps, end=None)
    factor = {"pass": 1.0, "fail": 1.3, "unproven": 1.02}[verdict]
    spread = 1.5 if verdict == "unproven" else 0.01
    return judged(*pairs("b", wave(0.01, 1, spread), wave(0.01, factor, spread / 2)), ended("b"), steps=steps)


@pytest.mark.parametrize("verdict", ["pass", "fail", "error", "unproven"])
def test_every_file_tells_the_same_verdict(verdict: str) -> None:
    result = ended_in(verdict)
    assert result.verdict == verdict
    assert verdict.upper() in terminal.render(result, width=60, color=False, unicode=True).splitlines()[0]
    for page in (markdown.render(result), document.render(result, TakingOrder({})), comment(result)):
        others = {"PASS", "FAIL", "ERROR", "UNPROVEN"} - {verdict.upper()}
        assert verdict.upper() in page
        assert not any(re.search(rf"[✓✗?✅❌❔] {other}\b", page) for other in others)
    word = {"pass": "success", "fail": "failure", "error": "failure", "unproven": "failure"}[verdict]
    assert requests(result)[0]["conclusion"] == word
    outcome = {"pass": "passed", "fail": "failure", "error": "error", "unproven": "failure"}[verdict]
    assert cases(result)["flow.verdict: review:gate:perf"][0] == outcome
    passed = "1.0" if verdict == "pass" else "0.0"
    assert f'perfflow_gate_passed{{workflow="flow"}} {passed[0]}\n' in text_of("metrics", result)
    if verdict == "error":
        assert requests(result)[0]["output"]["title"].startswith("could not measure")
        assert "could not measure" in cases(result)["flow.verdict: review:gate:perf"][1]


def test_what_unproven_means_can_be_chosen() -> None:
    result = ended_in("unproven")
    assert requests(result, unproven="pass")[0]["conclusion"] == "neutral"
    assert requests(result, unproven="fail")[0]["conclusion"] == "failure"
    assert cases(result, unproven="fail")["flow.benchmark: b time"][0] == "failure"
    assert cases(result, unproven="pass")["flow.benchmark: b time"][0] == "skipped"
    assert requests(ended_in("fail"), unproven="pass")[0]["conclusion"] == "failure"


def test_a_check_run_is_what_the_api_takes() -> None:
    (first,) = requests(gated())
    assert (first["name"], first["head_sha"], first["status"]) == ("review:gate:perf", HEAD, "completed")
    assert first["output"]["title"] == "fail: target not met: encode time p50 <4ms"
    annotated = first["output"]["annotations"]
    assert annotated[0] == {
        "path": "src/parse.rs",
        "start_line": 214,
        "end_line": 214,
        "annotation_level": "failure",
        "title": "slower: parse_object",
        "message": "parse_object: 1.00 ms → 1.50 ms (+50.0%) in encode (time); 80% of the regression; "
        "touched by 3fa2c1d Parse twice",
    }
    assert [item["annotation_level"] for item in annotated[1:]] == ["notice"]


def test_a_commit_that_is_not_known_is_said() -> None:
    (first,) = requests(single())
    assert first["head_sha"] is None
    assert "Fill in `head_sha`" in first["output"]["text"]
    changed = {"kind": "working tree", "revision": HEAD, "dirty": True}
    dirty = gated().model_copy(update={"trees": {"baseline": None, "candidate": changed}})
    assert "uncommitted changes" in requests(dirty)[0]["output"]["text"]
    kept = {"baseline": {"revision": HEAD}, "candidate": {"kind": "kept", "revision": "b" * 40}}
    assert requests(gated().model_copy(update={"trees": kept}))[0]["head_sha"] == HEAD


def test_many_annotations_come_in_batches() -> None:
    functions = [blamed(f"f{number}", "src/lib.rs", number + 1) for number in range(120)]
    first, *others = requests(gated().model_copy(update={"attributions": functions}))
    assert [len(item["output"]["annotations"]) for item in (first, *others)] == [50, 50, 21]
    assert all(set(item) == {"output"} for item in others)
    assert all({"title", "summary"} <= set(item["output"]) for item in others)


@pytest.mark.parametrize("name", [*JOINED_OR_EACH, *LINES, "n" * 66_000], ids=lambda name: ascii(name[:20]))
def test_no_name_breaks_a_file(name: str) -> None:
    result = hostile_gate(name)
    for payload in PAYLOADS:
        text = text_of(payload, result)
        assert not re.search(r"^\s*::|##\[", text, re.MULTILINE), payload
    for item in requests(result):
        output = item["output"]
        assert len(output["title"].encode()) <= 255
        assert len(output["summary"].encode()) <= 65_535
        assert len(output["text"].encode()) <= 65_535
        for note in output["annotations"]:
            assert len(note["message"].encode()) <= 2**16
            assert len(note["title"].encode()) <= 255
    assert len(cases(result)) >= 1
    assert values(result)
    assert all(item["fingerprint"] for item in json.loads(text_of("codequality", result)))


@given(st.text(max_size=40))
def test_any_name_can_be_read_back(name: str) -> None:
    result = hostile_gate(name)
    assert requests(result)
    assert cases(result)
    assert values(result)
    assert isinstance(json.loads(text_of("codequality", result)), list)


def test_junit_has_each_requirement_and_each_row_that_gates() -> None:
    found = cases(gated())
    assert found["flow.requirement: encode time p50 <4ms"][0] == "failure"
    assert found["flow.requirement: decode time p99 <20ms"][0] == "failure"
    assert found["flow.requirement: gone time p50 <1s"][0] == "error"
    assert found["flow.benchmark: decode time"][0] == "passed"
    assert found["flow.benchmark: encode time"][0] == "failure"
    assert found["flow.correctness: tests"][0] == "failure"


def test_a_benchmark_that_was_lost_is_an_error() -> None:
    result = large(["x"], ["met"], [("removed", None)], "")
    assert cases(result)["flow.benchmark: 0x time"][0] == "error"
    assert ("0x", "time") not in values(result)


def test_a_value_within_the_noise_is_the_same_string() -> None:
    steady = judged(*pairs("b", wave(0.028, 1, 0.02), wave(0.028, 1.003, 0.02)), ended("b"))
    assert steady.benchmarks[0].baseline != steady.benchmarks[0].candidate
    again = judged(*pairs("b", wave(0.028, 1.003, 0.02), wave(0.028, 1, 0.02)), ended("b"))
    assert text_of("metrics", steady) == text_of("metrics", again)
    assert values(steady) != values(judged(*pairs("b", wave(0.028, 1, 0.02), wave(0.028, 1.3, 0.02)), ended("b")))


def test_a_value_below_its_noise_keeps_one_digit() -> None:
    assert files.rounded(10_055_680.0, 2e7) == "10000000.0"
    assert files.rounded(0.002, 0.05) == "0.002"
    assert files.rounded(0.0, 0.05) == "0.0"


def test_an_exact_value_is_not_rounded() -> None:
    result = judged(*pairs("b", [123_457.0], [123_458.0], "instructions"), ended("b"))
    assert values(result)["b", "instructions"] in (123_457.0, 123_458.0)


@given(st.floats(1e-9, 1e12), st.floats(1e-4, 0.5))
def test_a_value_is_rounded_by_no_more_than_its_noise(value: float, share: float) -> None:
    step = value * share
    once = float(files.rounded(value, step))
    assert abs(once - value) <= 2.5 * step / 2 * (1 + 1e-6)
    assert files.rounded(once, step) == repr(once)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("src/parse.rs", "src/parse.rs"),
        ("./src/a.c", ""),  # what a distribution builds is named so
        ("/rustc/abc/library/core/src/iter.rs", ""),
        ("/home/me/project/src/a.rs", ""),
        ("../other/a.rs", ""),
        ("src/../../a.rs", ""),
        ("C:\\x\\a.rs", ""),
        ("https://example.org/a.js", ""),
        ("a\nb.rs", ""),
        (".git/config", ""),
        ("<frozen importlib>", ""),
        ("", ""),
    ],
)
def test_annotations_are_for_files_of_the_repository_alone(file: str, path: str) -> None:
    assert path_in_repository(file) == path


def test_code_quality_knows_a_finding_again_when_lines_move() -> None:
    before = files.findings(gated())
    moved = gated().model_copy(update={"attributions": [blamed(line=300)]})
    after = files.findings(moved)
    assert before[0]["fingerprint"] == after[0]["fingerprint"]
    assert (after[0]["severity"], after[0]["location"]["lines"]["begin"]) == ("major", 300)
    assert len({item["fingerprint"] for item in before}) == len(before)


@given(st.text(max_size=300), st.integers(3, 300))
def test_a_line_is_clipped_to_bytes(text: str, most: int) -> None:
    assert len(clipped(text, most).encode()) <= most
    assert clipped(clipped(text, most), most) == clipped(text, most)


def test_every_format_is_offered() -> None:
    from perfflow.cli.export_command import FORMATS

    assert tuple(PAYLOADS) == FORMATS
    assert files.junit_text(gated()) == text_of("junit", gated())
    assert UNPROVEN_AS.keys() == {"pass", "fail"}
