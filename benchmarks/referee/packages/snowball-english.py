"""Stems of words with the usual endings."""

import random
import sys

from snowballstemmer.english_stemmer import EnglishStemmer

chance = random.Random(int(sys.argv[1]))
ENDINGS = ("", "s", "ing", "ed", "ational", "fulness", "ly", "ies", "ization", "'s", "ement", "ousness")
stemmer = EnglishStemmer()
words = ["".join(chance.choices("bcdfglmnprst", k=2)) + "".join(chance.choices("aeiountr", k=4)) for _ in range(3_000)]
print(" ".join(stemmer.stemWords([word + chance.choice(ENDINGS) for word in words])))
