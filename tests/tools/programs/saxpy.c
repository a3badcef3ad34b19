/* saxpy [ROUNDS [INTEGERS]]: y = a x + y over 4096 floats, or a loop of integers that no compiler can vectorize. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) void saxpy(long n, float a, const float *restrict x, float *restrict y) {
    for (long i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

__attribute__((noinline)) unsigned long collatz(unsigned long n) {
    unsigned long steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

int main(int count, char **words) {
    enum { N = 4096 };
    static float x[N], y[N];
    long rounds = count > 1 ? atol(words[1]) : 100000;
    unsigned long steps = 0;
    for (long i = 0; i < N; i++) x[i] = i;
    for (long r = 0; r < rounds; r++) {
        if (count > 2) steps += collatz(837799 + r);
        else saxpy(N, 1e-6f, x, y);
    }
    fprintf(stderr, "%f %lu\n", y[17], steps);
    return 0;
}
