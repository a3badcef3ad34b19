"""Plans: order of steps, cells, benchmarks, and commands of profilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import Exit, Severity, UserError
from perfflow.session.open_workflow import Opened, select
from tests.workflow.drafts import opened, said


def order(found: Opened) -> list[str]:
    return [item.id for item in found.plan.steps]


def before(found: Opened, name: str) -> set[str]:
    """Return all steps that must come before a step, directly or indirectly."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        item = found.plan.by_id[waiting.pop()]
        new = {*item.needs, *item.after} - seen
        seen |= new
        waiting += new
    return seen


def test_steps_come_in_the_order_written_stage_after_stage(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {b: [{id: z, run: x}, {id: y, run: x}], a: [{id: x, run: x}]}")
    assert order(found) == ["z", "y", "x"]
    assert before(found, "x") == {"z", "y"}


def test_needs_replace_the_order_and_what_follows_waits_for_all(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  one: [{id: a, run: x}]\n"
        "  two:\n    - {id: b, run: x}\n    - {id: c, run: x, needs: []}\n    - {id: d, run: x, needs: a}\n"
        "    - {id: e, run: x}\n"
        "  three: [{id: f, run: x, needs: []}]\n  four: [{id: g, run: x}]\n",
    )
    assert order(found) == ["a", "b", "c", "d", "e", "f", "g"]
    assert before(found, "c") == set()
    assert before(found, "d") == {"a"}
    assert before(found, "e") == {"a", "b", "c", "d"}
    assert before(found, "g") == {"a", "b", "c", "d", "e", "f"}


def test_a_step_may_need_a_later_one(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {setup: [{id: a, run: x, needs: [b]}, {id: b, run: x, needs: []}]}")
    assert order(found) == ["b", "a"]


def test_cells_are_free_of_each_other_and_come_together(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  build: [{id: a, run: x, matrix: {k: [1, 2]}}]\n"
        "  baseline:\n    - {id: b, run: x, needs: a}\n    - {id: c, run: x, needs: ['a[k=2]']}\n",
    )
    assert order(found) == ["a[k=1]", "a[k=2]", "b", "c"]
    assert before(found, "a[k=2]") == set()
    assert found.plan.by_id["b"].needs == ("a[k=1]", "a[k=2]")
    assert found.plan.by_id["c"].needs == ("a[k=2]",)
    assert [item.id for item in found.plan.cells_of("a")] == ["a[k=1]", "a[k=2]"]


def test_a_benchmark_is_named_by_the_step_or_by_its_key_and_the_keys_it_does_not_use(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "params: {p: P}\nstages:\n  build: [{id: w, run: x}]\n  baseline:\n"
        "    - {id: a, uses: command, with: {command: x}}\n"
        "    - {id: b, uses: command, with: {command: x}, matrix: {k: [1], l: [2]}}\n"
        "    - {id: c, uses: command, with: {command: x}, matrix: {k: [1], l: [2]},"
        " benchmark: 'c/${{ matrix.k }}/${{ params.p }}'}\n"
        "  verify: [{id: v, run: x}]\n",
    )
    assert [item.benchmark for item in found.plan.steps] == ["", "a", "b[k=1,l=2]", "c/1/P[l=2]", ""]


def test_a_benchmark_that_cannot_be_named_is_said_once(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  baseline:\n    - {id: a, uses: command, with: {command: x}, benchmark: '${{ run.id }}'}\n"
        "    - {id: b, uses: command, with: {command: x}, benchmark: '${{ params.q }}'}\n",
    )
    assert said(found) == [
        "4:66 ${{ run.id }}: 'run' is undefined",
        "5:66 undefined `params.q`",
    ]


def test_a_profile_watches_what_measures_its_benchmark(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  baseline:\n"
        "    - {id: heap, uses: massif, benchmark: m, with: {command: y}}\n"
        "    - {id: m, uses: command, with: {command: x}, matrix: {k: [1, 2]}, benchmark: 'm${{ matrix.k }}'}\n"
        "    - {id: n, uses: command, benchmark: m, with: {command: x}}\n"
        "  profile:\n"
        "    - {id: p, uses: perf, benchmark: m2}\n"
        "    - {id: q, uses: perf, benchmark: m, needs: []}\n"
        "    - {id: r, uses: perf, with: {command: z}}\n"
        "  verify: [{id: s, uses: same-output, benchmark: m1}]\n",
    )
    assert said(found) == []
    watches = {item.id: item.watches for item in found.plan.steps if item.watches}
    assert watches == {"p": "m[k=2]", "q": "heap", "s": "m[k=1]"} or watches["q"] in ("heap", "n")
    assert order(found).index("q") > order(found).index(watches["q"])


def test_a_cycle_is_printed_in_words_of_need(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  setup:\n"
        "    - {id: a, run: x, needs: [c]}\n    - {id: b, run: x, needs: [a]}\n    - {id: c, run: x, needs: [b]}\n",
    )
    assert said(found) == ["4:31 circular dependency: a -> c -> b -> a"]
    assert order(found) == ["a", "b", "c"]


def test_a_cycle_through_a_watched_step_says_why(tmp_path: Path) -> None:
    found = opened(
        tmp_path,
        "stages:\n  baseline: [{id: m, uses: command, with: {command: x}, needs: [p]}]\n"
        "  profile: [{id: p, uses: perf, benchmark: m, needs: []}]\n",
    )
    (problem,) = found.problems
    assert problem.message.endswith("m -> p -> m")
    assert problem.hint == "`p` runs the command of `m`, so it must run after it"


def test_every_cycle_is_reported(tmp_path: Path) -> None:
    steps = ", ".join(f"{{id: s{n}, run: x, needs: [s{n ^ 1}]}}" for n in range(10))
    assert len(said(opened(tmp_path, f"stages: {{setup: [{steps}]}}"))) == 5


@pytest.mark.parametrize("named", [True, False], ids=["by needs", "by order"])
def test_a_chain_of_thousands_of_steps_is_planned(named: bool, tmp_path: Path) -> None:
    count = 5000
    needs = [f", needs: [s{n - 1}]" if named and n else "" for n in range(count)]
    lines = [f"    - {{id: s{n}, run: x{needs[n]}}}\n" for n in range(count)]
    found = opened(tmp_path, "stages:\n  setup:\n" + "".join(lines))
    assert order(found) == [f"s{n}" for n in range(count)]
    edges = sum(len(item.needs) + len(item.after) for item in found.plan.steps)
    assert edges == count - 1


def test_a_cycle_of_thousands_of_steps_is_found(tmp_path: Path) -> None:
    count = 5000
    lines = [f"    - {{id: s{n}, run: x, needs: [s{(n - 1) % count}]}}\n" for n in range(count)]
    (message,) = said(opened(tmp_path, "stages:\n  setup:\n" + "".join(lines)))
    assert message.count(" -> ") == count


def test_steps_that_start_at_once_do_not_multiply_what_follows(tmp_path: Path) -> None:
    lines = [f"    - {{id: s{n}, run: x{', needs: []' if n % 10 else ''}}}\n" for n in range(1000)]
    found = opened(tmp_path, "stages:\n  setup:\n" + "".join(lines))
    assert sum(len(item.after) for item in found.plan.steps) < 1000


def test_parts_of_a_plan_are_selected_by_stage_step_or_start(tmp_path: Path) -> None:
    plan = opened(
        tmp_path, "stages: {a: [{id: x, run: x, matrix: {k: [1, 2]}}], b: [{id: y, run: x}, {id: z, run: x}]}"
    ).plan
    assert select(plan, [], [], None) == {"x[k=1]", "x[k=2]", "y", "z"}
    assert select(plan, ["b"], [], None) == {"y", "z"}
    assert select(plan, [], ["x"], None) == {"x[k=1]", "x[k=2]"}
    assert select(plan, [], ["x[k=2]"], None) == {"x[k=2]"}
    assert select(plan, ["b"], [], "z") == {"z"}
    with pytest.raises(UserError, match="--from and --stage have no step in common") as found:
        select(plan, ["a"], [], "z")
    assert found.value.exit is Exit.USAGE
    assert "stages with steps from z on: b" in str(found.value)


def test_a_parameter_that_is_a_list_makes_the_cells(tmp_path: Path) -> None:
    text = (
        "params: {crates: {type: list, default: [a, b]}}\nstages:\n  baseline:\n"
        "    - {id: m, uses: command, with: {command: x}, matrix: {crate: '${{ params.crates }}', n: [1]},"
        " benchmark: '${{ matrix.crate }}/m'}\n"
    )
    assert [item.benchmark for item in opened(tmp_path, text).plan.steps] == ["a/m[n=1]", "b/m[n=1]"]
    assert order(opened(tmp_path, text, "crates=c")) == ["m[crate=c,n=1]"]
    assert said(opened(tmp_path, text, "crates=")) == ["5:50 matrix key `crate` has no values"]


def test_a_list_without_a_value_is_missing_and_nothing_else(tmp_path: Path) -> None:
    text = (
        "params: {crates: {type: list}}\n"
        "stages: {build: [{id: m, run: 'x ${{ matrix.c }}', matrix: {c: '${{ params.crates }}'}}]}\n"
    )
    assert said(opened(tmp_path, text)) == ["parameter 'crates' has no value"]


def test_a_matrix_knows_nothing_but_parameters(tmp_path: Path) -> None:
    text = "stages: {build: [{id: a, run: x}, {id: m, run: x, matrix: {c: '${{ steps.a.outputs.b }}'}}]}\n"
    (problem,) = opened(tmp_path, text).problems
    assert (problem.hint, problem.place and problem.place.line) == ("a matrix can use only `params`", 2)


@pytest.mark.parametrize(
    "text", ["{concern: 0%}", "{action: 0, concern: 0.0%}", "{for: {'b*': {action: 0%, concern: 0%}}}"]
)
def test_thresholds_that_nothing_could_keep_are_refused(text: str, tmp_path: Path) -> None:
    messages = said(opened(tmp_path, f"thresholds: {text}\nstages: {{build: [{{id: a, run: x}}]}}\n"))
    assert messages
    assert all("can never be proven to hold" in message for message in messages)


def test_a_floor_of_nothing_is_allowed(tmp_path: Path) -> None:
    found = opened(tmp_path, "thresholds: {floor: 0%}\nstages: {baseline: [{id: a, run: x}]}\n")
    assert (said(found), found.plan.criteria.thresholds.floor) == ([], 0)


def test_thresholds_can_be_parameters(tmp_path: Path) -> None:
    text = (
        "params: {limit: 8%}\n"
        "thresholds: {action: '${{ params.limit }}', for: {'core/*': {concern: '${{ params.limit }}'}}}\n"
        "stages: {build: [{id: a, run: x}]}\n"
    )
    criteria = opened(tmp_path, text, "limit=9%").plan.criteria
    assert criteria.thresholds.action == pytest.approx(0.09)
    assert criteria.thresholds_of("core/a").concern == pytest.approx(0.09)
    assert criteria.thresholds_of("core/a").action == pytest.approx(0.09)
    wrong = said(opened(tmp_path, text, "limit=soon"))
    assert [message[:5] for message in wrong] == ["3:22 ", "3:71 "]
    assert all("'soon'" in message for message in wrong)
    assert said(opened(tmp_path, text.replace("params.limit }}', for", "params.limti }}', for"))) == [
        "3:27 undefined `params.limti`"
    ]


SPEEDUP = "targets: {a: {speedup: ≥2x}, b: {time change: <5%}}\nstages:\n  baseline:\n    - {id: b, run: ./b}\n"
ONE_SIDE = "needs two sides, but the workflow has only one"


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ("    - {id: a, run: ./a}\n", 2),
        ("    - {id: a, run: ./a, candidate: ./c}\n", 1),
        ("    - {id: a, run: ./a, allow: {one-sided: only a gate judges it}}\n", 0),
        ("    - {id: a, run: ./a}\n  optimize: [{id: o, env: {X: '1'}, technique: algorithm, why: x}]\n", 0),
    ],
)
def test_a_target_on_a_comparison_without_one_is_said_before_the_run(steps: str, count: int, tmp_path: Path) -> None:
    found = opened(tmp_path, SPEEDUP + steps)
    warned = [problem for problem in found.problems if ONE_SIDE in problem.message]
    assert [problem.severity for problem in warned] == [Severity.WARNING] * count


