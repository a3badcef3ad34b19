/* Distances of words and of sentences. */
#include "../cjellyfish/levenshtein.c"

static unsigned long long state;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static size_t fill(JFISH_UNICODE *text, size_t length) {
    static const wchar_t letters[] = L"abcdefgh é日";
    for (size_t at = 0; at < length; at++)
        text[at] = letters[draw(11)];
    return length;
}

int main(int count, char **words) {
    static JFISH_UNICODE first[4000], second[4000];
    state = strtoull(words[count - 1], NULL, 10);
    for (size_t length = 0; length < 2000; length += length < 30 ? 1 : 130) {
        size_t one = fill(first, length), other = fill(second, length + draw(9));
        printf("%zu %d\n", length, levenshtein_distance(first, (int)one, second, (int)other));
    }
    return 0;
}
