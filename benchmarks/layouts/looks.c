/* Which schedule of looks suits pairs with fresh code layouts: power, alarms, coverage and pairs of each, simulated.
 *
 * cc -O2 looks.c -lm -o looks && ./looks EXPERIMENTS SEED
 *
 * A pair is a layout of each side plus noise of 1%; the rules are those of verdict/decide.py: floor 0.5%, concern 5%,
 * action 10%. All schedules see the same pairs. Prints one line of a Markdown table for each cell and schedule.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 64, STEPS = 2048, LOOKS = 8, SCHEDULES = 5 };

static uint64_t state;
static uint64_t next(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static double uniform(void) { return ((double)(next() >> 11) + 0.5) * 0x1p-53; }
static double gauss(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double quantile(const double *values, int n, double q) {
    double sorted[PAIRS], place = q * (n - 1);
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    int below = (int)place, above = below + 1 < n ? below + 1 : n - 1;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/* Two-sided p of the sum when each sign is a fair coin, over scores rounded to a grid. */
static double sign_flip(const double *scores, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += fabs(scores[i]);
    if (total == 0) return 1;
    int steps[PAIRS], size = 0;
    long sum = 0;
    for (int i = 0; i < n; i++) {
        steps[i] = (int)lrint(fabs(scores[i]) * STEPS / total);
        size += steps[i];
        sum += scores[i] < 0 ? -steps[i] : steps[i];
    }
    static double ways[2 * STEPS + PAIRS];
    memset(ways, 0, sizeof(double) * (size_t)(size + 1));
    ways[0] = 1;
    for (int i = 0, top = 0; i < n; i++) {
        int step = steps[i];
        if (step == 0) continue;
        for (int j = top + step; j >= step; j--) ways[j] = 0.5 * (ways[j] + ways[j - step]);
        for (int j = 0; j < step; j++) ways[j] *= 0.5;
        top += step;
    }
    double tail = 0, least = ldexp(1, -n);
    for (long j = (labs(sum) + size) / 2; j <= size; j++) tail += ways[j];
    tail = 2 * (tail < least ? least : tail);
    return tail > 1 ? 1 : tail;
}

static double softened(const double *a, const double *b, int n, double theta, double *excess) {
    double best = 1e9;
    for (int i = 0; i < n; i++) {
        double c = b[i] - theta, low = a[i] < c ? a[i] : c;
        excess[i] = a[i] > c ? a[i] : c;
        if (low < best) best = low;
    }
    double softening = quantile(excess, n, .25) - best;
    if (softening < .005) softening = .005;
    for (int i = 0; i < n; i++) excess[i] += softening - best;
    return best;
}
static double p_of(const double *a, const double *b, int n, double theta) {
    double excess[PAIRS], scores[PAIRS];
    softened(a, b, n, theta, excess);
    for (int i = 0; i < n; i++) scores[i] = (b[i] - theta - a[i]) / (excess[i] * excess[i]);
    return sign_flip(scores, n);
}
static double estimate(const double *a, const double *b, int n) {
    double ratios[PAIRS], excess[PAIRS], theta;
    for (int i = 0; i < n; i++) ratios[i] = b[i] - a[i];
    theta = quantile(ratios, n, .5);
    for (int turn = 0; turn < 20; turn++) {
        double weights = 0, sum = 0, last = theta;
        softened(a, b, n, theta, excess);
        for (int i = 0; i < n; i++) {
            double weight = 1 / (excess[i] * excess[i]);
            weights += weight, sum += weight * ratios[i];
        }
        theta = sum / weights;
        if (fabs(theta - last) < 1e-9) break;
    }
    return theta;
}

/* Points at which p is wanted: cuts of the verdict, and distances from the estimate. */
enum { ZERO, FLOOR, BELOW_FLOOR, CONCERN, BELOW_CONCERN, ACTION, TRUTH, HALF_UP, HALF_DOWN, FINE_UP, FINE_DOWN, QUARTER_UP,
       QUARTER_DOWN, POINTS };
static double cuts[POINTS];

typedef struct { int n; double alpha[LOOKS]; const char *name; } Schedule;
static const int AT[LOOKS] = {11, 14, 15, 20, 28, 40, 48, 64};
static const Schedule schedules[SCHEDULES] = {
    {LOOKS, {.0059, 0, .0015, .0010, .0006, .0005, 0, .0005}, "as without layouts"},
    {LOOKS, {.0030, 0, .0010, .0010, .0010, .0010, 0, .0030}, "half to the last looks"},
    {LOOKS, {.0020, 0, .0010, .0010, .0010, .0010, 0, .0040}, "most to the last look"},
    {LOOKS, {.0020, 0, 0, .0020, 0, .0020, 0, .0040}, "four looks, most to the last"},
    {LOOKS, {.0030, 0, 0, 0, .0030, 0, 0, .0040}, "three looks, most to the last"},
};

