"""Texts of many lengths, encoded and decoded again, with leading zeros."""

import random
import sys

import base58

chance = random.Random(int(sys.argv[1]))
for length in [*range(40), *range(500, 4_500, 500)]:
    data = bytes(chance.randrange(3)) + chance.randbytes(length)
    encoded = base58.b58encode(data)
    decoded = base58.b58decode(encoded)
    print(encoded[:40], decoded[:20].hex(), decoded == data)
