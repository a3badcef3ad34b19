"""Numbers in words."""

import random
import sys

from num2words import num2words

chance = random.Random(int(sys.argv[1]))
for digits in range(1, 40):
    for _ in range(8):
        number = chance.randrange(10**digits)
        print(num2words(number), num2words(-number), num2words(number, to="ordinal"), num2words(number, lang="de"))
