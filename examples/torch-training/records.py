"""Records that are slow to load: compressed text that a Python loop decodes, one number at a time.

Every record depends on its index alone, so each worker process and each run sees the same data.
"""

from __future__ import annotations

import random
import zlib

import torch
from torch.utils.data import Dataset

WIDTH = 512
"""Numbers of a record that a model sees."""
READINGS = 3
"""Times that a record holds each of them; the model sees the mean."""
CLASSES = 10


class Records(Dataset[tuple[torch.Tensor, int]]):
    """``count`` records. With ``growth`` the last holds that many times more numbers to decode than the first."""

    def __init__(self, count: int, growth: float = 1.0) -> None:
        self._packed = [_packed(index, _length(index, count, growth)) for index in range(count)]

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        decoded = _decoded(self._packed[index])
        numbers = [sum(decoded[place : READINGS * WIDTH : WIDTH]) / READINGS for place in range(WIDTH)]
        label = index % CLASSES
        # The label shifts some of the numbers, so that there is something to learn.
        numbers[label * 8 : label * 8 + 8] = [number + 2.0 for number in numbers[label * 8 : label * 8 + 8]]
        return torch.tensor(numbers), label


def _length(index: int, count: int, growth: float) -> int:
    return int(READINGS * WIDTH * (1.0 + (growth - 1.0) * index / max(1, count - 1)))


def _packed(index: int, length: int) -> bytes:
    chance = random.Random(index)  # noqa: S311 (the same in every run is what is wanted)
    return zlib.compress(",".join(f"{chance.gauss(0.0, 1.0):.4f}" for _ in range(length)).encode())


def _decoded(packed: bytes) -> list[float]:
    """The slow part: a loop over characters, as of a format nobody wrote a fast reader for."""
    numbers: list[float] = []
    word = ""
    for letter in zlib.decompress(packed).decode():
        if letter == ",":
            numbers.append(float(word))
            word = ""
        else:
            word += letter
    numbers.append(float(word))
    return numbers
