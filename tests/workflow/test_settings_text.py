"""Writing settings into the text of a workflow changes only their values."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.workflow.settings_text import Written, with_settings
from perfflow.workflow.yaml_text import read_text
from tests.diffs import changes
from tests.workflow.drafts import FILES

FLOW = (FILES / "settings.yaml").read_text()
VARIABLES = changes(FILES / "variables.txt")


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


@pytest.mark.parametrize("name", VARIABLES)
def test_where_a_variable_goes(name: str) -> None:
    before, after, _ = VARIABLES[name]
    assert write(before, env={"N": "x"}) == after
    assert write(before.replace("\n", "\r\n"), env={"N": "x"}) == after.replace("\n", "\r\n")
    assert write("\ufeff" + before, env={"N": "x"}) == "\ufeff" + after


def test_a_file_without_an_end_of_its_line_gets_a_variable() -> None:
    for mark in ("", "\ufeff"):
        assert write(f"{mark}stages: {{}}", env={"N": "x"}) == f"{mark}env:\n  N: x\nstages: {{}}"
        assert write(f"{mark}name: x", env={"N": "x"}) == f"{mark}name: x\nenv:\n  N: x\n"


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
