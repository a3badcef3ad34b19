/* A hash table with linear probing: lookups of keys that are there and that are not. */
#include <stdint.h>
#include <stdio.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 160, SLOTS = 4096, KEYS = 2500, ASKED = 8192 };

uint32_t table[SLOTS], asked[ASKED];

uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

COLD void report(uint64_t found) {
    printf("found %llu\n", (unsigned long long)found);
}

HOT uint32_t slot_of(uint32_t key) {
    uint32_t at = (key * 2654435761u) >> 20;
    while (table[at] && table[at] != key) at = (at + 1) & (SLOTS - 1);
    return at;
}

HOT uint64_t look_up(const uint32_t *keys, int count) {
    uint64_t found = 0;
    for (int i = 0; i < count; i++) {
        uint32_t at = (keys[i] * 2654435761u) >> 20;
        while (table[at] && table[at] != keys[i]) at = (at + 1) & (SLOTS - 1);
        found += table[at] != 0;
    }
    return found;
}

int main(void) {
    uint32_t state = 1;
    for (int i = 0; i < KEYS; i++) {
        uint32_t key = next_random(&state) | 1;
        table[slot_of(key)] = key;
    }
    state = 1;
    for (int i = 0; i < ASKED; i++) asked[i] = next_random(&state) | 1;
    uint64_t found = 0;
    for (int round = 0; round < ROUNDS; round++) found += look_up(asked, ASKED);
    report(found);
    return 0;
}
