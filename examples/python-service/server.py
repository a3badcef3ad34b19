"""A small price service on asyncio, with two mistakes to be found by measuring it.

``/quote?basket=N`` prices a basket of N articles: ``best_discount`` compares every pair of them, which is quadratic.
Every ``RENEW_EVERY``-th quote derives the session key anew: a blocking call, for which the event loop and with it
every other client waits.

Usage: python3 server.py --port PORT [--articles N]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import sys
from urllib.parse import parse_qs, urlsplit

RENEW_EVERY = 100
ROUNDS = 120_000
MOST_ARTICLES = 2_000


class Catalogue:
    """Articles with a price and a group; all of it follows from the number of articles."""

    def __init__(self, articles: int) -> None:
        self.prices = [100 + (number * 7919) % 900 for number in range(articles)]
        self.groups = [(number * 31) % 17 for number in range(articles)]
        self.quotes = 0
        self.key = b""

    def quote(self, basket: int) -> dict[str, int]:
        """Price the first ``basket`` articles."""
        if self.quotes % RENEW_EVERY == 0:
            self.renew_key()
        self.quotes += 1
        total = sum(self.prices[:basket])
        return {"articles": basket, "total": total, "discount": self.best_discount(basket)}

    def best_discount(self, basket: int) -> int:
        """The largest discount that two articles of one group give together."""
        best = 0
        for one in range(basket):
            for other in range(one + 1, basket):
                if self.groups[one] == self.groups[other]:
                    best = max(best, abs(self.prices[one] - self.prices[other]) // 10)
        return best

    def renew_key(self) -> None:
        """Derive the key that sessions are signed with; takes long on purpose, as such functions do."""
        self.key = hashlib.pbkdf2_hmac("sha256", b"secret", self.key or b"salt", ROUNDS)


def answer(catalogue: Catalogue, target: str) -> tuple[int, bytes]:
    """Status and body for a request's target."""
    parts = urlsplit(target)
    if parts.path == "/health":
        return 200, b'{"status": "ok"}\n'
    if parts.path != "/quote":
        return 404, b'{"error": "not found"}\n'
    basket = parse_qs(parts.query).get("basket", ["50"])[0]
    if not basket.isdecimal() or not 0 < int(basket) <= len(catalogue.prices):
        return 400, b'{"error": "no such basket"}\n'
    return 200, (json.dumps(catalogue.quote(int(basket))) + "\n").encode()


async def serve(catalogue: Catalogue, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection until the client closes it."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            words = head.split(b" ", 2)
            status, body = answer(catalogue, words[1].decode("ascii", "replace")) if len(words) > 2 else (400, b"")
            writer.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve on loopback until interrupted; says where it listens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--articles", type=int, default=MOST_ARTICLES)
    options = parser.parse_args()
    catalogue = Catalogue(options.articles)
    server = await asyncio.start_server(lambda *streams: serve(catalogue, *streams), "127.0.0.1", options.port)
    sys.stdout.write(f"listening on {server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
