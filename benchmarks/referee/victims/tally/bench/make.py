"""Words that a seed draws; ``python3 bench/make.py SEED FILE`` writes them."""

import random
import sys
from pathlib import Path

WORDS = 10_000


def words(seed, count=WORDS):
    """Return a text in which some words are frequent."""
    chance = random.Random(int(seed))
    return " ".join(f"w{int(chance.paretovariate(0.2)) % 2_500:x}" for _ in range(count))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(words(sys.argv[1]))
