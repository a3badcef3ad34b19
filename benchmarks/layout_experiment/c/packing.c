/* A compressor after Ziv and Lempel (1977): matches of four bytes or more found by a table of hashes. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 80, LENGTH = 49152, TABLE = 4096 };

uint8_t text[LENGTH + 8], packed[2 * LENGTH];
int32_t heads[TABLE];

void fill(uint32_t state) {
    const char *words[] = {"count ", "the ", "of ", "measure ", "pairs ", "and ", "judge ", "again "};
    int at = 0;
    while (at < LENGTH - 16) {
        const char *word = words[(state = state * 1664525u + 1013904223u) >> 29];
        memcpy(text + at, word, strlen(word));
        at += (int)strlen(word);
    }
}

COLD void report(uint64_t size) {
    printf("size %llu\n", (unsigned long long)size);
}

HOT int match_length(const uint8_t *a, const uint8_t *b, const uint8_t *end) {
    const uint8_t *start = b;
    while (b < end && *a == *b) a++, b++;
    return (int)(b - start);
}

HOT uint64_t pack(const uint8_t *in, int length, uint8_t *out) {
    uint8_t *start = out;
    for (int at = 0; at < length;) {
        uint32_t four;
        memcpy(&four, in + at, 4);
        uint32_t hash = (four * 2654435761u) >> 20;
        int before = heads[hash];
        heads[hash] = at + 1;
        int same = before ? match_length(in + before - 1, in + at, in + length) : 0;
        if (same >= 4) {
            if (same > 255) same = 255;
            *out++ = 0;
            *out++ = (uint8_t)same;
            at += same;
        } else {
            *out++ = in[at++];
        }
    }
    return (uint64_t)(out - start);
}

int main(void) {
    uint64_t size = 0;
    fill(1);
    for (int round = 0; round < ROUNDS; round++) {
        memset(heads, 0, sizeof heads);
        size += pack(text, LENGTH, packed);
    }
    report(size);
    return 0;
}
