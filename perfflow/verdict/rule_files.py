"""The rules that ship with perfflow, as data: read when they are first used."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "rules"


@cache
def read(name: str) -> list[dict[str, Any]]:
    """The list in ``rules/NAME.yaml``, which has NAME as its one key."""
    import yaml

    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, list[dict[str, Any]]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return data[name]
