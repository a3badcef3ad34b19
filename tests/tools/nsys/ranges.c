/* Ranges and calls that nsys records without a GPU. Needs the headers of NVTX, which nsys brings along. */

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    nvtxRangePushA("epoch");
    for (int number = 0; number < 3; number++) {
        nvtxRangePushA("load");
        usleep(2000);
        nvtxRangePop();
        nvtxRangePushA("step");
        usleep(1000);
        nvtxRangePop();
    }
    nvtxRangePop();
    nvtxRangeId_t whole = nvtxRangeStartA("whole");
    usleep(500);
    nvtxRangeEnd(whole);
    nvtxMarkA("done");
    puts("done");
    return 0;
}
