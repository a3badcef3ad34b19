/* Programs whose true cost is known: MODE cpu or mem with AMOUNT of work, or `load`, a neighbour.
 *
 * cpu: AMOUNT thousand rounds of a generator, nothing but registers. mem: AMOUNT thousand dependent loads over 4 MiB.
 * sleep, lock, read: as cpu, and then WAIT: microseconds of sleep, microseconds until `keep` releases a lock, or blocks of
 * FILE read from the disk.
 * load: keeps one core busy half of the time, in bursts of random length, until it is killed.
 * keep: holds the lock of FILE.lock, and releases it the microseconds after a request that the request names.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Two builds differ in it, and in nothing that is executed. */
__attribute__((used)) static const char build[] = BUILD;

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

static void pause_for(long microseconds) {
    struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static int opened(const char *path, const char *suffix, int flags) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    int file = open(name, flags, 0600);
    if (file < 0) perror(name), exit(1);
    return file;
}

/* Requests are microseconds; 0 says that the lock was had and let go. */
static void keep(const char *path) {
    int requests = opened(path, ".asks", O_RDWR), lock = opened(path, ".lock", O_RDWR);
    for (;;) {
        long microseconds = 0;
        flock(lock, LOCK_EX);
        while (microseconds == 0)
            if (read(requests, &microseconds, sizeof microseconds) != sizeof microseconds) exit(1);
        pause_for(microseconds);
        flock(lock, LOCK_UN);
        if (read(requests, &microseconds, sizeof microseconds) != sizeof microseconds) exit(1);
    }
}

static int wait_for_lock(long microseconds, const char *path) {
    int requests = opened(path, ".asks", O_WRONLY), lock = opened(path, ".lock", O_RDWR);
    long had = 0;
    /* Its keeper may not have it again yet. */
    while (flock(lock, LOCK_SH | LOCK_NB) == 0) flock(lock, LOCK_UN), sched_yield();
    if (write(requests, &microseconds, sizeof microseconds) < 0) return 1;
    flock(lock, LOCK_EX);
    flock(lock, LOCK_UN);
    return write(requests, &had, sizeof had) < 0;
}

/* Past the cache of the kernel, so that each block is a wait for the disk. */
static int read_blocks(long count, const char *path) {
    enum { BLOCK = 4096 };
    int file = opened(path, "", O_RDONLY | O_DIRECT);
    off_t size = lseek(file, 0, SEEK_END);
    void *block = NULL;
    if (posix_memalign(&block, BLOCK, BLOCK)) return 1;
    for (off_t i = 0; i < count; i++)
        if (pread(file, block, BLOCK, i * 7 % (size / BLOCK) * BLOCK) != BLOCK) return perror(path), 1;
    return 0;
}

static int waited(const char *mode, long amount, const char *path) {
    if (strcmp(mode, "sleep") == 0) return pause_for(amount), 0;
    if (strcmp(mode, "lock") == 0) return wait_for_lock(amount, path);
    return read_blocks(amount, path);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "keep") == 0) keep(argv[2]);
    if (argc == 2 && strcmp(argv[1], "load") == 0) disturb();
    if (argc == 5) {
        printf("%llu\n", (unsigned long long)compute(strtol(argv[2], NULL, 10)));
        return waited(argv[1], strtol(argv[3], NULL, 10), argv[4]);
    }
    long amount = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (amount > 0 && strcmp(argv[1], "cpu") == 0) return printf("%llu\n", (unsigned long long)compute(amount)) < 0;
    if (amount > 0 && strcmp(argv[1], "mem") == 0) return printf("%llu\n", (unsigned long long)chase(amount)) < 0;
    fprintf(stderr, "usage: work cpu|mem AMOUNT, work sleep|lock|read AMOUNT WAIT FILE, work load, work keep FILE\n");
    return 2;
}
