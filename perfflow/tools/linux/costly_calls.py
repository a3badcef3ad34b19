"""Classify functions by name, such as allocating, copying, hashing and locking, to give hotspots a cause.

The name of the hotspot itself only suggests a cause. Samples in such a function below the hotspot measure it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from perfflow.model.stacks import summed

_KINDS: Mapping[str, re.Pattern[str]] = {
    "allocating and freeing": re.compile(
        r"""(?: _?_?(?:libc_|GI_+)*(?:m|c|re)alloc\b | c?free\b | (?:__GI_+)?_int_(?:malloc|free|realloc)
        | (?:__GI_+)?malloc_consolidate        | _int_free\w* | unlink_chunk | sysmalloc | systrim | tcache_\w+
        | alloc_perturb | free_perturb | arena_get\w*
        | (?:__rustc::)?__r(?:ust|dl|g)_\w*(?:alloc|dealloc)\w* | operator\ (?:new|delete)
        | alloc::(?:alloc|raw_vec|boxed)::\S* | <alloc::(?:boxed|vec)::\S*\ as\ core::ops::drop::Drop>\S*
        | _?Py(?:Mem|Object)_(?:Malloc|Free|Calloc|Realloc)\w* | s?brk | __brk
        | (?:je_|mi_|tc_)\w*(?:alloc|free)\w*
        )""",
        re.VERBOSE,
    ),
    "copying memory": re.compile(
        r"_?_?(?:GI_+)?(?:mem(?:p?cpy|move)|w?str(?:n?cpy|n?cat|n?dup))\w*\b|core::intrinsics::copy\S*"
        r"|<\[T\] as alloc::slice::\S*>::to_vec\S*|alloc::slice::\S*to_vec\S*|core::ptr::copy\S*"
    ),
    "setting memory": re.compile(r"_?_?(?:GI_+)?mem(?:set|zero)\w*\b|clear_page\w*"),
    "comparing memory": re.compile(r"_?_?(?:GI_+)?(?:memcmp|bcmp|w?strn?cmp)\w*\b"),
    "hashing": re.compile(
        r".*(?:[Ss]ip(?:13|Hash)|[Hh]asher\b|::hash::Hash|hash_one|make_hash|Fnv|_Hash_bytes|BuildHasher|hash_bytes).*"
    ),
    "on page faults": re.compile(r"(?:asm_)?exc_page_fault|do_user_addr_fault|handle_mm_fault|__handle_mm_fault"),
    "reading and writing": re.compile(
        r"_?_?(?:GI_+|libc_)*(?:p?(?:read|write)v?(?:64)?|open(?:at)?(?:64)?|fsync|fdatasync)(?:_nocancel)?(?:@.*)?$"
        r"|(?:ksys|vfs)_p?(?:read|write)\w*"
    ),
    "locking": re.compile(r"_?_?(?:GI_+|pthread_)*(?:mutex|rwlock|spin)_\w*lock\w*\b|_?_?lll_\w*lock\w*|.*futex\w*.*"),
}
_LONGEST = 60
_CAUSE_SHARE = 0.25
"""The share of a function's samples above which one kind of call below it counts as its cause."""
_CAUSE = re.compile(r"measured: (?P<percent>\d+)% of its samples are spent (?P<kind>[^,]+), through (?P<through>.+)")


class CostlyCall(NamedTuple):
    """The contents of a text by ``cause``: a kind of call, its share (0 to 1) of samples, and the called functions."""

    kind: str
    share: float
    through: str


def kind_of(name: str) -> str:
    """Return the kind of a function by its name, '' if unknown."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(name)), "")


def cause(kinds: Counter[tuple[str, str]], samples: int) -> str:
    """Describe the most frequent kind of call below a function; '' if none has a quarter of its samples."""
    totals = summed((kind, count) for (kind, _), count in kinds.items())
    kind, count = min(totals.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    if not kind or count < _CAUSE_SHARE * samples:
        return ""
    names = sorted((-part, name) for (of, name), part in kinds.items() if of == kind)
    shown = (name.partition("(")[0] or name for _, name in names[:2])
    through = ", ".join(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in shown)
    return f"measured: {count / samples:.0%} of its samples are spent {kind}, through {through}"


def parse_cause(text: str) -> CostlyCall | None:
    """Parse a text by ``cause``; None for any other text."""
    match = _CAUSE.fullmatch(text)
    return CostlyCall(match["kind"], int(match["percent"]) / 100, match["through"]) if match else None
