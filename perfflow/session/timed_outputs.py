"""Compare what timed processes print, pair by pair, so that no program can do less work while it is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess
from perfflow.execute.schedule import StepRun
from perfflow.model.errors import StepError
from perfflow.model.judging import Code, Flag
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import Differ
from perfflow.tools.regular_files import read

FILE = "printed"
MOST_COMPARED = 256 * 2**20
"""Most bytes of one output."""
_MOST_INPUTS = 16
"""Most inputs for which an output is kept, until the other side gets the same input."""
VARIES = "output-varies"
"""The key of ``allow`` for a command whose output differs from run to run."""


@dataclass(frozen=True)
class _Printed:
    output: bytes
    again: Callable[[], Path]
    """Runs the process once more, and returns the folder of its output."""


class TimedOutputs:
    """The outputs of the timed processes of one step. ``differ`` is the rule of the workflow for a difference."""

    def __init__(self, planned: Planned, run: StepRun, differ: Differ) -> None:
        self._planned, self._run, self._differ = planned, run, differ
        self._printed: dict[tuple[int, int], dict[Side, _Printed]] = {}
        self.compared = 0
        """Number of outputs of the candidate that were compared."""

    def read(self, prepared: ReadyProcess, folder: Path) -> ReadyProcess:
        """Return the call with its output in a file, whatever the workflow says. Both sides have the same kind."""
        if not prepared.call:
            return prepared
        return replace(prepared, call=replace(prepared.call, stdout=str(folder / FILE)))

    def note(self, side: Side, given: tuple[int, int], folder: Path, again: Callable[[], Path]) -> None:
        """Compare the output of a process with the last one of the other side's for the same input.

        given: what determines the input, as numbers. again: runs the process once more, and returns the folder of its
        output. Raises Failure for a difference that is not allowed.
        """
        sides = self._printed.setdefault(given, {})
        sides[side] = _Printed(_content(folder), again)
        if len(self._printed) > _MOST_INPUTS:
            del self._printed[next(iter(self._printed))]
        if len(sides) < len(Side):
            return
        self.compared += side is Side.CANDIDATE
        baseline, actual = sides[Side.BASELINE], sides[Side.CANDIDATE].output
        expected = baseline.output
        if not expected:
            self._run.flags.add(Flag.OUTPUT_UNCHECKED)
        if expected == actual:
            return
        difference = self._differ(self._planned, expected, actual)
        if not difference:
            self._run.flags.add(Flag.OTHER_NUMBERS)
            return
        repeated = _content(baseline.again())
        if repeated != expected and self._differ(self._planned, expected, repeated):
            reason = (
                "its output differs from run to run on the baseline too, so the output of the candidate says nothing; "
                f"print less, allow a tolerance in a `same-output` check, or allow it: `allow: {{{VARIES}: WHY}}`"
            )
            raise Failure(reason, exit_code=0, code=Code.OUTPUT_VARIES)
        raise Failure(f"wrong output while it was timed: {difference}", exit_code=0, code=Code.WRONG_OUTPUT)


def _content(folder: Path) -> bytes:
    try:
        return read(folder / FILE, MOST_COMPARED)
    except OSError as error:
        raise StepError(f"cannot compare the output: {error.strerror}") from error
