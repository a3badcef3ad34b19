// Prints how long by the monotonic clock it slept, computed and slept in a thread, and whether it inherited LD_PRELOAD.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *nap(void *waited) {
    long before = now();
    usleep(200000);
    *(long *)waited = now() - before;
    return 0;
}

int main(void) {
    long before = now();
    usleep(200000);
    long napped = now() - before, in_thread;
    before = now();
    for (volatile long i = 0; i < 100000000; i++) {}
    long computed = now() - before;
    pthread_t thread;
    pthread_create(&thread, 0, nap, &in_thread);
    pthread_join(thread, 0);
    printf("%ld %ld %ld %d\n", napped, computed, in_thread, getenv("LD_PRELOAD") != 0);
}
