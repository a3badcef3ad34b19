/* Shell sort with the gaps of Ciura (2001). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 900, COUNT = 600 };

uint32_t numbers[COUNT], sorted[COUNT];
const int gaps[] = {301, 132, 57, 23, 10, 4, 1};

void fill(uint32_t state) {
    for (int i = 0; i < COUNT; i++) numbers[i] = (state = state * 1664525u + 1013904223u) >> 4;
}

COLD void report(uint64_t sum) {
    printf("sum %llu\n", (unsigned long long)sum);
}

HOT void sort(uint32_t *items, int count) {
    for (unsigned pass = 0; pass < sizeof gaps / sizeof *gaps; pass++) {
        int gap = gaps[pass];
        for (int i = gap; i < count; i++) {
            uint32_t item = items[i];
            int at = i;
            for (; at >= gap && items[at - gap] > item; at -= gap) items[at] = items[at - gap];
            items[at] = item;
        }
    }
}

int main(void) {
    uint64_t sum = 0;
    fill(1);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(sorted, numbers, sizeof sorted);
        sort(sorted, COUNT);
        sum += sorted[round % COUNT];
    }
    report(sum);
    return 0;
}
