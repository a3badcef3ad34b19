"""The outcome of cheaper techniques before each costlier technique was tried, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.result import Cheaper, Optimization


def before_each(tries: Sequence[Optimization]) -> Iterator[tuple[str, str, str]]:
    """Yield name, technique and the outcome of the cheaper techniques; only for the first of consecutive equal ones."""
    last: tuple[str, list[Cheaper]] = ("", [])
    for item in tries:
        if item.cheaper and item.decision != "skipped" and (item.technique, item.cheaper) != last:
            last = (item.technique, item.cheaper)
            yield item.id, item.technique, "; ".join(map(_text, item.cheaper))


def _text(item: Cheaper) -> str:
    status = "not tried" if item.status == "open" else item.status
    return f"{item.technique} {status}" + (f" ({item.detail})" if item.detail else "")
