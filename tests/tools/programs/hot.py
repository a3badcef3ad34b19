"""hot.py [ROUNDS [STATUS]]: most time in inner(), called by outer()."""

import sys


def inner(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number
    return total


def outer(rounds: int) -> int:
    return sum(inner(50_000) for _ in range(rounds))


outer(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
