/* Measure the peaks of this machine: bytes moved and floating-point operations per second, on all cores.

    stream SECONDS CPUS SLICE SIZES PRECISIONS

CPUS are the numbers of the cores, each of which gets a thread. SIZES are the bytes of one array over all threads, in
increasing order. SLICE is the number of bytes that are timed at once. PRECISIONS are some of f64, f32 and f16; f16 is
skipped if the processor does not support it. All but SLICE are lists with commas. Every try is a line of JSON on
standard output with its counts and seconds; the reader selects the best. The exit status is 1 with a reason on standard
error if there is not enough memory or a result is wrong.

Bandwidth: copy, scale, add and triad of McCalpin's STREAM (https://www.cs.virginia.edu/stream/ref.html). Bytes are
counted as in STREAM: those that the program reads and writes, not cache lines that are read only to be overwritten.
`load` adds up three arrays and writes none, so that all traffic is counted. Each thread has its own part of the arrays
and touches it first, so that on NUMA machines each core uses its nearest memory. Passes through the arrays are timed in
slices, since on a busy machine few whole passes run without another program taking a core.

Floating point: independent chains of x += x * a, as many as the vector registers hold, so that neither latency nor
memory limits them.

Built by gcc or clang with -O3 -march=native -mprefer-vector-width=512 -ffp-contract=fast -pthread. Vectors are those of
the GCC extension. */

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 64
#define SET "AVX-512"
#elif defined(__AVX2__)
#define WIDTH 32
#define SET "AVX2"
#elif defined(__AVX__)
#define WIDTH 32
#define SET "AVX"
#elif defined(__SSE2__)
#define WIDTH 16
#define SET "SSE2"
#elif defined(__ARM_NEON)
#define WIDTH 16
#define SET "NEON"
#else
#define WIDTH 16
#define SET ""
#endif
#if defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
#define FUSED "true"
#else
#define FUSED "false"
#endif
/* SVE's vectors have no fixed length, so the GCC extension does not support them. */
#ifdef __ARM_FEATURE_SVE
#define UNUSED "SVE"
#else
#define UNUSED ""
#endif
#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#if defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define HALF 1
#else
#define HALF 0
#endif

/* 24 of 32 registers hold chains, or 12 of 16. Two units with a latency of 4 need 8 chains, four units need 16. */
#define FIRST12(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#if WIDTH == 64 || defined(__aarch64__)
#define CHAINS 24
#define EACH(M) FIRST12(M) M(12) M(13) M(14) M(15) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23)
#else
#define CHAINS 12
#define EACH(M) FIRST12(M)
#endif

enum { COPY, SCALE, ADD, TRIAD, LOAD, KERNELS };
static const char *const kernel_names[KERNELS] = {"copy", "scale", "add", "triad", "load"};
static const int arrays_used[KERNELS] = {2, 2, 3, 3, 3};
/* Writes may wait in the cache, so a slice with writes must be larger. Reads can use LOADS times as many slices. */
enum { LOADS = 4 };
enum { MOST_THREADS = 4096, MOST_SIZES = 8, FEWEST_ROUNDS = 4, MOST_ROUNDS = 300 };

typedef double vec __attribute__((vector_size(WIDTH)));
enum { LANES = WIDTH / sizeof(double), UNROLLED = 4, HUGE_PAGE = 2 << 20 };

/* Values grow by 1.6% per round, so a missing round is detected and nothing overflows. */
static const double factor = 0.42;
/* STREAM uses 1e-13 for the mean; this tolerance is for the worst element after up to 300 rounds. */
static const double tolerance = 1e-10;

typedef struct {
    int number, cpu;
    vec *a, *b, *c;
    double began, ended;
} worker;

static worker workers[MOST_THREADS];
static int threads, sizes;
static size_t parts[MOST_SIZES]; /* vectors of one array in one thread's part, for each size */
static size_t slices[MOST_SIZES]; /* number of slices for each size */
static double seconds;           /* for all tries */
static const char *precisions;
static long tries;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    _Exit(1);
}

