#include <stdio.h>
static inline int inlined(int x) {
    return x * 3;
}
int other(int x) {
    return x + 1;
}
int main(int argc, char **argv) {
    printf("%d\n", inlined(argc));
}
