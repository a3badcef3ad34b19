"""The comment, the job summary and the files for CI services: within their limits, and safe for any content."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from perfflow.cli.export_command import FORMATS
from perfflow.model.errors import UserError
from perfflow.model.judging import Flag
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.html import document
from perfflow.report.payloads import files
from perfflow.report.payloads.claim import claim_text
from perfflow.report.payloads.comment import (
    COMMENT_BYTES,
    SUMMARY_BYTES,
    UNPROVEN_AS,
    comment,
    marker,
    path_in_repository,
    summary,
)
from perfflow.report.payloads.escape import clipped
from perfflow.report.payloads.files import PAYLOADS, ExportOptions
from perfflow.report.payloads.run_log import MOST_HOPS, Hop, earlier_hops, with_hop
from perfflow.store.sample_order import TakingOrder
from tests.report.exported import HEAD, blamed, gated, large
from tests.report.gated import hostile_gate
from tests.report.optimized import hostile_ledger, nothing_kept, optimized
from tests.report.rendered import OWN_HTML, TRICKY, check_inert, screen
from tests.report.results import JOINED_OR_EACH, everything, single, stored, wave
from tests.verdict.records import ended, judged, pairs, planned

OWN = re.compile(rf"{OWN_HTML.pattern}|<!-- perfflow:[\w.:-]+ -->\n?")
LINES = (
    *("::error title=x::y", "::add-mask::x", "##[error]x", "-->"),
    *("<!-- perfflow:flow:x -->", "<!-- perfflow:hops:end -->"),
)


def check_safe(text: str, *, found_again: bool) -> None:
    """Check what must hold for every comment and summary."""
    check_inert(text, OWN)
    assert text.count("<!--") == text.count("-->") == (3 if found_again else 0)
    assert not re.search(r"^\s*::|##\[", text, re.MULTILINE)


def check_both(result: Result) -> None:
    check_safe(comment(result), found_again=True)
    check_safe(summary(result), found_again=False)


def check_whole(text: str, result: Result, most: int) -> None:
    """Check the limit in bytes and in UTF-16 units, and the parts that are never cut."""
    assert len(text.encode()) <= most
    assert len(text.encode("utf-16-le")) // 2 <= most
    lines = text.splitlines()
    if result.gate:
        assert f"{result.gate.name} = {result.gate.status}" in lines
        said = str(result.verdict).upper()
        assert any(line.startswith(("**❌", "**✅", "**❔")) and said in line for line in lines)


WORDS = st.sampled_from(["x", "wörd|", "日本語", "e\u0301" * 9, "`"]).flatmap(
    lambda word: st.integers(0, 600).map(lambda times: word * times)
)
DECISIONS = [("regressed", "action"), ("unproven", None), ("removed", None), ("same", "ok"), ("improved", "ok")]


@settings(max_examples=4)
@given(
    st.lists(WORDS, min_size=1, max_size=40).flatmap(lambda few: st.integers(1, 4).map(lambda times: few * times)),
    st.lists(st.sampled_from(["met", "not met", "unproven", "not measured"]), min_size=1),
    st.lists(st.sampled_from(DECISIONS), min_size=1),
    st.integers(0, 3).map(lambda size: "because " * 10**size),
)
def test_any_result_fits(
    names: list[str], statuses: list[str], decisions: list[tuple[str, str | None]], detail: str
) -> None:
    result = large(names, statuses, decisions, detail)
    check_whole(comment(result), result, COMMENT_BYTES)
    check_whole(summary(result), result, SUMMARY_BYTES)
    check_both(result)


def test_rows_of_what_failed_stay_when_everything_else_goes() -> None:
    names = [f"group/{number:03d}" for number in range(180)]
    # A long detail in each target makes the page three times too long; the failed ones are a twelfth of it.
    result = large(names, ["met"] * 11 + ["not met"], [("same", "ok")] * 11 + [("regressed", "action")], "d" * 900)
    text = comment(result)
    assert len(text.encode()) <= COMMENT_BYTES
    for number in range(11, 180, 12):
        assert f"| ❌ not met | `{number}group/{number:03d} time p50` |" in text
        assert f"| `{number}group/{number:03d}` | `time` |" in text
    assert "unchanged rows" in text.partition("Left out because of the size limit")[2]
    assert "`0group/000`" not in text


def test_what_does_not_fit_at_all_is_counted() -> None:
    text = comment(large(["x" * 900] * 150, ["not met"], [("regressed", "action")], "d" * 1900))
    kept = len([line for line in text.splitlines() if line.startswith("| ❌ not met |")])
    assert 0 < kept < 150
    assert f"{150 - kept} more are in `result.json`." in text


def test_a_single_row_too_long_to_show_does_not_take_the_others_with_it() -> None:
    result = large(["a", "b", "c"], ["not met"], [("regressed", "action")], "d")
    targets = [result.targets[0].model_copy(update={"detail": "d" * 80_000}), *result.targets[1:]]
    text = comment(result.model_copy(update={"targets": targets}))
    assert "`1b time p50`" in text
    assert "`0a time p50`" not in text
    assert "1 more are in `result.json`." in text


def test_the_same_result_gives_the_same_bytes() -> None:
    assert comment(gated()) == comment(gated())
    for result in (everything(), single(), stored(), optimized()):
        check_safe(comment(result), found_again=True)
        assert summary(result) == summary(result)


def test_what_could_not_be_measured_is_not_called_unchanged() -> None:
    result = judged(*pairs("b", [0.01] * 8, [0.01] * 8), steps=[planned("b"), planned("c")], end=None)
    assert result.verdict == "error"
    for text in (comment(result), summary(result)):
        assert "ERROR" in text
        assert "the run did not finish" in text
    assert "Not everything was measured" in comment(result)


def test_the_marker_is_of_the_workflow_and_the_machine() -> None:
    assert marker(gated()) == "<!-- perfflow:flow:0123456789abcdef -->"
    assert comment(gated()).splitlines()[0] == marker(gated())
    named = {marker(judged(ended("b"), workflow=name)) for name in ("a b", "a-b", "a--b", "-->", "a/../b.yaml", "")}
    assert len(named) == 6
    assert all(re.fullmatch(r"<!-- perfflow:[\w.-]+:[0-9a-f]+ -->", text) and text.count("--") == 2 for text in named)


def test_each_run_adds_a_line_to_the_log() -> None:
    first = comment(gated())
    (hop,) = earlier_hops(first)
    assert (hop.run, hop.revision, hop.verdict, hop.route) == ("run-1", HEAD[:12], "FAIL", "perf-engineer")
    again = gated()
    again = again.model_copy(update={"run": again.run.model_copy(update={"id": "run-2"}), "verdict": "pass"})
    second = comment(again, earlier_hops(first.replace("\n", "\r\n")))
    assert [(item.run, item.verdict) for item in earlier_hops(second)] == [("run-1", "FAIL"), ("run-2", "PASS")]
    assert comment(again, earlier_hops(second)) == second, "exported twice is one line"


def test_the_log_keeps_the_newest() -> None:
    hops: tuple[Hop, ...] = ()
    for number in range(MOST_HOPS + 5):
        hops = with_hop(hops, Hop(f"run-{number}", "–", "PASS", "–", "fine"))
    assert [hop.run for hop in hops] == [f"run-{number}" for number in range(5, MOST_HOPS + 5)]
    assert earlier_hops(comment(gated(), hops))[:-1] == hops[1:]


def test_of_an_edited_comment_only_lines_of_the_known_form_are_carried_on() -> None:
    good = "- `run-0` at `abc`: PASS, next `–`: `@team ##[error] <!-- x -->`"
    bad = ["<script>alert(1)</script>", "- [x](javascript:1)", "::error::x", "- `a` at `b`: WON, next `c`: `d`"]
    bad += ["- `run` at `x`: PASS, next `y`: `z` @team", "<!-- perfflow:flow:0123456789abcdef -->"]
    previous = "\n".join(["<!-- perfflow:hops:begin -->", *bad, good, "<!-- perfflow:hops:end -->", good, ""])
    text = comment(gated(), earlier_hops(previous))
    check_safe(text, found_again=True)
    assert [hop.run for hop in earlier_hops(text)] == ["run-0", "run-1"]
    assert earlier_hops(previous.replace("hops:end", "hops:and")) == ()


@given(st.text(max_size=60), st.text(max_size=400))
def test_a_line_of_the_log_is_read_back(run: str, headline: str) -> None:
    hop = Hop(run, "abc", "PASS", "next", headline)
    text = comment(single(), (hop,))
    (back, _) = earlier_hops(text)
    assert back.line() == hop.line()
    check_safe(text, found_again=True)


# ---- the files for CI services: check run, JUnit, OpenMetrics, code quality, evidence lines ----

VERDICT = "flow.verdict: review:gate:perf"


def text_of(name: str, result: Result, **options: str) -> str:
    return PAYLOADS[name].make(result, ExportOptions(**options))


def requests(result: Result, **options: str) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(text_of("check-run", result, **options))
    return read


def conclusion(result: Result, **options: str) -> str:
    return str(requests(result, **options)[0]["conclusion"])


def cases(result: Result, **options: str) -> dict[str, tuple[str, str]]:
    """Return outcome and message of each case by its class and name."""
    root = ET.fromstring(text_of("junit", result, **options))  # noqa: S314 (our own text)
    found = {}
    for case in root.iter("testcase"):
        (told,) = list(case) or [ET.Element("passed")]
        outcome = "passed" if told.tag in ("passed", "system-out") else told.tag
        found[f"{case.get('classname')}: {case.get('name')}"] = (outcome, told.get("message") or told.text or "")
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    counted = {word: str(len(list(root.iter(tag)))) for word, tag in tags.items()}
    for level in (root, root[0]):
        assert {word: level.attrib[word] for word in tags} == counted
    return found


def values(result: Result) -> dict[tuple[str, str], float]:
    families = list(text_string_to_metric_families(text_of("metrics", result)))  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples if sample.name == "perfflow_value"]
    return {(sample.labels["benchmark"], sample.labels["metric"]): sample.value for sample in samples}


def compared(factor: float, spread: float = 0.01, *, base: float = 1.0, **keys: Any) -> Result:
    sides = wave(0.01, base, spread), wave(0.01, factor, spread / 2)
    return judged(*pairs("b", *sides), ended("b"), **keys)


VERDICTS = {
    "pass": (compared(1.0), "success", "passed"),
    "fail": (compared(1.3), "failure", "failure"),
    "error": (judged(*pairs("b", [0.01] * 8, [0.01] * 8), end=None), "failure", "error"),
    "unproven": (compared(1.02, 1.5), "failure", "failure"),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_file_tells_the_same_verdict(verdict: str) -> None:
    result, concluded, outcome = VERDICTS[verdict]
    assert result.verdict == verdict
    assert verdict.upper() in screen(result, 60).splitlines()[0]
    for page in (markdown.render(result), document.render(result, TakingOrder({})), comment(result)):
        assert verdict.upper() in page
        others = "|".join(other.upper() for other in VERDICTS if other != verdict)
        assert not re.search(rf"[✓✗?✅❌❔] ({others})\b", page)
    assert conclusion(result) == concluded
    assert cases(result)[VERDICT][0] == outcome
    assert f'perfflow_gate_passed{{workflow="flow"}} {int(verdict == "pass")}\n' in text_of("metrics", result)
    if verdict == "error":
        assert requests(result)[0]["output"]["title"].startswith("could not measure")
        assert "could not measure" in cases(result)[VERDICT][1]


def test_what_unproven_means_can_be_chosen() -> None:
    result = VERDICTS["unproven"][0]
    for chosen, concluded, outcome in (("pass", "neutral", "skipped"), ("fail", "failure", "failure")):
        assert conclusion(result, unproven=chosen) == concluded
        assert cases(result, unproven=chosen)["flow.benchmark: b time"][0] == outcome
    assert conclusion(VERDICTS["fail"][0], unproven="pass") == "failure"


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
    assert all(set(item) == {"output"} and {"title", "summary"} <= set(item["output"]) for item in others)


# A page with a name longer than itself takes ten seconds.
LONGER = pytest.param("n" * 66_000, marks=pytest.mark.long)


@pytest.mark.parametrize("name", [*JOINED_OR_EACH, *LINES, LONGER], ids=lambda name: ascii(name[:20]))
def test_no_name_acts_or_breaks_a_file(name: str) -> None:
    result = hostile_gate(name)
    check_both(result)
    check_whole(comment(result), result, COMMENT_BYTES)
    for payload in PAYLOADS:
        text = text_of(payload, result)
        assert not re.search(r"^\s*::|##\[", text, re.MULTILINE), payload
    outputs = [item["output"] for item in requests(result)]
    notes = [note for output in outputs for note in output["annotations"]]
    for parts, key, most in (
        *((outputs, "title", 255), (outputs, "summary", 65_535), (outputs, "text", 65_535)),
        *((notes, "message", 2**16), (notes, "title", 255)),
    ):
        assert all(len(part[key].encode()) <= most for part in parts), key
    assert cases(result)
    assert values(result)
    assert all(item["fingerprint"] for item in json.loads(text_of("codequality", result)))


@given(st.text(max_size=40) | st.text(alphabet=TRICKY, max_size=24))
def test_any_text_can_be_read_back_and_does_not_act(name: str) -> None:
    result = hostile_gate(name)
    check_both(result)
    assert requests(result)
    assert cases(result)
    assert values(result)
    assert isinstance(json.loads(text_of("codequality", result)), list)


def test_a_benchmark_that_was_lost_is_an_error() -> None:
    result = large(["x"], ["met"], [("removed", None)], "")
    assert cases(result)["flow.benchmark: 0x time"][0] == "error"
    assert ("0x", "time") not in values(result)


def test_a_value_within_the_noise_is_the_same_string_and_an_exact_one_is_not_rounded() -> None:
    steady, again = compared(1.003, 0.02), compared(1.0, 0.02, base=1.003)
    assert steady.benchmarks[0].baseline != steady.benchmarks[0].candidate
    assert text_of("metrics", steady) == text_of("metrics", again)
    assert values(steady) != values(compared(1.3, 0.02))
    exact = judged(*pairs("b", [123_457.0], [123_458.0], "instructions"), ended("b"))
    assert values(exact)["b", "instructions"] in (123_457.0, 123_458.0)


def test_a_value_below_its_noise_keeps_one_digit() -> None:
    assert files.rounded(10_055_680.0, 2e7) == "10000000.0"
    assert files.rounded(0.002, 0.05) == "0.002"
    assert files.rounded(0.0, 0.05) == "0.0"


@given(st.floats(1e-9, 1e12), st.floats(1e-4, 0.5))
def test_a_value_is_rounded_by_no_more_than_its_noise(value: float, share: float) -> None:
    step = value * share
    once = float(files.rounded(value, step))
    assert abs(once - value) <= 2.5 * step / 2 * (1 + 1e-6)
    assert files.rounded(once, step) == repr(once)


def test_annotations_are_for_files_of_the_repository_alone() -> None:
    assert path_in_repository("src/parse.rs") == "src/parse.rs"
    elsewhere = (
        "./src/a.c",  # what a distribution builds is named so
        *("/rustc/abc/library/core/src/iter.rs", "/home/me/project/src/a.rs", "../other/a.rs", "src/../../a.rs"),
        *("C:\\x\\a.rs", "https://example.org/a.js", "a\nb.rs", ".git/config", "<frozen importlib>", ""),
    )
    assert [file for file in elsewhere if path_in_repository(file)] == []


def test_code_quality_knows_a_finding_again_when_lines_move() -> None:
    before = files.findings(gated())
    after = files.findings(gated().model_copy(update={"attributions": [blamed(line=300)]}))
    assert before[0]["fingerprint"] == after[0]["fingerprint"]
    assert (after[0]["severity"], after[0]["location"]["lines"]["begin"]) == ("major", 300)
    assert len({item["fingerprint"] for item in before}) == len(before)


@given(st.text(max_size=300), st.integers(3, 300))
def test_a_line_is_clipped_to_bytes(text: str, most: int) -> None:
    assert len(clipped(text, most).encode()) <= most
    assert clipped(clipped(text, most), most) == clipped(text, most)


def test_every_format_is_offered() -> None:
    assert tuple(PAYLOADS) == FORMATS
    assert files.junit_text(gated()) == text_of("junit", gated())
    assert UNPROVEN_AS.keys() == {"pass", "fail"}


def claim_lines(result: Result, *given: Any) -> dict[str, str]:
    """Return the items of a claim by the candidate's name."""
    text = claim_text(result, *given).replace("\\", "")
    found = re.findall(r"^- `([^`]+)`: (.*)$", text, re.MULTILINE)
    return dict(found)