/* A barrier for all threads. Spinning starts them within a microsecond of each other; yielding frees the core. */
static void meet(void) {
    static atomic_int arrived, meetings;
    int before = atomic_load(&meetings);
    if (atomic_fetch_add(&arrived, 1) + 1 == threads) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&meetings, 1);
        return;
    }
    for (long spins = 0; atomic_load(&meetings) == before; spins++)
        if (spins > 10000) sched_yield();
}

/* Let thread 0 decide for all. */
static int agreed(const worker *w, int decision) {
    static atomic_int said;
    meet();
    if (w->number == 0) atomic_store(&said, decision);
    meet();
    return atomic_load(&said);
}

/* Time from the first thread's start to the last thread's end, in s. */
static double taken(void) {
    double first = workers[0].began, last = workers[0].ended;
    for (int t = 1; t < threads; t++) {
        if (workers[t].began < first) first = workers[t].began;
        if (workers[t].ended > last) last = workers[t].ended;
    }
    return last - first;
}

/* The empty assembler statement prevents compilers from replacing a loop by memcpy, at no cost. */
#define OVER(n, statement)                                                        \
    for (size_t i = 0; i < (n); i += UNROLLED) {                                  \
        for (size_t k = i; k < i + UNROLLED; k++) { statement; }                  \
        __asm__ volatile("");                                                     \
    }

static void copy(const vec *restrict a, vec *restrict c, size_t n) { OVER(n, c[k] = a[k]) }
static void scale(vec *restrict b, const vec *restrict c, size_t n) { OVER(n, b[k] = factor * c[k]) }
static void add(const vec *restrict a, const vec *restrict b, vec *restrict c, size_t n) { OVER(n, c[k] = a[k] + b[k]) }
static void triad(vec *restrict a, const vec *restrict b, const vec *restrict c, size_t n) {
    OVER(n, a[k] = b[k] + factor * c[k])
}
static double load(const vec *a, const vec *b, const vec *c, size_t n) {
    vec sums[UNROLLED] = {{0}};
    double total = 0;
    OVER(n, sums[k - i] += a[k] + b[k] + c[k])
    for (int k = 0; k < UNROLLED; k++)
        for (int lane = 0; lane < LANES; lane++) total += sums[k][lane];
    return total;
}

/* The values of a, b and c between one size and the next, computed by the same operations on scalars. */
static double expected[MOST_SIZES][3];

static void expect(int kernel, int size) {
    for (int s = 0; s <= size; s++) {
        double *a = &expected[s][0], *b = &expected[s][1], *c = &expected[s][2];
        if (kernel == COPY) *c = *a;
        if (kernel == SCALE) *b = factor * *c;
        if (kernel == ADD) *c = *a + *b;
        if (kernel == TRIAD) *a = *b + factor * *c;
    }
}

static double expected_sum(int size) {
    double total = 0;
    for (int s = 0; s <= size; s++) {
        double elements = (double)(parts[s] - (s ? parts[s - 1] : 0)) * LANES;
        total += elements * (expected[s][0] + expected[s][1] + expected[s][2]);
    }
    return total;
}

static void require(double have, double want) {
    double apart = (have - want) / want;
    if (!(-tolerance < apart && apart < tolerance)) fail("the arrays do not hold what was calculated: a result is wrong");
}

static vec *array(size_t bytes) {
    char *memory = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("there is not enough memory for the arrays: name a smaller size");
    memory += (HUGE_PAGE - (size_t)memory % HUGE_PAGE) % HUGE_PAGE;
    madvise(memory, bytes, MADV_HUGEPAGE); /* fewer TLB misses; a refusal does no harm */
    return (vec *)memory;
}

static double pass(const worker *w, int kernel, size_t from, size_t n) {
    vec *a = w->a + from, *b = w->b + from, *c = w->c + from;
    switch (kernel) {
    case COPY: copy(a, c, n); return 0;
    case SCALE: scale(b, c, n); return 0;
    case ADD: add(a, b, c, n); return 0;
    case TRIAD: triad(a, b, c, n); return 0;
    default: return load(a, b, c, n);
    }
}

