"""Inputs that a candidate cannot know: for each of them it must print what its base prints.

Each process gets a copy of one input in a private folder, and its output goes to another one. Both are removed at once,
so that neither the run's folder nor a message tells an input, its name or an output.
"""

from __future__ import annotations

import glob
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure, OutOfTimeFailure
from perfflow.execute.prepare import ready
from perfflow.model.errors import UserError
from perfflow.model.judging import Code, RejectedError
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.tools.regular_files import read
from perfflow.tools.shell.same_output import difference
from perfflow.trees.git import Git, names
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Holdout, Stage
from perfflow.workflow.roles import CANDIDATES_STAGE

_MOST_COMPARED = 256 * 2**20
_PATIENCE = 60.0
"""Seconds for one process, if the workflow sets no time limit."""
_KEY = ("stages", CANDIDATES_STAGE, "holdout", "files")


def holdout_files(draft: Draft, stage: Stage, root: Path) -> tuple[Path, ...]:
    """Return the inputs of a stage in their order, without duplicates.

    root: the top folder of the project.

    Raises UserError if a glob matches no file, or if a file would be in the trees in which candidates run.
    """
    if stage.holdout is None:
        return ()
    given = stage.holdout.files
    folder = Path(draft.document.place(_KEY).file).parent
    found: dict[Path, None] = {}
    for text in [given] if isinstance(given, str) else given:
        # Path.glob takes no absolute pattern.
        matching = sorted(filter(Path.is_file, map(Path, glob.glob(str(folder / text), recursive=True))))  # noqa: PTH207
        if not matching:
            raise UserError.of(f"holdout: no file matches {text}", "write globs relative to the workflow file")
        found |= dict.fromkeys(path.resolve() for path in matching)
    inside = [str(path.relative_to(root)) for path in found if path.is_relative_to(root)]
    shared = [
        name for name in inside if any(Path(name).is_relative_to(other) for other in draft.workflow.worktree.share)
    ]
    known = inside and names(
        Git(root).run(
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            *(f":(literal){name}" for name in inside),
        )
    )
    if visible := [*shared, *(known or ())]:
        hint = "keep the inputs outside of the project, or in a folder that git ignores"
        raise UserError.of(
            f"holdout: candidates would see {len(visible)} of the {len(found)} files in their trees", hint
        )
    return tuple(found)


class Holdouts:
    """The inputs of a stage, and what the base prints for each."""

    def __init__(self, holdout: Holdout, files: Sequence[Path]) -> None:
        self._holdout, self._files = holdout, files
        self._expected: list[bytes] = []

    def take(self, session: RunSession, planned: Planned) -> None:
        """Try all inputs on the base. Raises Failure if one cannot be read, or if the base fails for it."""
        for number in range(len(self._expected), len(self._files)):
            try:
                self._expected.append(self._output(session, planned, number))
            except Failure as failure:
                raise _about(self._name(number), failure) from failure

    def require_same(self, base: RunSession, session: RunSession, planned: Planned) -> None:
        """Try all inputs on a candidate. Raises RejectedError, and Failure if the time of the command is over."""
        allowed = self._holdout.relative, self._holdout.absolute
        for number, expected in enumerate(self._expected):
            name = self._name(number)
            try:
                actual = self._output(session, planned, number)
            except OutOfTimeFailure as failure:
                raise _about(name, failure) from failure
            except Failure as failure:
                reason = "it does not end in time" if failure.timeout else "the command fails"
                raise RejectedError(Code.HOLDOUT_FAILED, f"{name}: {reason}") from failure
            if not difference(expected, actual, *allowed):
                continue
            if difference(expected, self._output(base, planned, number), *allowed):
                raise RejectedError(Code.OUTPUT_VARIES, f"{name}: the base does not print the same output again")
            raise RejectedError(Code.HOLDOUT_FAILED, f"{name}: the output differs")

    def _name(self, number: int) -> str:
        return f"holdout {number + 1} of {len(self._files)}"

    def _output(self, session: RunSession, planned: Planned, number: int) -> bytes:
        """Run the command for one input and return what it prints. Raises Failure, which does not tell the input."""
        file = self._files[number]
        with tempfile.TemporaryDirectory(prefix="perfflow-") as seen, tempfile.TemporaryDirectory() as printed:
            copy, folder = Path(seen) / f"input{file.suffix}", Path(printed)
            try:
                shutil.copyfile(file, copy)
            except OSError as error:
                raise Failure(f"the input cannot be read: {error.strerror}") from error
            step = planned.step.model_copy(
                update={"run": self._holdout.run, "env": {}, "argv": None, "propose": None, "patch": None, "ref": None}
            )
            context = replace(session.context, holdout=str(copy))
            prepared = ready(context, replace(planned, step=step), Side.BASELINE, folder)
            prepared = replace(prepared, visible=(copy.parent,), timeout=prepared.timeout or _PATIENCE)
            invoke.run(session.spawner(), prepared, folder)
            return read(folder / "stdout", _MOST_COMPARED)


def _about(name: str, failure: Failure) -> Failure:
    """Return a failure on the base without its log, which is removed and may tell the input."""
    kind = OutOfTimeFailure if isinstance(failure, OutOfTimeFailure) else Failure
    return kind(f"{name} fails on the base: {failure.reason}", timeout=failure.timeout)
