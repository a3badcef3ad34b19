"""Short names of GPU kernels: ``gemm`` for ``void gemm<float, 128>(float*, int)``, longer if two would be the same.

Demangled names are those of C++; Numba writes ``copy[abi:v1](Array<...>)``, Triton and CUTLASS plain identifiers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from perfflow.tools.tool_files import clean_name

LONGEST = 120
"""The most characters of a short name."""
_OPENING: Mapping[str, str] = {")": "(", ">": "<", "]": "["}
_QUALIFIERS = re.compile(r"(?:\s+(?:const|volatile|&+|\[clone [^\]]*\]))+\Z")


def short_names(kernels: Iterable[str]) -> dict[str, str]:
    """Return a unique short name for each full name: its function, with template arguments and parameters if needed."""
    forms = {name: _forms(name) for name in kernels}
    chosen = {name: shortest for name, (shortest, *_) in forms.items()}
    for level in (1, 2):
        used = Counter(chosen.values())
        chosen = {name: forms[name][level] if used[form] > 1 else form for name, form in chosen.items()}
    taken: Counter[str] = Counter()
    for name, form in chosen.items():
        taken[form] += 1
        chosen[name] = form if taken[form] == 1 else f"{form} #{taken[form]}"
    return chosen


def _forms(name: str) -> list[str]:
    """Return three forms of a name, the shortest first."""
    whole = _QUALIFIERS.sub("", name.strip())
    called = _without(whole, ")")
    bare = _without(_without(called, ">"), "]")
    return [_tidy(_without_type(bare)), _tidy(_without_type(called)), _tidy(whole)]


def _without(name: str, closing: str) -> str:
    """Return the name without a pair of brackets at its end, unless nothing is before it."""
    depth, opening = 0, _OPENING[closing]
    for index in range(len(name) - 1, 0, -1) if name.endswith(closing) else ():
        depth += (name[index] == closing) - (name[index] == opening)
        if depth == 0:
            before = name[:index].rstrip()
            return before if before and not before.endswith("::") else name
    return name


def _without_type(name: str) -> str:
    """Return the name without the type of the result, which is before the last space outside of all brackets."""
    rounds, angles, last = 0, 0, -1
    for index, letter in enumerate(name):
        rounds += (letter in "([{") - (letter in ")]}")
        # Within parentheses, ``>`` is a comparison.
        angles += ((letter == "<") - (letter == ">")) * (rounds == 0)
        if letter == " " and rounds == angles == 0:
            last = index
    return name if "operator" in name else name[last + 1 :] or name


def _tidy(name: str) -> str:
    """Return a printable name without spaces after commas, of at most LONGEST characters."""
    text = clean_name(re.sub(r",\s+", ",", name))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