/* Process the arrays once, slice by slice. */
static void move_once(worker *w, int kernel, int size, int round) {
    double sum = 0;
    size_t count = slices[size] * (kernel == LOAD ? LOADS : 1);
    for (size_t slice = 0; slice < count; slice++) {
        size_t from = parts[size] / UNROLLED * slice / count * UNROLLED;
        size_t n = parts[size] / UNROLLED * (slice + 1) / count * UNROLLED - from;
        meet();
        w->began = now();
        sum += pass(w, kernel, from, n);
        w->ended = now();
        meet();
        if (w->number) continue;
        printf("{\"kind\": \"bandwidth\", \"kernel\": \"%s\", \"array\": %.0f, \"round\": %d, \"bytes\": %.0f, "
               "\"seconds\": %.9f}\n", kernel_names[kernel], (double)parts[size] * WIDTH * threads, round,
               (double)n * WIDTH * threads * arrays_used[kernel], taken());
        tries++;
    }
    if (kernel == LOAD) require(sum, expected_sum(size));
    meet();
    if (w->number == 0) expect(kernel, size);
}

static void move(worker *w) {
    size_t most = parts[sizes - 1], i = 0;
    w->a = array(most * WIDTH), w->b = array(most * WIDTH), w->c = array(most * WIDTH);
    const vec zero = {0};
    for (size_t k = 0; k < most; k++) w->a[k] = zero + 1.0, w->b[k] = zero + 2.0, w->c[k] = zero;
    double end = now() + 0.6 * seconds;
    for (int round = 0; agreed(w, round < FEWEST_ROUNDS || (round < MOST_ROUNDS && now() < end)); round++)
        for (int size = 0; size < sizes; size++)
            for (int kernel = 0; kernel < KERNELS; kernel++) move_once(w, kernel, size, round);
    for (int size = 0; size < sizes; size++)
        for (; i < parts[size]; i++)
            for (int lane = 0; lane < LANES; lane++) {
                require(w->a[i][lane], expected[size][0]);
                require(w->b[i][lane], expected[size][1]);
                require(w->c[i][lane], expected[size][2]);
            }
    munmap(w->a, most * WIDTH), munmap(w->b, most * WIDTH), munmap(w->c, most * WIDTH);
}

/* Each step is one operation on every chain. A pass doubles all values STEPS times, and the next pass halves them as
   often, so that they are exact in every precision. After an odd number of passes they are multiplied by 2^STEPS. */
enum { STEPS = 8, PASSES = 401 };
#define DECLARE(i) vector x##i = lanes[i];
#define STEP(i) x##i += x##i * a;
#define STORE(i) lanes[i] = x##i;

#define PRECISION(name, type)                                                                                    \
    typedef type vector_##name __attribute__((vector_size(WIDTH)));                                              \
    __attribute__((noinline)) void chains_##name(vector_##name *lanes, type up, type down) {                     \
        typedef vector_##name vector;                                                                            \
        vector a = (vector){0} + up, b = (vector){0} + down;                                                     \
        EACH(DECLARE)                                                                                            \
        for (int pass = 0; pass < PASSES; pass++) {                                                              \
            for (int step = 0; step < STEPS; step++) { EACH(STEP) }                                              \
            vector other = a;                                                                                    \
            a = b, b = other;                                                                                    \
        }                                                                                                        \
        EACH(STORE)                                                                                              \
    }                                                                                                            \
    static double calculate_##name(long calls) {                                                                 \
        static volatile type up = (type)1.0, down = (type)-0.5;                                                  \
        enum { COUNT = WIDTH / sizeof(type) };                                                                   \
        vector_##name lanes[CHAINS];                                                                             \
        for (long call = 0; call < calls; call++) {                                                              \
            for (int i = 0; i < CHAINS; i++)                                                                     \
                for (int k = 0; k < COUNT; k++) lanes[i][k] = (type)(1.0 + (i + k) % 16 / 16.0);                 \
            chains_##name(lanes, up, down);                                                                      \
            for (int i = 0; i < CHAINS; i++)                                                                     \
                for (int k = 0; k < COUNT; k++)                                                                  \
                    if ((double)lanes[i][k] != (1.0 + (i + k) % 16 / 16.0) * (1 << STEPS))                       \
                        fail("the chains do not hold what was calculated: a result is wrong");                   \
        }                                                                                                        \
        return 2.0 * CHAINS * COUNT * STEPS * PASSES * (double)calls;                                            \
    }

