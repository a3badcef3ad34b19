"""Benchmarks of asv, of every kind that perfflow tells apart; a suite when it lies in a folder with a settings file."""

import hashlib
from typing import Any


class Sorting:
    params = ([100, 2000], ["up", "down"])
    param_names = ("size", "order")

    def setup(self, size: int, order: str) -> None:
        if (size, order) == (2000, "down"):
            raise NotImplementedError
        self.values = list(range(size))[:: 1 if order == "up" else -1]

    def time_sorted(self, size: int, order: str) -> None:  # noqa: ARG002 (asv calls it so)
        sorted(self.values)


class Cached:
    def setup_cache(self) -> dict[str, bytes]:
        return {"text": b"x" * 10_000}

    def time_hash(self, cache: dict[str, bytes]) -> None:
        hashlib.sha256(cache["text"]).hexdigest()


def timeraw_import() -> str:
    return "import json.tool"


def mem_values() -> list[int]:
    return list(range(1000))


def peakmem_block() -> bytearray:
    return bytearray(20_000_000)


def track_lines() -> int:
    return 42


lines: Any = track_lines
lines.unit = "lines"
