"""grows.py [BLOCKS [STATUS [NAP]]]: keep() holds BLOCKS times 1 MB for NAP s, waste() throws twice as much away."""

import sys


class Store:
    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def keep(self, blocks: int) -> None:
        for number in range(blocks):
            self.kept.append(bytes([number % 255 + 1]) * 1_000_000)


def waste(blocks: int) -> int:
    return sum(len(b"x" * 1_000_000) for _ in range(2 * blocks))


def nap(seconds: float) -> None:
    import time

    time.sleep(seconds)


def main(blocks: int) -> int:
    store = Store()
    store.keep(blocks)
    total = waste(blocks)
    # Work without a word to the allocators, so that whoever looks from time to time sees what is kept.
    for number in range(40_000 * blocks):
        total += number % 3
    nap(float(sys.argv[3]) if len(sys.argv) > 3 else 0)
    return total + len(store.kept)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
