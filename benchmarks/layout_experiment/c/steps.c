/* Steps of the problem of Collatz (1937): a loop of a few instructions. */
#include <stdint.h>
#include <stdio.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 20, NUMBERS = 3000 };

COLD void report(uint64_t sum) {
    printf("sum %llu\n", (unsigned long long)sum);
}

HOT uint64_t steps(uint64_t number) {
    uint64_t count = 0;
    while (number != 1) {
        number = number & 1 ? 3 * number + 1 : number / 2;
        count++;
    }
    return count;
}

HOT uint64_t all_steps(uint64_t numbers, uint64_t round) {
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= numbers; i++) sum += steps(i + round);
    return sum;
}

int main(void) {
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) sum += all_steps(NUMBERS, (uint64_t)round);
    report(sum);
    return 0;
}
