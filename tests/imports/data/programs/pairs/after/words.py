from collections import Counter
def count(words):
    return Counter(words)
def longest(words):
    return max(words, key=len)
