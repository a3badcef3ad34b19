"""All pattern searches of a workflow obey the step's timeout."""

from __future__ import annotations

from tests.session.project import Project, step

ENDLESS = "(?P<x>(a+)+)$"
PRINTS = "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"


def test_a_measured_step_ends_with_its_timeout(project: Project) -> None:
    result = project.run(f"""
stages:
  baseline:
    - {{id: one, run: {PRINTS}, timeout: 1s, parse: {{regex: '{ENDLESS}', units: {{x: '1'}}}}}}
""")
    found = step(result, "one")
    assert (found.status, "it has too many ways to match" in found.reason) == ("timeout", True)


def test_a_check_ends_with_its_timeout(project: Project) -> None:
    result = project.run(f"""
stages:
  verify:
    - id: one
      run: {PRINTS}
      timeout: 1s
      parse: {{regex: '{ENDLESS}', units: {{x: '1'}}}}
      assert: {{x: 1}}
""")
    assert (step(result, "one").status, "did not end within 1 s" in step(result, "one").reason) == ("timeout", True)


def test_the_patterns_of_a_tool_file_end_with_the_timeout(project: Project) -> None:
    for key in ("finished", "failed"):
        project.write(
            "tool.yaml",
            f"perfflow-tool: 1\nargv: [sh, -c, '{PRINTS}; echo 1 ms']\n{key}: '(a+)+$'\n"
            "parse: {regex: '^(?P<time>[0-9]) ms', units: {time: ms}}\n",
        )
        result = project.run("stages: {baseline: [{id: one, uses: ./tool.yaml, timeout: 500ms}]}\n")
        found = step(result, "one")
        assert (found.status, "too many ways to match" in found.reason) == ("timeout", True), key


def test_a_service_is_not_waited_for_longer_than_its_timeout(project: Project) -> None:
    result = project.run(f"""
stages:
  build:
    - {{id: one, run: "{PRINTS}; sleep 60", background: true, timeout: 1s, ready: {{regex: '(a+)+$'}}}}
""")
    found = step(result, "one")
    assert (found.status, "the service `one`: the search for the pattern" in found.reason) == ("timeout", True)
