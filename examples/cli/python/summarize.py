"""Summarise a web server's log: requests, errors, median time and different visitors of every page.

    python summarize.py [--method=list|set] [--lines=N]

Both methods print the same bytes. ``list`` keeps the visitors of a page in a list and reads through it for every line;
``set`` keeps them in a set. The log is generated, the same one every time, so that there is no input file to carry
around.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar

PAGES = ("/", "/about", "/account", "/cart", "/help", "/login", "/news", "/search")
VISITORS = 448
DEFAULT_LINES = 20000

Seen = TypeVar("Seen", bound=Sized)


@dataclass
class Page(Generic[Seen]):
    """What is known of one page."""

    visitors: Seen
    requests: int = 0
    errors: int = 0
    times: list[int] = field(default_factory=list)


def generate_log(lines: int) -> Iterator[str]:
    """Yield lines such as ``10.0.3.17 GET /cart 200 41``."""
    state = 2463534242
    for _ in range(lines):
        # A linear congruential generator (Knuth, MMIX): the same numbers in every Python, the high bits the good ones.
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        visitor = (state >> 54) % VISITORS
        page = PAGES[state >> 48 & 7]
        status = 500 if state >> 40 & 127 == 0 else 200
        yield f"10.0.{visitor >> 8}.{visitor & 255} GET {page} {status} {state >> 32 & 63}"


def parse_line(line: str) -> tuple[str, str, int, int]:
    """Return visitor, page, status and milliseconds."""
    visitor, _, page, status, milliseconds = line.split()
    return visitor, page, int(status), int(milliseconds)


def remember_in_list(seen: list[str], visitor: str) -> None:
    """Add the visitor if new; to know that, the whole list is read."""
    if visitor not in seen:
        seen.append(visitor)


def remember_in_set(seen: set[str], visitor: str) -> None:
    """Add the visitor if new; a set knows from the hash."""
    seen.add(visitor)


def summarize(
    log: Iterable[str], empty: Callable[[], Seen], remember: Callable[[Seen, str], None]
) -> dict[str, Page[Seen]]:
    """Read the log once and return its pages by name."""
    pages: dict[str, Page[Seen]] = {}
    for line in log:
        visitor, name, status, milliseconds = parse_line(line)
        page = pages.get(name)
        if page is None:
            page = pages[name] = Page(empty())
        page.requests += 1
        page.errors += status >= 500
        page.times.append(milliseconds)
        remember(page.visitors, visitor)
    return pages


def report(pages: dict[str, Page[Seen]]) -> Iterator[str]:
    """Yield the summary's lines, pages by name."""
    yield f"{'page':<10}{'requests':>9}{'errors':>8}{'median ms':>11}{'visitors':>10}"
    for name, page in sorted(pages.items()):
        median = sorted(page.times)[len(page.times) // 2]
        yield f"{name:<10}{page.requests:>9}{page.errors:>8}{median:>11}{len(page.visitors):>10}"


def main() -> None:
    """Read the arguments, print the summary."""
    parser = argparse.ArgumentParser(description="Summarise a generated web server's log.")
    parser.add_argument("--method", choices=("list", "set"), default="list", help="how visitors are remembered")
    parser.add_argument("--lines", type=int, default=DEFAULT_LINES, help="length of the log (default: %(default)s)")
    arguments = parser.parse_args()
    log = generate_log(arguments.lines)
    if arguments.method == "list":
        lines = report(summarize(log, list[str], remember_in_list))
    else:
        lines = report(summarize(log, set[str], remember_in_set))
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main()
