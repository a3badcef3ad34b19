/* Asks NVIDIA's cuda_occupancy.h what it says of a grid of launches; prints a CSV. See README.md beside this file. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cuda_occupancy.h"

struct capability {
    int major, minor, threads;
    size_t shared_kib, reserved;
};

/* cuda_occupancy.h is told these by the driver; here they are those of arch_traits.h of CCCL 13.3 and, for 7.2, of the
   CUDA C++ Programming Guide 12.9, table "Technical Specifications per Compute Capability". */
static const struct capability CAPABILITIES[] = {
    {7, 0, 2048, 96, 0},     {7, 2, 2048, 96, 0},     {7, 5, 1024, 64, 0},      {8, 0, 2048, 164, 1024},
    {8, 6, 1536, 100, 1024}, {8, 7, 1536, 164, 1024}, {8, 9, 1536, 100, 1024},  {9, 0, 2048, 228, 1024},
    {10, 0, 2048, 228, 1024}, {10, 3, 2048, 228, 1024}, {12, 0, 1536, 100, 1024}, {12, 1, 1536, 100, 1024},
};
static const int THREADS[] = {1, 32, 33, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1024, 1025};
static const int REGISTERS[] = {0, 1, 16, 24, 32, 33, 40, 48, 64, 80, 96, 128, 168, 255};
static const int SHARED[] = {0, 1, 1024, 4096, 8192, 16384, 24576, 33000, 49152, 65536, 101376, 166912, 232448};
static const int BARRIERS[] = {1, 7};
static const int CARVEOUTS[] = {SHAREDMEM_CARVEOUT_DEFAULT, 0, 50};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* INT_MAX, for a resource that is no limit, is printed as an empty cell. */
static void cell(int blocks) {
    if (blocks != INT_MAX) printf("%d", blocks);
    printf(",");
}

int main(void) {
    unsigned long number = 0;
    printf("capability,threads,registers,shared,barriers,carveout,");
    printf("by_registers,by_shared,by_warps,by_blocks,by_barriers,blocks,limiters\n");
    for (size_t c = 0; c < COUNT(CAPABILITIES); c++)
        for (size_t t = 0; t < COUNT(THREADS); t++)
            for (size_t r = 0; r < COUNT(REGISTERS); r++)
                for (size_t s = 0; s < COUNT(SHARED); s++)
                    for (size_t b = 0; b < COUNT(BARRIERS); b++)
                        for (size_t k = 0; k < COUNT(CARVEOUTS); k++) {
                            /* Every 97th of the grid: 97 is prime to all its sides, so all values meet. */
                            if (number++ % 97 != 0) continue;
                            const struct capability *it = &CAPABILITIES[c];
                            cudaOccDeviceProp device;
                            cudaOccFuncAttributes kernel;
                            cudaOccDeviceState state;
                            cudaOccResult result;
                            size_t carveout;
                            memset(&device, 0, sizeof device);
                            memset(&kernel, 0, sizeof kernel);
                            memset(&state, 0, sizeof state);
                            device.computeMajor = it->major;
                            device.computeMinor = it->minor;
                            device.maxThreadsPerBlock = 1024;
                            device.maxThreadsPerMultiprocessor = it->threads;
                            device.regsPerBlock = 65536;
                            device.regsPerMultiprocessor = 65536;
                            device.warpSize = 32;
                            device.sharedMemPerBlock = 49152;
                            device.sharedMemPerMultiprocessor = it->shared_kib * 1024;
                            device.numSms = 1;
                            device.sharedMemPerBlockOptin = it->shared_kib * 1024 - it->reserved;
                            device.reservedSharedMemPerBlock = it->reserved;
                            kernel.maxThreadsPerBlock = 1024;
                            kernel.numRegs = REGISTERS[r];
                            kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
                            kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
                            kernel.maxDynamicSharedSizeBytes = device.sharedMemPerBlockOptin;
                            kernel.numBlockBarriers = BARRIERS[b];
                            state.cacheConfig = CACHE_PREFER_NONE;
                            state.carveoutConfig = CARVEOUTS[k];
                            if (cudaOccSMemPerMultiprocessor(&carveout, &device, &state) != CUDA_OCC_SUCCESS) return 1;
                            if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, THREADS[t],
                                                                       SHARED[s]) != CUDA_OCC_SUCCESS)
                                continue; /* more shared memory than the setting's sizes go */
                            printf("%d.%d,%d,%d,%d,%d,%zu,", it->major, it->minor, THREADS[t], REGISTERS[r], SHARED[s],
                                   BARRIERS[b], carveout);
                            cell(result.blockLimitRegs);
                            cell(result.blockLimitSharedMem);
                            cell(result.blockLimitWarps);
                            cell(result.blockLimitBlocks);
                            cell(result.blockLimitBarriers);
                            printf("%d,%u\n", result.activeBlocksPerMultiprocessor, result.limitingFactors);
                        }
    return 0;
}
