"""An event loop that is held up: by a call that blocks in three tasks of four, and once by computing."""

import asyncio
import sys
import time


def crunch(seconds: float) -> int:
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        rounds += 1
    return rounds


async def handler(number: int) -> None:
    await asyncio.sleep(0.001)
    if number:
        time.sleep(0.12)  # noqa: ASYNC251 (the very point)


async def main() -> None:
    await asyncio.gather(*(handler(number) for number in range(4)))
    crunch(0.15)


asyncio.run(main(), debug=False)
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
