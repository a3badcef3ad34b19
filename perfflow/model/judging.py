"""What becomes of a patch, in words for programs: seven outcomes, a stable code for each reason, and two errors."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Outcome(StrEnum):
    """What becomes of a patch."""

    KEPT = "kept"
    NO_GAIN = "no-gain"
    """It is measured well enough to say that it does not gain what is asked for."""
    HARMFUL = "harmful"
    """Something that is guarded got worse."""
    INCORRECT = "incorrect"
    FORBIDDEN = "forbidden"
    """It was not tried, or not to the end: it does not apply, or changes what it must not change."""
    UNDECIDED = "undecided"
    """More time could decide."""
    CANNOT_JUDGE = "cannot-judge"
    """Not the fault of the patch: the base fails, or nothing can be measured here."""


class Code(StrEnum):
    """Why a patch has its outcome."""

    PROVEN = "proven"
    NO_EFFECT = "no-effect"
    SAME_FILES = "same-files"
    CHANGES_NOTHING = "changes-nothing"
    BOUNDED = "bounded"
    CLOCKS_DISAGREE = "clocks-disagree"
    OUTDONE = "outdone"
    REGRESSED = "regressed"
    BUILD_FAILED = "build-failed"
    CHECK_FAILED = "check-failed"
    WRONG_OUTPUT = "wrong-output"
    HOLDOUT_FAILED = "holdout-failed"
    FEWER_TESTS = "fewer-tests"
    NOT_MEASURED = "not-measured"
    LEFT_RUNNING = "left-running"
    TREE_CHANGED = "tree-changed"
    RUN_CHANGED = "run-changed"
    """It was tried in a run whose samples, or whose perfflow, another program changed."""
    MALFORMED = "malformed"
    FORBIDDEN_FILE = "forbidden-file"
    PROTECTED_FILE = "protected-file"
    LINK_OUTSIDE = "link-outside"
    SHADOWS_MODULE = "shadows-module"
    TOO_LARGE = "too-large"
    NEEDS_APPROVAL = "needs-approval"
    NOT_PROVEN = "not-proven"
    BASE_FAILS = "base-fails"
    NO_ISOLATION = "no-isolation"
    OUTPUT_VARIES = "output-varies"
    OUT_OF_TIME = "out-of-time"
    JOB_LOST = "job-lost"
    NO_OBJECTIVE = "no-objective"
    NO_PROPOSAL = "no-proposal"
    NOT_NEEDED = "not-needed"

    @property
    def outcome(self) -> Outcome:
        """The outcome that this reason leads to."""
        return _OUTCOMES[self]


_OUTCOMES = {
    code: outcome
    for outcome, codes in {
        Outcome.KEPT: (Code.PROVEN,),
        Outcome.NO_GAIN: (
            Code.NO_EFFECT,
            Code.SAME_FILES,
            Code.CHANGES_NOTHING,
            Code.BOUNDED,
            Code.CLOCKS_DISAGREE,
            Code.OUTDONE,
        ),
        Outcome.HARMFUL: (Code.REGRESSED,),
        Outcome.INCORRECT: (
            Code.BUILD_FAILED,
            Code.CHECK_FAILED,
            Code.WRONG_OUTPUT,
            Code.HOLDOUT_FAILED,
            Code.FEWER_TESTS,
            Code.NOT_MEASURED,
            Code.LEFT_RUNNING,
        ),
        Outcome.FORBIDDEN: (
            Code.TREE_CHANGED,
            Code.RUN_CHANGED,
            Code.MALFORMED,
            Code.FORBIDDEN_FILE,
            Code.PROTECTED_FILE,
            Code.LINK_OUTSIDE,
            Code.SHADOWS_MODULE,
            Code.TOO_LARGE,
            Code.NEEDS_APPROVAL,
        ),
        Outcome.UNDECIDED: (Code.NOT_PROVEN,),
        Outcome.CANNOT_JUDGE: (
            Code.BASE_FAILS,
            Code.NO_ISOLATION,
            Code.OUTPUT_VARIES,
            Code.OUT_OF_TIME,
            Code.JOB_LOST,
            Code.NO_OBJECTIVE,
            Code.NO_PROPOSAL,
            Code.NOT_NEEDED,
        ),
    }.items()
    for code in codes
}


class Flag(StrEnum):
    """What a reader of a kept patch should know. A flag does not change the outcome."""

    NOT_ISOLATED = "not-isolated"
    OUTPUT_UNCHECKED = "output-unchecked"
    """Nothing compared what the timed processes printed."""
    OWN_CLOCK = "own-clock"
    """A suite timed itself, and its full run took too long to check its figures from outside."""
    FIXED_INPUT = "fixed-input"
    """Every timed process got the same input, and no other input was tried: the answer may be written into the code."""
    AS_BUILT = "as-built"
    """A native program with one code layout per side."""
    MORE_CPU = "more-cpu"
    """Elapsed time fell, and CPU time rose."""
    OTHER_NUMBERS = "other-numbers"
    """The output differs from the base's, within the tolerance of the workflow."""
    BUILD_SETTINGS = "build-settings"
    """It changes how the program is built."""
    MANY_ATTEMPTS = "many-attempts"
    """It is one of several attempts, and would not pass the bound that their number asks for."""


class RejectedError(Exception):
    """A candidate was rejected and reverted. The text gives the reason, ``log`` the output of a command that failed."""

    def __init__(self, code: Code, reason: str, log: Path | None = None) -> None:
        super().__init__(reason)
        self.code, self.log = code, log


class NoProposalError(RejectedError):
    """The command of ``propose`` had no further idea."""
