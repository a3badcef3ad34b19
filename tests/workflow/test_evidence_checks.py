"""Problems of ``scaling``, ``scenario``, ``confirms``, ``variants`` and ``compare``, and their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.drafts import opened, said

SUITE = "stages: {baseline: [{id: suite, uses: google-benchmark, with: {command: ./suite}%s}]}\n"
BENCH = "stages: {baseline: [{id: bench, uses: command, with: {command: ./bench}%s}]}\n"
TWO = """stages:
  baseline:
    - {id: small, uses: command, with: {command: ./small}%s}
    - {id: large, uses: command, with: {command: ./large}%s}
"""


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (", scaling: n", "`scaling` needs a `matrix` with the sizes"),
        (", matrix: {n: [1, 2, 3]}, scaling: m", "`scaling`: the matrix has no key `m`"),
        (", matrix: {n: [a, b, c]}, scaling: n", "'a' under matrix key `n` is not a size"),
        (", matrix: {n: [0, 1, 2]}, scaling: n", "0 under matrix key `n` is not a size"),
        (", matrix: {n: [1, 2, true]}, scaling: n", "true under matrix key `n` is not a size"),
        (", matrix: {n: [10, 100]}, scaling: n", "`scaling` over `n` has 2 sizes, but needs at least 3"),
        (", compare: cc", "`compare` needs a `matrix` with the key"),
        (", matrix: {cc: [gcc, clang]}, compare: c", "`compare`: the matrix has no key `c`"),
        (", matrix: {cc: [gcc]}, compare: cc", "`compare`: matrix key `cc` has one value only"),
        (", matrix: {cc: [a, b]}, compare: cc, candidate: x", "a step cannot have both `compare` and `candidate`"),
        (", matrix: {n: [1, 2, 3]}, scaling: n, compare: n", "`compare` and `scaling` of the same matrix key `n`"),
        (", confirms: x", "`confirms` needs `scenario: realistic`"),
        (", scenario: synthetic, confirms: [x]", "`confirms` needs `scenario: realistic`"),
        (", variants: {baseline: '*/a', candidate: '*/b'}", "`variants` on a step that measures one benchmark"),
    ],
)
def test_a_mistake_is_named_at_its_place(keys: str, message: str, tmp_path: Path) -> None:
    assert message in [text.partition(" ")[2] for text in said(opened(tmp_path, BENCH % keys))]


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ("{baseline: a, candidate: '*/b'}", "'a' under `variants` must contain exactly one `*`"),
        ("{baseline: '*/a/*', candidate: '*/b'}", "'*/a/*' under `variants` must contain exactly one `*`"),
        ("{baseline: '*/a', candidate: '*/a'}", "`variants` compares a benchmark with itself"),
        (
            "{baseline: '*/a', candidate: '*/b'}, candidate: ./other",
            "a step cannot have both `variants` and `candidate`",
        ),
        ("{baseline: '*/a', candidate: '*/b'}, benchmark: x", "`variants` on a step that measures one benchmark"),
    ],
)
def test_variants_that_cannot_be_paired_are_refused(variants: str, message: str, tmp_path: Path) -> None:
    found = opened(tmp_path, SUITE % f", variants: {variants}")
    assert [text.partition(" ")[2] for text in said(found)] == [message]


@pytest.mark.parametrize(
    "text",
    [
        BENCH % ", matrix: {n: [1, 2], include: [{n: 4}]}, scaling: n",
        BENCH % ", matrix: {n: [0.5, 1, 2], kind: [a, b]}, scaling: n",
        BENCH % ", matrix: {cc: [gcc, clang], n: [1, 2, 4]}, compare: cc, scaling: n",
        SUITE % ", variants: {baseline: '*/a', candidate: '*/b'}",
        SUITE % ", variants: {baseline: 'a/*', candidate: 'b/*'}, benchmark: 'core/*'",
        TWO % (", scenario: synthetic", ", scenario: realistic, confirms: [sm*]"),
        TWO % (", scenario: synthetic, allow: {synthetic-only: it is a start}", ""),
    ],
)
def test_what_is_right_is_not_complained_of(text: str, tmp_path: Path) -> None:
    found = opened(tmp_path, text)
    assert said(found) == []
    assert found.unavailable == ()


def test_compare_needs_a_step_that_measures(tmp_path: Path) -> None:
    text = "stages: {build: [{id: make, run: make, matrix: {cc: [a, b]}, compare: cc}]}\n"
    assert [text.partition(" ")[2] for text in said(opened(tmp_path, text))] == [
        "`compare` on a step that does not measure"
    ]


def test_what_is_confirmed_must_be_there(tmp_path: Path) -> None:
    found = opened(tmp_path, TWO % ("", ", scenario: realistic, confirms: [smal, small]"))
    assert said(found) == ["5:92 no other step measures `smal`"]
    assert "small" in found.problems[0].hint


def test_a_synthetic_benchmark_as_the_only_evidence_is_warned_of(tmp_path: Path) -> None:
    for other in ("", ", scenario: realistic", ", scenario: realistic, confirms: []"):
        found = opened(tmp_path, TWO % (", scenario: synthetic", other))
        assert said(found) == ["4:60 no realistic benchmark confirms the synthetic benchmark of `small`"]
        assert found.problems[0].severity.value == "warning"


@pytest.mark.parametrize("key", ["scaling: n", "scenario: synthetic", "confirms: [x]"])
def test_a_step_that_measures_nothing_has_no_evidence(key: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages: {{build: [{{id: make, run: make, {key}}}]}}\n")
    name = key.partition(":")[0]
    assert [text.partition(" ")[2] for text in said(found)] == [f"`{name}` on a step that does not measure"]