def test_a_claim_has_its_gain_as_a_factor_and_what_else_is_known() -> None:
    result = optimized(isolation="bubblewrap")
    others = ["src/main.c", "tests/a.c", "src2/b.c"]
    lines = claim_lines(result, "3x", others)
    assert list(lines) == ["lto", "slab", "level[n=3]"]
    assert lines["slab"].startswith("claimed 3x; measured 2.00x [1.96x, 2.04x] on `decode` cpu (14 pairs); no other ")
    assert lines["slab"].endswith(
        "isolation: bubblewrap; 1 file touched, 0 of 2 files outside of src/; flags: more-cpu, many-attempts"
    )
    assert lines["lto"].endswith("no file touched")
    assert "claimed" not in claim_lines(result)["slab"]
    assert "none outside of src/;" in claim_lines(result)["slab"]


@pytest.mark.parametrize(
    ("decision", "said"), [("same", "no other benchmark moved (1 compared)"), ("regressed", "also")]
)
def test_a_claim_says_whether_other_benchmarks_moved(decision: str, said: str) -> None:
    result = optimized()
    row = next(row for row in result.benchmarks if row.change)
    other = row.model_copy(update={"name": "encode", "decision": decision})
    line = claim_lines(result.model_copy(update={"benchmarks": [row, other]}))["slab"]
    assert f"; {said}" in line
    assert ("encode cpu regressed (" in line) is (decision == "regressed")


