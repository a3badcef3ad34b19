"""copies.py [ROUNDS [HOW]]: time in looped(), memory in kept(), and a call that fails at the end, as HOW says."""

import os
import signal
import sys


def looped(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number
    return total


def kept(count: int) -> list[bytes]:
    return [bytes(bytearray(1_000_000)) for _ in range(count)]


class Work:
    def done(self, rounds: int) -> int:
        return sum(looped(50_000) + len(kept(4)) for _ in range(rounds))


def main(rounds: int, how: str) -> None:
    Work().done(rounds)
    large = kept(30)
    if how == "raises":
        raise ValueError(len(large))
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3 if how == "exits 3" else 0)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2] if len(sys.argv) > 2 else "")
