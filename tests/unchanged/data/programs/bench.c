#include <stdio.h>
#include <string.h>
static const int table[8] = {1, 2, 3, 5, 8, 13, 21, 34};
static volatile int factor = 3;
static const char *names[3] = {"alpha", "beta", "gamma"};
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x + 1; }
static int (*const calls[2])(int) = {twice, thrice};
static inline int mix(int x) { return x ^ 0x55; }
__attribute__((noinline)) static int choose(int x) {
    switch (x) {
    case 0: return 11;
    case 1: return 7 * factor;
    case 2: return table[factor];
    case 3: return (int)strlen(names[factor - 2]);
    case 4: return mix(factor);
    case 5: return calls[factor & 1](4);
    default: return 0;
    }
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 6 + argc - 1; i++) sum += choose(i) + calls[i & 1](i);
    printf("%s %d\n", argc > 1 ? argv[1] : "bench", sum);
    return 0;
}
