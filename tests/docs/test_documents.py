"""Every command that README and docs show is run, in a clone, and says what they say it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.reference_tables import by_hand
from tests.cli.shell import path_of_shells, perfflow
from tests.docs.console import Example, blocks, examples, first_mismatch
from tests.repositories import git

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "dev").glob("*.md")),
]
OF_SERVICES = ("# executors.yaml", "# .github/", "# .gitlab-ci.yml", "# .gitlab/", "# .pre-commit-config.yaml")
"""How files begin that are no workflows of perfflow; the pages that have them have tests of their own."""
WORKFLOW_BLOCKS = [
    (document, number)
    for document in DOCUMENTS
    for number, text in enumerate(blocks(document, "yaml"))
    if not text.startswith(OF_SERVICES)
]


LINKED = [*DOCUMENTS, *sorted((ROOT / "dev" / "experiments").glob("*.md"))]
"""Pages of experiments are written by programs, and show no commands that a test could run."""


def name_of(document: Path) -> str:
    """Its path without the folder docs, since two folders may have a page of one name."""
    return str(document.relative_to(ROOT)).removeprefix("docs/")


def shown() -> Iterator[tuple[str, Example]]:
    for document in DOCUMENTS:
        times: Counter[str] = Counter()
        for example in examples(document):
            times[example.command] += 1
            again = f" ({times[example.command]})" if times[example.command] > 1 else ""
            yield f"{name_of(document)}: {example.command}{again}", example


EXAMPLES = dict(shown())
_WORD = r"(?:[\w./@:=,+%~-]|'[^']*')+"
_PLAIN = re.compile(
    rf"(?:cd (?P<folder>[\w./-]+) && )?perfflow(?P<words>(?: {_WORD})+)"
    r"(?: > (?P<file>[\w.-]+))?(?P<status>; echo exit status \$\?)?"
)
"""A command whose words need no shell: no interpreter is started for it. The others find the installed command."""
SLOW = {
    "README.md: sh scripts/example": "tests/library/test_shipped.py runs its workflow; a test below installs for it",
    "how-to/gate.md: cd gated && perfflow gate young.yaml": "tests/cli/cases/gate_overlay.txt gates with an overlay",
    "tutorial/quick-start.md: python3 -m venv": "tests/test_wheel.py installs what is released",
    "tutorial/quick-start.md: . .venv/bin/activate": "shows what was installed",
    "tutorial/quick-start.md: perfflow run compress --set level=9": "the page shows another run of the workflow",
    "tutorial/quick-start.md: perfflow report latest": "tests/cli/cases/report.txt has reports",
    "how-to/bisect.md: cd history && perfflow bisect": "tests/cli/cases/bisect.txt has bisections",
    "README.md: perfflow compare -- 'python3": "other pages compare other commands",
    "how-to/library.md: perfflow run python-cpu": "tests/library/test_shipped.py runs the workflow",
    "how-to/python.md: perfflow run lib:python-cpu": "tests/library/test_shipped.py runs the workflow",
    "how-to/python.md: perfflow run two-ways": "as other pages; what it measures is the page's own program",
}
"""How the names of commands begin that only the long tests run, and where CI has their kind."""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git tracks or would track, with the workflow files that the documents show written into it."""
    folder = copy_of_the_tree(tmp_path_factory.mktemp("clone") / "perfflow")
    _as_after_an_earlier_installation(folder)
    _project_of_a_reader(folder / "your-project")
    for document in DOCUMENTS:
        for text in blocks(document, "yaml"):
            path = re.match(r"# (\S+\.yaml)\n", text)
            if path:
                (folder / path[1]).parent.mkdir(parents=True, exist_ok=True)
                (folder / path[1]).write_text(text)
    return folder


def _as_after_an_earlier_installation(folder: Path) -> None:
    """Make an environment that has all that perfflow needs, which ``scripts/install`` leaves alone, but not perfflow.

    To install it all took half a minute. ``.ci/run`` does so in its own clone, and a long test in this one.
    """
    subprocess.run([sys.executable, "-m", "venv", folder / ".venv"], check=True)
    (own,) = (folder / ".venv" / "lib").glob("python3*/site-packages")
    (own / "of_the_tests.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("-packages")))


def _project_of_a_reader(folder: Path) -> None:
    """Make the project in which README shows the first three commands: one script, one commit."""
    folder.mkdir()
    (folder / "report.py").write_text(
        "def checksum(count):\n"
        "    total = 0\n"
        "    for number in range(count):\n"
        "        total = (total * 31 + number) % 65521\n"
        "    return total\n\n\n"
        "print(checksum(300_000))\n"
    )
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what git tracks or would track into a new repository."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=True,
    ).stdout
    for name in listing.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # Whose commands were shown before is not shown again.
    own = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "XDG_STATE_HOME": str(folder.parent / "state")}
    if plain := _PLAIN.fullmatch(command):
        place = folder / (plain["folder"] or "")
        done = perfflow(*shlex.split(plain["words"]), cwd=place, env=own, measured=True, timeout=600)
        if plain["file"]:
            (place / plain["file"]).write_text(done.stdout)
            done.stdout = ""
        if plain["status"]:
            done.stdout += f"exit status {done.returncode}\n"
            done.returncode = 0
        return done
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    env |= own | {"PATH": path_of_shells()}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False
    )


