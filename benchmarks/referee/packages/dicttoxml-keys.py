"""Nested records as XML, some with keys that are no names in XML."""

import random
import sys

from dicttoxml import dicttoxml

chance = random.Random(int(sys.argv[1]))
KEYS = ("name", "size", "a b", "7", "x-y", "<tag>", "first.last", "ключ")


def record(depth):
    """Return a record with values of all kinds."""
    values = [None, True, chance.randrange(1_000), chance.random(), "a & b", [1, "two", {"name": 3}]]
    made = {key: chance.choice(values) for key in KEYS}
    if depth:
        made["within"] = [record(depth - 1) for _ in range(3)]
    return made


for _ in range(12):
    text = dicttoxml(record(3), attr_type=chance.random() < 0.5)
    print(text.decode())
