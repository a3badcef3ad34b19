"""Writing settings into the text of a workflow changes only their values."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.workflow.settings_text import Written, with_settings
from perfflow.workflow.yaml_text import read_text

FLOW = """\
# yaml-language-server: $schema=../schemas/workflow.schema.json
perfflow: 1   # the format
name:    wörk  🎉

params:                 # --set opt=-O3
    opt: -O1            # what the compiler is told
    level: {default: 'a b', enum: ['a b', "c"], help: of detail}
    long:
        help: a default comes later

# What is measured, and where.
# It takes a while.
stages:
    build:
        - id: cc
          run: gcc $OPT work.c     # a very long comment that is longer than any width a dumper folds at
          env: {OPT: "${{ params.opt }}", A: 1 }
    baseline:
        steps:
            - {id: a, uses: command, with: {command: ./a}, env: {OPT: x}}
        env:
            A: one
            B: |
                two
    optimize:
        - {id: o, technique: configuration, env: {OPT: y}}
"""


def write(text: str, **settings: dict[str, object]) -> str:
    return with_settings(text, "flow.yaml", settings.get("params", {}), settings.get("env", {}))[0]  # type: ignore[arg-type]


def test_a_default_is_replaced_and_every_other_character_stays() -> None:
    text, written = with_settings(FLOW, "flow.yaml", {"opt": "-O3"}, {})
    assert text == FLOW.replace("opt: -O1 ", "opt: -O3 ")
    assert written == [Written("params.opt", 6, "-O1", "-O3")]


def test_the_long_form_has_its_default_replaced_in_the_quotes_it_has() -> None:
    assert write(FLOW, params={"level": "it's"}) == FLOW.replace("default: 'a b'", "default: 'it''s'")


def test_a_parameter_without_a_default_gets_one() -> None:
    added = "        help: a default comes later\n        default: 3\n"
    assert write(FLOW, params={"long": 3}) == FLOW.replace("        help: a default comes later\n", added)


def test_a_variable_is_replaced_wherever_building_and_measuring_set_it() -> None:
    text, written = with_settings(FLOW, "flow.yaml", {}, {"OPT": "-O3 -g"})
    assert text == FLOW.replace('OPT: "${{ params.opt }}"', 'OPT: "-O3 -g"').replace("OPT: x", "OPT: -O3 -g")
    assert [(item.line, item.old) for item in written] == [(17, '"${{ params.opt }}"'), (20, "x")]


def test_a_new_variable_goes_into_a_new_top_level_env_before_the_stages_and_their_comment() -> None:
    added = 'env:\n    NEW: "1"\n\n# What is measured'
    text, written = with_settings(FLOW, "flow.yaml", {}, {"NEW": "1"})
    assert text == FLOW.replace("# What is measured", added)
    assert [(item.key, item.old, item.new) for item in written] == [("env.NEW", "", '"1"')]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("env:\n  A: 1  # one\nstages: {}\n", "env:\n  A: 1  # one\n  N: x\nstages: {}\n", id="block"),
        pytest.param("env: {A: 1}\nstages: {}\n", "env: {A: 1, N: x}\nstages: {}\n", id="flow"),
        pytest.param("env: {}\nstages: {}\n", "env: {N: x}\nstages: {}\n", id="empty"),
        pytest.param("env: {\n  A: 1,\n}\n", "env: {\n  A: 1, N: x,\n}\n", id="flow over lines"),
        pytest.param("env:\n  A: |\n    t\nstages: {}\n", "env:\n  A: |\n    t\n  N: x\nstages: {}\n", id="block text"),
        pytest.param("a: &a q\nenv:\n  A: *a\n", "a: &a q\nenv:\n  A: *a\n  N: x\n", id="alias"),
        pytest.param("stages: {}", "env:\n  N: x\nstages: {}", id="no line end"),
        pytest.param("name: x", "name: x\nenv:\n  N: x\n", id="no stages"),
        pytest.param("{name: x}\n", "{name: x, env: {N: x}}\n", id="all in flow"),
        pytest.param("env:\n  N: y # why\n", "env:\n  N: x # why\n", id="there"),
        pytest.param("env:\n  N:\n  B: 1\n", "env:\n  N: x\n  B: 1\n", id="there without a value"),
        pytest.param("env:\n  N: |\n    y\n  B: 1\n", "env:\n  N: x\n  B: 1\n", id="there as a block text"),
        pytest.param("defaults: {env: {N: 1}}\n", "defaults: {env: {N: x}}\n", id="in the defaults"),
    ],
)
def test_where_a_variable_goes(before: str, after: str) -> None:
    assert write(before, env={"N": "x"}) == after
    crlf, expected = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
    if before not in ("name: x", "stages: {}"):  # a single line has no line end to keep
        assert write(crlf, env={"N": "x"}) == expected
    assert write("\ufeff" + before, env={"N": "x"}) == "\ufeff" + after


def test_line_ends_of_another_system_stay() -> None:
    text = FLOW.replace("\n", "\r\n")
    done = write(text, params={"opt": "-O3"}, env={"NEW": "ü", "A": "z"})
    assert "\n" not in done.replace("\r\n", "")
    assert done.count("\r\n") == text.count("\r\n") + 3


def test_what_an_anchor_stands_for_stays_where_it_is_used() -> None:
    text = "params:\n  opt: &o -O1  # first\n  other: *o\nenv: {A: *o}\n"
    assert write(text, params={"opt": "-O3"}) == "params:\n  opt: -O3  # first\n  other: &o -O1\nenv: {A: *o}\n"
    assert write(text, params={"other": "-O3"}) == text.replace("other: *o", "other: -O3")
    alone = "params:\n  opt: &o -O1\n"
    assert write(alone, params={"opt": "-O3"}) == "params:\n  opt: &o -O3\n"


def test_a_map_that_an_anchor_shares_is_left_alone() -> None:
    text = "env: &e {A: 1}\ndefaults: {env: *e}\nstages: {}\n"
    with pytest.raises(UserError) as caught:
        write(text, env={"A": "2", "B": "3"})
    assert "by hand" in caught.value.problems[0].hint
    with pytest.raises(UserError, match=r"flow.yaml:2:3: error: params.opt cannot be set: it is a list or a map"):
        write("params:\n  opt: [a, b]\n", params={"opt": "c"})


def test_a_long_file_keeps_all_its_lines() -> None:
    steps = "".join(f"    - {{id: s{number}, run: 'echo {number}'}}  # {number}\n" for number in range(3000))
    text = f"params: {{opt: 1}}\nstages:\n  build:\n{steps}"
    assert write(text, params={"opt": 2}) == text.replace("opt: 1", "opt: 2")


def test_what_is_so_already_is_not_written() -> None:
    assert with_settings(FLOW, "flow.yaml", {"opt": "-O1"}, {}) == (FLOW, [])


@pytest.mark.parametrize(
    "template", ["params: {{opt: {}}}\n", "params:\n  opt: {} # why\n", "params: {{opt: {{default: {}}}}}"]
)
@pytest.mark.parametrize("old", ["1", "'1'", '"x"', "x"])
@given(value=st.text(max_size=20) | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_value_reads_as_it_was_given_or_is_refused(template: str, old: str, value: object) -> None:
    before = template.format(old)
    if isinstance(value, str) and not value.isprintable():
        # YAML does not allow some of these characters; then an error is raised.
        with suppress(UserError):
            write(before, params={"opt": value})
        return
    found = read_text(write(before, params={"opt": value}), "flow.yaml").data()["params"]["opt"]
    assert (found["default"] if isinstance(found, dict) else found) == value