def _is_slow(name: str) -> bool:
    return name.startswith(tuple(SLOW))


def test_each_slow_command_is_one_that_is_shown() -> None:
    assert [begin for begin in SLOW if sum(name.startswith(begin) for name in EXAMPLES) != 1] == []


@pytest.fixture(scope="module")
def already_run() -> set[str]:
    """The names of the commands that ran in ``clone``."""
    return set()


# A longer id would be a number instead, and not found by the page's name.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, id=name[:90], marks=[pytest.mark.long] if _is_slow(name) else []) for name in EXAMPLES],
)
def test_a_shown_command_says_what_is_shown(name: str, clone: Path, already_run: set[str]) -> None:
    if _is_slow(name):
        # Alone, it needs what the commands before it on its page have made.
        page = [each for each in EXAMPLES if each.partition(": ")[0] == name.partition(": ")[0]]
        for each in page[: page.index(name)]:
            if each not in already_run:
                run(EXAMPLES[each].command, clone)
                already_run.add(each)
    already_run.add(name)
    example = EXAMPLES[name]
    done = run(example.command, clone)
    # Verdicts go to stdout; of a command that only complains, the complaint is what is shown. A command that shows
    # nothing may warn all the same: hyperfine does on a busy machine.
    complains = done.returncode != 0 or bool(example.output)
    output = (done.stdout or (done.stderr if complains else "")).splitlines()
    missing = first_mismatch(example.output, output)
    assert not missing, f"not in the output: {missing}\n{done.stdout}\n{done.stderr}"


@pytest.mark.long
def test_the_example_installs_what_it_needs_in_a_new_clone(tmp_path: Path) -> None:
    done = run("sh scripts/example --progress off", copy_of_the_tree(tmp_path / "perfflow"))
    assert done.returncode == 0, done.stderr
    assert "PASS" in done.stdout


@pytest.mark.parametrize(
    ("document", "number"),
    WORKFLOW_BLOCKS,
    ids=lambda value: name_of(value) if isinstance(value, Path) else str(value),
)
def test_a_shown_workflow_is_valid(document: Path, number: int, clone: Path) -> None:
    text = blocks(document, "yaml")[number]
    if "perfflow-tool:" in text:
        done = perfflow("show", text.split()[1], cwd=clone)
        assert done.returncode == 0, done.stderr
        return
    named = re.match(r"# (\S+\.yaml)\n", text)
    path = clone / (named[1] if named else f"workflows/shown-{name_of(document).replace('/', '-')}-{number}.yaml")
    path.write_text(text)
    done = perfflow("validate", str(path), cwd=clone)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", LINKED, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        assert target.startswith("http") or (document.parent / target).exists(), target


def test_readme_shows_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    assert "$ sh scripts/example\n" in text
    assert "\nsh scripts/test\n" in text
    assert "sh scripts/test" in (ROOT / ".ci" / "run").read_text()


def test_each_question_has_an_answer_with_a_command_and_a_link() -> None:
    page = ROOT / "docs" / "how-to" / "questions.md"
    assert "(docs/how-to/questions.md)" in (ROOT / "README.md").read_text()
    answers = re.split(r"^### .*\?\n", page.read_text(), flags=re.MULTILINE)[1:]
    assert len(answers) == 21
    assert [text for text in answers if "```console\n$ " not in text or "](" not in text] == []


READ_THROUGH = [
    ROOT / "README.md",
    *(path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs") and "reference" not in path.parts),
]


@pytest.mark.parametrize("document", READ_THROUGH, ids=name_of)
def test_a_page_that_is_read_from_top_to_bottom_is_short(document: Path) -> None:
    assert len(by_hand(document.read_text()).split()) <= 1500


def test_the_pages_of_users_are_short_together() -> None:
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert sum(len(by_hand(page.read_text()).split()) for page in pages) <= 45_000
