"""Print the report of the words that a seed draws."""

import sys

from make import words

from tally import report

print(report(words(sys.argv[1])))
