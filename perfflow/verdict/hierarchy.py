"""The state of the cheaper techniques when a costlier one was tried: tried, ruled out, or open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfflow.model.result import Cheaper
from perfflow.model.techniques import TECHNIQUES
from perfflow.store.run_facts import Try

_WORDS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}


def cheaper_than(found: Try, before: Sequence[Try], why_not: Mapping[str, str]) -> list[Cheaper]:
    """Return the state of each technique that is before that of ``found`` in the hierarchy; none if it is not in it.

    ``before`` are the earlier tries; ``why_not`` maps the techniques that the workflow rules out to the reasons.
    """
    technique = found.technique
    if technique not in TECHNIQUES:
        return []
    return [_state(name, before, why_not) for name in TECHNIQUES[: TECHNIQUES.index(technique)]]


def _state(technique: str, before: Sequence[Try], why_not: Mapping[str, str]) -> Cheaper:
    own = [item for item in before if item.technique == technique]
    said = ", ".join(f"{item.id} {_WORDS[item.decision]}" for item in own)
    if any(item.decision != "skipped" for item in own):
        return Cheaper(technique=technique, status="tried", detail=said)
    if technique in why_not:
        return Cheaper(technique=technique, status="ruled out", detail=why_not[technique])
    skipped = "; ".join(f"{item.id}: {item.reason}" for item in own)
    return Cheaper(technique=technique, status="open", detail=skipped)
