/* Where a word stands in a text: Horspool's search (1980). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 140, LENGTH = 65536 };

char text[LENGTH + 1];
uint8_t skips[256];

void fill(uint32_t state) {
    for (int i = 0; i < LENGTH; i++) text[i] = "etaoinshr "[((state = state * 1664525u + 1013904223u) >> 16) % 10];
}

void prepare(const char *word, int length) {
    memset(skips, length, sizeof skips);
    for (int i = 0; i < length - 1; i++) skips[(unsigned char)word[i]] = (uint8_t)(length - 1 - i);
}

COLD void report(uint64_t found) {
    printf("found %llu\n", (unsigned long long)found);
}

HOT int search(const char *in, int length, const char *word, int size) {
    int found = 0;
    for (int at = 0; at <= length - size;) {
        int i = size - 1;
        while (i >= 0 && in[at + i] == word[i]) i--;
        found += i < 0;
        at += skips[(unsigned char)in[at + size - 1]];
    }
    return found;
}

int main(void) {
    const char *words[] = {"other", "hast", "noise"};
    uint64_t found = 0;
    fill(1);
    for (int round = 0; round < ROUNDS; round++) {
        const char *word = words[round % 3];
        prepare(word, (int)strlen(word));
        found += (uint64_t)search(text, LENGTH, word, (int)strlen(word));
    }
    report(found);
    return 0;
}
