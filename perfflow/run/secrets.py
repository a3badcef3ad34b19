"""Secrets that a command line may hold, such as a token of CI, and texts without them.

A secret is the value of a variable or parameter whose name says so. Shorter ones than ``SHORTEST`` are left alone:
masking each ``1`` would hide more than it protects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

SHORTEST = 8
MASK = "***"
_NAMED = re.compile(
    r"(?:^|[_-])(?:TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY"
    r"|SECRET_?KEY|PAT)(?:$|[_-])",
    re.IGNORECASE,
)


def secrets_in(*sources: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets among named values, longest first, so that one inside another does not leave a part of it."""
    found = {
        value
        for source in sources
        for name, value in source.items()
        # A path to a file of credentials is none itself, and a template says where one comes from.
        if isinstance(value, str) and len(value) >= SHORTEST and _NAMED.search(name) and not value.startswith("/")
        if "${{" not in value
    }
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def masked(value: Any, secrets: Iterable[str]) -> Any:
    """The same data with each secret in its texts replaced."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, list | tuple):
        return [masked(item, secrets) for item in value]
    if isinstance(value, dict):
        return {key: masked(item, secrets) for key, item in value.items()}
    return value
