/* Code that no program calls while it works. */
#include <stdint.h>

uint64_t extra_fold(uint64_t value) {
    for (int i = 0; i < 7; i++) value ^= value >> (i + 3);
    return value;
}
