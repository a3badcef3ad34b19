"""Tables of numbers and words."""

import random
import sys

from tabulate import tabulate

chance = random.Random(int(sys.argv[1]))
for form in ("simple", "github", "grid"):
    rows = []
    for number in range(1_200):
        word = "".join(chance.choices("abcdef", k=chance.randrange(1, 20)))
        rows.append([number, chance.random() * 1_000, word, chance.choice(["1", "-2.5", "x", "", None]), number % 2 == 0])
    rows[7][2] = "\x1b[31mred\x1b[0m"
    print(tabulate(rows, headers=["n", "x", "word", "mixed", "even"], tablefmt=form))
