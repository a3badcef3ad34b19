"""A page of Markdown as HTML."""

import random
import sys

import commonmark

chance = random.Random(int(sys.argv[1]))
WORDS = ("plain", "*emphasis*", "**strong**", "`code`", "[link](http://example.org)", "&amp;", "<b>", "under_score", "\\*")
lines = []
for number in range(350):
    text = " ".join(chance.choices(WORDS, k=24))
    lines += [chance.choice(["", "# ", "> ", "- ", "1. ", "    "]) + text, "" if number % 3 else "---", ""]
print(commonmark.commonmark("\n".join(lines)))
