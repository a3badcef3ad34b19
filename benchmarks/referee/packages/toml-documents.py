"""A document with tables, arrays and texts."""

import random
import sys

import toml

chance = random.Random(int(sys.argv[1]))
lines = ["# made", 'title = "a # b"', ""]
for number in range(900):
    lines += [f"[part.n{number}]", f'name = "{"".join(chance.choices("abc def", k=40))}" # a remark']
    lines += [f"sizes = [{', '.join(str(chance.randrange(99)) for _ in range(12))}]", f"ratio = {chance.random()}"]
    lines += ["is_on = true", f"path = 'C:\\{number}'", "at = 1979-05-27T07:32:00Z", ""]
print(toml.loads("\n".join(lines)))
