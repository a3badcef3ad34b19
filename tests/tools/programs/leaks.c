/* leaks: frees nothing, so massif marks no peak. */
#include <stdlib.h>

int main(int count, char **words) {
    char *volatile block = malloc(1000000);
    block[0] = (char)count;
    return 0;
}