typedef struct { long regressed, changed, alarm, covered, same, pairs, action; } Tally;

static void judge(double p[LOOKS][POINTS], double est[LOOKS], double cut[LOOKS][POINTS], Tally tally[SCHEDULES]) {
    for (int which = 0; which < SCHEDULES; which++) {
        for (int look = 0; look < LOOKS; look++) {
            double alpha = schedules[which].alpha[look];
            if (alpha == 0) continue;
#define OUT(point) (p[look][point] <= alpha)
#define ABOVE(point) (est[look] > cut[look][point] && OUT(point))
#define UNDER(point) (est[look] < cut[look][point] && OUT(point))
            int regressed = ABOVE(FLOOR), improved = UNDER(BELOW_FLOOR);
            int same = !regressed && !improved && UNDER(CONCERN) && ABOVE(BELOW_CONCERN);
            int fine = OUT(FINE_UP) && OUT(FINE_DOWN), half = OUT(HALF_UP) && OUT(HALF_DOWN);
            int on_concern = !ABOVE(CONCERN) && !UNDER(CONCERN), on_action = !ABOVE(ACTION) && !UNDER(ACTION);
            int quarter = OUT(QUARTER_UP) && OUT(QUARTER_DOWN);
            int settled = fine || improved || (same && half && fabs(est[look]) <= .01) ||
                          (regressed && !on_action && (!on_concern || quarter));
            if (!settled && look + 1 < LOOKS) continue;
            Tally *t = &tally[which];
            t->regressed += regressed, t->changed += OUT(ZERO), t->alarm += regressed || improved;
            t->covered += !OUT(TRUTH), t->same += same, t->pairs += AT[look], t->action += ABOVE(FLOOR) && est[look] > cuts[ACTION];
            break;
        }
    }
}

static double layout(int kind) {
    static const double deviations[] = {0, .02, .07, .08};
    if (kind < 4) return deviations[kind] * gauss();
    return (uniform() < .25 ? log(1.13) : 0) + .003 * gauss();
}

int main(int count, char **words) {
    int experiments = count > 1 ? atoi(words[1]) : 1000;
    uint64_t seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
    static const char *kinds[] = {"none", "2%", "7%", "8%", "two plateaus"};
    static const double changes[] = {0, .05, .10, .20};
    puts("| between layouts | true change | looks | regressed | excludes 0 | beyond the floor | covered | same | pairs |");
    puts("|---|--:|---|--:|--:|--:|--:|--:|--:|");
    for (int kind = 0; kind < 5; kind++)
        for (int change = 0; change < 4; change++) {
            double truth = log1p(changes[change]);
            Tally tally[SCHEDULES] = {{0}};
            state = seed * 1000003u + (uint64_t)(kind * 16 + change);
            for (int experiment = 0; experiment < experiments; experiment++) {
                double a[PAIRS], b[PAIRS], est[LOOKS], p[LOOKS][POINTS], cut[LOOKS][POINTS];
                for (int i = 0; i < PAIRS; i++) {
                    a[i] = layout(kind) + .01 * gauss();
                    b[i] = layout(kind) + truth + .01 * gauss();
                }
                double fixed[] = {0, log1p(.005), log1p(-.005), log1p(.05), log1p(-.05), log1p(.10), truth};
                double away[] = {.02, -.02, .005, -.005, .025, -.025};
                memcpy(cuts, fixed, sizeof fixed);
                for (int look = 0; look < LOOKS; look++) {
                    est[look] = estimate(a, b, AT[look]);
                    memcpy(cut[look], fixed, sizeof fixed);
                    for (int i = 0; i < 6; i++) cut[look][HALF_UP + i] = est[look] + away[i];
                    for (int point = 0; point < POINTS; point++) p[look][point] = p_of(a, b, AT[look], cut[look][point]);
                }
                judge(p, est, cut, tally);
            }
            for (int which = 0; which < SCHEDULES; which++) {
                Tally *t = &tally[which];
                double share = 100.0 / experiments;
                printf("| %s | +%.0f%% | %s | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f%% | %.1f |\n", kinds[kind],
                       changes[change] * 100, schedules[which].name, t->regressed * share, t->changed * share,
                       t->alarm * share, t->covered * share, t->same * share, (double)t->pairs / experiments);
            }
            fflush(stdout);
        }
    return 0;
}
