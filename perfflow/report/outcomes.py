"""Outcomes, codes and flags of patches in words for humans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfflow.model.judging import Code, Flag, Outcome

OUTCOMES: Mapping[Outcome, str] = {
    Outcome.KEPT: "its gain is proven, and nothing else got worse",
    Outcome.NO_GAIN: "it is measured well enough to say that it does not gain what the workflow asks for",
    Outcome.HARMFUL: "something that the workflow guards got worse",
    Outcome.INCORRECT: "it does not build, or a check fails, or its output is another one",
    Outcome.FORBIDDEN: "it does not apply to this code, or changes what it must not change",
    Outcome.UNDECIDED: "more time could decide; `needs` tells how much",
    Outcome.CANNOT_JUDGE: "the original fails, or nothing can be measured here: not the fault of the patch",
}
CODES: Mapping[Code, str] = {
    Code.PROVEN: "the whole interval of the effect is beyond `accept`",
    Code.NO_EFFECT: "the interval of the effect ends below `accept`, or is as narrow as it gets and contains it",
    Code.SAME_FILES: "both sides execute the same files",
    Code.CHANGES_NOTHING: "it changes no file and no setting",
    Code.BOUNDED: "its hotspot takes less of the time than `diminishing`",
    Code.CLOCKS_DISAGREE: "one clock shows a gain that another one excludes",
    Code.OUTDONE: "it gains what is asked for, but another alternative of it gains more",
    Code.REGRESSED: "a guarded figure is proven to be worse",
    Code.BUILD_FAILED: "it does not build",
    Code.CHECK_FAILED: "a check of the workflow fails",
    Code.WRONG_OUTPUT: "a timed process printed something else than the original",
    Code.HOLDOUT_FAILED: "it fails with inputs that it could not know",
    Code.FEWER_TESTS: "fewer tests pass than with the original",
    Code.NOT_MEASURED: "it cannot be measured, or lacks a benchmark",
    Code.LEFT_RUNNING: "processes of it go on after their command",
    Code.RUN_CHANGED: "another program changed the run's samples, or perfflow itself, while it ran",
    Code.TREE_CHANGED: "files of a tree changed while it was measured",
    Code.MALFORMED: "it does not apply, or its command fails",
    Code.FORBIDDEN_FILE: "it touches a file that `forbid` names, or an ignored one",
    Code.PROTECTED_FILE: "it touches a file that checks or benchmarks rest on",
    Code.LINK_OUTSIDE: "it has a link that leads out of the tree",
    Code.SHADOWS_MODULE: "it has a file that takes the place of a module of the language",
    Code.TOO_LARGE: "it changes more lines than `max-diff` allows",
    Code.NEEDS_APPROVAL: "a command of the stage's `check` fails",
    Code.NOT_PROVEN: "the interval of the effect contains `accept`",
    Code.BASE_FAILS: "the original does not build, pass its checks or run",
    Code.NO_ISOLATION: "programs cannot be isolated on this machine",
    Code.OUTPUT_VARIES: "the original prints something else in every run",
    Code.OUT_OF_TIME: "the time was over before it was measured",
    Code.JOB_LOST: "its job on a cluster was refused, failed, or was lost twice",
    Code.NO_OBJECTIVE: "nothing was measured that it could improve",
    Code.NO_PROPOSAL: "the proposer had no further idea",
    Code.NOT_NEEDED: "what was asked for is reached, or the workflow skips it",
}
FLAGS: Mapping[Flag, str] = {
    Flag.NOT_ISOLATED: "it ran without isolation",
    Flag.OUTPUT_UNCHECKED: "nothing compared what the timed processes printed",
    Flag.OWN_CLOCK: "the suite timed itself, and the clock of its process did not confirm the gain",
    Flag.FIXED_INPUT: "every timed process had the same input, and no other one was tried",
    Flag.AS_BUILT: "native programs were measured with one code layout per side",
    Flag.MORE_CPU: "elapsed time fell, but CPU time rose",
    Flag.OTHER_NUMBERS: "its output has other numbers, within the tolerance",
    Flag.BUILD_SETTINGS: "it changes how the program is built",
    Flag.MANY_ATTEMPTS: "it is one of several attempts, and not proven at the confidence that these ask for together",
}


def flags_in_words(flags: Iterable[Flag]) -> str:
    """Return flags as one text; '' if there are none."""
    return "; ".join(FLAGS[flag] for flag in flags)
