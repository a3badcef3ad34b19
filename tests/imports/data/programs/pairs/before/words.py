def count(words):
    found = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found
def longest(words):
    return max(words, key=len)
