"""A comment for maintainers about the candidates that a run kept: what was claimed, what was measured, and how."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.model.criteria import criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.metrics import Better
from perfflow.model.result import Optimization, Result
from perfflow.model.units import format_change, format_factor
from perfflow.report import markdown
from perfflow.report.payloads.escape import inert

_MOVED = ("improved", "regressed")


@dataclass(frozen=True)
class MeasuredClaim:
    """One kept candidate. ``gain``: the speedup with its interval; ``touched``: the files that it changes, in words."""

    candidate: str
    benchmark: str
    metric: str
    gain: str
    pairs: int
    touched: str
    flags: tuple[str, ...]


FILE = "claim.md"


def claim_text(result: Result, claimed: str = "", others: Sequence[str] = ()) -> str:
    """Return the comment.

    ``claimed``: what the author of the patch claims, such as ``3x``; '' if that is not known. ``others``: paths of all
    files that the patch did not touch; () if they are not known.
    Raises UserError if the run kept no candidate.
    """
    kept = [_claim(result, item, others) for item in result.optimizations if item.decision == "accepted"]
    if not kept:
        hint = "name a run with an `optimize` stage that kept a candidate; `perfflow report` gives the reasons"
        raise UserError.of(f"run {result.run.id} kept no candidate, so there is no claim to export", hint)
    checks = [item for item in result.verification if item.status in ("passed", "failed")]
    about = {
        "claims": kept,
        "claimed": claimed,
        "moved": list(_moved(result, {item.benchmark for item in kept})),
        "compared": len({row.name for row in result.benchmarks if row.change} - {item.benchmark for item in kept}),
        "isolation": result.run.isolation,
        "checks": len(checks),
        "passed": sum(item.status == "passed" for item in checks),
        "run": result.run.id,
    }
    return inert(markdown.document("claim.md.j2", None, **about))


def _claim(result: Result, kept: Optimization, others: Sequence[str]) -> MeasuredClaim:
    gain = _gain(result, kept)
    flags = tuple(str(flag) for flag in kept.flags)
    touched = _touched(kept.files, others)
    return MeasuredClaim(kept.id, kept.benchmark, kept.metric, gain, kept.pairs, touched, flags)


def _gain(result: Result, kept: Optimization) -> str:
    """Return the speedup: before / after if lower is better, after / before if higher is. The effect is a share."""
    effect = kept.effect
    if effect is None or effect.value is None:
        return "an unknown gain"
    higher = criteria_from_json(result.criteria).metric(kept.metric).better is Better.HIGHER

    def factor(share: float | None) -> float | None:
        if share is None or (share >= 1 and not higher):
            return None
        return 1 + share if higher else 1 / (1 - share)

    value = factor(effect.value)
    if value is None:
        return format_change(effect.value)
    return format_factor(value, factor(effect.low), factor(effect.high))


def _touched(files: Sequence[str], others: Sequence[str]) -> str:
    """Return how many files a change touches, the folder that contains them, and how many are outside of it."""
    if not files:
        return "no file touched"
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    folder = os.path.commonpath([PurePosixPath(name).parent for name in files])
    if not folder:
        return f"{count} touched: {', '.join(files)}"
    outside = sum(not PurePosixPath(name).is_relative_to(folder) for name in others)
    return f"{count} touched, {f'0 of {outside} files' if others else 'none'} outside of {folder}/"


def _moved(result: Result, names: set[str]) -> Iterator[str]:
    """Yield the other benchmarks that changed, with the estimate of their gating rows."""
    for row in result.benchmarks:
        if row.name not in names and row.decision in _MOVED and row.change and row.change.value is not None:
            yield f"{row.title} {row.decision} ({format_change(row.change.value)})"
