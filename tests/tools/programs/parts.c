/* parts: asks callgrind twice to write what it has counted so far. */
#include <valgrind/callgrind.h>

__attribute__((noinline)) static int work(int rounds) {
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++) sum += i;
    return sum;
}

int main(void) {
    work(1000);
    CALLGRIND_DUMP_STATS;
    work(2000);
    CALLGRIND_DUMP_STATS_AT("named: part");
    work(3000);
    return 0;
}
