"""Distances of pairs of words and of short sentences."""

import random
import sys

from textdistance import DamerauLevenshtein

chance = random.Random(int(sys.argv[1]))
for restricted in (True, False):
    measure = DamerauLevenshtein(external=False, restricted=restricted)
    for length in [*range(12), 30, 60, *range(90, 251, 80)]:
        texts = ["".join(chance.choices("abcdé ", k=length + side)) for side in (0, chance.randrange(4))]
        print(length, measure(*texts), measure("", texts[0]))
