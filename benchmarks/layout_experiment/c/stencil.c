/* One-dimensional stencil of integers, in place, so that each step waits for the one before. */
#include <stdint.h>
#include <stdio.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 2400, CELLS = 2048 };

uint32_t cells[CELLS];

void fill(uint32_t state) {
    for (int i = 0; i < CELLS; i++) cells[i] = (state = state * 1664525u + 1013904223u) >> 12;
}

COLD void report(uint64_t sum) {
    printf("sum %llu\n", (unsigned long long)sum);
}

HOT void smooth(uint32_t *line, int count) {
    for (int i = 1; i < count - 1; i++) {
        uint32_t mean = (line[i - 1] + 2 * line[i] + line[i + 1]) >> 2;
        line[i] = mean & 1 ? mean + 3 : mean;
    }
}

int main(void) {
    uint64_t sum = 0;
    fill(1);
    for (int round = 0; round < ROUNDS; round++) {
        smooth(cells, CELLS);
        sum += cells[round % CELLS];
    }
    report(sum);
    return 0;
}
