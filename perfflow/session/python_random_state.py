"""Random properties of a Python process, drawn for each pair: its hash seed and the size of its environment.

Both sides of a pair get the same values, so an effect that is equal on both sides adds no noise.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from perfflow.execute.prepare import HASH_SEED, Ready
from perfflow.tools.python_command import starts_python

PADDING = "PERFFLOW_PADDING"
"""An unused environment variable of random length, which moves the stack of the process."""
MOST = 4096
"""Its greatest length in bytes. Shifts by cache lines and pages are within this range."""
_HASH_SEEDS = 2**32
_NAMED = re.compile(r"(?<![\w.-])python[\d.]*(?![\w-])")


def runs_python(prepared: Ready) -> bool:
    """Return whether a call starts Python, as far as its words show."""
    call = prepared.call
    if prepared.shell_text:
        return bool(_NAMED.search(prepared.shell_text))
    return starts_python(call.command if call and call.command else prepared.shown)


def with_random_state(prepared: Ready, draw: str) -> Ready:
    """Return the call with the hash seed and padding drawn from ``draw``; values that the user set take precedence."""
    number = int.from_bytes(hashlib.blake2b(draw.encode(), digest_size=12).digest(), "big")
    rest, seed = divmod(number, _HASH_SEEDS)
    return replace(prepared, env={HASH_SEED: str(seed), PADDING: "x" * (rest % MOST), **prepared.env})
