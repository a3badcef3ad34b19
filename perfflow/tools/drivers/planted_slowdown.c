/* Makes a program slower by the share PERFFLOW_PLANTED, to test whether a gate sees it. The library is preloaded.
 *
 * The program itself spends the time: it computes for that share of what it has just spent. With
 * PERFFLOW_PLANTED_AT=clock it does so whenever it reads a clock, before it gets the time, so that the regions that a
 * harness times become longer by the share. With PERFFLOW_PLANTED_AT=end it does so once, when it ends, for the CPU time
 * that it has spent. Programs that are linked statically, or that end by a signal or by _exit, do not become slower. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double share;
static int at_clock, at_end;
static __thread double since = -1;

static double seconds(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("PERFFLOW_PLANTED"), *at = getenv("PERFFLOW_PLANTED_AT");
    share = text ? atof(text) : 0;
    at_clock = share > 0 && at && !strcmp(at, "clock");
    at_end = share > 0 && at && !strcmp(at, "end");
}

/* Computes for the share of the CPU time that this thread has spent since it last did. */
static void spend(void) {
    double now = seconds(CLOCK_THREAD_CPUTIME_ID);
    if (since >= 0) {
        double until = now + share * (now - since);
        while (now < until) now = seconds(CLOCK_THREAD_CPUTIME_ID);
    }
    since = now;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (at_clock) spend();
    return (int)syscall(SYS_clock_gettime, clock, time);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    if (at_clock) spend();
    return (int)syscall(SYS_gettimeofday, time, zone);
}

__attribute__((destructor)) static void end(void) {
    struct rusage used;
    if (!at_end || getrusage(RUSAGE_SELF, &used)) return;
    double spent = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    double now = seconds(CLOCK_THREAD_CPUTIME_ID), until = now + share * spent;
    while (now < until) now = seconds(CLOCK_THREAD_CPUTIME_ID);
}
