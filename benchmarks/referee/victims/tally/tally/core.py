"""The words of a text by how often, or how long, they are."""


def ranking(words):
    """Return each word with its count, the most frequent first."""
    seen, counts = [], []
    for word in words:
        if word not in seen:
            seen.append(word)
            counts.append(0)
        counts[seen.index(word)] += 1
    return sorted(zip(seen, counts), key=lambda pair: (-pair[1], pair[0]))


def frequent(words, least):
    """Return the words that occur at least so often."""
    return [word for word, count in ranking(words) if count >= least]


def report(text, by="count"):
    """Return the first twenty words, one a line, and a check sum of all. by: count or length."""
    ranked = ranking(text.lower().split())
    if by == "length":
        ranked.sort(key=lambda pair: (-len(pair[0]), pair[0]))
    total = 0
    for place, (word, count) in enumerate(ranked, 1):
        total = (total * 31 + place * count + len(word)) % 1_000_003
    lines = [f"{count} {word}" for word, count in ranked[:20]]
    return "\n".join([*lines, f"{len(ranked)} words, {total}"])
