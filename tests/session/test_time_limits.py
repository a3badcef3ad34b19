"""Limits of time: pattern searches obey the timeout of their step, and reading a workflow a limit on CPU time."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.execute.invoke import Failure
from perfflow.model.errors import UserError
from perfflow.model.readings import Profile
from perfflow.session.attribution.profiler_calls import restored
from perfflow.session.reading_limit import NAME, within_time
from tests.long import rest_long
from tests.session.project import Project, flow, step

ENDLESS = "(?P<x>(a+)+)$"
PRINTS = "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"


PARSE = f"parse: {{regex: '{ENDLESS}', units: {{x: '1'}}}}"


@pytest.mark.parametrize(
    ("stage", "keys", "said"),
    rest_long(
        [
            ("baseline", f"run: {PRINTS}, timeout: 1s, {PARSE}", "it has too many ways to match"),
            ("verify", f"run: {PRINTS}, timeout: 1s, {PARSE}, assert: {{x: 1}}", "did not end within 1 s"),
            ("baseline", "uses: ./finished.yaml, timeout: 500ms", "too many ways to match"),
            ("baseline", "uses: ./failed.yaml, timeout: 500ms", "too many ways to match"),
            (
                "build",
                f"run: '{PRINTS}; sleep 60', background: true, timeout: 1s, ready: {{regex: '(a+)+$'}}",
                "the service `one`: the search for the pattern",
            ),
        ],
        keep=3,
    ),
    ids=["measured", "check", "tool file: finished", "tool file: failed", "service"],
)
def test_a_step_ends_with_its_timeout(project: Project, stage: str, keys: str, said: str) -> None:
    for key in ("finished", "failed"):
        tool = f"perfflow-tool: 1\nargv: [sh, -c, '{PRINTS}; echo 1 ms']\n{key}: '(a+)+$'\n"
        project.write(f"{key}.yaml", tool + "parse: {regex: '^(?P<time>[0-9]) ms', units: {time: ms}}\n")
    found = step(project.run(flow(**{stage: f"{{id: one, {keys}}}"})), "one")
    assert (found.status, said in found.reason) == ("timeout", True)


def spin() -> None:
    while True:
        pass


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_environment_sets_the_limit_of_which_a_part_has_a_share(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setenv(NAME, str(0.02 / share))
    with (
        pytest.raises(UserError, match=r"reading it takes more than 0.02 s of CPU time") as caught,
        within_time("reading it", share),
    ):
        spin()
    assert NAME in str(caught.value)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_what_is_no_number_of_seconds_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(UserError, match=f"{NAME}={text} is not a number of seconds"), within_time("reading it"):
        pass


def test_a_profile_that_is_cut_short_leaves_the_files_of_the_call_before(tmp_path: Path) -> None:
    kept = tmp_path / "cpu.pb.gz"
    kept.write_text("first")

    def cut_short() -> None:
        with restored(tmp_path, [Profile(kept.name, "pprof"), Profile("missing", "text")]):
            assert not kept.exists()
            kept.write_text("cut")
            raise Failure("the budget ran out")

    with pytest.raises(Failure):
        cut_short()
    assert kept.read_text() == "first"
    with restored(tmp_path, [Profile(kept.name, "pprof")]):
        kept.write_text("second")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["second"]
