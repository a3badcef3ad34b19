"""What a patch of a stranger must not touch, inputs that it cannot know, and tests that it must still pass."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.jobs.optimize.protect import Opened, Protection
from perfflow.model.errors import UserError
from perfflow.model.judging import Code, RejectedError
from perfflow.model.result import Optimization, Result
from perfflow.plan.plan import stage_plan
from perfflow.trees.repository import open_repository
from perfflow.trees.snapshots import snapshot
from tests.session.project import Project

FILES = {
    "work.sh": ". ./part.sh\nread answer < input.txt\necho answer $answer\necho cost $cost\n",
    "part.sh": "cost=100\n",
    "input.txt": "42\n",
    "checks/check.sh": ". ./checks/lib.sh\nsh work.sh | grep -f checks/expected > /dev/null && passed work\n",
    "checks/lib.sh": 'passed() { echo "1..1"; echo "ok 1 - $1"; }\n',
    "checks/expected": "answer 42\n",
    "pkg/core.py": "",
    "build.sh": "true\n",
    "notes.txt": "x\n",
}
FLOW = """
name: protected
stages:
  build:
    - {{id: make, run: sh build.sh}}
  baseline:
    - id: cost
      run: sh work.sh
      runs: 8
      parse: {{regex: 'cost (?P<cost>\\d+)', units: {{cost: '1'}}, better: {{cost: lower}}}}
  profile:
    - {{id: look, run: 'true'}}
  optimize:
    accept: 10%
    objective: cost cost
{more}
    steps:
{steps}
  verify:
    - {{id: right, run: sh checks/check.sh}}
