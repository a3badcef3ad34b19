"""Mutated workflows: each must be a plan, or problems with their places."""

from __future__ import annotations

import contextlib
import os
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random

from perfflow.model.errors import Problem, Severity, UserError
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.testing.mutations import SECONDS, HangError, Judged, Outcome, Tally, time_limit
from tests.mutate.workflow_texts import MARKER, MUTATIONS, NEUTRAL, TOOL, USES_TOOL, extend, sources

NAME = "workflows"
_BROKEN = 0.3
"""The share that starts from a workflow which has mistakes already."""


def run(examples: int, seed: int) -> Tally:
    """Mutate ``examples`` workflows, and open each as ``perfflow run`` does before it runs anything."""
    random, tally = Random(f"{seed} {NAME}"), Tally(NAME)
    texts: dict[bool, list[str]] = {True: [], False: []}
    for path in sources():
        texts[path.parent.name == "bad"].append(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        folder = Path(temporary)
        # What `extends` and `uses` of the sources name.
        for path in sources():
            (folder / path.name).write_bytes(path.read_bytes())
        with _inside(folder):
            for _ in range(examples):
                text = random.choice(texts[random.random() < _BROKEN])
                kind, text, content = _mutated(folder, text, random)
                judged = _judge(folder, kind, text, content)
                tally.take(judged, f"{kind}: {content[:3000]!r}")
    return tally


def _mutated(folder: Path, text: str, random: Random) -> tuple[str, str, bytes]:
    """Return the kind of mutation, the text as it was, and what became of it."""
    (folder / "tool.yaml").write_text(TOOL)
    kind = random.choice([*MUTATIONS, *NEUTRAL, "extends", "tool file"])
    if kind in NEUTRAL:
        return kind, text, NEUTRAL[kind](text)
    if kind == "extends":
        return kind, text, _as_bytes(extend(text, folder, random))
    if kind == "tool file":
        mutation = random.choice(list(MUTATIONS))
        (folder / "tool.yaml").write_bytes(_as_bytes(MUTATIONS[mutation](TOOL, random)))
        return f"tool file, {mutation}", USES_TOOL, USES_TOOL.encode()
    return kind, text, _as_bytes(MUTATIONS[kind](text, random))


def _as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _judge(folder: Path, kind: str, text: str, content: bytes) -> Judged:
    path = folder / "mutated.yaml"
    path.write_bytes(content)
    try:
        with time_limit():
            opened, problems = _opened(path)
    except HangError:
        return Judged(Outcome.HANG, f"longer than {SECONDS:g} s")
    except Exception:  # noqa: BLE001 (whatever else comes out is what is looked for)
        return Judged(Outcome.TRACEBACK, traceback.format_exc())
    if wrong := [why for problem in problems if (why := _lacks(problem, path))]:
        return Judged(Outcome.WRONG, wrong[0])
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if kind in NEUTRAL:
        path.write_text(text, encoding="utf-8")
        return _unchanged(opened, errors, *_opened(path))
    if errors:
        return Judged(Outcome.ERROR, errors[0].message)
    if opened is None or not opened.plan.steps:
        return Judged(Outcome.ZERO, "neither an error nor a step")
    if kind == "rename" and MARKER.encode() in content and MARKER not in repr(opened.draft.workflow):
        return Judged(Outcome.WRONG, "a key that nothing knows is passed over")
    return Judged(Outcome.RIGHT)


def _opened(path: Path) -> tuple[Opened | None, tuple[Problem, ...]]:
    try:
        opened = open_workflow(str(path))
    except UserError as error:
        return None, error.problems
    # A parameter without a value is the command line's to give, and no fault of the file.
    found = (*opened.problems, *opened.unavailable)
    return opened, tuple(problem for problem in found if problem.rule != "missing-parameter")


def _lacks(problem: Problem, path: Path) -> str:
    """Say what a problem lacks: FILE:LINE:COL, a message of one line."""
    first = problem.render().partition("\n")[0]
    if not problem.message or not first.isprintable():
        return f"no message of one line: {first[:200]!r}"
    if problem.place is None or problem.place.line < 1 or problem.place.column < 1:
        return f"no place in {path.name}: {first[:200]!r}"
    return ""


def _unchanged(
    opened: Opened | None, errors: list[Problem], before: Opened | None, problems: tuple[Problem, ...]
) -> Judged:
    wanted = sorted(problem.message for problem in problems if problem.severity is Severity.ERROR)
    if _without_lines(sorted(problem.message for problem in errors)) != _without_lines(wanted):
        return Judged(Outcome.WRONG, f"other problems: {errors[:1]}, where it had {wanted[:1]}")
    if opened and before and opened.draft.workflow != before.draft.workflow:
        return Judged(Outcome.WRONG, "another workflow, although nothing of it was changed")
    return Judged(Outcome.ERROR if wanted else Outcome.RIGHT)


def _without_lines(messages: list[str]) -> list[str]:
    return ["".join(letter for letter in message if not letter.isdigit()) for message in messages]
