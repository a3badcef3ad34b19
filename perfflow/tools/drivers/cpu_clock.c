/* Lets a benchmark harness time by the CPU time of its thread, which other load does not disturb. It is preloaded.
 *
 * For the main thread, the monotonic clock becomes the time of the first reading plus the CPU time that the thread has
 * used since. Other threads and clocks are unchanged. Each reading is logged with the true time, so that the elapsed
 * time of the same intervals is known as well: at the end, PERFFLOW_CLOCK_LOG receives two 64-bit numbers of
 * nanoseconds for each reading, the CPU time and the elapsed time since the first. Only the latest readings are kept if
 * there are more than the log can hold. Children do not inherit the library.
 *
 * With PERFFLOW_CLOCK_HASTE=N, times shorter than SHORT count N times: a harness that reads the clock in a loop for a
 * fixed time, to find its resolution, is done sooner. It then takes the clock for N times as coarse. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST (1 << 18)
#define SHORT 10000

static struct { int64_t cpu, wall; } log_of_readings[MOST];
static uint64_t readings;
static int64_t first_cpu, first_wall, last_cpu, told, haste = 1;
static char path[4096];
static pid_t main_thread;

static int64_t now(clockid_t clock) {
    struct timespec time;
    syscall(SYS_clock_gettime, clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
    const char *named = getenv("PERFFLOW_CLOCK_LOG");
    if (named && strlen(named) < sizeof path) strcpy(path, named);
    const char *factor = getenv("PERFFLOW_CLOCK_HASTE");
    if (factor && atoi(factor) > 1) haste = atoi(factor);
    unsetenv("PERFFLOW_CLOCK_LOG");
    unsetenv("PERFFLOW_CLOCK_HASTE");
    unsetenv("LD_PRELOAD");
    main_thread = getpid();
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if ((clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_RAW) || syscall(SYS_gettid) != main_thread)
        return (int)syscall(SYS_clock_gettime, clock, time);
    int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    if (!readings) first_wall = told = wall, first_cpu = last_cpu = cpu;
    uint64_t place = readings++ % MOST;
    log_of_readings[place].cpu = cpu - first_cpu;
    log_of_readings[place].wall = wall - first_wall;
    told += (cpu - last_cpu) * (cpu - last_cpu < SHORT ? haste : 1);
    last_cpu = cpu;
    time->tv_sec = told / 1000000000;
    time->tv_nsec = told % 1000000000;
    return 0;
}

__attribute__((destructor)) static void tell(void) {
    FILE *file = path[0] && readings && getpid() == main_thread ? fopen(path, "w") : NULL;
    if (!file) return;
    uint64_t oldest = readings > MOST ? readings % MOST : 0, kept = readings > MOST ? MOST : readings;
    for (uint64_t index = 0; index < kept; index++)
        fwrite(&log_of_readings[(oldest + index) % MOST], sizeof log_of_readings[0], 1, file);
    fclose(file);
}
