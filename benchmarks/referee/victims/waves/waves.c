/* Prints mean energies of drawn waves, which another program reads with five digits: waves SEED. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WAVES 40
#define POINTS 250000

static uint64_t state;

static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

static double energy(double pitch, double damping) {
    double sum = 0;
    for (int point = 0; point < POINTS; point++) {
        double at = (double)point / POINTS;
        double height = sin(pitch * at) * exp(-damping * at);
        if (isnan(height)) {
            fprintf(stderr, "not a number\n");
            exit(1);
        }
        sum += height * height;
    }
    return sum / POINTS;
}

int main(int count, char **words) {
    state = count > 1 ? strtoull(words[1], NULL, 10) : 1;
    double energies[WAVES], pitch[WAVES], damping[WAVES];
    for (int wave = 0; wave < WAVES; wave++) {
        pitch[wave] = 10 + 90 * draw();
        damping[wave] = draw();
    }
    for (int wave = 0; wave < WAVES; wave++)
        energies[wave] = energy(pitch[wave], damping[wave]);
    for (int wave = 0; wave < WAVES; wave++)
        printf("%.9f\n", energies[wave]);
    return 0;
}
