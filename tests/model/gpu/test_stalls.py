"""Stall reasons: all those of Nsight Compute are known, and those of a real report are ranked as it ranks them."""

from __future__ import annotations

import pytest

from perfflow.model.gpu.stalls import pressing, ranked, reason_of, stalls

# Warp cycles per issued instruction, from the reports that nsight-compute 2022.3 ships as its example
# uncoalescedGlobalAccesses; `ncu --import addConstDouble3.ncu-rep --csv --page raw` prints them.
STRIDED = (
    {"barrier": 0.0, "branch_resolving": 0.40, "dispatch_stall": 0.09, "drain": 37.89, "imc_miss": 0.77}
    | {"lg_throttle": 68.45, "long_scoreboard": 45.18, "math_pipe_throttle": 0.01, "membar": 0.0, "misc": 0.0}
    | {"mio_throttle": 45.67, "no_instruction": 0.47, "not_selected": 1.09, "selected": 1.0, "sleeping": 0.0}
    | {"short_scoreboard": 30.55, "tex_throttle": 2.36, "wait": 2.67}
)
COALESCED = {"long_scoreboard": 66.99, "short_scoreboard": 8.49, "wait": 3.48, "drain": 1.98, "selected": 1.0}


def test_every_reason_of_a_real_report_is_known() -> None:
    assert STRIDED.keys() <= stalls().keys()
    assert {"gmma"} == stalls().keys() - STRIDED.keys()


def test_every_reason_says_what_it_means_and_what_lowers_it() -> None:
    for name, found in stalls().items():
        assert found.means
        assert found.lowers
        assert found.trouble is (name not in {"selected", "not_selected"})


def test_the_longest_wait_comes_first_and_work_last() -> None:
    rows = ranked(STRIDED)
    assert [row.stall.name for row in rows[:4]] == ["lg_throttle", "mio_throttle", "long_scoreboard", "drain"]
    assert [row.stall.name for row in rows[-2:]] == ["not_selected", "selected"]
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert rows[0].share == pytest.approx(68.45 / 236.6, abs=1e-4)
    assert "membar" not in [row.stall.name for row in rows]


def test_a_reason_presses_where_it_takes_much_and_schedulers_idle() -> None:
    assert [row.stall.name for row in pressing(ranked(COALESCED), issued=0.10)] == ["long_scoreboard"]
    # Of many reasons none exceeds 30%.
    assert pressing(ranked(STRIDED), issued=0.04) == ()
    assert pressing(ranked(COALESCED), issued=0.85) == ()
    assert pressing(ranked({"selected": 1.0, "not_selected": 2.0}), issued=0.5) == ()


def test_nothing_is_ranked_as_nothing_and_a_reason_of_a_newer_ncu_is_said_to_be_unknown() -> None:
    assert ranked({}) == ranked({"wait": 0.0}) == ()
    first = ranked({"quantum_stall": 3.0, "wait": 1.0})[0]
    assert (first.stall.name, first.share) == ("quantum_stall", 0.75)
    assert "does not know" in first.stall.means


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "long_scoreboard"),
        ("smsp__average_warp_latency_issue_stalled_wait.ratio", "wait"),
        ("smsp__warp_issue_stalled_dispatch_stall_per_warp_active.pct", "dispatch_stall"),
        ("smsp__pcsamp_warps_issue_stalled_no_instructions", "no_instruction"),
        ("smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", "selected"),
        ("smsp__pcsamp_warps_issue_stalled_barrier_not_issued", None),
        ("smsp__average_warp_latency_per_inst_issued.ratio", None),
        ("smsp__issue_active.avg.per_cycle_active", None),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", None),
    ],
)
def test_a_reason_is_read_from_the_metric_ids_of_ncu(metric: str, reason: str | None) -> None:
    assert reason_of(metric) == reason