PRECISION(f64, double)
PRECISION(f32, float)
#if HALF
PRECISION(f16, _Float16)
#endif

typedef double calculation(long calls);
static const struct {
    const char *name;
    calculation *run;
} known[] = {
    {"f64", calculate_f64},
    {"f32", calculate_f32},
#if HALF
    {"f16", calculate_f16},
#endif
};
enum { KNOWN = sizeof known / sizeof *known };

static double calculate_once(worker *w, calculation *run, long calls) {
    meet();
    w->began = now();
    double flops = run(calls);
    w->ended = now();
    meet();
    return flops * threads;
}

static void calculate(worker *w, const char *name, calculation *run, double share) {
    const double shortest = 0.001; /* s: far longer than a barrier takes */
    long calls = 1;
    /* Several tries must be long enough, since a single one may have been interrupted. */
    for (int long_enough = 0; long_enough < 5; long_enough++) {
        calculate_once(w, run, calls);
        if (agreed(w, taken() < shortest)) calls *= 2, long_enough = -1;
    }
    double end = now() + share;
    for (int round = 0; agreed(w, round < FEWEST_ROUNDS || (round < MOST_ROUNDS && now() < end)); round++) {
        double flops = calculate_once(w, run, calls);
        if (w->number) continue;
        printf("{\"kind\": \"flops\", \"precision\": \"%s\", \"round\": %d, \"flops\": %.0f, \"seconds\": %.9f}\n", name,
               round, flops, taken());
        tries++;
    }
}

static void *work(void *argument) {
    worker *w = argument;
    cpu_set_t own;
    CPU_ZERO(&own);
    if (w->cpu < CPU_SETSIZE) {
        CPU_SET(w->cpu, &own);
        pthread_setaffinity_np(pthread_self(), sizeof own, &own); /* if refused, the kernel chooses */
    }
    move(w);
    int asked = 0;
    for (int i = 0; i < KNOWN; i++) asked += !!strstr(precisions, known[i].name);
    for (int i = 0; i < KNOWN; i++)
        if (strstr(precisions, known[i].name)) calculate(w, known[i].name, known[i].run, 0.4 * seconds / asked);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6) fail("usage: stream SECONDS CPUS SLICE SIZES PRECISIONS");
    seconds = atof(argv[1]), precisions = argv[5];
    size_t slice = strtoull(argv[3], NULL, 10);
    for (char *word = strtok(argv[2], ","); word && threads < MOST_THREADS; word = strtok(NULL, ","))
        workers[threads] = (worker){.number = threads, .cpu = atoi(word)}, threads++;
    for (char *word = strtok(argv[4], ","); threads && word && sizes < MOST_SIZES; word = strtok(NULL, ","), sizes++) {
        size_t bytes = strtoull(word, NULL, 10);
        parts[sizes] = bytes / WIDTH / (size_t)threads / UNROLLED * UNROLLED;
        slices[sizes] = slice && bytes > slice ? bytes / slice : 1;
        expected[sizes][0] = 1.0, expected[sizes][1] = 2.0;
        if (parts[sizes] < UNROLLED * LOADS * slices[sizes]) fail("an array is too small");
    }
    if (!sizes) fail("there is no core or no size");
    printf("{\"kind\": \"built\", \"compiler\": \"%s\", \"width\": %d, \"set\": \"%s\", \"fused\": %s, \"chains\": %d, "
           "\"unused\": \"%s\"}\n", COMPILER, WIDTH, SET, FUSED, CHAINS, UNUSED);
    static pthread_t others[MOST_THREADS];
    for (int t = 1; t < threads; t++)
        if (pthread_create(&others[t], NULL, work, &workers[t])) fail("a thread could not be started");
    work(&workers[0]);
    for (int t = 1; t < threads; t++) pthread_join(others[t], NULL);
    printf("{\"kind\": \"end\", \"tries\": %ld}\n", tries);
    if (fflush(stdout)) fail("what was measured could not be written");
    return 0;
}
