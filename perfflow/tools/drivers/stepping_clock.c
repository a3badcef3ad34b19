/* Makes a program's decisions repeatable under a counting profiler. The library is preloaded.
 *
 * The monotonic clock advances by a fixed time per reading, so that a harness which decides by the clock how often it
 * runs a benchmark makes the same decision every time. The first PERFFLOW_CLOCK_EARLY readings advance by
 * PERFFLOW_CLOCK_EARLY_NS, all others by PERFFLOW_CLOCK_NS (default: 1 s). With PERFFLOW_CLOCK_CPU, the clocks of CPU
 * time advance likewise. Other clocks are unchanged. The number of readings is written to the file that
 * PERFFLOW_CLOCK_READINGS names, since a benchmark that itself reads the clock changes the decisions of the harness.
 *
 * Random numbers of the system are always the same, since Rust's hash maps draw their seeds from them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static long readings, nanoseconds, early, step_of_early, step = 1000000000, with_cpu;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    early = number("PERFFLOW_CLOCK_EARLY", 0);
    step_of_early = number("PERFFLOW_CLOCK_EARLY_NS", 0);
    step = number("PERFFLOW_CLOCK_NS", step);
    with_cpu = number("PERFFLOW_CLOCK_CPU", 0);
}

static int steps(clockid_t clock) {
    return clock == CLOCK_MONOTONIC ||
           (with_cpu && (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID));
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!steps(clock)) return (int)syscall(SYS_clock_gettime, clock, time);
    long count = __atomic_add_fetch(&readings, 1, __ATOMIC_SEQ_CST);
    long now = __atomic_add_fetch(&nanoseconds, count <= early ? step_of_early : step, __ATOMIC_SEQ_CST);
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
    static unsigned long long state = 1;
    unsigned char *bytes = buffer;
    (void)flags;
    for (size_t at = 0; at < length; at++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[at] = (unsigned char)(state >> 56);
    }
    return (ssize_t)length;
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("PERFFLOW_CLOCK_READINGS");
    FILE *file = path && readings ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", readings);
    fclose(file);
}