def with_kept(**keys: Any) -> Result:
    """Return a run whose only kept candidate has these values."""
    result = optimized()
    (slab,) = (item for item in result.optimizations if item.id == "slab")
    return result.model_copy(update={"optimizations": [slab.model_copy(update=keys)]})


def test_a_claim_names_flags_and_the_files_of_a_change_without_a_common_folder() -> None:
    known = with_kept(flags=[Flag.NOT_ISOLATED, Flag.MORE_CPU], files=["src/a.c", "lib/b.c"])
    line = claim_lines(known)["slab"]
    assert line.endswith("isolation: none; 2 files touched: src/a.c, lib/b.c; flags: not-isolated, more-cpu")


def test_a_gain_of_a_rate_is_the_ratio_of_the_rates() -> None:
    effect = {"value": 1.0, "low": 0.9, "high": 1.1}
    rate = Result.model_validate_json(with_kept(metric="throughput").model_dump_json(by_alias=True))
    (kept,) = rate.optimizations
    twice = kept.model_copy(update={"effect": type(kept.effect).model_validate(effect) if kept.effect else None})
    line = claim_lines(rate.model_copy(update={"optimizations": [twice]}))["slab"]
    assert "measured 2.0x [1.9x, 2.1x] on `decode` throughput" in line


def test_a_run_that_kept_nothing_has_no_claim() -> None:
    with pytest.raises(UserError, match="kept no candidate"):
        claim_text(nothing_kept())


def test_a_claim_about_hostile_names_is_inert() -> None:
    check_inert(claim_text(hostile_ledger(TRICKY), TRICKY, [TRICKY]))
