"""What a Python process has by luck, drawn anew for each pair: the seed of its hashes, the size of its environment.

Both sides of a pair get the same draw, so what it does to both of them alike does not add noise.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from perfflow.execute.prepare import HASH_SEED, Ready
from perfflow.model.later import late_pattern
from perfflow.tools.python_command import starts_python

PADDING = "PERFFLOW_PADDING"
"""A variable that nobody reads, of random length: it moves the stack of the process."""
MOST = 4096
"""Its greatest length. Code and data shift by cache lines and pages within this."""
_HASH_SEEDS = 2**32
_NAMED = late_pattern(r"(?<![\w.-])python[\d.]*(?![\w-])")


def runs_python(prepared: Ready) -> bool:
    """Whether a call starts Python, as far as its words tell."""
    call = prepared.call
    text = call.shell_text if call else prepared.argv[-1] if prepared.planned.step.run else ""
    if text:
        return bool(_NAMED.search(text))
    return starts_python(call.command if call and call.command else prepared.shown)


def with_luck(prepared: Ready, draw: str) -> Ready:
    """The call with what ``draw`` gives it; what the workflow or the user has set stays."""
    number = int.from_bytes(hashlib.blake2b(draw.encode(), digest_size=12).digest(), "big")
    rest, seed = divmod(number, _HASH_SEEDS)
    return replace(prepared, env={HASH_SEED: str(seed), PADDING: "x" * (rest % MOST), **prepared.env})