"""
CHEAPER = "sed -i s/100/40/ part.sh"


@pytest.fixture
def stranger(tree: Project) -> Project:
    tree.commit(FILES)
    return tree


def workflow(*commands: str, more: str = "    protect: tests") -> str:
    steps = "".join(
        f"      - {{id: c{number}, technique: memory, run: {json_text(text)}}}\n"
        for number, text in enumerate(commands)
    )
    return FLOW.format(more=more, steps=steps)


def json_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def refusal(
    project: Project, command: str, more: str = "    protect: tests", opened: Opened | None = None
) -> Code | str:
    """Return the code for which the tree that a command makes is refused, '' if it is not."""
    opening = project.open(workflow("true", more=more))
    stage, repository = stage_plan(opening.plan), open_repository(project.folder)
    assert stage
    base = snapshot(repository).tree
    subprocess.run(["bash", "-ec", command], cwd=project.folder, check=True)
    protection = Protection(repository, opening.draft, opening.plan, stage, lambda: opened or Opened())
    try:
        protection.require_untouched(base, snapshot(repository).tree)
    except RejectedError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("echo >> pkg/conftest.py", Code.PROTECTED_FILE),
        ("touch pytest.ini", Code.PROTECTED_FILE),
        ("mkdir .cargo && touch .cargo/config.toml", Code.PROTECTED_FILE),
        ("touch pkg/hook.pth", Code.PROTECTED_FILE),
        ("mkdir pkg/tests && touch pkg/tests/data.txt", Code.PROTECTED_FILE),
        ("touch pkg/test_new.py", Code.PROTECTED_FILE),
        ("touch pkg/a.spec.ts", Code.PROTECTED_FILE),
        ("mkdir -p src/jmh && touch src/jmh/A.java", Code.PROTECTED_FILE),
        ("git add -f flow.yaml", Code.PROTECTED_FILE),
        ("echo >> checks/check.sh", Code.PROTECTED_FILE),
        ("echo >> build.sh", Code.PROTECTED_FILE),
        ("rm checks/check.sh", Code.PROTECTED_FILE),
        ("git mv checks/check.sh other.sh", Code.PROTECTED_FILE),
        ("ln -s /etc/passwd pkg/users", Code.LINK_OUTSIDE),
        ("ln -s ../../x pkg/up", Code.LINK_OUTSIDE),
        ("ln -s ../.git/hooks pkg/hooks", Code.LINK_OUTSIDE),
        ("touch json.py", Code.SHADOWS_MODULE),
        ("mkdir pytest && touch pytest/__init__.py", Code.SHADOWS_MODULE),
        ("touch pkg/core.cpython-311-x86_64-linux-gnu.so", Code.SHADOWS_MODULE),
        (CHEAPER, ""),
        ("echo >> work.sh", ""),
        ("ln -s core.py pkg/same", ""),
        ("touch pkg/json.py", ""),
        ("echo >> pkg/core.py; touch pkg/fast.c fast.py", ""),
        ("echo >> notes.txt", ""),
    ],
)
def test_a_name_tells_what_is_protected(stranger: Project, command: str, code: Code | str) -> None:
    stranger.git("add", "-A")
    assert refusal(stranger, command) == code


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("echo >> input.txt", Code.PROTECTED_FILE),
        ("echo >> checks/expected", Code.PROTECTED_FILE),
        ("echo >> checks/lib.sh", Code.PROTECTED_FILE),
        ("echo >> part.sh", ""),
        ("echo >> pkg/core.py", ""),
        ("echo >> notes.txt", ""),
    ],
)
def test_what_is_read_is_protected_but_no_sources(stranger: Project, command: str, code: Code | str) -> None:
    opened = Opened(
        frozenset({"checks/check.sh", "checks/lib.sh", "checks/expected", "work.sh", "part.sh", "pkg/core.py"}),
        frozenset({"work.sh", "part.sh", "input.txt"}),
    )
    assert refusal(stranger, command, opened=opened) == code


def test_make_and_npm_protect_what_they_run(stranger: Project) -> None:
    assert refusal(stranger, "touch Makefile") == ""
    stranger.write("checks/check.sh", "x")
    text = "    protect: tests\n    check: [make check]"
    assert refusal(stranger, "echo x >> Makefile", more=text) == Code.PROTECTED_FILE


def test_a_human_can_allow_a_file(stranger: Project) -> None:
    text = "    protect: tests\n    allow: [checks/*.sh]"
    assert refusal(stranger, "echo >> checks/check.sh", more=text) == ""
    assert refusal(stranger, "ln -s / checks/root.sh", more=text) == Code.LINK_OUTSIDE


def found(result: Result) -> Iterator[Optimization]:
    return iter(result.optimizations)


def test_the_closure_is_what_checks_and_benchmarks_open_on_the_base(stranger: Project) -> None:
    result = stranger.run(
        workflow("echo 43 > input.txt", "echo answer > checks/expected", "echo >> checks/lib.sh", CHEAPER)
    )
    data, expected, code, good = found(result)
    assert "input.txt, which is protected: a benchmark reads it; to allow it" in data.reason
    assert "checks/expected, which is protected: a check reads it" in expected.reason
    assert "checks/lib.sh, which is protected: code of a check" in code.reason
    assert good.decision == "accepted", good.reason


def test_only_patches_of_strangers_are_limited_by_default(stranger: Project) -> None:
    text = workflow(f"echo >> checks/lib.sh; {CHEAPER}", more="")
    assert [item.decision for item in found(stranger.run(text))] == ["accepted"]
    proposed = text.replace("run: 'echo", "propose: 'echo").replace("    accept:", "    attempts: 1\n    accept:")
    (item,) = found(stranger.run(proposed))
    assert "checks/lib.sh, which is protected" in item.reason


def test_as_many_tests_must_pass_as_on_the_base(stranger: Project) -> None:
    run_of = "cat part.sh > /dev/null; python3 -m unittest discover"
    test = "import unittest\nclass T(unittest.TestCase):\n" + "".join(f"  def test_{n}(self): pass\n" for n in "abc")
    stranger.commit({"test_it.py": test})
    text = workflow(f"sed -i /test_b/d test_it.py; {CHEAPER}", f"echo 'exit(0)' > test_it.py; {CHEAPER}", more="")
    result = stranger.run(text.replace("run: sh checks/check.sh", f"run: {run_of}"))
    fewer, none = found(result)
    assert fewer.reason == "step right: 2 of 3 tests passed on the candidate"
    assert none.decision == "rejected"


def test_the_sources_stay_what_they_are(stranger: Project) -> None:
    stranger.commit({"build.sh": "date +%N > stamp\n", "stamp": "0\n"})
    result = stranger.run(
        workflow(
            f"{CHEAPER}; echo 'sed -i s/40/100/ part.sh' >> build.sh",
            f"{CHEAPER}; echo 'echo >> notes.txt; rm input.txt; echo 42 > input.txt' >> work.sh",
            f"{CHEAPER}; echo 'echo > pkg/conftest.py' >> build.sh; echo conftest.py > .gitignore",
            CHEAPER,
            more="",
        )
    )
    built, checked, hidden, good = found(result)
    assert hidden.reason == "its build changed pkg/conftest.py"
    assert built.reason == "its build changed part.sh"
    assert checked.reason == "its checks changed notes.txt"
    assert good.decision == "accepted", good.reason


HOLDOUT = "    holdout: {{files: {files}, run: 'sh twice.sh ${{{{ holdout.file }}}}', relative: 0.01}}"


def with_inputs(stranger: Project, texts: list[str]) -> Path:
    inputs = stranger.folder.parent / "inputs"
    inputs.mkdir()
    for number, text in enumerate(texts):
        (inputs / f"secret-{number}.txt").write_text(text)
    stranger.commit({"twice.sh": 'read number < "$1"; echo twice $((2 * number))\n'})
    return inputs


def test_inputs_that_a_candidate_cannot_know(stranger: Project) -> None:
    inputs = with_inputs(stranger, ["1000\n", "7117\n"])
    text = workflow(
        f"{CHEAPER}; echo echo twice 2000 > twice.sh",
        f"{CHEAPER}; echo 'cat $1; ls $1; exit 3' > twice.sh",
        f"{CHEAPER}; sed -i 's/number))/number + 1))/' twice.sh",
        more=HOLDOUT.format(files="../inputs/*.txt"),
    )
    result = stranger.run(text)
    written, failing, near = found(result)
    assert written.reason == "holdout 2 of 2: the output differs"
    assert failing.reason == "holdout 1 of 2: the command fails"
    assert near.decision == "accepted", near.reason
    folder = stranger.folder / ".perfflow"
    kept = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert kept
    assert not any(word in content for word in (b"7117", b"14234", b"secret-") for content in kept)
    assert inputs.exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [("../inputs/*.json", "no file matches"), ("twice.sh", "candidates would see 1 of the 1 files in their trees")],
)
def test_wrong_inputs_are_told_before_anything_runs(stranger: Project, files: str, message: str) -> None:
    with_inputs(stranger, ["1\n"])
    with pytest.raises(UserError) as raised:
        stranger.run(workflow(CHEAPER, more=HOLDOUT.format(files=files)))
    assert message in raised.value.problems[0].message
    assert not (stranger.folder / ".perfflow").exists()


def test_an_input_for_which_the_base_fails_is_not_the_candidates_fault(stranger: Project) -> None:
    with_inputs(stranger, ["1\n", "x y\n"])
    (item,) = found(stranger.run(workflow(CHEAPER, more=HOLDOUT.format(files="../inputs/*"))))
    assert item.decision == "skipped"
    assert item.reason == f"holdout 2 of 2 fails on the base: {shlex.quote('c0')} exited with 2"
