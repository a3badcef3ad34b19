/* hot [ROUNDS [STATUS]]: burns CPU in hot() through inlined mix(), holds 1,500,000 B of heap in grab(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline __attribute__((always_inline)) unsigned mix(unsigned x) {
    for (int k = 0; k < 50; k++) x = x * 1664525u + 1013904223u;
    return x;
}

__attribute__((noinline)) unsigned hot(int rounds) {
    unsigned sum = 1;
    for (int i = 0; i < rounds; i++) sum = mix(sum) ^ (unsigned)i;
    return sum;
}

__attribute__((noinline)) char *grab(size_t size) {
    char *block = malloc(size);
    memset(block, 1, size);
    return block;
}

int main(int count, char **words) {
    unsigned sum = hot(count > 1 ? atoi(words[1]) : 1000000);
    char *large = grab(1000000), *small = grab(500000);
    sum += large[7] + small[8];
    free(large);
    free(small);
    fprintf(stderr, "%u\n", sum);
    return count > 2 ? atoi(words[2]) : 0;
}
