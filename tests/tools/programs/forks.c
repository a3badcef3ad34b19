/* forks: the child holds five times what its parent holds. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    char *block = malloc(1000000);
    memset(block, 1, 1000000);
    if (fork() == 0) {
        char *more = malloc(4000000);
        memset(more, 1, 4000000);
        return more[3] - 1;
    }
    int status;
    wait(&status);
    return block[5] - 1 + WEXITSTATUS(status);
}
