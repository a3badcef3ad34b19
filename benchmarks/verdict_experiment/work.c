/* Programs whose true cost is known: MODE cpu or mem with AMOUNT of work, or `load`, a neighbour.
 *
 * cpu: AMOUNT thousand rounds of a generator, nothing but registers. mem: AMOUNT thousand dependent loads over 4 MiB.
 * load: keeps one core busy half of the time, in bursts of random length, until it is killed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 4 * 1024 * 1024 / 64 };

struct node {
    struct node *next;
    char padding[64 - sizeof(struct node *)];
};

static struct node nodes[NODES];

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t compute(long thousands) {
    uint64_t state = 88172645463325252u, sum = 0;
    for (long i = 0; i < thousands * 1000; i++) sum += next_random(&state);
    return sum;
}

/* One cycle through all nodes in random order (Sattolo), so that no prefetcher helps. */
static uint64_t chase(long thousands) {
    static uint32_t order[NODES];
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < NODES; i++) order[i] = i;
    for (uint32_t i = NODES - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(next_random(&state) % i), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (uint32_t i = 0; i < NODES; i++) nodes[order[i]].next = &nodes[order[(i + 1) % NODES]];
    struct node *at = nodes;
    for (long i = 0; i < thousands * 1000; i++) at = at->next;
    return (uint64_t)(at - nodes);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void disturb(void) {
    uint64_t state = 88172645463325252u;
    for (;;) {
        double length = 0.005 + (double)(next_random(&state) % 100) / 1000;
        double end = now() + length;
        while (now() < end) compute(100);
        struct timespec pause = {0, (long)(length * 1e9)};
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "load") == 0) disturb();
    long amount = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (amount > 0 && strcmp(argv[1], "cpu") == 0) return printf("%llu\n", (unsigned long long)compute(amount)) < 0;
    if (amount > 0 && strcmp(argv[1], "mem") == 0) return printf("%llu\n", (unsigned long long)chase(amount)) < 0;
    fprintf(stderr, "usage: work cpu|mem AMOUNT, work load\n");
    return 2;
}
