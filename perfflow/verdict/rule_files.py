"""The built-in rules, YAML files that are read when they are first used."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "rules"


@cache
def read(name: str) -> list[dict[str, Any]]:
    """Return the list in ``rules/NAME.yaml``, whose only key is NAME."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, list[dict[str, Any]]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return data[name]
