/* tiny: a program without a library, so that there is little to write about it. Built with -static -nostdlib. */

/* valgrind only reads the symbols of programs that have writable data. */
static volatile long total = 1;

static long square(long number) {
    return number * number;
}

static long work(long rounds) {
    volatile long sum = 0;
    for (long number = 0; number < rounds; number++)
        sum += square(number);
    return sum;
}

void _start(void) {
    total = work(1000);
#ifdef __x86_64__
    __asm__ volatile("mov $60, %eax; xor %edi, %edi; syscall");
#endif
}
