"""Widths of lines, most of them ASCII."""

import hashlib
import random
import sys

from wcwidth import wcswidth

chance = random.Random(int(sys.argv[1]))
ASCII = "".join(map(chr, range(32, 127)))
found = []
for number in range(12_000):
    line = "".join(chance.choices(ASCII, k=80))
    if number % 20 == 0:
        line += chance.choice(["コンニチハ", "é", "\u200d", "\x07", "☎\ufe0f", "\x7f", ""])
    found += [wcswidth(line), wcswidth(line, 20)]
print(len(found), sum(found), hashlib.sha256(repr(found).encode()).hexdigest())
print(wcswidth(""), wcswidth("a\nb"), wcswidth("abc", 2), wcswidth("abc", 0))
