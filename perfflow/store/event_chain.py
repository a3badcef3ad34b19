"""The hash chain of a run's events: each line of ``events.jsonl`` has a hash of itself and of all lines before it.

A line ends with ``"chain":"HASH"}``. HASH is the sha256, in hexadecimal, of the hash of the line before ('' for the
first line) followed by all that stands before ``"chain"`` in this line. Anyone who can write the file can make its
chain anew, but not the last hash, which perfflow keeps in memory while it runs and then writes into the receipt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

KEY = "chain"
_OPENING = f'"{KEY}":"'.encode()
_CLOSING = b'"}\n'
_LENGTH = len(_OPENING) + hashlib.sha256().digest_size * 2 + len(_CLOSING)


@dataclass(frozen=True)
class Chain:
    """The last hash of some lines, '' for none, their number, and their size in bytes.

    ``broken`` is the number of the first line that does not follow from those before it; 0 if all do.
    """

    head: str = ""
    lines: int = 0
    size: int = 0
    broken: int = 0

    def linked(self, text: bytes) -> tuple[Chain, bytes]:
        """Return the chain after one more event, a JSON object without spaces, and the line to write."""
        start = text[:-1] + (b"," if len(text) > len("{}") else b"")
        head = _hash(self.head, start)
        line = start + _OPENING + head.encode() + _CLOSING
        return Chain(head, self.lines + 1, self.size + len(line)), line


def _hash(before: str, text: bytes) -> str:
    return hashlib.sha256(before.encode() + text).hexdigest()


def chain_of(lines: Iterable[bytes]) -> Chain:
    """Return the chain of the lines of a file, up to the first line that is incomplete or breaks it.

    Leading lines without a hash, which earlier versions wrote, are bound by the first line that has one.
    """
    chain, begun = Chain(), False
    for number, line in enumerate(lines, 1):
        start, end = line[:-_LENGTH], line[-_LENGTH:]
        has_hash = end.startswith(_OPENING) and end.endswith(_CLOSING)
        begun = begun or has_hash
        head = _hash(chain.head, start if has_hash else line)
        stored = end[len(_OPENING) : -len(_CLOSING)]
        if not line.endswith(b"\n") or (begun and stored != head.encode()):
            return replace(chain, broken=number)
        chain = Chain(head, number, chain.size + len(line))
    return chain
