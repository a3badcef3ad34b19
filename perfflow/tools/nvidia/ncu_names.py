"""Short names of GPU kernels: ``gemm`` of ``void gemm<float, 128>(float*, int)``, with more where two would be one.

Demangled names are those of C++; Numba writes ``copy[abi:v1](Array<...>)``, Triton and CUTLASS plain words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from perfflow.tools.tool_files import clean_name

LONGEST = 120
"""Characters of a short name."""
_OPENING: Mapping[str, str] = {")": "(", ">": "<", "]": "["}
_BEHIND = re.compile(r"(?:\s+(?:const|volatile|&+|\[clone [^\]]*\]))+\Z")


def short_names(kernels: Iterable[str]) -> dict[str, str]:
    """Give each full name one of its own: its function, with template arguments and parameters where needed."""
    forms = {name: _forms(name) for name in kernels}
    chosen = dict.fromkeys(forms, 0)
    while clashing := _clashing(chosen, forms):
        for name in clashing:
            chosen[name] += 1
    taken: Counter[str] = Counter()
    for name, level in chosen.items():
        taken[short := forms[name][level]] += 1
        forms[name] = [short if taken[short] == 1 else f"{short} #{taken[short]}"]
    return {name: form for name, (form,) in forms.items()}


def _clashing(chosen: Mapping[str, int], forms: Mapping[str, list[str]]) -> list[str]:
    """Names whose form so far is that of another one, and that have a longer one."""
    used = Counter(forms[name][level] for name, level in chosen.items())
    return [name for name, level in chosen.items() if used[forms[name][level]] > 1 and level + 1 < len(forms[name])]


def _forms(name: str) -> list[str]:
    """Three forms of a name, the shortest first."""
    whole = _BEHIND.sub("", name.strip())
    called = _without(whole, ")")
    bare = _without(_without(called, ">"), "]")
    return [_tidy(_without_type(bare)), _tidy(_without_type(called)), _tidy(whole)]


def _without(name: str, closing: str) -> str:
    """Take the last pair of brackets away where the name ends with it, and something stands before."""
    depth, opening = 0, _OPENING[closing]
    for index in range(len(name) - 1, 0, -1) if name.endswith(closing) else ():
        depth += (name[index] == closing) - (name[index] == opening)
        if depth == 0:
            before = name[:index].rstrip()
            return before if before and not before.endswith("::") else name
    return name


def _without_type(name: str) -> str:
    """Take the type of the result away, which stands before the last space outside of all brackets."""
    rounds, angles, last = 0, 0, -1
    for index, letter in enumerate(name):
        rounds += (letter in "([{") - (letter in ")]}")
        # Within parentheses, ``>`` compares.
        angles += ((letter == "<") - (letter == ">")) * (rounds == 0)
        if letter == " " and rounds == angles == 0:
            last = index
    return name if "operator" in name else name[last + 1 :] or name


def _tidy(name: str) -> str:
    """Printable, without spaces behind commas, at most LONGEST characters."""
    text = clean_name(re.sub(r",\s+", ",", name))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
