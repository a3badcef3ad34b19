"""What is noted beside the rows: calibrations, realistic benchmarks, code that did not change, cheaper techniques."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.readings import Design
from perfflow.model.result import Expected, Result
from perfflow.report import markdown, terminal
from perfflow.store.record import record_of
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import detectable_change, judge
from tests.report.optimized import attempt, candidate
from tests.verdict.records import END, criteria, ended, judged, opening, pairs, planned, row, scaled

# -- the notes that a calibration adds

STORED = Expected(noise=0.01, smallest_change=0.03, within=20.0, calibrated="2026-01-01T00:00:00Z")
EXPECTED = {"benchmark": "b", "metric": "time"} | STORED.model_dump()
SAID = "on this machine changes of 3% or more are detected within 20"


def calibrated(spread: float, *expected: dict[str, Any]) -> Result:
    chance = random.Random(5)
    values = [chance.lognormvariate(0, spread) for _ in range(28)]
    start = {**opening([planned("b")], Criteria()), "expected": list(expected)}
    return judge(record_of([start, *pairs("b", values[:14], values[14:]), ended("b"), END]), Criteria())


def test_what_is_expected_is_in_the_result() -> None:
    assert row(calibrated(0.01, EXPECTED)).expected == STORED
    for other in ([], [EXPECTED | {"metric": "cpu"}], [EXPECTED | {"benchmark": "other"}]):
        assert row(calibrated(0.01, *other)).expected is None
    assert row(judged(*pairs("b", [1.0], [1.0]), ended("b"))).expected is None


def test_an_unproven_row_says_what_can_be_told_here() -> None:
    result = calibrated(0.5, EXPECTED)
    assert row(result).decision == "unproven"
    assert SAID in terminal.render(result, width=400, color=False, unicode=True)
    assert [SAID in markdown.render(one) for one in (result, calibrated(0.001, EXPECTED))] == [True, False]


def test_a_run_noisier_than_the_calibration_is_warned_of() -> None:
    noisy = calibrated(0.05, EXPECTED)
    (warning,) = (text for text in row(noisy).warnings if "noisier" in text)
    assert warning.startswith("noisier than when calibrated: ±")
    assert warning.endswith("against ±1%")
    assert "noisier than when calibrated" in markdown.render(noisy)
    for quiet in (calibrated(0.01, EXPECTED), calibrated(0.002, EXPECTED | {"noise": 0.0001})):
        assert not any("noisier" in text for text in row(quiet).warnings)


@pytest.mark.parametrize(
    ("smallest", "within", "said"),
    [
        (0.03, 20.0, SAID),
        (0.0025, 2.0, "on this machine changes of 0.25% or more are detected within 2"),
        (None, 20.0, "in the calibration of this machine, no change up to 100% was detected within 20"),
        (None, None, ""),
    ],
)
def test_the_words_on_a_detectable_change(smallest: float | None, within: float | None, said: str) -> None:
    text = detectable_change(Expected(noise=0.01, smallest_change=smallest, within=within, calibrated=""))
    assert (text[: len(said)], bool(text)) == (said, bool(said))


# -- realistic benchmarks and the synthetic ones that they confirm

MICRO, MACRO = planned("micro", scenario="synthetic"), planned("macro", scenario="realistic", confirms=["mic*"])


def both(micro: float, macro: float | None, steps: Sequence[dict[str, Any]] = (MICRO, MACRO)) -> Result:
    """Return 20 pairs of each benchmark, whose candidate costs this share of the baseline, within a percent."""
    noise = [1 + 0.002 * ((7 * number) % 11 - 5) for number in range(20)]
    events = []
    for name, ratio in (("micro", micro), ("macro", macro)):
        events += [*pairs(name, noise, [ratio * (2 - value) for value in noise] if ratio else None), ended(name)]
    return judged(*events, steps=steps)


@pytest.mark.parametrize(
    ("micro", "macro", "agrees", "note"),
    [
        (0.8, 1.0, False, "not confirmed by macro: same ±"),
        (0.8, 1.3, False, "not confirmed by macro: regressed +30."),
        (0.8, 0.7, True, "confirmed by macro: improved -30."),
        (1.3, 1.0, False, "not confirmed by macro: same ±"),
        (1.3, 1.2, True, "confirmed by macro: regressed +20."),
        (0.8, None, None, "macro neither confirms nor refutes this: not compared"),
    ],
)
def test_what_the_realistic_one_confirms(micro: float, macro: float | None, agrees: bool | None, note: str) -> None:
    result = both(micro, macro)
    (entry,) = result.confirmations
    assert (entry["benchmark"], entry["by"], entry["agrees"]) == ("micro", "macro", agrees)
    assert [text for text in row(result, name="micro").warnings if text.startswith(note)]
    # The verdict stays that of the rows.
    assert result.verdict == both(micro, macro, [MICRO, planned("macro")]).verdict
    assert judge(record_of_result(result), criteria()) == result


def test_what_did_not_change_or_is_not_named_needs_no_confirmation() -> None:
    same = both(1.0, 1.3)
    assert same.confirmations == both(0.8, 1.0, [MICRO, MACRO | {"confirms": ["other"]}]).confirmations == []
    assert not [text for text in row(same, name="micro").warnings if "macro" in text]


# -- benchmarks that execute the same on both sides: rows without figures, and the audit of the method


def unchanged(factor: float | None, *, by: str = "code", confirmed: bool = False, **more_of_it: bool) -> Result:
    """``factor``: the change that an audit of the method shows."""
    events: list[dict[str, Any]] = [{"event": "unchanged", "step": "b", "benchmark": "b", "by": by, **more_of_it}]
    events[0]["audited"] = factor is not None
    for round_ in range(0 if factor is None else 1 + confirmed):
        more = {"design": Design.CONFIRM.value, "confirmation": 1} if round_ else {}
        taken = pairs("b", scaled(1.0, 40), scaled(factor or 0.0, 40))
        events += [event | more | {"pair": event["pair"] + 40 * round_} for event in taken]
    rules = criteria({} if factor else {"b": {"time": "<1ms"}})
    return judged(*events, ended("b"), steps=(planned("b", expect=["b"]),), wanted=rules)


def test_a_benchmark_that_was_not_timed_is_the_same_and_not_missing() -> None:
    result = unchanged(None, by="files")
    found = row(result)
    assert (found.decision, found.level, found.gating, found.unchanged) == ("same", "ok", True, "files")
    assert (found.baseline, found.candidate, found.change, found.pairs) == (None, None, None, 0)
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert [item.status for item in result.targets] == ["not looked at"]


@pytest.mark.parametrize("factor", [1.0, 1.2, 0.8])
def test_an_audit_that_is_not_confirmed_leaves_it_the_same(factor: float) -> None:
    result = unchanged(factor)
    found = row(result)
    assert (found.decision, found.level, found.unchanged, result.verdict) == ("same", "ok", "code", "pass")
    assert found.change


def test_a_confirmed_regression_of_the_same_code_is_an_error_of_the_method() -> None:
    result = unchanged(1.2, confirmed=True)
    assert result.verdict == "error"
    assert result.reason_texts[0].startswith("audit: b time (+20.0%")
    assert "defect of the method" in result.reason_texts[0]
    # Within the concern threshold it is none.
    assert unchanged(1.03, confirmed=True).verdict == "pass"


def test_native_code_that_is_slower_at_another_address_is_no_error() -> None:
    result = unchanged(1.2, confirmed=True, native=True)
    assert (row(result).decision, result.verdict) == ("same", "pass")
    assert judge(record_of_result(result), criteria()) == result
    wrong = unchanged(1.2, confirmed=True)
    assert judge(record_of_result(wrong), criteria()) == wrong


# -- the state of cheaper techniques when a costlier one was tried


def told(*tries: tuple[str, str, str], **ruled_out: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return the state of the cheaper techniques before each try (id, technique, decision)."""
    steps = [planned("b"), *(candidate(name, technique, "") for name, technique, _ in tries)]
    events = [*pairs("b", scaled(1.0, 12), None), ended("b")]
    for name, technique, decision in tries:
        events.append(ended(name, optimizations=[attempt(name, decision, f"why of {name}", technique=technique)]))
        if decision == "accepted":
            events.append({"event": "kept", "id": name, "revision": "a" * 40, "tree": name})
    found = judged(*events, steps=steps, ruled_out=ruled_out, accept=0.1).optimizations
    return {item.id: [(cheap.technique, cheap.status, cheap.detail) for cheap in item.cheaper] for item in found}


def test_each_try_knows_what_was_tried_or_ruled_out_before_it() -> None:
    tries = (("sort", "algorithm", "accepted"), ("hash", "algorithm", "rejected"), ("batch", "io", "skipped"))
    ruled_out = {"data-structure": "flat already", "concurrency": "one thread"}
    tried = [("algorithm", "tried", "sort kept, hash reverted"), ("data-structure", "ruled out", "flat already")]
    assert told(*tries, ("slab", "memory", "rejected"), **ruled_out) == {
        "sort": [],
        "hash": [],
        "batch": tried,
        "slab": [*tried, ("io", "open", "batch: why of batch")],
    }


def test_what_was_tried_later_was_not_tried_before_and_configuration_stands_outside() -> None:
    later = ("sort", "algorithm", "accepted")
    untried = [(name, "open", "") for name in ("algorithm", "data-structure", "io")]
    assert told(("slab", "memory", "accepted"), later) == {"slab": untried, "sort": []}
    assert told(("lto", "configuration", "accepted"), later) == {"lto": [], "sort": []}