def test_an_unknown_tool_does_not_hide_the_other_mistakes_of_its_step(tmp_path: Path) -> None:
    step = "{id: a, uses: criterion, with: {bnch: parse, sample-size: few}, needs: [nope]}"
    assert said(opened(tmp_path, f"stages: {{baseline: [{step}]}}\n")) == [
        "2:35 unknown tool 'criterion'",
        "2:53 unknown key `bnch`",
        "2:79 `sample-size` must be a whole number, not 'few'",
        "2:93 unknown step `nope` under `needs`",
    ]


SUITE = "{id: suite, uses: google-benchmark, with: {command: ./suite}}"


@pytest.mark.parametrize(
    ("targets", "steps", "counted"),
    [
        ("parse: {time: <1s}", SUITE, []),
        ("parse: {alloc: <2KB/op, allocs: <9}", SUITE, [("suite-dhat", "suite")]),
        ("'p/*': {instructions: <1M/op}", SUITE, [("suite-callgrind", "suite")]),
        ("parse: {alloc: <2KB}", f"{SUITE}, {{id: own, uses: dhat, benchmark: parse}}", []),
        ("parse: {alloc: <2KB}", f"{SUITE}, {{id: own, uses: dhat, benchmark: suite}}", []),
        ("parse: {alloc: <2KB}", f"{SUITE}, {{id: own, uses: dhat, benchmark: other}}", [("suite-dhat", "suite")]),
    ],
)
def test_what_targets_need_of_a_suite_is_counted_by_itself(
    targets: str, steps: str, counted: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = opened(tmp_path, f"targets: {{{targets}}}\nstages: {{baseline: [{steps}]}}\n")
    assert said(found) == []
    assert [(item.id, item.watches) for item in found.plan.steps if item.for_targets] == counted
    assert select(found.plan, (), ("suite",), None) == {"suite", *(name for name, _ in counted)}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "{id: suite, uses: pyperf, with: {script: a.py}}",
            "the suite of `suite` cannot run a benchmark a known number of times, so `dhat` cannot count one iteration",
        ),
        ("{id: program, run: ls}", "`dhat` measures one command, but `*` stands for several"),
    ],
)
def test_what_cannot_be_counted_is_an_error_before_the_run(steps: str, message: str, tmp_path: Path) -> None:
    found = opened(tmp_path, f"stages: {{baseline: [{steps}, {{id: heap, uses: dhat, benchmark: '*'}}]}}\n")
    assert [text.partition(" ")[2].splitlines()[0] for text in said(found)] == [message]


def test_a_suite_of_an_unknown_tool_may_have_the_benchmarks(tmp_path: Path) -> None:
    steps = "{id: bench, uses: criterien}, {id: heap, uses: massif, benchmark: parse}"
    assert len(said(opened(tmp_path, f"stages: {{baseline: [{steps}]}}\n"))) == 1
