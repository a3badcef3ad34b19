"""A load generator for loopback: so many clients, each sends its next request when the last one is answered.

Prints one JSON object: ``latencies`` (seconds, one a request, after those that warm up), ``rate`` (answers a second),
``requests``, ``errors``, and their ``p50``, ``p95`` and ``p99`` in seconds. Exits with 1 where an answer is no 200.

Usage: python3 load.py --port PORT [--path PATH] [--clients N] [--requests N] [--warmup N] | --once PATH
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence


async def get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> tuple[int, bytes]:
    """Send one request and return the answer's status and body."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: loopback\r\n\r\n".encode())
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii", "replace")
    status = int(head.split(" ", 2)[1])
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
    return status, await reader.readexactly(length)


async def client(port: int, path: str, requests: int) -> tuple[list[float], int]:
    """One connection's requests, one after another: their latencies in seconds, and how many were no 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    latencies, errors = [], 0
    for _ in range(requests):
        began = time.perf_counter()
        status, _ = await get(reader, writer, path)
        latencies.append(time.perf_counter() - began)
        errors += status != 200
    writer.close()
    await writer.wait_closed()
    return latencies, errors


async def load(port: int, path: str, clients: int, requests: int) -> tuple[list[float], int, float]:
    """All clients at once: latencies, errors, and the seconds it took."""
    began = time.perf_counter()
    found = await asyncio.gather(*(client(port, path, requests) for _ in range(clients)))
    seconds = time.perf_counter() - began
    return [one for latencies, _ in found for one in latencies], sum(errors for _, errors in found), seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    """Send what was asked for and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", default="/quote?basket=400")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--requests", type=int, default=60, help="of each client")
    parser.add_argument("--warmup", type=int, default=3, help="requests of each client before")
    parser.add_argument("--once", metavar="PATH", help="send one request and print the answer")
    options = parser.parse_args()
    if options.once:
        return asyncio.run(once(options.port, options.once))
    if options.warmup:
        asyncio.run(load(options.port, options.path, options.clients, options.warmup))
    latencies, errors, seconds = asyncio.run(load(options.port, options.path, options.clients, options.requests))
    ordered = sorted(latencies)
    percentiles = {f"p{share}": percentile(ordered, share / 100) for share in (50, 95, 99)}
    found = {"requests": len(latencies), "errors": errors, "rate": len(latencies) / seconds, **percentiles}
    sys.stdout.write(json.dumps(found | {"latencies": latencies}) + "\n")
    return 1 if errors else 0


async def once(port: int, path: str) -> int:
    """Print the answer to one request."""
    status, body = await get(*await asyncio.open_connection("127.0.0.1", port), path)
    sys.stdout.write(body.decode())
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
