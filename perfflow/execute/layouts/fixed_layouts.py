"""Reject links whose layout was chosen by their author."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from perfflow.execute.layouts.recorded_link import RecordedLink
from perfflow.execute.layouts.refusal import LayoutsRefusedError

_PROFILES = re.compile(
    r"-f(profile-use|branch-probabilities|auto-profile|profile-instr-use|profile-sample-use)(=|$)|\.profdata\b"
)
_ORDERS = re.compile(r"-{1,2}(section-ordering-file|symbol-ordering-file|call-graph-ordering-file|shuffle-sections)\b")
_SCRIPTS = re.compile(r"(-T(?!text|data|bss|rodata|ldata).*|-{1,2}(script|default-script|dT)(=.*)?)$")
_BARE = "-nostdlib"


def require_fit(link: RecordedLink, recordings: Path) -> None:
    """Raise LayoutsRefusedError if shuffled functions would not represent the program that is shipped."""
    name = link.output.name
    words = _linker_words(link.arguments)
    profile = link.profile or next((word for word in words if _PROFILES.search(word)), "")
    if not profile and (recordings / "profile-guided").exists():
        profile = "-fprofile-use"
    if profile:
        raise LayoutsRefusedError(
            f"{name} is built with a profile ({profile}), which orders its functions: measure a build without a profile"
        )
    if order := next((word for word in words if _ORDERS.match(word)), ""):
        raise LayoutsRefusedError(f"{name} is linked with its own function order ({order}): build it without this")
    if script := next((word for word in words if _is_script(word)), ""):
        raise LayoutsRefusedError(f"{name} is linked with its own linker script ({script}): build it without it")
    if _BARE in words:
        raise LayoutsRefusedError(
            f"{name} is linked with {_BARE}, without the system's start-up code: build it without this option"
        )


def _linker_words(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with each linker argument of ``-Wl,`` as a separate word."""
    return [part for word in arguments for part in (word.split(",")[1:] if word.startswith("-Wl,") else [word])]


def _is_script(word: str) -> bool:
    return bool(_SCRIPTS.match(word)) or word.endswith((".ld", ".lds"))
