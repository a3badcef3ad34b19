"""Lines of a log, read with some formats."""

import random
import sys

from parse import parse

FORMATS = ("{level:w}: {name} took {seconds:f} s", "{:d} of {:d} {what}", "{level:w} {a:d}-{b:d}-{c:d} {rest}")
chance = random.Random(int(sys.argv[1]))
total = 0.0
for number in range(1_500):
    seconds = chance.randrange(1_000) / 8
    lines = (f"Info: step{number} took {seconds} s", f"{number} of {chance.randrange(900)} files", f"warn 1-2-{number} end")
    for text, line in zip(FORMATS, lines, strict=True):
        found = parse(text, line)
        total += sum(value for value in (*found.fixed, *found.named.values()) if isinstance(value, int | float))
        if number % 100 == 0:
            print(found.fixed, sorted(found.named.items()), parse(text, line + "\n\n"), parse(text.upper(), line))
print(total)
