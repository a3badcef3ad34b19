"""Numbers of all kinds with separators."""

import hashlib
import random
import sys

from humanize import intcomma

chance = random.Random(int(sys.argv[1]))
for digits in range(1, 28):
    found = []
    for _ in range(180):
        number = chance.randrange(10**digits)
        found += [intcomma(number), intcomma(-number), intcomma(str(number)), intcomma(number / 64, 2)]
    print(found[0], hashlib.sha256(" ".join(found).encode()).hexdigest())
for other in (None, 0, "-0.5", float("inf"), "text", 1e21, "00123"):
    print(intcomma(other))
